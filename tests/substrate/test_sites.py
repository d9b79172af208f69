"""Every site does what its name says: one step of each backend against plain numpy."""

import numpy as np
import pytest
import torch

from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.backprop import Backprop
from pcsim.backends.continuous import Continuous
from pcsim.backends.discrete import Discrete
from pcsim.circuit import Circuit
from pcsim.config import Schedule
from pcsim.errors import UnsupportedError
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.substrate import Chips, Draw, Effect, Seeded, Substrate

NETWORK = Network.mlp((4, 3, 2), "tanh")  # input, hidden, output
DT, TAU_X, TAU_W = 0.1, 1.0, 20.0
SITES = ("input", "membrane", "rate", "weight", "product", "error", "feedback", "velocity", "write")
SCALE = {site: 1.1 + 0.07 * k for k, site in enumerate(SITES)}
SHIFT = {site: 0.03 * (k + 1) for k, site in enumerate(SITES)}


def effects(sites):
    return tuple(
        Effect(name=site, site=site, becomes=f"{SCALE[site]}*s + {SHIFT[site]}") for site in sites
    )


def population(sites, extra=(), dt=DT):
    substrate = Substrate(effects=(*effects(sites), *extra))
    return Chips(substrate, (0,), seed=0, dt=dt, noise=Seeded(0), dtype=torch.float64)


def start(seed=0):
    rng = np.random.default_rng(seed)
    params = initial_parameters(NETWORK, [1], torch.float64)
    top, label = rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    hidden = rng.normal(size=(5, 3))
    clamps = [torch.tensor(label)[None], None, torch.tensor(top)[None]]
    return params, clamps, hidden


def numpy_step(params, clamps, hidden, sites):
    """One joint Euler step of the algebraic circuit, written out."""

    def at(site, value):
        return SCALE[site] * value + SHIFT[site] if site in sites else value

    label, top = clamps[0][0].numpy(), at("input", clamps[2][0].numpy())
    w0, w1 = (params.of[k]["w"][0].numpy().copy() for k in (0, 1))
    b0, b1 = (params.of[k]["b"][0].numpy().copy() for k in (0, 1))
    seen = at("membrane", hidden)
    rate = at("rate", np.tanh(seen))
    top_rate = at("rate", at("membrane", top))  # the input layer has no transfer function
    r0, r1 = at("weight", w0), at("weight", w1)
    mu0 = at("product", rate @ r0.T + b0)
    mu1 = at("product", top_rate @ r1.T + b1)
    e0, e1 = at("error", label - mu0), at("error", hidden - mu1)
    back = at("feedback", e0 @ r0) * (1 - np.tanh(seen) ** 2)
    velocity = at("velocity", (back - e1) / TAU_X)
    alpha = DT / TAU_W
    return {
        "x": hidden + DT * velocity,
        "w0": w0 + at("write", alpha * e0.T @ rate),
        "w1": w1 + at("write", alpha * e1.T @ top_rate),
        "b0": b0 + alpha * e0.sum(0),
        "b1": b1 + alpha * e1.sum(0),
        "energy": [0.5 * ((label - mu0) ** 2).sum(), 0.5 * ((hidden - mu1) ** 2).sum()],
    }


def close(params, x, expected, tol=1e-13):
    np.testing.assert_allclose(x[0], expected["x"], atol=tol)
    for k in (0, 1):
        np.testing.assert_allclose(params.of[k]["w"][0], expected[f"w{k}"], atol=tol)
        np.testing.assert_allclose(params.of[k]["b"][0], expected[f"b{k}"], atol=tol)


CASES = [(), *[(site,) for site in SITES], SITES]


@pytest.mark.parametrize("sites", CASES, ids=lambda s: "+".join(s) or "ideal")
def test_continuous_step_is_the_written_one(sites):
    params, clamps, hidden = start()
    expected = numpy_step(params, clamps, hidden, sites)
    circuit = Circuit(tau_x=TAU_X, tau_w=TAU_W)
    engine = Continuous(NETWORK, params, circuit, dt=DT, chips=population(sites))
    engine.load(clamps)
    engine.flow.moving()["x1"].copy_(torch.tensor(hidden)[None])
    engine.advance(1)
    engine.flow.settle_weights()
    close(params, engine.flow.moving()["x1"], expected)
    np.testing.assert_allclose(engine.flow.energy_by_node()[0], expected["energy"], atol=1e-13)


@pytest.mark.parametrize("sites", CASES, ids=lambda s: "+".join(s) or "ideal")
def test_discrete_step_is_the_written_one(sites):
    params, clamps, hidden = start()
    expected = numpy_step(params, clamps, hidden, sites)
    optimizer = Optimizer(OptimizerSpec(), params, DT / TAU_W)
    schedule = Schedule(rule="ipc", T=1, gamma=DT / TAU_X, init="zero")
    rule = Discrete(NETWORK, params, schedule, optimizer, chips=population(sites))
    rule.start(clamps)
    rule.field.x[1].copy_(torch.tensor(hidden)[None])
    rule.step()
    rule.finish()
    close(params, rule.field.x[1], expected)


def test_sites_in_use_change_the_step():
    """Negative control of the two tests above: every site matters for the written step."""
    ideal = numpy_step(*start(), ())
    for site in SITES:
        changed = numpy_step(*start(), (site,))
        assert any(np.abs(changed[k] - ideal[k]).max() > 1e-4 for k in ("x", "w0", "w1")), site


@pytest.mark.parametrize("kind", ["algebraic", "error_units", "dendritic"])
def test_no_effects_is_the_ideal_path_bit_for_bit(kind):
    circuit = Circuit(
        kind=kind, tau_x=TAU_X, tau_w=TAU_W, **({"tau_err": 0.3} if kind == "error_units" else {})
    )
    ends = []
    for chips in (None, population(())):
        params, clamps, _ = start()
        engine = Continuous(NETWORK, params, circuit, dt=DT, chips=chips)
        engine.load(clamps)
        engine.advance(20)
        ends.append((engine.flow.theta().flat.clone(), engine.flow.moving()["x1"].clone()))
    assert torch.equal(ends[0][0], ends[1][0])
    assert torch.equal(ends[0][1], ends[1][1])


@pytest.mark.parametrize("output", ["gaussian", "categorical"])
@pytest.mark.parametrize("convention", ["pre", "post"])
def test_backprop_on_ideal_chips_is_backprop(output, convention):
    from pcsim.energies import Categorical, Gaussian

    energy = Categorical() if output == "categorical" else Gaussian()
    network = Network.mlp((4, 6, 3, 2), "tanh", output=energy, convention=convention)
    rng = np.random.default_rng(1)
    label = torch.nn.functional.one_hot(torch.tensor([[0, 1, 1]]), 2).double()
    clamps = [label, None, None, torch.tensor(rng.normal(size=(1, 3, 4)))]
    after = []
    for on_array in (False, True):
        params = initial_parameters(network, [5], torch.float64)
        optimizer = Optimizer(OptimizerSpec("adam"), params, 0.01, in_place=False)
        if on_array:
            chips = population(())
            rule = ArrayBackprop(network, params, optimizer, chips, steps=1)
        else:
            rule = Backprop(network, params, optimizer)
        for _ in range(5):
            rule.batch(clamps)
        after.append((params.flat.clone(), rule.energy()))
    torch.testing.assert_close(after[0][0], after[1][0], atol=1e-12, rtol=0)
    torch.testing.assert_close(after[0][1], after[1][1], atol=1e-12, rtol=0)


def test_time_constants_of_a_slow_soma():
    slow = Effect(name="slow", site="tau_x", becomes="2*s")
    moved = []
    for extra in ((), (slow,)):
        params, clamps, hidden = start()
        circuit = Circuit(tau_x=TAU_X, tau_w=TAU_W)
        engine = Continuous(NETWORK, params, circuit, dt=DT, chips=population((), extra))
        engine.load(clamps)
        engine.flow.moving()["x1"].copy_(torch.tensor(hidden)[None])
        engine.advance(1)
        moved.append(engine.flow.moving()["x1"][0].numpy() - hidden)
    np.testing.assert_allclose(moved[1], moved[0] / 2, atol=1e-15)


def test_interneurons_are_as_many_as_the_units_below():
    """Each has a lag of its own: with a slow and a fast one, only they start to move apart."""
    slow = Effect(
        name="slow", site="tau_inter", becomes="s*(1 + 9*g)", draws={"g": Draw(law="uniform")}
    )
    chips, ideal = population((), (slow,)), population(())
    circuit = Circuit(kind="dendritic", tau_x=TAU_X, tau_w=TAU_W, tau_inter=0.5)
    moved = []
    for each in (chips, ideal):
        params, clamps, _ = start()
        engine = Continuous(NETWORK, params, circuit, dt=DT, chips=each)
        engine.load(clamps)
        engine.advance(1)
        moved.append(engine.flow.moving()["inter1"].clone())
    factor = 1 + 9 * chips.fixed(slow, 0, (2,))["g"]
    torch.testing.assert_close(moved[0] * factor, moved[1], atol=1e-13, rtol=0)
    assert float(moved[1].abs().min()) > 1e-3, "control: they move"


def test_row_sums_are_those_of_the_array():
    names = ("power", "weighted_power", "squared_power", "load", "current", "tapered", "peak")
    rng = np.random.default_rng(2)
    v, w = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
    from pcsim.kernels.hooks import row_sums

    found = row_sums(names, torch.tensor(v), torch.tensor(w))
    place = np.arange(1, 5) / 4
    expected = {
        "power": np.einsum("csj->cs", v**2)[..., None] * np.ones(5),
        "weighted_power": np.einsum("cij,csj->csi", abs(w), v**2),
        "squared_power": np.einsum("cij,csj->csi", w**2, v**2),
        "load": np.einsum("cij->ci", abs(w))[:, None] * np.ones((2, 3, 5)),
        "current": np.einsum("cij,csj->csi", abs(w), abs(v)),
        "tapered": np.einsum("cij,csj,j->csi", w, v, 1 - (1 - place) ** 2),
        "peak": abs(v).max(-1)[..., None] * np.ones(5),
    }
    for name in names:
        value = np.broadcast_to(found[name].numpy(), (2, 3, 5))
        np.testing.assert_allclose(value, expected[name], atol=1e-13)


def test_other_solvers_and_missing_sites_are_refused():
    params, _, _ = start()
    circuit = Circuit(tau_x=TAU_X, tau_w=TAU_W)
    with pytest.raises(UnsupportedError, match="once per time step"):
        Continuous(NETWORK, params, circuit, dt=DT, solver_name="rk4", chips=population(("rate",)))
    lag = Effect(name="lag", site="tau_apical", becomes="2*s")
    with pytest.raises(UnsupportedError, match=r"'lag': circuit\.kind algebraic has no site"):
        Continuous(NETWORK, params, circuit, dt=DT, chips=population((), (lag,)))
