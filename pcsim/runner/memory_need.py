"""How much memory a run is going to need, said before anything large is allocated.

    peak = held + max(building, learning, reading out, judging)
    held = replicas · (weights · copies + Σ arrays · devices + samples · units · buffers)

What a device needs per weight is not a table: its effects are put in place on an array of
15 weights, used there, and the memory that they take is counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from pcsim.config import Config
from pcsim.continuous.solvers import SINGLE_STAGE
from pcsim.errors import ConfigError
from pcsim.hardware import make_chips
from pcsim.kernels.feedforward import CHUNK
from pcsim.native.compiler import PROBE, SHORT, library
from pcsim.network import Network
from pcsim.runner.available_memory import available_memory
from pcsim.runner.readout import STATES
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Task
from pcsim.runner.tensor_memory import TensorMemory
from pcsim.stability import NUMBERS, affordable_probes
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.effect import DOWN, FABRICATED, WEIGHT_SITES, Site

LARGE = 1e9
"""Bytes; a run that needs more says so before it starts."""
BUFFERS = 8
"""Numbers per sample and unit: state, rate, drive, prediction, error, δ, pull, force."""
MOST = 2000
"""Bytes per weight that no device exceeds; less than it, and nothing need be looked at."""
DRAWING = 3 * 8
"""Bytes per element while a fixed pattern is drawn: chip by chip, stacked, compared."""
ARRAY, LAYER, SAMPLES = (3, 5), 7, 2
"""Sizes of the array and the layer that effects are tried on."""


class MemoryNeedWarning(UserWarning):
    """A run that needs much memory."""


@dataclass(frozen=True)
class Devices:
    """Bytes per element that the effects of a substrate need, at weights and at signals."""

    fixed: float = 0.0
    """Per weight: draws, parameters and constants of all effects, the same for every reader."""
    read: float = 0.0
    """Per weight: the array as it is read, and what reading remembers."""
    remembered: float = 0.0
    """Per weight: what writing remembers."""
    passing: float = 0.0
    """Per weight of the largest array: intermediate results while it is read or written."""
    signals: float = 0.0
    """Per sample and unit: memory and intermediate results."""
    draws: bool = False
    """Whether fixed patterns are drawn per weight."""


@dataclass(frozen=True)
class Need:
    """Bytes as a function of the number of replicas."""

    of: Callable[[int], float]
    replicas: int

    @property
    def bytes(self) -> float:
        """Return the peak above what the process holds already."""
        return self.of(self.replicas)

    def most(self, available: float) -> int:
        """Return the largest number of replicas that fits."""
        low, high = 0, self.replicas
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.of(middle) <= available else (low, middle - 1)
        return low


def check(config: Config, network: Network, replicas: Replicas, task: Task, steps: int = 0) -> None:
    """Refuse a run of so many time steps that does not fit; announce one that needs much."""
    samples = max(len(task.train.x), len(task.test.x))
    signals = samples * sum(node.units for node in network.nodes)
    if len(replicas) * (network.parameter_count + signals) * MOST < LARGE:
        return
    need = memory_need(config, network, replicas, task, steps)
    available = available_memory(config.run.device)
    wanted = f"about {_gigabytes(need.bytes)} of memory"
    if available is None:
        if need.bytes > LARGE:
            warnings.warn(f"this run needs {wanted}", MemoryNeedWarning, stacklevel=3)
        return
    if need.bytes > available:
        raise ConfigError(
            f"memory: {len(replicas)} replicas of {network.parameter_count} weights need {wanted}, "
            f"but {_gigabytes(available)} are available; {_advice(config, need, available)}"
        )
    if need.bytes > LARGE:
        has = _gigabytes(available)
        warnings.warn(
            f"this run needs {wanted}, of {has} available", MemoryNeedWarning, stacklevel=3
        )


def memory_need(
    config: Config, network: Network, replicas: Replicas, task: Task, steps: int = 0
) -> Need:
    """Return the peak of a run of so many time steps, above what is held before it starts."""
    samples = config.learning.batch or len(task.train.x)
    tests = max(len(task.test.x), samples if config.run.automatic else 0)
    number = torch.finfo(getattr(torch, config.run.dtype)).bits // 8
    devices = _devices(config, replicas, compiled(config, steps))
    shapes = [prod(s) for node in network.nodes for n, s in node.parameters.items() if n == "w"]
    weights, largest = sum(shapes), max(shapes, default=0)
    parameters = network.parameter_count
    units = [node.units for node in network.nodes]
    discrete = config.run.backend == "discrete"
    arrays, learning, transient = _copies(config, devices is not None)
    device = devices or Devices()
    exact = devices is None and (
        discrete or (config.circuit.kind in ("algebraic", "error_units") and not _noisy(config))
    )

    def peak(chips: int) -> float:
        flat, array = chips * parameters * number, chips * weights
        state = chips * sum(units)
        kept = float(flat * arrays) + array * learning * device.remembered
        held = kept + array * max(1, learning) * (device.fixed + device.read)
        held += samples * state * (BUFFERS * number + device.signals)
        building = float(chips * largest * DRAWING) if device.draws else 0.0
        step = flat * transient + chips * largest * device.passing
        saving = kept * (2 if discrete else 1)
        if exact:
            shown = min(tests, 2000, max(1, CHUNK // (chips * max(units))))
            reading = float(shown * (state + chips * max(units)) * number)
        else:
            shown = min(tests, 2000, max(1, STATES // (chips * max(units))))
            twin = float(flat * (1 if discrete else arrays))
            twin += array * (device.read + device.remembered) + chips * largest * device.passing
            reading = twin + shown * state * (BUFFERS * number + device.signals)
        scores = tests * chips * units[0] * number * 3
        probes = min(affordable_probes(chips * parameters), len(task.train.x))
        judged = chips * (2 * parameters + 6 * probes * sum(units))
        judging = 0.0 if discrete else 8.0 * min(judged, 4 * NUMBERS)
        if exact:
            return held + scores + max(building, step, reading, saving, judging)
        # What the read-out has built stays: the last step is taken beside it.
        return held + scores + reading + max(building, step, saving, judging)

    return Need(peak, len(replicas))


def _copies(config: Config, on_devices: bool) -> tuple[int, int, int]:
    """Return how many copies of all weights are held, arrays that learn, and copies in a step."""
    if config.run.backend == "discrete":
        return _discrete_copies(config, on_devices)
    kind, transport = config.circuit.kind, config.circuit.transport
    if kind == "sacramento":
        held, learning = 4, 4
    else:
        feedback = int(transport != "shared")
        held = 1 + feedback + int(kind == "dendritic")
        learning = held
    rates = on_devices or kind in ("dendritic", "sacramento") or bool(config.grid.alpha)
    transient = learning + 1 if rates else 0
    if config.solver.name not in SINGLE_STAGE:
        transient = learning * (6 if config.solver.name == "rk4" else 4)
    return held, learning, transient


def _discrete_copies(config: Config, on_devices: bool) -> tuple[int, int, int]:
    rule = config.learning.optimizer
    moments = {"sgd": 0, "momentum": 1}.get(rule, 2)
    plain = rule == "sgd" and not config.learning.weight_decay and not config.grid.weight_decay
    bp = config.schedule.rule == "bp"
    direct = plain and not bp and not config.run.automatic and not config.grid.alpha
    return 1 + moments + (0 if direct else 1), 1, (2 if on_devices else 0) + (2 if bp else 0)


def _noisy(config: Config) -> bool:
    return config.circuit.sigma_x > 0


def compiled(config: Config, steps: int) -> bool:
    """Whether what hardware does in a run of so many time steps passes through compiled code."""
    if config.run.engine != "auto":
        return config.run.engine == "native"
    return steps >= SHORT and config.run.device == "cpu" and not library(PROBE).reason


def _devices(config: Config, replicas: Replicas, compiled: bool) -> Devices | None:
    """Put the effects of a run in place on a small array, and count what they take."""
    dtype = getattr(torch, config.run.dtype)
    chips = make_chips(config, replicas, 1.0, dtype, "cpu")
    if chips is None:
        return None
    probe = copy(chips)
    probe.ids, probe.noise = [0], Seeded(0)
    probe.lists = {key: [values[0]] for key, values in chips.lists.items()}
    probe._made, probe._fixed = [], {}
    once = 1 if config.schedule.rule == "ipc" else 2
    fixed = read = remembered = passing = 0.0
    places: tuple[Site, ...] = ("weight", "write")
    for site in places:
        held, memory, peak = _tried(probe, site, dtype, once)
        fixed, passing = fixed + held, max(passing, peak)
        if site == "weight":
            read = memory + (torch.finfo(dtype).bits // 8 if chips.substrate.at(site) else 0)
        else:
            remembered = memory
    if compiled:  # what passes through compiled code takes no memory
        passing = torch.finfo(dtype).bits // 8
    if chips.substrate.at("tau_w"):
        fixed += 2 * torch.finfo(dtype).bits // 8
    sites = dict.fromkeys(effect.site for effect in chips.substrate.effects)
    signals = [_tried(probe, s, dtype, 1) for s in sites if s not in (*places, *FABRICATED)]
    effects = [e for site in WEIGHT_SITES for e in chips.substrate.at(site)]
    return Devices(
        fixed,
        read,
        remembered,
        passing,
        sum(memory for _, memory, _ in signals) + max((p for *_, p in signals), default=0.0),
        any(draw.per == "element" for effect in effects for draw in effect.draws.values()),
    )


def _tried(chips: Chips, site: Site, dtype: torch.dtype, passed: int) -> tuple[float, float, float]:
    """Return bytes per element that a site holds, remembers, and needs while it acts."""
    weights = site in ("weight", "write")
    shape, like = (ARRAY, (1, *ARRAY)) if weights else ((LAYER,), (1, SAMPLES, LAYER))
    s, other = torch.zeros(like, dtype=dtype), torch.zeros(like, dtype=dtype)
    size = prod(like)
    with TensorMemory(ignored=(s, other), smallest=size if weights else SAMPLES * LAYER) as memory:
        transform = chips.transform(site, 0, shape)
        if transform is None:
            return 0.0, 0.0, 0.0
        symbols: dict[str, Tensor] = dict.fromkeys(
            ("w", "x", "tau_w", DOWN, "rate", *transform.aggregates), other
        )
        for _ in range(2):
            chips.clock.step += passed
            transform(s, **symbols)
        remembered = sum(m.nbytes for part in transform.parts for m in part.memory.values())
        held = memory.live() - remembered
        peak = memory.peak - memory.live()
    return held / size, remembered / size, peak / size


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _advice(config: Config, need: Need, available: float) -> str:
    others = need.replicas // config.hardware.chips
    most = need.most(available)
    if config.hardware.chips > 1 and most >= others:
        return f"at most hardware.chips = {most // others} would fit"
    if most:
        return f"at most {most} replicas (grid values × seeds × chips) would fit"
    return "not even one replica would fit: take a smaller network or batch, or float32"
