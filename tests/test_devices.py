"""A whole step on a device that is not the host.

Tensors on "meta" know shape, type and device, but have no values: looking at one fails there as it
would make the host wait on a GPU. A guard on every operation refuses operands that live on the
host, which a GPU would refuse or copy. So mistakes that only a GPU would show are found without it.
(Fake CUDA tensors would say the same, but a torch built without CUDA cannot slice them.)
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import hw_models
from hw_models.kind_pages import example
from hw_models.pieces import PIECES
from pcsim.backends.continuous import Continuous
from pcsim.backends.discrete import Discrete
from pcsim.circuit import Circuit, Conductances
from pcsim.config import Schedule
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips, counter
from pcsim.substrate.noise import Seeded

DEVICE = "meta"


class NoHost(TorchDispatchMode):
    """Fails on whatever would make the host wait, or move data between host and device."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in ("_local_scalar_dense", "nonzero", "is_nonzero", "equal"):
            raise AssertionError(f"{name}: the host waits for a value")
        given = [a for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        devices = {tensor.device.type for tensor in given}
        if name in ("_to_copy", "copy_"):
            if "device" in kwargs and kwargs["device"] is not None:
                devices.add(torch.device(kwargs["device"]).type)
            if "cpu" in devices:
                raise AssertionError(f"{name}: data moves between host and device")
        result = func(*args, **kwargs)
        for tensor in [*given, result]:
            # A single number may come along from the host; it travels with the call.
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                assert tensor.ndim == 0 or tensor.numel() == 0, f"{name}: works on the host"
        self.seen += 1
        return result


def flat_for(network, chips):
    return torch.empty(chips, network.parameter_count, dtype=torch.float64, device=DEVICE)


def clamps_for(network, mode, chips, samples=3):
    return [
        None
        if hold == "free"
        else torch.empty(chips, samples, node.units, dtype=torch.float64, device=DEVICE)
        for node, hold in zip(network.nodes, network.holds(mode), strict=True)
    ]


SIZES = [40, 5, 4, 3]
NETWORKS = {
    "unit": Network.mlp(SIZES, "tanh"),
    "post": Network.mlp(SIZES, "relu", convention="post"),
    "variances": Network.mlp(SIZES, "gelu", hidden=Gaussian(2.0), output=Gaussian(0.5)),
    "learned variances": Network.mlp(SIZES, "tanh", hidden=Gaussian(learned=True)),
    "labels": Network.mlp(SIZES, "sigmoid", output=Categorical()),
    "prior": Network.mlp(SIZES, "tanh", prior=0.3),
    "no bias": Network.mlp(SIZES, "tanh", bias=False),
}
GENERAL = Conductances(g_lk=0.1, g_A=0.8, g_som=0.5)
CIRCUITS = {
    "algebraic": ({}, "unit"),
    "decay": ({"weight_decay": 0.1}, "unit"),
    "post": ({}, "post"),
    "variances": ({}, "variances"),
    "learned variances": ({}, "learned variances"),
    "labels": ({}, "labels"),
    "error units": ({"kind": "error_units", "tau_err": 0.2, "look_err": 0.1}, "variances"),
    "delays": ({"delay_err": 0.2, "delay_fb": 0.1}, "unit"),
    "latent equilibrium": ({"look_soma": 1.0}, "unit"),
    "random": ({"transport": "random"}, "unit"),
    "sign": ({"transport": "sign"}, "unit"),
    "kolen_pollack": ({"transport": "kolen_pollack"}, "unit"),
    "dendritic": ({"kind": "dendritic", "conductances": GENERAL}, "unit"),
    "dendritic, lags": (
        {
            "kind": "dendritic",
            "tau_inter": 0.1,
            "look_inter": 0.1,
            "tau_apical": 0.1,
            "look_apical": 0.05,
            "transport": "kolen_pollack",
        },
        "unit",
    ),
    "equilibrium": ({"kind": "equilibrium"}, "unit"),
    "sacramento": (
        {"kind": "sacramento", "conductances": GENERAL, "eta_apical": 0.5, "eta_down": 0.5},
        "no bias",
    ),
}


def walked(circuit, network, solver="euler", mode="supervised", chips=2, chips_on=None, **options):
    """Build chips on the device, and take some steps under guard; return the operations seen."""
    params = Parameters(network, flat_for(network, chips))
    setting = Circuit(**{"tau_w": 5.0, **circuit})
    options |= {} if chips_on is None else {"chips": chips_on}
    engine = Continuous(network, params, setting, dt=0.1, solver_name=solver, mode=mode, **options)
    engine.load(clamps_for(network, mode, chips), steps=50)
    engine.feedforward()
    if chips_on is not None:
        engine.advance(1)  # what was fabricated is sent
    with NoHost() as guard:
        engine.advance(3)
        engine.flow.theta()
        engine.flow.energy_by_node()
    for state in engine.flow.states().values():
        assert state.device.type == DEVICE
    return guard.seen


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_step_stays_on_the_device(name):
    circuit, network = CIRCUITS[name]
    assert walked(circuit, NETWORKS[network]) > 30
    assert walked(circuit, NETWORKS[network], "exponential", fast=False) > 30
    if not {"delay_err", "look_soma"} & set(circuit):
        assert walked(circuit, NETWORKS[network], "rk4") > 60


@pytest.mark.parametrize("solver", ["maruyama", "stochastic_heun"])
def test_noise_is_drawn_on_the_device(solver):
    assert walked({"sigma_x": 0.1}, NETWORKS["unit"], solver) > 30


@pytest.mark.parametrize("name", ["unit", "prior"])
def test_a_free_top_stays_on_the_device(name):
    assert walked({}, NETWORKS[name], mode="generative") > 30
    assert walked({"kind": "dendritic"}, NETWORKS[name], mode="generative") > 30


def test_time_constants_of_chips_stay_on_the_device():
    network = NETWORKS["unit"]
    tau = torch.empty(2, 1, 1, dtype=torch.float64, device=DEVICE)
    tau_w = torch.empty(2, 1, dtype=torch.float64, device=DEVICE)
    for solver in ("euler", "exponential", "rk4"):
        assert walked({}, network, solver, tau_x=[tau] * 4, tau_w=tau_w) > 30


@pytest.mark.parametrize("rule", ["ipc", "pc", "zil"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("name", ["unit", "post", "learned variances", "labels"])
def test_discrete_batches_stay_on_the_device(name, optimizer, rule):
    network = NETWORKS[name]
    for fast in (True, False):
        params = Parameters(network, flat_for(network, 2))
        decay = 0.0 if optimizer == "sgd" else 0.1
        built = Optimizer(OptimizerSpec(optimizer), params, 1e-3, decay)
        runner = Discrete(network, params, Schedule(rule=rule, T=6, fast=fast), built)
        clamps = clamps_for(network, "supervised", 2)
        runner.batch(clamps)
        with NoHost() as guard:
            runner.batch(clamps)
            runner.energy()
        assert guard.seen > 20


# -- hardware ------------------------------------------------------------------------------------

DENDRITES = {"kind": "dendritic", "conductances": GENERAL, "tau_inter": 0.1, "tau_apical": 0.1}
ON = {"error_units": CIRCUITS["error units"][0], "dendritic": DENDRITES, "algebraic": {}}


def chips_of(*pieces):
    hardware = hw_models.Hardware(pieces={f"piece{k}": piece for k, piece in enumerate(pieces)})
    options = {"dtype": torch.float64, "device": DEVICE}
    return Chips(hardware.substrate(), [0, 1], seed=0, dt=0.1, noise=Seeded(0), **options)


@pytest.mark.parametrize("kind", PIECES)
def test_every_kind_of_hardware_acts_on_the_device(kind):
    """What was fabricated is sent there once; noise, memory and writes of a step are made there."""
    for circuit in ON.values():
        try:
            assert walked(circuit, NETWORKS["unit"], chips_on=chips_of(example(kind))) > 30
        except UnsupportedError:  # this circuit has no such place
            continue
        return
    raise AssertionError(f"no circuit has a place for {kind}")


def test_control_noise_made_on_the_host_is_noticed(monkeypatch):
    real = counter.by_torch

    def on_host(*arguments):
        return real(*arguments[:-1], "cpu").to(arguments[-1])

    monkeypatch.setattr(counter, "by_torch", on_host)
    with pytest.raises(AssertionError):
        walked({}, NETWORKS["unit"], chips_on=chips_of(example("read_noise")))


# -- controls --------------------------------------------------------------------------------------


def upset_forces(monkeypatch, upset):
    original = ErrorFlow.forces

    def forces(self):
        found = original(self)
        upset(found[0].state)
        return found

    monkeypatch.setattr(ErrorFlow, "forces", forces)


WRONG = {
    "a tensor made on the host": lambda x: x.add_(torch.zeros(x.shape, dtype=x.dtype)),
    "a number looked at": lambda x: float(x.sum()),
    "a branch on a value": lambda x: bool((x > 0).any()),
    "a copy to the host": lambda x: x.cpu(),
    "a copy from the host": lambda x: x.copy_(torch.zeros(x.shape, dtype=x.dtype)),
    "a row made on the host": lambda x: torch.arange(3) * 2,
}


@pytest.mark.parametrize("name", WRONG)
def test_control_mistakes_are_noticed(monkeypatch, name):
    upset_forces(monkeypatch, WRONG[name])
    with pytest.raises((AssertionError, RuntimeError, NotImplementedError)):
        walked({}, NETWORKS["unit"])
