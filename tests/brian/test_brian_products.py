"""Dense layers by matrix products: the factors of the equations, and what they give."""

import numpy as np
import pytest
import torch
import trajectories as tr
from test_brian_exact import CIRCUITS as OTHERS
from test_brian_exact import GENERAL, LIMIT, setting

from pcsim.backends.brian import BrianBackend
from pcsim.backends.brian.evaluate import Formula
from pcsim.backends.brian.products import Products, Term, factors
from pcsim.backends.continuous import Continuous
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network

CIRCUITS = {
    "algebraic": {},
    "error_units": {"kind": "error_units", "tau_err": 0.3},
    "dendritic": {"kind": "dendritic", "conductances": GENERAL},
    "lags": OTHERS["lags"],
}


def test_factors():
    arrays = ("w", "w_fb")
    assert factors("w*r_pre", arrays) == (Term("w", "r", "1"),)
    joined = factors("w_fb*(x_post - kappa*inter_post)", arrays)
    assert [(t.synapse, t.pre) for t in joined] == [("w_fb", "1")]
    assert eval(joined[0].post, {"x": 5.0, "kappa": 2.0, "inter": 3.0}) == -1.0
    hebb, decay = sorted(factors("(err_post*r_pre - decay*w)/tau_w", arrays), key=lambda t: t.local)
    assert (hebb.synapse, hebb.pre) == ("1", "r")
    assert eval(hebb.post, {"err": 6.0, "tau_w": 2.0}) == 3.0
    assert eval(decay.synapse, {"w": 6.0, "decay": 0.5, "tau_w": 2.0}) == -1.5
    assert decay.local
    assert not hebb.local


@pytest.mark.parametrize("expression", ["tanh(w*r_pre)", "w*exp(r_pre*err_post)"])
def test_what_is_no_product(expression):
    with pytest.raises(UnsupportedError, match=r"is no product of.*brian.products"):
        factors(expression, ("w",))
    with pytest.raises(UnsupportedError, match=r"computes 'late' by itself"):
        Products.of("w : 1\nlate = w*2 : 1\nmu_post = late*r_pre : 1 (summed)")


@pytest.mark.parametrize("transport", ["shared", "kolen_pollack"])
@pytest.mark.parametrize("kind", CIRCUITS)
@pytest.mark.parametrize("samples", [1, 3])
def test_exact(kind, transport, samples):
    """Two chips; a batch shares weights, biases and the weights of interneurons."""
    network = Network.mlp([4, 5, 4, 3], "tanh")
    circuit = setting(transport=transport, weight_decay=0.1, **CIRCUITS[kind])
    params = tr.parameters(network, 2)
    options = {"dt": tr.DT, "scale": 1 / samples}
    brian = BrianBackend(network, params, circuit, dense=True, samples=samples, **options)
    own = Parameters(network, params.flat.clone())
    exact = Continuous(network, own, circuit, fast=False, **options)
    rng = np.random.default_rng(3)
    data = [
        None if h == "free" else torch.as_tensor(rng.standard_normal((2, samples, n.units)))
        for n, h in zip(network.nodes, network.holds("supervised"), strict=True)
    ]
    for engine in (brian, exact):
        engine.load(data)
        engine.feedforward()
        engine.advance(200)
    moved = float((brian.theta().flat - params.flat).abs().max())
    assert moved > 0.02, "control: weights have moved"
    assert float((exact.flow.theta().flat - brian.theta().flat).abs().max()) < LIMIT
    seen = brian.states()
    for name, state in exact.flow.states().items():
        assert float((state - seen[name]).abs().max()) < LIMIT, name


@pytest.mark.parametrize("order", [-3.5, -2.5])
def test_the_order_of_products_matters(order):
    """Negative control: predictions after feedback, or weights before monitors see them."""
    network = Network.mlp([4, 5, 4, 3], "tanh")
    params = tr.parameters(network, 1)
    circuit = setting()
    brian = BrianBackend(network, params, circuit, dt=tr.DT, dense=True)
    late = next(o for o in brian.net.objects if o.name == "pcsim_predict")
    late.order = order + 1
    exact = Continuous(network, Parameters(network, params.flat.clone()), circuit, dt=tr.DT)
    for engine in (brian, exact):
        engine.load(tr.clamps(network, "supervised", 1))
        engine.advance(50)
    assert float((exact.flow.theta().flat - brian.theta().flat).abs().max()) > 1e-6


def test_formulas_are_those_of_brian2():
    """What is evaluated without code generation equals what Brian2 shows."""
    network = Network.mlp([4, 5, 4, 3], "leaky_relu")
    circuit = setting(**CIRCUITS["lags"])
    brian = BrianBackend(network, tr.parameters(network, 2), circuit, dt=tr.DT)
    brian.load(tr.clamps(network, "supervised", 2))
    brian.advance(10)
    layer = brian.parts.layers[1]
    for name in ("err", "v_basal", "v_inter", "inter_seen", "slope", "v_apical_seen"):
        np.testing.assert_allclose(Formula(layer, name)(), layer.state(name, use_units=False))
