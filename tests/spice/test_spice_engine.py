"""The engine `spice` against torch: RK4 where hardware is ideal, Euler's O(dt) where it is not."""

from pathlib import Path

import pytest
import torch

from pcsim import Network
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.config import parse
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.run import run
from pcsim.spice import ngspice
from pcsim.spice.engine import Spice
from pcsim.spice.netlist import Netlist
from pcsim.spice.ngspice import StoppedEarlyError
from pcsim.substrate import Chips, Draw, Effect, Memory, Seeded, Substrate

pytestmark = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())

NETWORK = Network.mlp([3, 4, 2], "tanh")
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
CIRCUITS = {
    "algebraic": {},
    "decay and random feedback": {"weight_decay": 0.1, "transport": "random"},
    "error_units": {"kind": "error_units", "tau_err": 0.3, "look_err": 0.1},
    "dendritic": {
        "kind": "dendritic",
        "conductances": GENERAL,
        "tau_inter": 0.2,
        "tau_apical": 0.3,
        "transport": "kolen_pollack",
        "weight_decay": 0.1,
    },
}


def data(network, count=3):
    drawn = torch.Generator().manual_seed(3)
    sizes = [node.units for node in network.nodes]
    for _ in range(count):
        yield (
            torch.randn(1, 1, sizes[0], generator=drawn).double(),
            torch.randn(1, 1, sizes[-1], generator=drawn).double(),
        )


def shown(engine, network=NETWORK, seconds=3.0, count=3):
    """Show some samples, nothing reset but at the start; return states and weights at the end."""
    steps = round(seconds / engine.dt)

    def program():
        for n, (label, source) in enumerate(data(network, count)):
            engine.load([label, *[None] * (len(network.nodes) - 2), source])
            if n == 0:
                engine.feedforward()
            yield from [None] * steps

    engine.drive(program(), count * steps)
    states = {name: state.clone() for name, state in engine.flow.moving().items()}
    return states, torch.cat([array.clone() for array in engine.flow.weights], 1)


def made(engine, circuit, network=NETWORK, chips=1, **options):
    params = initial_parameters(network, seeds=range(chips), dtype=torch.float64)
    return engine(network, params, circuit, **options)


def apart(one, other):
    states = max(float((one[0][name] - other[0][name]).abs().max()) for name in other[0])
    return states, float((one[1] - other[1]).abs().max())


@pytest.mark.parametrize("name", CIRCUITS)
def test_ideal_circuits_are_those_of_rk4(name, tmp_path):
    """x to 1e-5 and w to 1e-6 at reltol 1e-6; at 1e-4 it is three times as far."""
    circuit = Circuit(**{"tau_w": 20.0, **CIRCUITS[name]})
    exact = shown(made(Continuous, circuit, dt=0.01, solver_name="rk4", fast=False))
    fine = shown(made(Spice, circuit, dt=0.1, reltol=1e-6))
    coarse = shown(made(Spice, circuit, dt=0.1, reltol=1e-4))
    x, w = apart(fine, exact)
    assert x < 1e-5
    assert w < 1e-6
    assert apart(coarse, exact)[0] > 3 * x


def test_variances_divide_errors():
    """Fixed variances per unit; those that learn and the softmax are refused by name."""
    energies = {"output": Gaussian((0.5, 2.0)), "hidden": Gaussian(1.5)}
    network, circuit = Network.mlp([3, 4, 2], "sigmoid", **energies), Circuit(tau_w=20.0)
    rk4 = made(Continuous, circuit, network, dt=0.01, solver_name="rk4", fast=False)
    exact = shown(rk4, network, count=1)
    found = shown(made(Spice, circuit, network, dt=0.1, reltol=1e-5), network, count=1)
    assert max(apart(found, exact)) < 5e-5
    for output, said in ((Categorical(), "softmax"), (Gaussian(learned=True), "floor")):
        with pytest.raises(UnsupportedError, match=said):
            made(Spice, circuit, Network.mlp([3, 4, 2], "tanh", output=output), dt=0.1)


HARDWARE = Substrate(
    effects=(
        Effect(
            name="tau",
            site="tau_x",
            becomes="s*(1 + 0.2*xi)",
            draws={"xi": Draw()},
        ),
        Effect(name="sat", site="rate", becomes="a*tanh(s/a)", constants={"a": 0.8}),
        Effect(name="gain", site="weight", becomes="s*(1 + 0.2*xi)", draws={"xi": Draw()}),
        Effect(name="rows", site="product", becomes="s + 0.1*xi", draws={"xi": Draw()}),
        Effect(name="back", site="feedback", becomes="s*(1 - 0.01*load)"),
        Effect(
            name="seen",
            site="error",
            becomes="s - 0.05*clip(s, -0.5, 0.5) + 0.02*int(s > 0)*s",
        ),
        Effect(
            name="bounds",
            site="write",
            becomes="s*(1 - sign(s)*w/bound)",
            constants={"bound": 1.5},
        ),
        Effect(name="slow", site="velocity", becomes="clip(s, -2, 2)"),
    )
)


def chips(dt, substrate=HARDWARE, count=2):
    noise = Seeded(4, range(count))
    return Chips(substrate, range(count), seed=2, dt=dt, noise=noise, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["algebraic", "dendritic"])
def test_hardware_is_that_of_euler_but_for_its_step(kind):
    """The distance from Euler's rule falls with dt as O(dt), to a tenth of itself."""
    circuit = Circuit(kind=kind, tau_w=20.0)
    distance = {}
    exact = shown(made_on(Spice, circuit, 0.1, reltol=1e-5))
    for dt in (0.05, 0.005):
        euler = shown(made_on(Continuous, circuit, dt, fast=False))
        distance[dt] = max(apart(exact, euler))
    assert distance[0.005] < 0.15 * distance[0.05]
    assert distance[0.005] > 0.05 * distance[0.05]
    ideal = shown(made(Spice, circuit, chips=2, dt=0.1, reltol=1e-5))
    assert max(apart(ideal, shown(made_on(Continuous, circuit, 0.05, fast=False)))) > 0.05


def made_on(engine, circuit, dt, substrate=HARDWARE, **options):
    params = initial_parameters(NETWORK, seeds=range(2), dtype=torch.float64)
    return engine(NETWORK, params, circuit, dt=dt, chips=chips(dt, substrate), **options)


def test_frozen_noise_is_the_noise_of_the_other_engines():
    """Numbers of rates and somas are held for one step each: Euler is O(dt) away, else far."""
    noisy = Substrate(
        effects=(Effect(name="hiss", site="rate", becomes="s + 0.3*xi", noise={"xi": "normal"}),)
    )
    circuit = Circuit(tau_w=20.0, sigma_x=0.2)
    dt, seconds = 0.05, 1.0
    noise = Seeded(7, range(2))

    def found(seed):
        own = Seeded(seed, range(2))
        engine = made_on(Spice, circuit, dt, noisy, noise=own, reltol=1e-4)
        return shown(engine, seconds=seconds, count=1)

    euler = None

    def draw(state, like):
        return noise.draw(f"soma.{state}", "normal", like, euler.steps)

    euler = made_on(Continuous, circuit, dt, noisy, solver_name="maruyama", draw=draw, fast=False)
    expected = shown(euler, seconds=seconds, count=1)
    assert max(apart(found(7), expected)) < 0.05
    assert max(apart(found(8), expected)) > 0.1


def test_a_checkpoint_goes_on_where_it_was(tmp_path):
    """Two halves are the whole, to the tolerance; energies belong to the step before."""
    circuit = Circuit(tau_w=20.0)
    whole = made(Spice, circuit, dt=0.1, reltol=1e-6)
    expected = shown(whole, count=2)
    first = made(Spice, circuit, dt=0.1, reltol=1e-6)
    shown(first, count=1)
    label, source = list(data(NETWORK, 2))[1]
    first.load([label, None, source])
    first.advance(10)
    second = made(Spice, circuit, dt=0.1, reltol=1e-6)
    second.load([label, None, source])
    second.restore({name: value.clone() for name, value in first.state().items()})
    assert second.steps == 40
    second.advance(20)
    again = ({n: s.clone() for n, s in second.flow.moving().items()}, second.params.flat.clone())
    assert max(apart(again, expected)) < 1e-5
    rk4 = made(Continuous, circuit, dt=0.1, solver_name="rk4", fast=False)
    shown(rk4, count=2)
    for engine in (second, rk4):
        engine.look_back()
    torch.testing.assert_close(
        second.flow.energy_by_node(), rk4.flow.energy_by_node(), rtol=1e-4, atol=1e-6
    )
    rk4.flow.forces()
    assert not torch.allclose(second.flow.energy_by_node(), rk4.flow.energy_by_node(), rtol=1e-3)


def test_time_grows_with_the_number_of_samples(monkeypatch):
    """Every analysis is as long as any other: ngspice never sees more than a few presentations."""
    lengths = []
    really = ngspice.run

    def seen(netlist, folder, seconds=None):
        lengths.append(netlist.count("\n"))
        return really(netlist, folder, seconds)

    monkeypatch.setattr("pcsim.spice.engine.ngspice.run", seen)
    shown(made(Spice, Circuit(tau_w=20.0), dt=0.1), seconds=0.2, count=160)
    assert len(lengths) == 3
    assert lengths[1] < 1.2 * lengths[0]


MEMORY = Memory(start="0", update="held + 0.1*(s - held)")


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (
            Effect(name="lag", site="rate", becomes="held", memory={"held": MEMORY}),
            r"hardware 'lag' at rate: it remembers",
        ),
        (
            Effect(name="read", site="weight", becomes="s + xi", noise={"xi": "normal"}),
            r"hardware 'read' at weight: noise of every synapse",
        ),
    ],
)
def test_clocked_effects_are_refused_by_name(effect, said):
    """Memory, and noise of every synapse."""
    with pytest.raises(UnsupportedError, match=said):
        made_on(Spice, Circuit(tau_w=20.0), 0.1, Substrate(effects=(effect,)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"delay_err": 0.2}, "circuit.delay_err"),
        ({"look_soma": 0.2}, "circuit.look_soma"),
        ({"transport": "sign"}, "circuit.transport 'sign'"),
        ({"kind": "sacramento", "conductances": GENERAL}, "circuit.kind 'sacramento'"),
        ({"kind": "spiking", "tau_err": 0.3, "tau_s": 0.5, "q": 0.2, "qe": 0.1}, "'spiking'"),
        ({"sigma_x": 0.1}, "noise: circuit.sigma_x needs"),
    ],
)
def test_circuits_without_a_netlist_are_refused_by_name(fields, said):
    """What uses past steps, events, other circuits."""
    with pytest.raises((UnsupportedError, ConfigError), match=said):
        made(Spice, Circuit(tau_w=20.0, **fields), dt=0.1)


def test_batches_and_large_networks_are_refused():
    """One sample at a time; the expected time is in the sentence."""
    engine = made(Spice, Circuit(tau_w=20.0), dt=0.1)
    with pytest.raises(UnsupportedError, match=r"learning.batch 2: .*one sample"):
        engine.load([torch.zeros(1, 2, 2), None, torch.zeros(1, 2, 3)])
    large = Network.mlp([784, 100, 10], "tanh")
    with pytest.raises(UnsupportedError, match=r"79400 synapses would take about 3 s per"):
        made(Spice, Circuit(tau_w=20.0), large, dt=0.1)


def test_no_convergence_keeps_the_last_good_state():
    """Anti-Hebbian learning of enormous rate: one sentence, and the engine is where it was."""
    engine = made(Spice, Circuit(tau_w=20.0), dt=0.1)
    shown(engine, count=1)
    before = {name: state.clone() for name, state in engine.flow.moving().items()}
    steps = engine.steps
    engine.params.flat.fill_(1e200)
    with pytest.raises(StoppedEarlyError, match=r"no convergence.*chip 0, t counted from 3 s"):
        engine.advance(10)
    assert engine.steps == steps
    for name, state in engine.flow.moving().items():
        assert torch.equal(state, before[name])


def test_a_run_records_reads_out_and_says_who_computed(tmp_path: Path):
    """The same run on both engines: energies and accuracy agree; folder keeps the netlist."""
    fields = {
        "network": {"sizes": [64, 4, 10]},
        "data": {"name": "digits", "limit": 4, "limit_test": 30},
        "learning": {"batch": 1, "epochs": 1},
        "schedule": {"init": "carry"},
        "circuit": {"tau_w": 30.0},
        "solver": {"dt": 0.05},
        "stream": {"t_pres": 2.0, "tau_label": 0.5},
        "record": {"every": 80},
        "run": {"backend": "continuous", "dtype": "float64"},
    }
    folder = str(tmp_path / "kept")
    on_spice = {"run": {**fields["run"], "engine": "spice"}, "spice": {"folder": folder}}
    found, expected = run(parse(fields | on_spice)), run(parse(fields))
    assert found.attrs["engine"] == "spice"
    assert str(found.attrs["ngspice"]).startswith("ngspice")
    assert (tmp_path / "kept" / "chip0" / "circuit.cir").exists()
    for name, tolerance in (("energy", 0.05), ("weight_change", 0.02)):
        assert found[name] == pytest.approx(expected[name], rel=tolerance)
    for name in ("solver.name", "spice.reltol"):
        wrong = fields | (on_spice if name == "solver.name" else {})
        section, field = name.split(".")
        value = "rk4" if field == "name" else 1e-4
        with pytest.raises(ConfigError, match=f"{name}: has no meaning"):
            parse(wrong | {section: {**wrong.get(section, {}), field: value}})


def test_cells_have_a_name_for_everything():
    """Neurons, error dendrites, synapses and learning cells; draws are their parameters."""
    engine = made_on(Spice, Circuit(tau_w=20.0), 0.1)
    netlist = engine._netlist(0, [False, False])
    assert isinstance(netlist, Netlist)
    assert {"neuron1", "error1", "neuron2", "synapse0", "learning0"} <= set(netlist.cells)
    assert "gain_xi" in netlist.cells["synapse0"].params
