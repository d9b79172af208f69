"""The energy estimate: counts against the counter of real runs, joules against hand arithmetic."""

import pytest
import torch

from hw_models.energy import DIGITAL, Counts, EnergyTable, count, estimate
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.errors import ConfigError
from pcsim.kernels.counter import Counter
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

SIZES = (6, 5, 4, 3)
NETWORK = Network.mlp(SIZES)
WEIGHTS = 6 * 5 + 5 * 4 + 4 * 3


@pytest.mark.parametrize("rule", ["ipc", "pc"])
def test_products_are_those_that_a_run_counts(rule):
    """Besides the feed-forward pass, which the counter leaves out."""
    T, batch, counter = 7, 2, Counter()
    params = initial_parameters(NETWORK, [0], torch.float64)
    schedule = Schedule(rule=rule, T=T, gamma=0.1, fast=False)
    optimizer = Optimizer(OptimizerSpec(), params, 1e-3)
    run = Discrete(NETWORK, params, schedule, optimizer, counter=counter)
    x, y = (
        torch.rand(1, batch, 6, dtype=torch.float64),
        torch.rand(1, batch, 3, dtype=torch.float64),
    )
    run.batch([y, None, None, x])
    counts = count(NETWORK, rule, T=T, batch=batch, batches=1)
    assert counts.products == batch * (counter.mms + 3)
    assert counts.reads_in_turn == batch * (counter.smms + 3)
    assert counts.writes == WEIGHTS * len(counter.updates)
    assert counts.writes_in_turn == len(counter.updates)


def test_counts_of_backprop_by_hand():
    counts = count(NETWORK, "bp", T=99, batch=10, batches=3)
    assert counts.macs == 30 * (WEIGHTS + 5 * 4 + 4 * 3)  # T plays no part
    assert counts.products == 30 * 5
    assert counts.reads_in_turn == 30 * 5
    assert counts.writes == 3 * WEIGHTS
    assert counts.inputs == 30 * (6 + 5 + 4 + 4 + 3)
    assert counts.outputs == 30 * (5 + 4 + 3 + 5 + 4)


def test_ipc_costs_more_reads_and_writes_than_backprop_but_fewer_than_steps_times():
    ipc = count(NETWORK, "ipc", T=8, batch=10, batches=3)
    bp = count(NETWORK, "bp", T=8, batch=10, batches=3)
    pc = count(NETWORK, "pc", T=8, batch=10, batches=3)
    zil = count(NETWORK, "zil", T=8, batch=10, batches=3)
    assert ipc.writes == 8 * bp.writes
    assert pc.writes == zil.writes == bp.writes
    assert zil.macs < pc.macs == ipc.macs < 10 * bp.macs
    # in time, layers in parallel win back a part of it
    assert ipc.reads_in_turn / bp.reads_in_turn < ipc.products / bp.products


def test_joules_are_counts_times_table():
    table = EnergyTable(mac=1.0, input=2.0, output=3.0, write=4.0, pulses=5.0, state=6.0,
                        t_read=7.0, t_write=8.0, power=9.0)  # fmt: skip
    counts = Counts(macs=1, inputs=1, outputs=1, writes=1, states=1, reads_in_turn=1,
                    writes_in_turn=1)  # fmt: skip
    made = estimate(counts, table)
    assert made.seconds == 15
    assert dict(made.joules) == {
        "macs": 1, "inputs": 2, "outputs": 3, "writes": 20, "states": 6, "standby": 135,
    }  # fmt: skip
    assert made.total == 167
    assert made.sentence().startswith("estimate: 167 J and 15 s per training")


def test_every_number_of_the_tables_has_a_source_or_is_zero():
    for table in (EnergyTable(), DIGITAL):
        for name in ("mac", "input", "output", "write", "state"):
            assert getattr(table, name) == 0 or name in table.sources, (table.name, name)


def test_nonsense_is_refused():
    with pytest.raises(ConfigError, match="choose bp, pc, zil or ipc"):
        count(NETWORK, "sgd", T=1, batch=1, batches=1)
    with pytest.raises(ConfigError, match="at least 1"):
        count(NETWORK, "ipc", T=0, batch=1, batches=1)
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        EnergyTable(mac=-1.0)
