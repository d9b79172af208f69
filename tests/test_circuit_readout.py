"""The read-out of a population is what its circuit answers when the label is released."""

import numpy as np
import pytest
import torch

from pcsim import config
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Categorical
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import Parameters, generator
from pcsim.network import Network
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.circuit_readout import CircuitReadout
from pcsim.runner.readout import Readout
from pcsim.substrate import Chips, Draw, Effect, Memory, Seeded, Substrate
from pcsim.substrate.effect import ABOUT, FABRICATED, TRAINS

F64 = torch.float64
DT = 0.2
LEAKY = Conductances(g_lk=0.2, g_B=0.9, g_A=0.7, g_D=0.8, g_som=0.3)
CIRCUITS = {
    "algebraic": Circuit(),
    "error units": Circuit(kind="error_units", tau_err=0.2),
    "dendritic": Circuit(kind="dendritic", conductances=LEAKY),
    "lagged dendritic": Circuit(
        kind="dendritic", conductances=LEAKY, tau_apical=0.4, tau_inter=0.3, inhibition=0.9
    ),
    "one array": Circuit(kind="dendritic", conductances=LEAKY, inter_learned=False),
    "random feedback": Circuit(transport="random"),
    "look-ahead": Circuit(look_soma=0.2),
    "late errors": Circuit(delay_err=0.2),
    "equilibrium": Circuit(kind="equilibrium", beta=0.8),
    "sacramento": Circuit(kind="sacramento", conductances=LEAKY, eta_apical=0.5),
}


def fixed(site, name="piece"):
    """Return an effect without noise: gain and offset of every element."""
    if site in (*FABRICATED, "write"):  # an offset there would move weights for ever
        return Effect(name=name, site=site, becomes="s*exp(0.2*g)", draws={"g": Draw()})
    becomes, draws = "s*(1 + 0.1*g) + 0.1*o", {"g": Draw(), "o": Draw()}
    return Effect(name=name, site=site, becomes=becomes, draws=draws)


def population(effects, dt=DT):
    if not effects:
        return None
    noise = Seeded(1)
    return Chips(Substrate(effects=effects), [4, 7], seed=2, dt=dt, noise=noise, dtype=F64)


def built(circuit, effects=(), *, tau_w=8.0, chips="new", output=None, seeds=(0, 1)):
    """Return two chips, with weights that are neither small nor unstable.

    Where signals go round through the same weights, both ways count: half as large, the slowest
    mode still settles within the steps of `settled`.
    """
    biased = circuit.kind != "sacramento"
    size = 0.2 if circuit.kind == "equilibrium" else 0.4
    network = Network.mlp([3, 5, 4, 3], "tanh", bias=biased, output=output)
    rows = [generator(s, 9).normal(0, 1, network.parameter_count) for s in seeds]
    params = Parameters(network, torch.as_tensor(np.stack(rows)))
    for node, views in zip(network.nodes, params.of, strict=True):
        for name, array in views.items():
            array.mul_(size / node.map.n_in**0.5 if name == "w" else 0.2)
    timed = circuit.model_copy(update={"tau_w": tau_w})
    on = population(effects) if isinstance(chips, str) else chips
    return Continuous(network, params, timed, dt=DT, seeds=seeds, chips=on)


def trained(circuit, effects=(), **options):
    """Return chips that have learnt for a while: interneurons and feedback are not as they were."""
    engine = built(circuit, effects, **options)
    rng = np.random.default_rng(3)
    for _ in range(4):
        draws = [torch.as_tensor(rng.standard_normal((2, 1, n))) for n in (3, 3)]
        label = draws[0].softmax(-1) if options.get("output") else draws[0]
        engine.load([label, None, None, draws[1]])
        engine.advance(8)
    return engine


def readout_of(engine, effects=()):
    def build(circuit, chips, draw):
        timed = circuit.model_copy(update={"tau_w": 1.0})
        return built(timed, chips=chips, output=engine.network.nodes[0].energy)

    noise = engine.chips.noise if engine.chips else Seeded(0)
    return CircuitReadout(
        engine.network, engine.circuit, engine.chips, build, noise, lambda: engine.steps
    )


def settled(engine, effects, inputs, steps=400):
    """Return x⁰ of the very circuit: label released, weights that hardly move, a long time."""
    frozen = built(engine.circuit, effects, tau_w=1e14, output=engine.network.nodes[0].energy)
    for array, given in zip(frozen.flow.weights, engine.flow.stored(), strict=True):
        array.copy_(given)
    nodes = len(engine.network.nodes)
    frozen.load([torch.zeros(2, len(inputs), 3, dtype=F64), None, None, inputs[None]])
    frozen.advance(5)  # it has known another label
    frozen.load([None] * (nodes - 1) + [inputs[None]])
    frozen.advance(steps)
    return frozen.flow.states()["x0"].clone()


INPUTS = torch.as_tensor(np.random.default_rng(5).standard_normal((4, 3)))


@pytest.mark.parametrize("name", CIRCUITS)
def test_ideal_hardware(name):
    engine = trained(CIRCUITS[name])
    found = readout_of(engine).scores(engine.flow, INPUTS)
    assert (found - settled(engine, (), INPUTS)).abs().max() < 1e-6


def sites_of(circuit):
    """Return the sites that a circuit has, but for its output and what is never read."""
    lags = {name for name in ("tau_err", "tau_apical", "tau_inter") if getattr(circuit, name)}
    own = lags | ({"g_basal", "g_apical"} if circuit.kind == "dendritic" else {"tau_w"})
    absent = {"tau_err", "tau_apical", "tau_inter", "g_basal", "g_apical", "tau_w"} - own
    absent |= {"error", "tau_w"} if circuit.kind == "equilibrium" else set()
    absent |= {*TRAINS}  # of single pulses: nothing fixed acts there
    return [site for site in ABOUT if site not in absent]


CASES = [
    (name, site)
    for name in ("algebraic", "error units", "dendritic", "equilibrium")
    for site in sites_of(CIRCUITS[name])
]
CASES += [("lagged dendritic", site) for site in ("tau_apical", "tau_inter", "feedback")]


@pytest.mark.parametrize(("name", "site"), CASES)
def test_every_site(name, site):
    """Fixed patterns at one site at a time; a chip answers by its output site."""
    effects = (fixed(site),)
    engine = trained(CIRCUITS[name], effects)
    found = readout_of(engine).scores(engine.flow, INPUTS)
    expected = settled(engine, effects, INPUTS)
    if site == "output":
        expected = population(effects).transform("output", 0, (3,))(expected)
    assert (found - expected).abs().max() < 1e-6


def test_all_sites_at_once():
    circuit = CIRCUITS["lagged dendritic"]
    effects = tuple(fixed(s, f"p{k}") for k, s in enumerate(sites_of(circuit)) if s != "output")
    engine = trained(circuit, effects)
    found = readout_of(engine).scores(engine.flow, INPUTS)
    assert (found - settled(engine, effects, INPUTS)).abs().max() < 1e-6


@pytest.mark.parametrize("site", ["product", "error", "feedback", "velocity", "g_basal"])
def test_control_the_forward_pass_is_another_answer(site):
    engine = trained(CIRCUITS["dendritic"], (fixed(site),))
    found = readout_of(engine).scores(engine.flow, INPUTS)
    plain = Readout(engine.network, engine.chips).scores(engine.flow.theta(), INPUTS)
    assert (found - plain).abs().max() > 1e-3


def test_a_classifier_with_a_categorical_output():
    effects = (fixed("product"),)
    engine = trained(Circuit(), effects, output=Categorical())
    found = readout_of(engine).scores(engine.flow, INPUTS).softmax(-1)
    assert (found - settled(engine, effects, INPUTS).softmax(-1)).abs().max() < 1e-6
    assert (
        found - outputs(engine.network, engine.flow.theta(), INPUTS).softmax(-1)
    ).abs().max() > 1e-3


def test_neither_other_samples_nor_parts_of_a_list_matter():
    engine = trained(CIRCUITS["dendritic"], (fixed("error"), fixed("product", "other")))
    readout = readout_of(engine)
    whole = readout.scores(engine.flow, INPUTS)
    in_parts = readout.scores(engine.flow, INPUTS, chunk=1)
    assert (whole - in_parts).abs().max() < 1e-13
    again = readout.scores(engine.flow, INPUTS)
    assert torch.equal(whole, again)


def test_reading_out_leaves_the_chips_alone():
    engine = trained(CIRCUITS["dendritic"], (fixed("error"),))
    before = {n: s.clone() for n, s in engine.flow.states().items()}
    weights, time = [w.clone() for w in engine.flow.stored()], engine.chips.clock.t
    readout_of(engine).scores(engine.flow, INPUTS)
    assert all(torch.equal(s, before[n]) for n, s in engine.flow.states().items())
    assert all(torch.equal(a, b) for a, b in zip(engine.flow.stored(), weights, strict=True))
    assert engine.chips.clock.t == time


DENDRITIC = {"kind": "dendritic", "conductances": {"g_lk": 0.2, "g_A": 0.7}, "tau_apical": 0.3}
MIRRORED = {"kind": "error_units", "tau_err": 0.3, "transport": "kolen_pollack"}
SACRAMENTO = {"kind": "sacramento", "conductances": {"g_lk": 0.1, "g_som": 0.4}}


@pytest.mark.parametrize(
    ("backend", "circuit"),
    [
        ("continuous", DENDRITIC),
        ("continuous", MIRRORED),
        ("continuous", SACRAMENTO),
        ("brian", DENDRITIC),
        ("brian", SACRAMENTO),
    ],
    ids=lambda given: given if isinstance(given, str) else given["kind"],
)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_a_run_is_read_out_as_it_answers(backend, circuit):
    """Chips of a whole run, and their own engine let go: offsets of 0.2 at two sites."""
    offset = {"kind": "offset", "sigma": 0.2}
    pieces = {"line": offset | {"of": "product"}, "error": offset | {"of": "error"}}
    on_chip = {"chips": 3, "pieces": pieces} if circuit["kind"] != "sacramento" else {}
    run = ChipRun(
        config.parse(
            {
                "network": {"sizes": [64, 5, 10], "bias": circuit["kind"] != "sacramento"},
                "schedule": {"T": 2, "gamma": 0.3},
                "learning": {"alpha": 1e-14, "batch": 1},
                "data": {"name": "digits", "limit": 2},
                "run": {"backend": backend, "dtype": "float64"},
                "circuit": circuit,
                "hardware": on_chip,
            }
        )
    )
    run.run()
    seen = run.task.test.x[: 1 if backend == "brian" else 2]
    scores = run.readout.scores(run.engine.flow, seen)
    for k, sample in enumerate(seen):
        run.engine.load([None, None, sample[None, None]])
        run.engine.advance(200)
        answer = run.engine.flow.states()["x0"][:, 0]
        assert (scores[:, k] - answer).abs().max() < 1e-6
    plain = outputs(run.network, run.engine.flow.theta(), seen)
    assert not on_chip or (scores - plain).abs().max() > 0.1, "control"


REMEMBERED = Effect(
    name="error",
    site="weight",
    becomes="s + m",
    memory={"m": Memory(start="0.1*start_xi", update="m")},
)


@pytest.mark.parametrize("name", ["algebraic", "dendritic", "one array"])
def test_arrays_are_read_with_what_they_remember(name):
    """Each weight has an error that stays as it is: a read-out must not draw another."""
    engine = built(CIRCUITS[name], (REMEMBERED,), tau_w=1e14)
    engine.load([INPUTS[None, :1].expand(2, -1, -1), None, None, INPUTS[None, :1]])
    engine.advance(3)
    found = readout_of(engine).scores(engine.flow, INPUTS)
    engine.load([None, None, None, INPUTS[None]])
    engine.advance(400)
    answer = engine.flow.states()["x0"]
    assert (found - answer).abs().max() < 2e-3  # what memory moves is integrated for 10 τ
    fresh = readout_of(built(CIRCUITS[name], (REMEMBERED,), tau_w=1e14))
    fresh.chips.noise = Seeded(8)
    other = fresh.scores(engine.flow, INPUTS)
    assert (other - answer).abs().max() > 0.05, "control: other memory, another answer"


def test_a_noisy_answer_is_one_of_the_noisy_circuit():
    """Read-outs at the same time are alike; noise is filtered by the soma as in the circuit."""
    noisy = Effect(name="hiss", site="product", becomes="s + 0.3*n", noise={"n": "normal"})
    engine = built(Circuit(), (noisy,), tau_w=1e14)
    many = INPUTS[:1].expand(400, -1)
    readout = readout_of(engine)
    found = readout.scores(engine.flow, many)
    assert torch.equal(found, readout.scores(engine.flow, many))
    assert torch.equal(found, readout.scores(engine.flow, many, chunk=150)), "in parts as a whole"
    engine.load([None, None, None, many[None]])
    engine.feedforward()
    engine.advance(100)
    seen = engine.flow.states()["x0"]
    spreads = found.std(1), seen.std(1)
    assert spreads[0] == pytest.approx(spreads[1], rel=0.15)
    assert (spreads[0] < 0.2).all(), "control: a single product would show 0.3"
    assert (found.mean(1) - seen.mean(1)).abs().max() < 5 * 0.2 / 20
