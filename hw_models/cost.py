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
from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from pcsim.errors import ConfigError
from pcsim.frozen import Frozen, NotNegative
from pcsim.network import Network

Rule = Literal["bp", "pc", "zil", "ipc"]
Mode = Literal["clocked", "continuous", "digital"]
Level = Literal["low", "typical", "high"]
Count = Annotated[float, Field(ge=0)]
TILE = (128, 32)
"""Inputs and 8-bit outputs of one array: 128 × 128 cells of two bits, four of them per weight."""
UNNAMED_TAU = 1e-6
"""Seconds that stand for one time constant where a chip's own is not known: an assumption."""


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
    """Time that passes on a continuous chip, s."""


class Entry(Frozen):
    """One uncertain number of a table, in SI units."""

    low: NotNegative
    typical: NotNegative
    high: NotNegative
    source: str

    def at(self, level: Level) -> float:
        """Return its value at a level."""
        return float(getattr(self, level))


def entry(low: float, typical: float, high: float, source: str) -> Entry:
    """Return an entry."""
    if not low <= typical <= high:
        raise ConfigError(f"cost: {low:g}, {typical:g}, {high:g} must rise: low, typical, high")
    return Entry(low=low, typical=typical, high=high, source=source)


_NONE = Entry(low=0, typical=0, high=0, source="not there in this mode")
_ISAAC = "ISAAC (Shafiee et al., ISCA 2016)"


class CostTable(Frozen):
    """Joules, seconds and watts per operation; replace any of them by those of your technology."""

    name: str
    mode: Mode
    mac: Entry = _NONE
    """One weight in one product of 8 bits, J."""
    input: Entry = _NONE
    """One 8-bit number at one input line of one array, J."""
    output: Entry = _NONE
    """One 8-bit number at one output of one array, J."""
    write: Entry = _NONE
    """One programming pulse of one device, J."""
    pulses: Entry = _NONE
    """Pulses per device and batch, on average (digital: writes per occasion)."""
    state: Entry = _NONE
    """One update of one neuron, J."""
    t_read: Entry = _NONE
    """One product of an array with a vector, s."""
    t_write: Entry = _NONE
    """One write phase of an array, s."""
    neuron: Entry = _NONE
    """Bias of one neuron with its error circuit, all the time, W."""
    weight: Entry = _NONE
    """Bias of one synapse (both products and plasticity), all the time, W."""

    @property
    def entries(self) -> dict[str, Entry]:
        """All entries that are there, by name."""
        named = {n: getattr(self, n) for n in type(self).model_fields if n not in ("name", "mode")}
        return {name: one for name, one in named.items() if one.high}


PULSE = {
    "pcm": entry(1e-12, 20e-12, 200e-12, "assumption: 0.1–1 mA at 1–2 V for 10–100 ns, melting"),
    "reram": entry(0.1e-12, 5e-12, 50e-12, "assumption: 50 µA at 1 V for 100 ns"),
    "ecram": entry(0.01e-12, 0.5e-12, 10e-12, "assumption: charge of a small ion channel at 1–5 V"),
    "sot_mram": entry(
        0.1e-12, 0.35e-12, 1e-12, "350 fJ per write (arXiv:2510.25853); the range is an assumption"
    ),
    "dynapse": entry(0.05e-12, 1e-12, 10e-12, "assumption: a few bits of static memory"),
    "brainscales": entry(0.05e-12, 1e-12, 10e-12, "assumption: a few bits of static memory"),
    "cmos": entry(1e-15, 0.02e-12, 0.5e-12, "assumption: charge packets of a capacitor cell"),
}
"""Energy of a pulse by technology, the beginning of a preset's name; others: that of `reram`."""
CLOCKED = CostTable(
    name="clocked array, 8-bit periphery",
    mode="clocked",
    mac=entry(
        6e-15,
        58.6e-15,
        200e-15,
        f"{_ISAAC}: 128 × 128 cells at 0.3 mW; a cycle of 100 ns is one input bit on two-bit "
        "cells, so 8 bits are 8 cycles of 4 cells; the range is an assumption",
    ),
    input=entry(
        0.8e-12,
        3.1e-12,
        6.2e-12,
        f"{_ISAAC}: 4 mW for 1024 one-bit drivers, 8 cycles; the range is an assumption",
    ),
    output=entry(
        10e-12,
        50e-12,
        100e-12,
        f"{_ISAAC}: 8-bit converter, 2 mW at 1.28 GS/s, 4 columns in 8 cycles are 32 conversions; "
        "the range is an assumption",
    ),
    write=PULSE["reram"],
    pulses=entry(0.1, 1.0, 10.0, "assumption: a device gets about one pulse per batch"),
    state=entry(
        0.1e-12,
        1e-12,
        5e-12,
        "assumption: a few additions, 0.03–0.9 pJ in 45 nm each (Horowitz, ISSCC 2014)",
    ),
    t_read=entry(
        133e-9,
        521e-9,
        800e-9,
        "8-bit products of 64 cores of 256 × 256 at 63.1 and 16.1 TOPS (one and four phases; Le "
        f"Gallo et al., Nature Electronics 2023); high: 8 cycles of {_ISAAC}",
    ),
    t_write=entry(10e-9, 100e-9, 1e-6, "assumption: one pulse"),
)
CONTINUOUS = CostTable(
    name="continuous chip, static bias",
    mode="continuous",
    write=PULSE["reram"],
    pulses=entry(0.1, 1.0, 10.0, "assumption: a device gets about one pulse per batch"),
    neuron=entry(1e-9, 20e-9, 1e-6, "assumption: ten branches of 1 nA at 1.8 V; 1 µW: 50 nA each"),
    weight=entry(0.05e-9, 0.5e-9, 50e-9, "assumption: three branches of 0.1 nA at 1.8 V"),
)
DIGITAL = CostTable(
    name="digital, 8-bit integers, 7–14 nm",
    mode="digital",
    mac=entry(
        0.2e-12,
        1.2e-12,
        2.5e-12,
        "multiplication 0.07 pJ, 32-bit addition 0.03 pJ, 8 of the 64 bits of an 8.5 pJ access to "
        "32 kB in 7 nm (Jouppi et al., ISCA 2021); low: weights are reused, high: 14 nm and 1 MB: "
        "assumptions",
    ),
    write=entry(
        2e-12, 4.3e-12, 10e-12, "16 bits read and written, 8.5 pJ per 64 (Jouppi et al., ISCA 2021)"
    ),
    pulses=entry(1, 1, 1, "every change is written"),
    state=entry(0.1e-12, 1e-12, 5e-12, "assumption: a few operations and a register file"),
    t_read=entry(10e-9, 100e-9, 1e-6, "assumption: depends on the number of units alone"),
    t_write=entry(10e-9, 100e-9, 1e-6, "assumption: as a read"),
)


def tables_for(preset: str) -> tuple[CostTable, CostTable, CostTable]:
    """Return the clocked, continuous and digital tables with the pulse of a preset's technology."""
    pulse = next((one for name, one in PULSE.items() if preset.startswith(name)), PULSE["reram"])
    analog = (one.model_copy(update={"write": pulse}) for one in (CLOCKED, CONTINUOUS))
    clocked, continuous = analog
    return clocked, continuous, DIGITAL


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
        own, counts, seconds = at or {}, self.counts, self.seconds(level)
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

    def seconds(self, level: Level = "typical") -> float:
        """Return how long it takes on the chip, s."""
        if self.table.mode == "continuous":
            return self.counts.simulated
        read, write = self.table.t_read.at(level), self.table.t_write.at(level)
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
    carry: bool = True,
    pulses: Mapping[Rule, Entry] | None = None,
) -> list[Estimate]:
    """Return what iPC, PC and BP cost in each mode that they have, for one training.

    Main arguments:
        steps: reads of iPC and PC per presentation.
        present: seconds that a presentation takes on a continuous chip.
        batch, batches: samples side by side, and how many batches a training has.

    Rarely used:
        pulses: per device and batch, where they were counted, by rule.
    """
    clocked, continuous, digital = tables_for(preset)
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
