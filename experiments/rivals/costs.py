"""What a contestant's training costs: its operations, counted, times the table of `pcsim cost`.

Rules that flow pay for the bias of all their neurons and arrays while time passes, and for pulses;
rules with phases run on a clocked array of the same devices. An estimate, as there.
"""

from __future__ import annotations

from hw_models.cost import Counts, Estimate, Rule, count
from hw_models.cost_entries import UNNAMED_TAU, entry, tables_for, time_constant
from pcsim.check.pulses import Pulses
from pcsim.config import Config
from pcsim.maps import Dense
from pcsim.network import Network

from .contestants import TOTAL, Rival, steps

SAME = "assumption: 1 µs, the same for all rules"
"""Of the time constant: what differs between rules is told, not what it is."""


def inner_weights(network: Network) -> int:
    """Return the weights of arrays whose input is a layer that learns, not the data."""
    return sum(
        node.map.n_in * node.map.n_out
        for node in network.nodes
        if isinstance(node.map, Dense) and network.nodes[node.parents[0]].parents
    )


def counts_of(rival: Rival, config: Config, passes: int, samples: int) -> Counts:
    """Return the operations of a training on `samples` samples, shown `passes` times."""
    network, inner = config.network.build(), inner_weights(config.network.build())
    rule: Rule = config.schedule.rule
    shown = passes * samples
    found = count(
        network,
        rule,
        T=steps(),
        batch=1,
        batches=shown,
        carry=rival.in_time,
        simulated=TOTAL * shown if rival.in_time else 0.0,
    )
    arrays = (rival.feedback != "none") + 2 * rival.interneurons
    plastic = (rival.feedback == "plastic") + 2 * rival.interneurons
    beside = network.nodes[0].units if rival.interneurons else 0
    return found.model_copy(
        update={
            "weights": found.weights + arrays * inner,
            "changes": found.changes + plastic * inner * shown,
            "neurons": found.neurons + beside,
        }
    )


def estimate(
    rival: Rival, config: Config, passes: int, samples: int, preset: str, pulses: Pulses | None
) -> Estimate:
    """Return energy and time of a training on the devices of a preset."""
    clocked, continuous, _ = tables_for(preset)
    table = continuous if rival.in_time else clocked
    table = table.model_copy(update={"tau_x": time_constant(UNNAMED_TAU.typical, source=SAME)})
    if pulses:
        low, mean, high = pulses.pulses
        told = entry(low, mean, high, "counted in this training")
        table = table.model_copy(update={"pulses": told})
    return Estimate(what=rival.name, counts=counts_of(rival, config, passes, samples), table=table)
