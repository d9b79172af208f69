"""Law 29: matrix multiplications, counted while they happen, match the table of the text."""

import energy_oracle as oracle
import pytest

from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.counter import Counter
from pcsim.network import Network

DEPTHS = range(2, 9)


def network_of(L):
    return Network.mlp([6, *[3 + k % 2 for k in range(L - 1)], 3], "tanh")


def counted(L, rule, *, T=5, batches=1, mode="supervised", **options):
    """Run, and return the counter."""
    network, counter = network_of(L), Counter()
    params = oracle.random_parameters(network, 2)
    if rule == "bp":
        optimizer = oracle.optimizer(params, 0.01, in_place=False)
        runner = Backprop(network, params, optimizer, counter=counter)
    else:
        optimizer = oracle.optimizer(params, 0.01)
        schedule = Schedule(rule=rule, T=T, **options)
        runner = Discrete(network, params, schedule, optimizer, mode=mode, counter=counter)
    for seed in range(batches):
        runner.batch(oracle.clamps_of(network, mode, 2, 4, seed))
    return counter


@pytest.mark.parametrize("L", DEPTHS)
@pytest.mark.parametrize("T", [1, 5])
def test_pc(L, T):
    counter = counted(L, "pc", T=T, batches=3, fast=False)
    assert len(counter.updates) == 3
    assert counter.mms == 3 * (2 * L - 1) * T
    assert counter.smms == 3 * 2 * T


@pytest.mark.parametrize("L", DEPTHS)
def test_zil(L):
    counter = counted(L, "zil", batches=3, fast=False)
    # all L maps once: one full weight update per batch
    assert [nodes for _, nodes in counter.updates] == 3 * [(t,) for t in range(L)]
    assert counter.mms == 3 * (2 * L - 1) * (L - 1)
    assert counter.smms == 3 * 2 * (L - 1)


@pytest.mark.parametrize("L", DEPTHS)
def test_bp(L):
    counter = counted(L, "bp", batches=3)
    assert len(counter.updates) == 3
    assert counter.mms == counter.smms == 3 * (2 * L - 1)


@pytest.mark.parametrize("L", DEPTHS)
def test_ipc(L):
    counter = counted(L, "ipc", T=5, batches=3, fast=False)
    assert len(counter.updates) == 15
    assert counter.mms == 15 * (2 * L - 1)
    assert counter.smms == 15 * 2


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("L", DEPTHS)
def test_updates_reach_one_layer_more_per_step(L, fast):
    """After m backward SMMs, iPC updates the maps 0..m, and all of them from m = L−1."""
    counter = counted(L, "ipc", T=2 * L, fast=fast)
    assert counter.updates == [(m, tuple(range(min(m + 1, L)))) for m in range(2 * L)]


@pytest.mark.parametrize("fast", [False, True])
def test_five_full_and_two_partial_updates(fast):
    L = 3

    def full_and_partial(counter):
        early = [nodes for m, nodes in counter.updates if m <= 6]
        full = sum(len(nodes) == L for nodes in early)
        return full, len(early) - full

    assert full_and_partial(counted(L, "ipc", T=12, fast=fast)) == (5, 2)
    bp = counted(L, "bp", batches=6)
    assert [m for m, _ in bp.updates][:3] == [2, 4, 6]
    assert full_and_partial(bp) == (3, 0)


@pytest.mark.parametrize("L", DEPTHS)
def test_control_the_count_follows_what_is_done(L):
    """An update one state later needs one more forward sweep, and a free top one more product."""
    after = counted(L, "pc", T=5, pc_update_at="after", fast=False)
    assert (after.mms, after.smms) == ((2 * L - 1) * 5 + L, 11)
    generative = counted(L, "pc", T=5, mode="generative", fast=False)
    assert (generative.mms, generative.smms) == (2 * L * 5, 10)


@pytest.mark.parametrize("init", ["ff", "carry", "zero", "normal"])
@pytest.mark.parametrize("mode", ["supervised", "generative"])
@pytest.mark.parametrize("rule", ["pc", "zil", "ipc"])
def test_fast_never_needs_more(rule, mode, init):
    if rule == "zil" and init != "ff":
        return  # refused by Schedule
    for L in (2, 3, 6):
        for T in (1, 2, 8):
            fast, slow = (
                counted(L, rule, T=T, batches=2, mode=mode, init=init, fast=fast)
                for fast in (True, False)
            )
            for direction in ("forward", "backward"):
                assert fast.mm[direction] <= slow.mm[direction]
                assert fast.smm[direction] <= slow.smm[direction]
            if init == "ff":
                assert fast.mms < slow.mms, "a feed-forward start always leaves something out"
