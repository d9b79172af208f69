"""Write a run as a folder whose network is made of transistors.

circuit.cir     options, start and analysis; includes
cells.cir       models of the process, cells of transistors
chip.cir        rails, somas, dendrites, synapses
data.cir        what is shown
recording.csv   somas and weights at the end of each presentation, by torch, ideal cells
"""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np

from pcsim.circuit import Circuit, Dendritic
from pcsim.circuits.conductances import conductances
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.network import Network
from pcsim.runner.chip_run import ChipRun
from pcsim.spice.cells import network
from pcsim.spice.cells.library import Levels, Sizes
from pcsim.spice.cells.network import Given
from pcsim.spice.cells.process import Process
from pcsim.spice.cells.trim import corner_levels
from pcsim.spice.engine import Spice
from pcsim.spice.folder.export import (
    FILES,
    Recorded,
    record,
    refuse,
    stream,
    write_recording,
)

APART = 0.3
"""Tolerance of the comparison, in units: what transistors without mismatch may differ by."""


def refuse_circuit(config: Config) -> None:
    """Refuse what the cells have no law for, by name."""
    circuit, where = config.circuit, "spice export: tier transistor"
    if not isinstance(circuit, Dendritic):
        raise UnsupportedError(
            f"{where}: circuit.kind {circuit.kind!r}: the cells make a 'dendritic' circuit"
        )
    plain = Dendritic()
    own = ("tau_x", "tau_w", "inter_learned", "kind")
    for name in type(circuit).model_fields:
        if name not in own and getattr(circuit, name) != getattr(plain, name):
            raise UnsupportedError(
                f"{where}: circuit.{name}: the cells have shared weights, fast interneurons and "
                f"equal conductances; leave it out"
            )
    if config.spice.macro or config.spice.noise != "frozen":
        raise UnsupportedError(
            f"{where}: spice.macro and spice.noise belong to ideal sources; leave them out"
        )
    built = config.network.build()
    sizes = [node.units for node in reversed(built.nodes)]
    if built != Network.mlp(sizes, "tanh"):
        raise UnsupportedError(
            f"{where}: network: the cells make a multilayer network with tanh, biases and Gaussian "
            f"errors of unit variance: network.kind 'mlp' with its defaults"
        )


def lesson(config: Config, samples: int) -> tuple[Given, Recorded]:
    """Return what the network is shown, and what torch makes of it in units of the network."""
    run = ChipRun(config)
    spice = run.engine
    assert isinstance(spice, Spice)
    if run.hardware and run.hardware.substrate.effects:
        raise UnsupportedError(
            "spice export: tier transistor: hardware: transistors are the hardware of this tier; "
            "leave the section out"
        )
    if samples > len(run.task.train.x):
        raise ConfigError(f"samples: the stream has {len(run.task.train.x)}, got {samples}")
    starts = [
        np.concatenate([views["w"][0].numpy(), views["b"][0].numpy()[:, None]], axis=1)
        for views in reversed(spice.flow.theta().of[: len(run.network.nodes) - 1])
    ]
    starts = [start.astype(np.float64) for start in starts]
    inputs, targets = [], []
    for clamps in stream(run, samples):
        target, source = clamps[0], clamps[-1]
        assert target is not None
        assert source is not None
        inputs.append(source[0, 0].double().numpy().copy())
        targets.append(target[0, 0].double().numpy().copy())
    tau_x = config.circuit.tau_x
    recorded = record(config, spice, samples, 0)
    depth = len(run.network.nodes) - 1
    somas = {}
    for name, value in recorded.rows[0].items():
        if match := re.fullmatch(r"x(\d+)_(\d+)", name):
            somas[f"x{depth - int(match[1])}_{match[2]}"] = value
    given = Given(
        layers=tuple(node.units for node in reversed(run.network.nodes)),
        inputs=np.stack(inputs),
        targets=np.stack(targets),
        start=starts,
        start_somas=somas,
        present=run.timing.present * run.timing.dt / tau_x,
        tau_x=tau_x,
        tau_w=run.timing.circuit.weight_time / tau_x,
    )
    return given, recorded


def counted(config: Config, ideal: frozenset[str], samples: int) -> tuple[int, float]:
    """Return the number of transistors, and the CPU time that ngspice will need."""
    sizes = tuple(node.units for node in reversed(config.network.build().nodes))
    dt = config.solver.dt or config.schedule.gamma * config.circuit.tau_x
    present = (config.stream.t_pres or config.schedule.T * dt) / config.circuit.tau_x
    empty = np.zeros((samples, 1))
    shape = [np.zeros((post, pre + 1)) for pre, post in pairwise(sizes)]
    plan = Given(sizes, empty, empty, shape, {}, present, config.circuit.tau_x, 1.0)
    transistors = network.count(plan, ideal)
    return transistors, network.expected_seconds(plan, transistors)


def export(
    config: Config,
    out: Path,
    samples: int,
    process: Process,
    sizes: Sizes,
    ideal: frozenset[str] = frozenset(),
    draw: int = 0,
) -> Recorded:
    """Write the folder."""
    refuse(config, samples, out)
    refuse_circuit(config)
    given, recorded = lesson(config, samples)
    drawn = network.netlist(given, process, sizes, ideal, seed=draw)
    at = corner_levels(process.name, sizes)
    recorded = in_volts(config.circuit, recorded, given, at, sizes.unit)
    out.mkdir(parents=True, exist_ok=True)
    models = with_models(drawn.library, out)
    texts = {
        "circuit.cir": [
            drawn.title,
            *(f".include {name}" for name in FILES[1:]),
            *drawn.analysis,
        ],
        "cells.cir": ["* models and cells", *models, ""],
        "chip.cir": ["* one chip", *drawn.chip, ""],
        "data.cir": ["* what is shown", *drawn.data, ""],
    }
    for name, lines in texts.items():
        (out / name).write_text("\n".join(lines), encoding="utf-8")
    (out / ".spiceinit").write_text(process.start(), encoding="utf-8")
    write_recording(out, recorded)
    text = README.format(
        layers="-".join(map(str, given.layers)),
        process=process.name,
        transistors=drawn.transistors,
        ideal=", ".join(sorted(ideal)) or "none",
        samples=samples,
        unit=1e3 * sizes.unit,
        low=at.low,
        high=at.high,
        by=recorded.by,
        tolerance=recorded.tolerance,
    )
    (out / "README.md").write_text(text, encoding="utf-8")
    return recorded


def in_volts(
    circuit: Circuit, recorded: Recorded, given: Given, at: Levels, unit: float
) -> Recorded:
    """Return somas and weights by the nodes of the transistor network, about their levels.

    The cells have weights a_B W, as the network; the equations have W.
    """
    depth = len(given.layers) - 1
    nodes: dict[str, tuple[str, float, float]] = {}
    """Node, level, and volts for 1."""
    for name in recorded.rows[0]:
        if match := re.fullmatch(r"(x|w|b)(\d+)_(\d+)(?:_(\d+))?", name):
            kind, k, i, j = match[1], int(match[2]), match[3], match[4]
            above = depth - k
            last = given.layers[above - 1] if kind == "b" else j
            if kind == "x":
                nodes[name] = (f"x{above}_{i}", at.low, unit)
            else:
                volts = unit * conductances(circuit, k)["a_B"]
                nodes[name] = (f"w{above}_{i}_{last}", at.high, volts)
    rows = [
        {node: level + volts * row[name] for name, (node, level, volts) in nodes.items()}
        for row in recorded.rows
    ]
    return Recorded(recorded.times, rows, f"{recorded.by}, ideal cells", APART, unit)


def with_models(lines: list[str], out: Path) -> list[str]:
    """Copy the files of models that a library includes into the folder, and include those."""
    changed = []
    for line in lines:
        match = re.fullmatch(r'(\.include|\.lib) "([^"]+)"(.*)', line)
        if match and not _includes(Path(match[2])):
            source = Path(match[2])
            (out / "models").mkdir(exist_ok=True)
            shutil.copyfile(source, out / "models" / source.name)
            line = f'{match[1]} "models/{source.name}"{match[3]}'
        changed.append(line)
    return changed


def _includes(path: Path) -> bool:
    """Whether a file needs others, and has to stay where it is."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(re.search(r'^\s*\.(include|lib\s+")', text, re.MULTILINE | re.IGNORECASE))


README = """\
# A network of transistors that learns

{layers}, dendritic, {transistors} transistors of {process}: {samples} presentations, learning
always on. Roles with ideal cells: {ideal}.

    ngspice -b -r circuit.raw circuit.cir       in this folder, whose .spiceinit it needs
    python compare.py                           runs it, and compares it with recording.csv

| file | what |
|---|---|
| circuit.cir | options, start, analysis, what is written |
| cells.cir | models; multiplier, transconductor, buffer, mirror |
| chip.cir | rails, somas, dendrites, synapses, learning cells |
| data.cir | inputs and targets |
| recording.csv | somas and weights at the end of each presentation, volts by node |

`xL_I` is the soma of unit I of layer L, counted from the input; `wL_I_J` the weight onto it from
unit J below, the last of a row its bias. 1 unit of the network is {unit:g} mV; somas swing about
{low:.3f} V, weights about {high:.3f} V. The recording is by {by};
compare.py is content within {tolerance:g} units.
"""
