"""A dendritic network whose synapses are transistors, learning while it runs.

Signals are voltages about two levels, `unit` volts for 1; l counts layers from the input, and the
last entry of a row of weights is the bias, a synapse from a line that is always at 1.

    forward     multiplier (r, w) → current into the basal dendrite vb, a transconductor as load
    soma        C_x dx/dt = g(vb − x) + g·f'(x) va, two transconductors
    interneuron buffer: inter → vb
    feedback    multiplier (x − inter, w) → current into the apical dendrite va of the layer above
    learning    multiplier (x − vb, r) → current into the capacitor C_w of the weight

With typical gains K (multiplier) and g (load) trimmed to g = K·unit, this is the dendritic circuit
of `pcsim.circuits` with shared weights and fast interneurons, in units of a_B W:

    τ_x dx/dt = −err + f'(x)·Wᵀerr,   err = x − W r,   τ_w dW/dt = err rᵀ

The transfer function f = tanh, the shift of rates to the upper level, the clamps and the sources of
bias currents and levels are ideal. A role in `ideal` has behavioural sources with typical gains.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pcsim.errors import ConfigError
from pcsim.spice import ngspice
from pcsim.spice.cells.library import LEARNING, TRANSISTORS, Levels, Sizes, library, tail
from pcsim.spice.cells.process import Process, process
from pcsim.spice.cells.trim import corner_levels, supplies, typical_gains
from pcsim.spice.ngspice import Plot

Array = NDArray[np.float64]
ROLES = {
    "forward": "multiplier",
    "feedback": "multiplier",
    "learning": "multiplier",
    "load": "transconductor",
    "soma": "transconductor",
    "interneuron": "buffer",
}
PATTERNS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
TASKS = {"and": (-1, -1, -1, 1), "or": (-1, 1, 1, 1), "xor": (-1, 1, 1, -1)}
TARGET = 0.8
TRANSIENT = ".options reltol={:g} abstol=1e-14 vntol={:g} chgtol=1e-17 gmin=1e-15 method=gear"
READING = 4
"""Time per pattern of the read-out, over that of learning: unclamped loops are slow."""
RELTOL, FINE = 1e-3, 1e-6
"""Tolerance of ngspice with transistors, and with ideal cells alone, where it costs nothing."""
CLAMP = 1e4
"""Conductance that holds a clamped soma, over that of its dendrite."""
SECONDS = 1.6e-5
"""CPU time of ngspice per transistor and τ_x, measured; see `expected_seconds`."""


class Lesson(ABC):
    """What a network is shown, from which weights, in which times."""

    layers: tuple[int, ...]
    present: float
    """Time per sample, in τ_x."""
    tau_x: float
    """Seconds."""
    tau_w: float
    """In τ_x."""
    samples: int
    """Shown while learning."""

    @property
    @abstractmethod
    def title(self) -> str:
        """A word for it."""

    @property
    @abstractmethod
    def shown(self) -> tuple[Array, Array]:
        """Inputs (sample, unit) and targets: while learning, then what is read out."""

    @property
    @abstractmethod
    def weights(self) -> list[Array]:
        """Initial weights (post, pre + 1) of each layer."""

    @property
    def somas(self) -> Mapping[str, float]:
        """Where somas start, units by node; at 0 else."""
        return {}

    @property
    def learning_time(self) -> float:
        """Seconds of learning; what is read out follows, unclamped and with learning off."""
        return self.samples * self.present * self.tau_x

    @property
    def end(self) -> float:
        """Seconds in all."""
        readings = len(self.shown[0]) - self.samples
        return self.learning_time + readings * READING * self.present * self.tau_x


@dataclass(frozen=True, eq=False)
class Given(Lesson):
    """Data and weights of one's own, with no read-out."""

    layers: tuple[int, ...]
    inputs: Array
    targets: Array
    start: list[Array]
    start_somas: Mapping[str, float]
    present: float
    tau_x: float
    tau_w: float

    @property
    def somas(self) -> Mapping[str, float]:
        """Where somas start."""
        return self.start_somas

    @property
    def samples(self) -> int:  # type: ignore[override]
        """Shown while learning."""
        return len(self.inputs)

    @property
    def title(self) -> str:
        """A word for it."""
        return "a stream"

    @property
    def shown(self) -> tuple[Array, Array]:
        """Inputs and targets."""
        return self.inputs, self.targets

    @property
    def weights(self) -> list[Array]:
        """Initial weights."""
        return self.start


@dataclass(frozen=True)
class Task(Lesson):
    """A network, what it is shown, and its time constants."""

    table: str = "and"
    layers: tuple[int, ...] = (2, 2, 1)
    samples: int = 120
    """Patterns shown, in random order, four at a time."""
    present: float = 5.0
    """Time per pattern, in τ_x."""
    tau_x: float = 1e-3
    """Seconds."""
    tau_w: float = 40.0
    """In τ_x."""
    scale: float = 1.0
    """Standard deviation of initial weights times √(inputs)."""
    seed: int = 0
    """Of initial weights and of the order."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.table not in TASKS:
            raise ConfigError(f"task: {self.table!r} is unknown; there are {', '.join(TASKS)}")
        inner = self.layers[1:-1]
        if self.layers[:1] != (2,) or self.layers[-1:] != (1,) or not inner or min(inner) < 1:
            raise ConfigError(f"layers: must be 2-n-1 or 2-n-m-1, got {_dashed(self.layers)}")
        for name in ("present", "tau_x", "tau_w", "scale"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: must be above 0, got {getattr(self, name):g}")
        if self.samples < 4 or self.samples % 4:
            raise ConfigError(f"samples: must be a multiple of 4, got {self.samples}")

    @property
    def targets(self) -> Array:
        """The target of each pattern."""
        return TARGET * np.array(TASKS[self.table], dtype=np.float64)

    @property
    def title(self) -> str:
        """The truth table."""
        return self.table

    @property
    def shown(self) -> tuple[Array, Array]:
        """Patterns in their order, and all four once more."""
        order = np.concatenate([self.order, np.arange(4)])
        return PATTERNS[order], self.targets[order, None]

    @property
    def order(self) -> NDArray[np.int64]:
        """The pattern of each sample."""
        random = np.random.default_rng([self.seed, 1])
        rounds = [random.permutation(4) for _ in range(self.samples // 4)]
        return np.concatenate(rounds).astype(np.int64)

    @property
    def weights(self) -> list[Array]:
        """Initial weights (post, pre + 1) of each layer."""
        random = np.random.default_rng([self.seed, 0])
        pairs = zip(self.layers[:-1], self.layers[1:], strict=True)
        return [
            self.scale * random.standard_normal((post, pre + 1)) / np.sqrt(pre + 1)
            for pre, post in pairs
        ]


@dataclass(frozen=True)
class Learnt:
    """What a run gave, in network units."""

    task: Task
    weights: list[Array]
    """At the end of learning."""
    outputs: Array
    """Prediction for each pattern, unclamped, after learning."""
    time: Array
    """Points of the waveforms, in τ_x."""
    waves: dict[str, Array]
    """Waveforms by the name of their node, in network units."""
    supply_current: float
    """Mean current from the supply while learning, A."""
    transistors: int

    @property
    def error(self) -> float:
        """Largest distance of an output from its target."""
        return float(np.abs(self.outputs - self.task.targets).max())

    @property
    def learnt(self) -> bool:
        """Whether every output has the sign of its target."""
        return bool((self.outputs * self.task.targets > 0).all())

    def apart(self, other: Learnt) -> float:
        """Return the largest difference of a weight."""
        pairs = zip(self.weights, other.weights, strict=True)
        return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)


@dataclass
class _Drawing:
    """Lines of a netlist, and what they count."""

    task: Lesson
    name: Process
    sizes: Sizes
    ideal: frozenset[str]
    lines: list[str] = field(default_factory=list)
    transistors: int = 0

    def __post_init__(self) -> None:
        self.at = corner_levels(self.name.name, self.sizes)
        self.gains = typical_gains(self.name.name, self.sizes)
        self.conductance = self.gains.multiplier * self.sizes.unit
        """Of loads and somas: one unit of product gives one unit of potential."""

    def cell(self, role: str, label: str, pins: str) -> None:
        kind = ROLES[role]
        if role in self.ideal:
            self.lines.append(self._ideal(role, label, pins))
            return
        self.transistors += TRANSISTORS[kind]
        rail = {"forward": "fast", "feedback": "fast", "learning": "gated"}.get(role, "load")
        self.lines.append(f"x{label} {pins} {rail} vcn vcp vdd {kind} {self.sizes.suffix}")

    def _ideal(self, role: str, label: str, pins: str) -> str:
        if role == "learning":  # off in the read-out, as the tails of transistors are
            p, n, bp, bn, out = pins.split()
            product = f"(v({p})-v({n}))*(v({bp})-v({bn}))"
            return f"b{label} 0 {out} i = {self.gains.learning:.8g}*v(learn)*{product}"
        value = {
            "multiplier": f"k={self.gains.multiplier:.8g}",
            "transconductor": f"g={self.conductance:.8g}",
        }.get(ROLES[role], "")
        return f"x{label} {pins} ideal_{ROLES[role]} {value}".rstrip()


def expected_seconds(task: Lesson, transistors: int) -> float:
    """Return the CPU time that ngspice will need, from the number of transistors."""
    return SECONDS * (transistors + 20) * task.end / task.tau_x


def count(task: Lesson, ideal: frozenset[str] = frozenset()) -> int:
    """Return the number of transistors of a network, but for the rails."""
    used = dict.fromkeys(ROLES, 0)
    for depth, (pre, post) in enumerate(zip(task.layers[:-1], task.layers[1:], strict=True)):
        used["forward"] += post * (pre + 1)
        used["learning"] += post * (pre + 1)
        used["feedback"] += post * pre if depth else 0
        used["interneuron"] += post if depth else 0
        used["load"] += post + (pre if depth else 0)
    used["soma"] = 2 * sum(task.layers[1:-1]) + task.layers[-1]
    return sum(TRANSISTORS[ROLES[role]] * n for role, n in used.items() if role not in ideal)


def roles(ideal: str) -> frozenset[str]:
    """Return the roles that have no transistors, from their names with commas, or all."""
    named = frozenset(ROLES if ideal == "all" else filter(None, ideal.split(",")))
    check_roles(named)
    return named


def check_roles(ideal: frozenset[str]) -> None:
    """Refuse a role that no cell has."""
    unknown = sorted(ideal - set(ROLES))
    if unknown:
        raise ConfigError(f"ideal: {unknown[0]!r} is no role; there are {', '.join(ROLES)}, or all")


@dataclass(frozen=True)
class Netlist:
    """A network of cells, in the parts that a reader looks for."""

    title: str
    library: list[str]
    """Models and cells."""
    chip: list[str]
    """Rails, somas, dendrites, synapses."""
    data: list[str]
    """What is shown."""
    analysis: list[str]
    """Options, start, what is written, and how long."""
    transistors: int
    """Besides those of the rails."""

    @property
    def text(self) -> str:
        """Return all of it."""
        parts = [self.title, *self.library, *self.chip, *self.data, *self.analysis]
        return "\n".join(parts)


def netlist(
    task: Lesson,
    name: Process,
    sizes: Sizes,
    ideal: frozenset[str] = frozenset(),
    reltol: float | None = None,
    seed: int = 0,
) -> Netlist:
    """Return the netlist of a lesson."""
    tight = reltol or (FINE if ideal == frozenset(ROLES) else RELTOL)
    check_roles(ideal)
    drawing = _Drawing(task, name, sizes, ideal)
    _rails(drawing)
    for depth in range(1, len(task.layers)):
        _layer(drawing, depth)
    step = 2 * task.tau_x * (tight / RELTOL) ** 0.5
    return Netlist(
        title=f"* {task.title}, {_dashed(task.layers)}, dendritic, {name.name}",
        library=library(name, sizes, seed),
        chip=drawing.lines,
        data=_inputs(task, drawing.at, sizes.unit),
        analysis=[
            TRANSIENT.format(tight, 1e-3 * tight),
            _start(drawing),
            f".save {' '.join(_shown(task))} i(vdd)",
            f".tran {step / 4:g} {task.end:g} 0 {step:g} uic",
            ".end",
            "",
        ],
        transistors=drawing.transistors,
    )


def run(
    task: Task,
    name: str = "sky130:tt",
    sizes: Sizes | None = None,
    ideal: frozenset[str] = frozenset(),
    seed: int = 0,
    folder: Path | None = None,
    reltol: float | None = None,
    seconds: float | None = None,
) -> Learnt:
    """Let a network learn.

    Main arguments:
        seed: of the foundry's mismatch.
        folder: where netlist and waveforms are kept; None: nowhere.
        seconds: time after which ngspice is ended; None: as long as it takes.
        reltol: relative tolerance of ngspice; None: 1e-3 with transistors, 1e-6 without.
    """
    sizes = sizes or Sizes()
    models = process(name)
    drawn = netlist(task, models, sizes, ideal, reltol, seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        (place / ".spiceinit").write_text(models.start(), encoding="utf-8")
        plot = ngspice.run(drawn.text, place, seconds).plot
    return _read(plot, task, models, sizes, drawn.transistors)


def _rails(drawing: _Drawing) -> None:
    sizes = drawing.sizes
    drawing.lines += [f"vdd vdd 0 {drawing.name.supply:g}", *supplies(drawing.at)]
    loads = drawing.conductance / drawing.gains.transconductance
    currents = {"fast": sizes.current, "slow": sizes.current * LEARNING, "load": loads}
    for rail, current in currents.items():
        drawing.lines += tail(rail, current, sizes)
    end, short = drawing.task.learning_time, drawing.task.tau_x / 200
    drawing.lines += [
        f"vlearn learn 0 pwl 0 1 {end:.9g} 1 {end + short:.9g} 0",
        "bgated gated 0 v = v(slow)*v(learn)",
    ]


def _steps(values: Array, task: Lesson, level: float, unit: float) -> str:
    """Return a piecewise-linear source that shows one value after the other."""
    points, each, short = [], task.present * task.tau_x, task.tau_x / 200
    begin = 0.0
    for k, value in enumerate(level + unit * values):
        end = begin + each * (1 if k < task.samples else READING)
        points.append(f"{begin + (short if k else 0):.9g} {value:.7f}")
        points.append(f"{end:.9g} {value:.7f}")
        begin = end
    rows = [" ".join(points[k : k + 4]) for k in range(0, len(points), 4)]
    return "pwl\n+ " + "\n+ ".join(rows)


def _inputs(task: Lesson, at: Levels, unit: float) -> list[str]:
    """Return sources of inputs and targets; upper pairs of multipliers get shifted rates."""
    inputs, targets = task.shown
    lines = []
    for i in range(task.layers[0]):
        lines += [f"vin{i} r0_{i} 0 {_steps(inputs[:, i], task, at.low, unit)}"]
        lines += [f"eh0_{i} h0_{i} high r0_{i} low 1"]
    for i in range(task.layers[-1]):
        lines += [f"vtarget{i} target{i} 0 {_steps(targets[:, i], task, at.low, unit)}"]
    return [*lines, f"vone one low {unit:g}", f"vhone hone high {unit:g}"]


def _layer(drawing: _Drawing, depth: int) -> None:
    """Add somas, dendrites and interneurons of a layer, and the synapses onto it."""
    task, sizes = drawing.task, drawing.sizes
    pre, post = task.layers[depth - 1], task.layers[depth]
    last = depth == len(task.layers) - 1
    c_x = task.tau_x * drawing.conductance
    c_w = task.tau_w * task.tau_x * drawing.gains.learning * sizes.unit
    unit, low = sizes.unit, drawing.at.low
    clamp = CLAMP * drawing.conductance
    for i in range(post):
        u = f"{depth}_{i}"
        drawing.cell("load", f"lb{u}", f"low vb{u} vb{u}")
        drawing.cell("soma", f"sb{u}", f"vb{u} x{u} x{u}")
        drawing.lines.append(f"cx{u} x{u} 0 {c_x:.6g}")
        if last:
            drawing.lines.append(f"bclamp{u} 0 x{u} i = {clamp:g}*v(learn)*(v(target{i})-v(x{u}))")
        else:
            drawing.lines += [
                f"br{u} r{u} 0 v = {low:.6f} + {unit:g}*tanh((v(x{u})-{low:.6f})/{unit:g})",
                f"eh{u} h{u} high r{u} low 1",
                f"bs{u} s{u} 0 v = {low:.6f}"
                f" + (1-((v(r{u})-{low:.6f})/{unit:g})^2)*(v(va{u})-{low:.6f})",
            ]
            drawing.cell("load", f"la{u}", f"low va{u} va{u}")
            drawing.cell("soma", f"sa{u}", f"s{u} low x{u}")
        if depth > 1:
            drawing.cell("interneuron", f"i{u}", f"vb{u} in{u}")
        for j in range(pre + 1):
            bias = j == pre
            rate, upper = ("one", "hone") if bias else (f"r{depth - 1}_{j}", f"h{depth - 1}_{j}")
            w = f"{u}_{j}"
            drawing.lines.append(f"cw{w} w{w} 0 {c_w:.6g}")
            drawing.cell("forward", f"f{w}", f"{rate} low w{w} high vb{u}")
            drawing.cell("learning", f"g{w}", f"x{u} vb{u} {upper} high w{w}")
            if depth > 1 and not bias:
                drawing.cell("feedback", f"b{w}", f"x{u} in{u} w{w} high va{depth - 1}_{j}")


def _start(drawing: _Drawing) -> str:
    """Return initial weights and rest; rails and inner nodes settle within microseconds."""
    at, unit = drawing.at, drawing.sizes.unit
    entries = []
    for depth, values in enumerate(drawing.task.weights, start=1):
        for (i, j), value in np.ndenumerate(values):
            entries.append(f"v(w{depth}_{i}_{j})={at.high + unit * value:.7f}")
        for i in range(len(values)):
            soma = at.low + unit * drawing.task.somas.get(f"x{depth}_{i}", 0.0)
            entries += [f"v(x{depth}_{i})={soma:.6f}", f"v(vb{depth}_{i})={at.low:.6f}"]
    rows = [" ".join(entries[k : k + 4]) for k in range(0, len(entries), 4)]
    return ".ic " + "\n+ ".join(rows)


def _shown(task: Lesson) -> list[str]:
    names = []
    for depth, values in enumerate(task.weights, start=1):
        names += [f"w{depth}_{i}_{j}" for i, j in np.ndindex(*values.shape)]
        for i in range(len(values)):
            names += [f"x{depth}_{i}", f"vb{depth}_{i}"]
    return [f"v({name})" for name in names]


def _read(plot: Plot, task: Task, name: Process, sizes: Sizes, transistors: int) -> Learnt:
    time = plot["time"].real
    at = corner_levels(name.name, sizes)
    waves = {}
    for node in _shown(task):
        level = at.high if node.startswith("v(w") else at.low
        waves[node[2:-1]] = (plot[node].real - level) / sizes.unit

    def when(node: str, moment: float) -> float:
        return float(np.interp(moment, time, waves[node]))

    weights = []
    for depth, values in enumerate(task.weights, start=1):
        learnt = np.empty_like(values)
        for i, j in np.ndindex(*values.shape):
            learnt[i, j] = when(f"w{depth}_{i}_{j}", task.learning_time)
        weights.append(learnt)
    each = READING * task.present * task.tau_x
    ends = [task.learning_time + (k + 1) * each - task.tau_x / 10 for k in range(4)]
    output = f"vb{len(task.layers) - 1}_0"
    while_learning = time <= task.learning_time
    current = -plot["i(vdd)"].real[while_learning]
    spans = time[while_learning]
    mean = float(np.trapezoid(current, spans) / (spans[-1] - spans[0])) if len(spans) > 1 else 0.0
    return Learnt(
        task=task,
        weights=weights,
        outputs=np.array([when(output, moment) for moment in ends]),
        time=time / task.tau_x,
        waves=waves,
        supply_current=mean,
        transistors=transistors,
    )


def _dashed(layers: tuple[int, ...]) -> str:
    return "-".join(map(str, layers))
