"""Memory moves with time, not with calls; time passes alike for every rule and every engine."""

import numpy as np
import pytest
import torch

from pcsim import config
from pcsim.run import run
from pcsim.substrate import Chips, Effect, Memory, Seeded, Substrate

F64 = torch.float64


def place(effect, site, shape, dt=0.5, noise=None):
    chips = Chips(
        Substrate(effects=(effect,)), [0], seed=0, dt=dt, noise=noise or Seeded(0), dtype=F64
    )
    return chips, chips.transform(site, 0, shape)


def test_what_is_remembered_is_a_copy():
    """A weight that is changed in place must not change what was remembered of it."""
    effect = Effect(
        name="m", site="weight", becomes="s - last", memory={"last": Memory(update="s")}
    )
    seen = Effect(
        name="m",
        site="weight",
        becomes="changed",
        memory={
            "changed": Memory(update="int(abs(s - last) > 0)"),
            "last": Memory(update="s"),
        },
    )
    for each, expected in ((effect, 0.0), (seen, 1.0)):
        chips, read = place(each, "weight", (1, 2))
        w = torch.ones(1, 1, 2, dtype=F64)
        read(w)
        chips.advance()
        w.add_(0.25)
        assert torch.equal(read(w), torch.full_like(w, expected))
        w.add_(0.25)
        kept = read.memory()["m.last.weight0"]
        assert torch.equal(kept, torch.full_like(w, 1.25)), "still that of the time of the read"


def test_what_is_handed_out_is_not_the_memory():
    effect = Effect(name="m", site="rate", becomes="held", memory={"held": Memory(update="s")})
    _, link = place(effect, "rate", (2,))
    link(torch.ones(1, 1, 2, dtype=F64)).zero_()
    assert float(link.memory()["m.held.rate0"].sum()) == 2


def test_dt_is_the_time_since_the_last_application():
    effect = Effect(
        name="m", site="rate", becomes="n + 100*dt", memory={"n": Memory(update="n + dt")}
    )
    chips, read = place(effect, "rate", (1,), dt=0.5)
    zero, seen = torch.zeros(1, 1, 1, dtype=F64), []
    for steps in (1, 0, 3, 1):  # twice in the second step, then nothing for three steps
        seen.append(float(read(zero)))
        chips.advance(steps)
    assert seen == [50.5, 51.0, 51.0, 152.5]


def settings(rule="ipc", backend="discrete", T=6, **hardware):
    schedule = {"rule": rule, "gamma": 0.1} | ({} if rule == "zil" else {"T": T})
    return config.parse(
        {
            "network": {"sizes": [64, 5, 10]},
            "schedule": schedule,
            "learning": {"alpha": 1e-30, "batch": 10, "epochs": 1},
            "data": {"name": "digits", "limit": 40, "limit_test": 20},
            "run": {"backend": backend, "dtype": "float64"},
            "hardware": {"chips": 2, "pieces": hardware},
        }
    )


@pytest.mark.parametrize("rule", ["ipc", "pc", "bp"])
def test_retention_is_that_of_the_time_that_passed(rule):
    """4 batches of 6 steps of 0.1 s, lifetime 2 s, no learning: e^{−2.4/2} of a weight is left."""
    leaky = run(settings(rule, leak={"kind": "retention", "lifetime": 2.0}))
    start = run(settings(rule, leak={"kind": "retention", "lifetime": 1e17}))
    ratio = (leaky["parameters"] / start["parameters"]).reshape(2, -1)
    biases = np.r_[50:60, 380:385]  # not on devices
    np.testing.assert_allclose(np.delete(ratio, biases, 1), np.exp(-2.4 / 2), rtol=1e-12)
    np.testing.assert_allclose(ratio[:, biases], 1, rtol=1e-12)


def test_coloured_noise_does_not_hurry_where_states_are_reset():
    """A feed-forward pass reads rates at the time of the first step: it lets no time pass."""
    from pcsim.backends.continuous import Continuous
    from pcsim.circuit import Circuit
    from pcsim.kernels.parameters import Parameters
    from pcsim.network import Network

    count = Effect(name="n", site="rate", becomes="s", memory={"n": Memory(update="n + dt")})
    network = Network.mlp([2, 3, 2], "tanh")
    for resets in (False, True):
        chips = Chips(Substrate(effects=(count,)), [0], seed=0, dt=0.1, noise=Seeded(0), dtype=F64)
        params = Parameters(network, torch.full((1, network.parameter_count), 0.1, dtype=F64))
        engine = Continuous(network, params, Circuit(tau_w=1.0), dt=0.1, chips=chips)
        for _ in range(5):
            ones = torch.ones(1, 1, 2, dtype=F64)
            engine.load([ones, None, ones])
            if resets:
                engine.feedforward()
            engine.advance(4)
        held = chips.state()["n.n.rate1"]
        torch.testing.assert_close(held, torch.full_like(held, 2.0))
