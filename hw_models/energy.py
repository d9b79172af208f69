"""Energy and time of a training on an array: counted operations times a table. An estimate.

    joules  = Σ_operations count·energy,    seconds = sequential operations·duration

Counts follow the schedules; one array holds the weights of a layer, samples go through it one
after another, and all layers work at the same time where the schedule allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from pcsim.errors import ConfigError
from pcsim.frozen import Frozen, NotNegative
from pcsim.network import Network

Rule = Literal["bp", "pc", "zil", "ipc"]
Count = Annotated[float, Field(ge=0)]


class Counts(Frozen):
    """What a training does, summed over all its batches."""

    products: Count = 0
    """Products of an array with one vector, both directions, one per layer and sample."""
    macs: Count = 0
    """Multiply-accumulate operations inside these products."""
    inputs: Count = 0
    """Conversions at the input lines of products (DAC)."""
    outputs: Count = 0
    """Conversions at the output lines of products (ADC)."""
    writes: Count = 0
    """Writes of one device."""
    states: Count = 0
    """Updates of one neuron's state."""
    reads_in_turn: Count = 0
    """Reads that cannot happen at the same time."""
    writes_in_turn: Count = 0
    """Write phases that cannot happen at the same time."""


class EnergyTable(Frozen):
    """Joules and seconds per operation; replace any of them by those of your own technology."""

    name: str = "analog array, 8-bit periphery"
    mac: NotNegative = 2e-15
    """One device in one product, J."""
    input: NotNegative = 0.4e-12
    """One conversion at an input line, J."""
    output: NotNegative = 1.6e-12
    """One conversion at an output line, J."""
    write: NotNegative = 5e-12
    """One programming pulse of one device, J."""
    pulses: NotNegative = 1.0
    """Pulses per write, on average."""
    state: NotNegative = 1e-12
    """One update of one neuron, J."""
    t_read: NotNegative = 100e-9
    """One product of an array with a vector, s."""
    t_write: NotNegative = 100e-9
    """One write phase of an array, s."""
    power: NotNegative = 0.0
    """What is consumed all the time, W."""
    sources: Mapping[str, str] = {
        "mac": "crossbar of 128×128 cells at 0.3 mW for 100 ns, ISAAC (Shafiee et al., ISCA 2016)",
        "input": "driver of one line for 100 ns, ISAAC",
        "output": "8-bit converter, 2 mW at 1.28 GS/s, ISAAC",
        "write": "assumed: 50 µA at 1 V for 100 ns, usual for resistive memory",
        "state": "assumed: a few 32-bit additions in 45 nm, 0.1–0.9 pJ each (Horowitz, ISSCC 2014)",
        "t_read": "cycle of ISAAC",
        "t_write": "assumed, as long as a read",
    }


DIGITAL = EnergyTable(
    name="digital, 32-bit floating point, 45 nm",
    mac=4.6e-12 + 5e-12,
    input=0.0,
    output=0.0,
    write=10e-12,
    state=4.6e-12,
    t_read=100e-9,
    t_write=100e-9,
    sources={
        "mac": "multiplication 3.7 pJ, addition 0.9 pJ, 32 bit from an 8 kB cache 5 pJ (Horowitz, "
        "ISSCC 2014)",
        "write": "32 bit to and from an 8 kB cache (Horowitz)",
        "state": "one multiplication and addition (Horowitz)",
        "t_read": "assumed, as the analog array: compare energies only",
    },
)
"""The same counts on a digital chip with its weights in cache, for comparison."""


class Estimate(Frozen):
    """What the table makes of the counts; an estimate, not a measurement."""

    counts: Counts
    table: str
    joules: Mapping[str, float]
    """Energy by part: macs, inputs, outputs, writes, states, standby."""
    seconds: float

    @property
    def total(self) -> float:
        """All energy, J."""
        return sum(self.joules.values())

    def sentence(self) -> str:
        """Return one line that says what it is and what dominates."""
        largest = max(self.joules, key=lambda part: self.joules[part])
        share = 100 * self.joules[largest] / self.total if self.total else 0.0
        return (
            f"estimate: {_metric(self.total, 'J')} and {_metric(self.seconds, 's')} per training "
            f"({self.table}; {share:.0f} % {largest})"
        )


def estimate(counts: Counts, table: EnergyTable | None = None) -> Estimate:
    """Return joules and seconds of counted operations."""
    table = table or EnergyTable()
    seconds = counts.reads_in_turn * table.t_read + counts.writes_in_turn * table.t_write
    joules = {
        "macs": counts.macs * table.mac,
        "inputs": counts.inputs * table.input,
        "outputs": counts.outputs * table.output,
        "writes": counts.writes * table.pulses * table.write,
        "states": counts.states * table.state,
        "standby": seconds * table.power,
    }
    return Estimate(counts=counts, table=table.name, joules=joules, seconds=seconds)


def count(network: Network, rule: Rule, *, T: int, batch: int, batches: int) -> Counts:
    """Return the operations of a training of `batches` batches of `batch` samples each.

    Per batch, L layers, w weights:

        iPC    feed-forward pass, then T × (all forward, all backward, all written)
        PC     feed-forward pass, then T × (all forward, all backward), all written once
        Z-IL   as PC with T = L, each layer written once, in its turn
        BP     forward and backward layer by layer, all written once

    The backward product into clamped inputs is never needed. Products of all layers of a step of
    iPC, PC and Z-IL happen at once; BP waits for the layer before.
    """
    if rule not in ("bp", "pc", "zil", "ipc"):
        raise ConfigError(f"energy.rule: there is no {rule!r}; choose bp, pc, zil or ipc")
    if min(T, batch, batches) < 1:
        raise ConfigError("energy: T, batch and batches must be at least 1")
    maps = [
        (network.nodes[parent].units, node.units, bool(network.nodes[parent].parents))
        for node in network.nodes
        for parent in node.parents
    ]
    depth = network.depth
    hidden = sum(sources for sources, _, inner in maps if inner)
    weights = sum(sources * units for sources, units, _ in maps)
    steps = {"ipc": T, "pc": T, "zil": depth, "bp": 1}[rule]
    start = 0 if rule == "bp" else 1  # the feed-forward pass that initialises the states
    ahead, back = start + steps, steps
    inner = [(a, b) for a, b, is_inner in maps if is_inner]
    turns = {
        "ipc": depth + 2 * T,
        "pc": depth + 2 * T,
        "zil": depth + 2 * depth,
        "bp": depth + len(inner),
    }[rule]
    scale = float(batch * batches)
    written = T if rule == "ipc" else 1
    return Counts(
        products=scale * (ahead * len(maps) + back * len(inner)),
        macs=scale * (ahead * weights + back * sum(a * b for a, b in inner)),
        inputs=scale * (ahead * sum(a for a, _, _ in maps) + back * sum(b for _, b in inner)),
        outputs=scale * (ahead * sum(b for _, b, _ in maps) + back * sum(a for a, _ in inner)),
        writes=float(weights * written * batches),
        states=scale * hidden * steps,
        reads_in_turn=scale * turns,
        writes_in_turn=float(batches * {"ipc": T, "zil": depth}.get(rule, 1)),
    )


def _metric(value: float, unit: str) -> str:
    for power, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")):
        if value >= power:
            return f"{value / power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
