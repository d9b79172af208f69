"""What a training costs: counted operations times a table of uncertain entries. An estimate.

    joules  = Σ_operations count·energy + power·seconds
    seconds = operations in turn·duration     (clocked), or the simulated time (continuous)

Three modes: a *clocked* array reads and writes step by step through converters; a *continuous* chip
computes by currents that flow all the time, so that it pays for time and for nothing else but
writes; a *digital* chip does the same products in 8-bit integers. Every entry has a low, a typical
and a high value, and a source or the word 'assumption'. Counts follow the schedules; the arrays of
all layers work at the same time where the schedule allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from hw_models.cost_entries import UNNAMED_TAU, CostTable, Entry, Level, tables_for
from pcsim.errors import ConfigError
from pcsim.frozen import Frozen
from pcsim.network import Network

Rule = Literal["bp", "pc", "zil", "ipc"]
Count = Annotated[float, Field(ge=0)]
ENDS: tuple[Level, Level] = ("low", "high")
TILE = (128, 32)
"""Inputs and 8-bit outputs of one array: 128 × 128 cells of two bits, four of them per weight."""


class Counts(Frozen):
    """What a training does, summed over all its batches."""

    products: Count = 0
    """Products of a layer's weights with one vector, both directions, one per layer and sample."""
    macs: Count = 0
    """Multiply-accumulate operations inside these products."""
    inputs: Count = 0
    """Conversions of a number at the input line of an array (DAC)."""
    outputs: Count = 0
    """Conversions to a number at the output of an array (ADC)."""
    writes: Count = 0
    """Occasions to write one device: a digital memory is written at each of them."""
    changes: Count = 0
    """Devices times batches: at one learning rate per sample a weight moves equally far however
    often it is written meanwhile, and pulses follow the distance."""
    states: Count = 0
    """Updates of one neuron's state."""
    reads_in_turn: Count = 0
    """Reads that cannot happen at the same time."""
    writes_in_turn: Count = 0
    """Write phases that cannot happen at the same time."""
    neurons: Count = 0
    """Units with a state, which exist all the time."""
    weights: Count = 0
    """Devices that hold weights, which exist all the time."""
    simulated: Count = 0
    """Time constants that pass on a continuous chip."""


class Estimate(Frozen):
    """What a table makes of counts; an estimate, not a measurement."""

    what: str
    """Rule and mode."""
    counts: Counts
    table: CostTable

    def joules(
        self, level: Level = "typical", at: Mapping[str, Level] | None = None
    ) -> dict[str, float]:
        """Return the energy by part; `at` sets single entries to levels of their own."""
        own, counts, seconds = at or {}, self.counts, self.seconds(level, at)
        by_entry = {name: one.at(own.get(name, level)) for name, one in self.table.entries.items()}
        written = counts.writes if self.table.mode == "digital" else counts.changes
        e = {name: by_entry.get(name, 0.0) for name in CostTable.model_fields}
        return {
            "products": counts.macs * e["mac"],
            "converters": counts.inputs * e["input"] + counts.outputs * e["output"],
            "writes": written * e["pulses"] * e["write"],
            "states": counts.states * e["state"],
            "bias": seconds * (counts.neurons * e["neuron"] + counts.weights * e["weight"]),
        }

    def total(self, level: Level = "typical", at: Mapping[str, Level] | None = None) -> float:
        """Return all energy, J."""
        return sum(self.joules(level, at).values())

    def seconds(self, level: Level = "typical", at: Mapping[str, Level] | None = None) -> float:
        """Return how long it takes on the chip, s."""
        own, table = at or {}, self.table
        if table.mode == "continuous":
            return self.counts.simulated * table.tau_x.at(own.get("tau_x", level))
        read = table.t_read.at(own.get("t_read", level))
        write = table.t_write.at(own.get("t_write", level))
        return self.counts.reads_in_turn * read + self.counts.writes_in_turn * write

    def sensitivity(self) -> dict[str, float]:
        """Return by which factor each entry alone, from low to high, moves the energy; falling."""
        factors = {
            name: self.total(at={name: "high"}) / max(self.total(at={name: "low"}), 1e-300)
            for name in self.table.entries
        }
        return dict(sorted(factors.items(), key=lambda item: -item[1]))

    def largest(self) -> tuple[str, float]:
        """Return the part that takes most of the energy, and its share."""
        parts = self.joules()
        name = max(parts, key=lambda part: parts[part])
        return name, parts[name] / max(self.total(), 1e-300)


def count(
    network: Network,
    rule: Rule,
    *,
    T: int,
    batch: int,
    batches: int,
    carry: bool = False,
    simulated: float = 0.0,
) -> Counts:
    """Return the operations of a training of `batches` batches of `batch` samples each.

    Per batch, L layers, w weights:

        iPC    feed-forward pass (none if states are carried over), then T × (all forward, all
               backward, all written)
        PC     feed-forward pass, then T × (all forward, all backward), all written once
        Z-IL   as PC with T = L, each layer written once, in its turn
        BP     forward and backward layer by layer, all written once

    The backward product into clamped inputs is never needed. Products of all layers of a step of
    iPC, PC and Z-IL happen at once; BP waits for the layer before. Samples of a batch are replicas
    on a chip: they go through the arrays one after another.
    """
    if rule not in ("bp", "pc", "zil", "ipc"):
        raise ConfigError(f"cost.rule: there is no {rule!r}; choose bp, pc, zil or ipc")
    if min(T, batch, batches) < 1:
        raise ConfigError("cost: T, batch and batches must be at least 1")
    maps = [
        (network.nodes[parent].units, node.units, bool(network.nodes[parent].parents))
        for node in network.nodes
        for parent in node.parents
    ]
    depth = network.depth
    hidden = sum(sources for sources, _, inner in maps if inner)
    weights = sum(sources * units for sources, units, _ in maps)
    steps = {"ipc": T, "pc": T, "zil": depth, "bp": 1}[rule]
    start = 0 if rule == "bp" or carry else 1  # the feed-forward pass that initialises the states
    ahead, back = start + steps, steps
    inner = [(a, b) for a, b, is_inner in maps if is_inner]
    turns = {
        "ipc": start * depth + 2 * T,
        "pc": start * depth + 2 * T,
        "zil": depth + 2 * depth,
        "bp": depth + len(inner),
    }[rule]
    scale = float(batch * batches)
    written = T if rule == "ipc" else 1
    forth = [(a, b) for a, b, _ in maps]
    across = [(b, a) for a, b in inner]
    return Counts(
        products=scale * (ahead * len(maps) + back * len(inner)),
        macs=scale * (ahead * weights + back * sum(a * b for a, b in inner)),
        inputs=scale * (ahead * _lines(forth) + back * _lines(across)),
        outputs=scale * (ahead * _sums(forth) + back * _sums(across)),
        writes=float(weights * written * batches),
        changes=float(weights * batches),
        states=scale * hidden * steps,
        reads_in_turn=scale * turns,
        writes_in_turn=float(batches * {"ipc": T, "zil": depth}.get(rule, 1)),
        neurons=float(sum(node.units for node in network.nodes)),
        weights=float(weights),
        simulated=simulated,
    )


def _lines(products: list[tuple[int, int]]) -> int:
    """Return input conversions: every line drives as many arrays as the outputs fill."""
    return sum(a * ceil(b / TILE[1]) for a, b in products)


def _sums(products: list[tuple[int, int]]) -> int:
    """Return output conversions: every output is summed from as many arrays as the inputs fill."""
    return sum(b * ceil(a / TILE[0]) for a, b in products)


def estimates(
    preset: str,
    network: Network,
    *,
    steps: int,
    present: float,
    batch: int,
    batches: int,
    tau_x: Entry = UNNAMED_TAU,
    carry: bool = True,
    pulses: Mapping[Rule, Entry] | None = None,
) -> list[Estimate]:
    """Return what iPC, PC and BP cost in each mode that they have, for one training.

    Main arguments:
        steps: reads of iPC and PC per presentation.
        present: time constants that a presentation takes on a continuous chip.
        batch, batches: samples side by side, and how many batches a training has.
        tau_x: time constant of the neurons, s.

    Rarely used:
        pulses: per device and batch, where they were counted, by rule.
    """
    clocked, continuous, digital = tables_for(preset)
    continuous = continuous.model_copy(update={"tau_x": tau_x})
    simulated = present * batches * batch

    def made(rule: Rule, table: CostTable) -> Estimate:
        counts = count(
            network,
            rule,
            T=steps,
            batch=batch,
            batches=batches,
            carry=carry and rule == "ipc",
            simulated=simulated if rule == "ipc" else 0.0,
        )
        if pulses and rule in pulses and table.mode != "digital":
            table = table.model_copy(update={"pulses": pulses[rule]})
        return Estimate(what=f"{NAMES[rule]}, {table.mode}", counts=counts, table=table)

    return [
        made("ipc", continuous),
        made("ipc", clocked),
        made("pc", clocked),
        made("bp", clocked),
        made("ipc", digital),
        made("bp", digital),
    ]


NAMES = {"ipc": "automatic iPC", "pc": "PC with phases", "bp": "BP", "zil": "Z-IL"}


@dataclass(frozen=True)
class Moved:
    """What one entry alone, from low to high, makes of the ratio of two energies."""

    entry: str
    """Its name; of counted pulses, also whose they are."""
    low: float
    high: float

    @property
    def factor(self) -> float:
        """By which it moves the ratio, either way."""
        first, last = sorted((self.low, self.high))
        return last / max(first, 1e-300)


def ratio_moves(one: Estimate, other: Estimate) -> list[Moved]:
    """Return what each entry makes of the ratio of two energies, the one that moves it most first.

    An entry that both tables have with the same numbers is one quantity: it moves in both.
    """
    here, there = one.table.entries, other.table.entries
    found = []
    for name in {**here, **there}:
        sides = [(name in here, name in there)]
        if all(sides[0]) and here[name] != there[name]:
            sides = [(True, False), (False, True)]
        for first, second in sides:
            ends = [_ratio(one, other, {name: k}, first, second) for k in ENDS]
            whose = f" of {(one if first else other).what}" if len(sides) > 1 else ""
            found.append(Moved(name + whose, ends[0], ends[1]))
    return sorted(found, key=lambda moved: -moved.factor)


def _ratio(
    one: Estimate, other: Estimate, at: Mapping[str, Level], first: bool, second: bool
) -> float:
    """Return the ratio of two energies with an entry of one, the other or both at an end."""
    return one.total(at=at if first else None) / other.total(at=at if second else None)


def plainly(made: list[Estimate]) -> str:
    """Say how iPC compares with BP and PC, clocked and continuous."""
    totals = {one.what: one.total() for one in made}
    bp, pc = totals["BP, clocked"], totals["PC with phases, clocked"]
    clocked, continuous = totals["automatic iPC, clocked"], totals["automatic iPC, continuous"]
    digital = totals["BP, digital"]
    return (
        f"estimate: on a clocked array automatic iPC takes {clocked / bp:.3g} times the energy of "
        f"BP and {clocked / pc:.3g} times that of PC; on a continuous chip {continuous / bp:.3g} "
        f"times that of clocked BP and {continuous / digital:.3g} times that of BP in 8-bit digital"
    )


def metric(value: float, unit: str) -> str:
    """Return a number with a prefix that suits it."""
    for power, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")):
        if value >= power:
            return f"{value / power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def cells(one: Estimate) -> tuple[str, ...]:
    """Return an estimate as a line of a table: counts, energy with its range, time, what rules."""
    counts = one.counts
    continuous = one.table.mode == "continuous"
    low, typical, high = (metric(one.total(k), "J") for k in ("low", "typical", "high"))
    conversions = counts.inputs + counts.outputs if one.table.mode == "clocked" else 0
    part, share = one.largest()
    entry_, factor = next(iter(one.sensitivity().items()))
    return (
        one.what,
        "–" if continuous else f"{counts.products:.3g}",
        f"{conversions:.3g}" if conversions else "–",
        f"{counts.writes:.3g}",
        typical,
        f"{low} – {high}",
        metric(one.seconds(), "s"),
        f"{100 * share:.0f} % {part}",
        f"{entry_} ×{factor:.3g}",
    )


COLUMNS = ("rule, mode", "products", "conversions", "writes", "energy", "range", "time",
           "largest part", "most uncertain")  # fmt: skip
