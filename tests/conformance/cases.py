"""The cases, each once; which backend runs which is up to the adapters.

Every circuit meets every mode; transports rotate, so that each meets every circuit and every mode.
"""

from case import Case, Presentation
from hardware_pieces import hardware

from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Categorical, Gaussian
from pcsim.network import Network

GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
SIZES = [3, 4, 2]
CIRCUITS = {
    "algebraic": {},
    "error_units": {"kind": "error_units", "tau_err": 0.3},
    "dendritic": {"kind": "dendritic", "conductances": GENERAL},
    "late": {"kind": "error_units", "tau_err": 0.3, "look_err": 0.1, "delay_err": 0.2},
    "look_soma": {"look_soma": 0.4},
    "lags": {
        "kind": "dendritic",
        "conductances": GENERAL,
        "inhibition": 0.9,
        "inter_rate": 0.8,
        "tau_inter": 0.2,
        "tau_apical": 0.3,
        "look_inter": 0.1,
        "look_apical": 0.05,
    },
}
TRANSPORTS = ("shared", "random", "sign", "kolen_pollack")
MODES = ("supervised", "generative", "free")
SETTLE = (
    Presentation(0, 100, feedforward=True),
    Presentation(1, 100, label=False),
    Presentation(1, 150),
    Presentation(2, 150, feedforward=True),
)
SETTLED = (Presentation(0, 250, feedforward=True), Presentation(1, 250, feedforward=True))
SPIKING = {"kind": "spiking", "tau_err": 0.3, "tau_s": 0.5, "q": 0.2, "qe": 0.1}
EQUILIBRIUM = {"kind": "equilibrium", "beta": 0.8}
SACRAMENTO = {
    "kind": "sacramento",
    "conductances": Conductances(g_lk=0.1, g_A=0.8, g_D=0.9, g_som=0.8),
}
ALL_PLASTIC = {
    "eta_inter": 0.8,
    "eta_apical": 0.5,
    "eta_down": 0.3,
    "self_predicting": False,
    "tau_inter": 0.3,
}


def circuit(**fields):
    return Circuit(**{"tau_w": 5.0, **fields})


def every_circuit_in_every_mode():
    for row, (name, fields) in enumerate(CIRCUITS.items()):
        for column, mode in enumerate(MODES):
            transport = TRANSPORTS[(row + column) % len(TRANSPORTS)]
            decay = 0.1 if transport == "kolen_pollack" else 0.0
            network = Network.mlp(SIZES, "tanh", prior=0.2 if mode == "generative" else None)
            yield Case(
                f"{name} {mode} {transport}",
                network,
                circuit(transport=transport, weight_decay=decay, **fields),
                mode,
                tau_x_per_chip=name != "look_soma",
            )


def mlp(*sizes, f="tanh", **options):
    return Network.mlp(sizes or SIZES, f, **options)


FIXED = {"output": Gaussian((0.5, 2.0)), "hidden": Gaussian(1.5)}
FLOOR = Gaussian(learned=True, floor=0.7)  # reached; much less would be too stiff for dt
LEARNED = {"output": FLOOR, "hidden": FLOOR}
LABELS = {"output": Categorical()}
SUBTLE = [
    Case("sigmoid", mlp(f="sigmoid", f_input=True, prior=0.1), circuit(), "generative"),
    Case("relu", mlp(f="relu", f_input=True), circuit(), "generative", gain=0.9),
    Case("leaky relu", mlp(f="leaky_relu"), circuit(), gain=0.9),
    Case("linear", mlp(f="identity"), circuit()),
    Case("gelu", mlp(f="gelu"), circuit()),
    Case("a batch", mlp(), circuit(tau_w=20.0), samples=4, scale=0.25),
    Case(
        "Kolen and Pollack",
        mlp(),
        circuit(transport="kolen_pollack", weight_decay=0.1, feedback_gain=1.5),
    ),
    Case("weight decay", mlp(), circuit(weight_decay=0.2), scale=0.5),
    Case("fixed variances", mlp(**FIXED), circuit()),
    Case("fixed variances, error units", mlp(**FIXED), circuit(**CIRCUITS["error_units"])),
    Case("learned variances", mlp(**LEARNED), circuit()),
    Case("categorical labels", mlp(3, 4, 3, **LABELS), circuit(), script=SETTLE),
    Case("categorical hidden layer", mlp(3, 3, 4, 2, hidden=Categorical()), circuit()),
    Case(
        "categorical layers, decaying separate feedback, several samples",
        mlp(3, 4, 3, hidden=Categorical(), **LABELS),
        circuit(transport="kolen_pollack", weight_decay=0.1, tau_w=20.0),
        samples=4,
        scale=0.25,
        script=SETTLE,
        mismatch=("tau_x",),
    ),
    Case(
        "categorical layers, late feedback",
        mlp(3, 4, 3, prior=0.2, hidden=Categorical()),
        circuit(delay_fb=0.3),
        "generative",
    ),
    Case("softmax rates, late errors", mlp(3, 4, 3, 2, f="softmax"), circuit(**CIRCUITS["late"])),
    Case("post", mlp(convention="post", f_output=True), circuit(transport="sign")),
    Case("post, late", mlp(f="sigmoid", convention="post"), circuit(delay_err=0.1, delay_fb=0.2)),
    Case("late errors", mlp(), circuit(delay_err=0.3)),
    Case("late errors, label let go", mlp(), circuit(delay_err=0.2), script=SETTLE),
    Case("late feedback", mlp(3, 4, 3, 2), circuit(delay_fb=0.4)),
    Case("both late", mlp(prior=0.2), circuit(delay_err=0.1, delay_fb=0.2), "generative"),
    Case("latent equilibrium", mlp(), circuit(look_soma=1.0), script=SETTLE),
    Case("part of a pattern", mlp(prior=0.0), circuit(), "associative"),
    Case(
        "part of a pattern, error units",
        mlp(prior=0.0),
        circuit(**CIRCUITS["late"]),
        "associative",
    ),
    Case("label let go, error units", mlp(), circuit(**CIRCUITS["late"]), script=SETTLE),
    Case("label let go, dendritic", mlp(3, 4, 3, 2), circuit(**CIRCUITS["lags"]), script=SETTLE),
    Case("unit conductances", mlp(3, 4, 3, 2), circuit(kind="dendritic", tau_x=0.8), scale=0.5),
    Case(
        "interneurons read W",
        mlp(),
        circuit(kind="dendritic", inter_learned=False, tau_inter=0.2),
    ),
    Case("flat prior, no bias", mlp(bias=False), circuit(), "generative"),
    Case("flat prior, dendritic", mlp(bias=False), circuit(kind="dendritic"), "generative"),
    Case("tau_x per unit", mlp(), circuit(), mismatch=("tau_x",)),
    Case("tau_w per weight", mlp(), circuit(), mismatch=("tau_w",)),
    Case(
        "mismatch",
        mlp(),
        circuit(transport="kolen_pollack", weight_decay=0.1),
        mismatch=("tau_x", "tau_w"),
    ),
    Case("mismatch, learned", mlp(**LEARNED), circuit(), mismatch=("tau_x", "tau_w")),
    Case("mismatch, dendritic", mlp(), circuit(**CIRCUITS["lags"]), mismatch=("tau_x",)),
    Case(
        "one map, late",
        mlp(3, 2, f_input=True, prior=0.2),
        circuit(delay_err=0.1, delay_fb=0.2),
        "generative",
        mismatch=("tau_x",),
    ),
    Case(
        "one map, lags",
        mlp(3, 2, f_input=True, prior=0.2),
        circuit(transport="kolen_pollack", **CIRCUITS["lags"]),
        "generative",
        tau_x_per_chip=True,
    ),
    Case("sacramento", mlp(3, 5, 4, 2, bias=False), circuit(**SACRAMENTO), script=SETTLE),
    Case(
        "sacramento, all plastic",
        mlp(3, 5, 4, 2, bias=False),
        circuit(**SACRAMENTO, **ALL_PLASTIC, weight_decay=0.1),
        scale=0.5,
    ),
    Case("equilibrium", mlp(3, 5, 4, 2), circuit(**EQUILIBRIUM), script=SETTLE),
    Case(
        "equilibrium, always plastic",
        mlp(f="sigmoid", f_input=True),
        circuit(**EQUILIBRIUM, plastic="always", weight_decay=0.1),
        scale=0.5,
        mismatch=("tau_x",),
    ),
    Case("equilibrium, no biases", mlp(bias=False), circuit(**EQUILIBRIUM), tau_x_per_chip=True),
    Case("equilibrium, a batch", mlp(), circuit(**EQUILIBRIUM | {"tau_w": 20.0}), samples=4),
    Case("equilibrium, free", mlp(), circuit(**EQUILIBRIUM), "free"),
    Case("spiking", mlp(3, 5, 4, 2), circuit(**SPIKING), script=SETTLE, tau_x_per_chip=True),
    Case("spiking, no leak", mlp(), circuit(**SPIKING | {"tau_s": 0.0}), scale=0.5),
    Case(
        "spiking, decay and mismatch",
        mlp(f="sigmoid", f_input=True),
        circuit(**SPIKING, weight_decay=0.1),
        mismatch=("tau_x", "tau_w"),
    ),
    Case("spiking, one map", mlp(3, 2, bias=False), circuit(**SPIKING), script=SETTLE),
    Case("spiking, free", mlp(), circuit(**SPIKING), "free"),
    Case("sacramento, free", mlp(3, 4, 2, f="sigmoid", bias=False), circuit(**SACRAMENTO), "free"),
]
HARDWARE = [
    Case("few levels and faults", mlp(), circuit(), hardware=hardware("few levels", "faults")),
    Case("noise at every read", mlp(), circuit(), hardware=hardware("noise"), script=SETTLED),
    Case("pulsed writes", mlp(), circuit(), hardware=hardware("mismatch", "pulsed writes")),
    Case(
        "few levels, dendritic", mlp(), circuit(kind="dendritic"), hardware=hardware("few levels")
    ),
    Case("slow synapses", mlp(), circuit(), hardware=hardware("slow synapses")),
    Case(
        "categorical layers on hardware",
        mlp(3, 4, 3, hidden=Categorical(), **LABELS),
        circuit(),
        hardware=hardware("few levels", "faults", "noise", "mismatch"),
        script=SETTLED,
    ),
    Case(
        "equilibrium on hardware",
        mlp(),
        circuit(**EQUILIBRIUM),
        hardware=hardware("levels, no error units", "faults", "noise", "mismatch"),
        script=SETTLE,
    ),
    Case(
        "equilibrium, pulsed writes",
        mlp(),
        circuit(**EQUILIBRIUM),
        hardware=hardware("pulsed writes"),
        script=SETTLE,
    ),
    Case(
        "all of them, error units",
        mlp(),
        circuit(transport="random", **CIRCUITS["late"]),
        hardware=hardware("few levels", "faults", "noise", "mismatch"),
        script=SETTLE,
    ),
]
NOWHERE = [
    Case("dendritic in part", mlp(), circuit(kind="dendritic"), "associative"),
    Case("dendritic variances", mlp(**FIXED), circuit(kind="dendritic")),
    Case("dendritic post", mlp(convention="post"), circuit(kind="dendritic")),
    Case("dendritic tau_w", mlp(), circuit(kind="dendritic"), mismatch=("tau_w",)),
    Case("sacramento biases", mlp(), circuit(**SACRAMENTO)),
    Case("sacramento generative", mlp(bias=False), circuit(**SACRAMENTO), "generative"),
    Case("sacramento tau_x", mlp(bias=False), circuit(**SACRAMENTO), mismatch=("tau_x",)),
    Case("spiking generative", mlp(), circuit(**SPIKING), "generative"),
    Case("spiking post", mlp(convention="post"), circuit(**SPIKING)),
    Case("spiking variances", mlp(**FIXED), circuit(**SPIKING)),
    Case("spiking priors", mlp(prior=0.1), circuit(**SPIKING)),
    Case("spiking on hardware", mlp(), circuit(**SPIKING), hardware=hardware("slow synapses")),
    Case("equilibrium generative", mlp(), circuit(**EQUILIBRIUM), "generative"),
    Case("equilibrium post", mlp(convention="post"), circuit(**EQUILIBRIUM)),
    Case("equilibrium variances", mlp(**FIXED), circuit(**EQUILIBRIUM)),
    Case("equilibrium tau_w", mlp(), circuit(**EQUILIBRIUM), mismatch=("tau_w",)),
    Case("equilibrium, errors", mlp(), circuit(**EQUILIBRIUM), hardware=hardware("few levels")),
    Case("error units of labels", mlp(**LABELS), circuit(kind="error_units", tau_err=0.3)),
    Case("late errors of labels", mlp(**LABELS), circuit(delay_err=0.1)),
    Case("dendritic softmax", mlp(f="softmax"), circuit(kind="dendritic")),
    Case("late learned variances", mlp(**LEARNED), circuit(delay_err=0.1)),
]
"""Cases that no backend runs today."""
CASES = {case.name: case for case in (*every_circuit_in_every_mode(), *SUBTLE, *HARDWARE, *NOWHERE)}
