"""Write a run as a folder that needs no pcsim: netlist, data, recording, comparison.

circuit.cir     options and analysis; includes
cells.cir       one sub-circuit for each kind of neuron, error dendrite, synapse, learning cell
chip.cir        all instances, with what was drawn for each device
data.cir        what is shown
recording.csv   states and weights at the end of each presentation, by torch
compare.py      runs ngspice, and compares
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.runner.chip_run import ChipRun
from pcsim.spice.deck import Bench
from pcsim.spice.elements import GM
from pcsim.spice.engine import Spice
from pcsim.spice_settings import SpiceSettings

SECONDS = 2e-6
"""CPU time of ngspice per synapse and τ_x, of the behavioural tier; docs/spice.md."""
NEAR, BY_EULER = 0.01, 0.1
"""Tolerance of the comparison, in units: with torch's RK4, and with Euler's rule."""
SCRIPT = Path(__file__).with_name("compare.py")
FILES = ("circuit.cir", "cells.cir", "chip.cir", "data.cir")


@dataclass(frozen=True)
class Recorded:
    """What torch computed: a row for the end of each presentation."""

    times: list[float]
    rows: list[dict[str, float]]
    """Volts, by node."""
    by: str
    tolerance: float
    unit: float = 1.0
    """Volts that stand for 1."""


def refuse(config: Config, samples: int, out: Path) -> None:
    """Refuse what one analysis cannot show, and a folder that has something in it."""
    what = {
        "run.backend": config.run.backend != "continuous",
        "run.automatic": config.run.automatic,
        "stream.t_settle": bool(config.stream.t_settle),
        "stream.tau_label": bool(config.stream.tau_label),
    }
    if wrong := [name for name, is_so in what.items() if is_so]:
        raise UnsupportedError(
            f"spice export: {wrong[0]}: the folder is one analysis of a stream in continuous time, "
            f"with labels that step; leave it out, or use 'pcsim run' with run.engine 'spice'"
        )
    if config.schedule.init != "carry":
        raise UnsupportedError(
            f"spice export: schedule.init {config.schedule.init!r}: nothing resets a circuit "
            f"between presentations of one analysis; use 'carry'"
        )
    if samples < 1:
        raise ConfigError(f"samples: must be at least 1, got {samples}")
    refuse_full(out)


def refuse_full(out: Path) -> None:
    """Refuse a folder that has something in it."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"out: {out} exists and is not empty; name a new folder")


def expected_seconds(config: Config, samples: int) -> float:
    """Return the CPU time that ngspice will need for the behavioural tier."""
    run_time = config.stream.t_pres or config.schedule.T * (
        config.solver.dt or config.schedule.gamma * config.circuit.tau_x
    )
    sizes = [node.units for node in config.network.build().nodes]
    synapses = sum(a * b for a, b in pairwise(sizes))
    return SECONDS * synapses * run_time / config.circuit.tau_x * samples


def export(config: Config, out: Path, samples: int, chip: int = 0) -> Recorded:
    """Write the folder of one chip of a configuration whose engine is `spice`."""
    refuse(config, samples, out)
    run = ChipRun(config)
    spice = run.engine
    assert isinstance(spice, Spice)
    shown = len(run.task.train.x)
    if samples > shown:
        raise ConfigError(f"samples: the stream has {shown}, got {samples}")
    if not 0 <= chip < len(run.chips):
        raise ConfigError(f"chip: there are {len(run.chips)}, counted from 0, got {chip}")
    data = [list(clamps) for clamps in stream(run, samples)]
    bench = spice.bench(data, run.timing.present, chip)
    bench = replace(bench, span=replace(bench.span, show=0.0))
    recorded = record(config, spice, samples, chip)
    out.mkdir(parents=True, exist_ok=True)
    write_netlist(out, bench, config)
    write_recording(out, recorded)
    (out / "README.md").write_text(readme(config, recorded, samples, chip), encoding="utf-8")
    return recorded


def stream(run: ChipRun, samples: int) -> Iterator[Sequence[Tensor | None]]:
    """Clamp one sample after the other, from a feed-forward start."""
    batches = run.task.batches(run.chips, 0, 1)
    for n, clamps in enumerate(islice(batches, samples)):
        if n == 0:
            run.engine.load(clamps, steps=run.timing.present)
            run.initialise(first=True)
        yield clamps


def record(config: Config, spice: Spice, samples: int, chip: int) -> Recorded:
    """Let torch integrate the same chip on the same data."""
    exact = spice.chips is None and not config.circuit.sigma_x
    plain = config.run.model_copy(update={"engine": "torch"})
    solver = config.solver.model_copy(update={"name": "rk4"} if exact else {})
    if config.circuit.sigma_x:
        solver = config.solver.model_copy(update={"name": "maruyama"})
    changed = {"run": plain, "solver": solver, "spice": SpiceSettings()}
    run = ChipRun(config.model_copy(update=changed))
    torch_engine = run.engine
    assert isinstance(torch_engine, Continuous)
    times, rows = [0.0], [spice.voltages(chip)]
    for clamps in stream(run, samples):
        torch_engine.load(clamps)
        torch_engine.advance(run.timing.present)
        spice.restore({name: value.clone() for name, value in torch_engine.state().items()})
        times.append(torch_engine.time)
        rows.append(spice.voltages(chip))
    name = {"rk4": "RK4", "euler": "Euler's rule", "maruyama": "Euler–Maruyama"}[solver.name]
    by = f"torch, {name} with dt = {run.timing.dt:g} s"
    return Recorded(times, rows, by, NEAR if exact else BY_EULER)


def write_netlist(out: Path, bench: Bench, config: Config) -> None:
    """Write cells, instances, data, and the circuit that includes them."""
    reltol = config.spice.reltol
    title = f"* {config.circuit.kind} circuit on {config.data.name}, always learning"
    texts = {
        "circuit.cir": [
            title,
            *bench.constants,
            *(f".include {name}" for name in FILES[1:]),
            *bench.analysis(reltol),
        ],
        "cells.cir": ["* cells", *bench.netlist.definitions()],
        "chip.cir": ["* one chip", *bench.netlist.instances(bench.starts), ""],
        "data.cir": ["* what is shown", *bench.sources(reltol), ""],
    }
    for name, lines in texts.items():
        (out / name).write_text("\n".join(lines), encoding="utf-8")


def write_recording(out: Path, recorded: Recorded) -> None:
    """Write the recording, how it is to be compared, and the script that does so."""
    nodes = list(recorded.rows[0])
    lines = [",".join(["time", *(f"v({node})" for node in nodes)])]
    for time, row in zip(recorded.times, recorded.rows, strict=True):
        lines.append(",".join(f"{value:.10g}" for value in (time, *(row[n] for n in nodes))))
    (out / "recording.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    about = {
        "recorded_by": recorded.by,
        "tolerance": recorded.tolerance,
        "unit": recorded.unit,
    }
    (out / "recording.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (out / "compare.py").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")


def readme(config: Config, recorded: Recorded, samples: int, chip: int) -> str:
    """Return what a reader of the folder wants to know."""
    sizes = "-".join(str(node.units) for node in reversed(config.network.build().nodes))
    fields = "\n".join(f"    {name} = {value!r}" for name, value in config.settings().items())
    return README.format(
        sizes=sizes,
        kind=config.circuit.kind,
        samples=samples,
        chip=chip,
        end=recorded.times[-1],
        by=recorded.by,
        tolerance=recorded.tolerance,
        gm=config.spice.macro.gm if config.spice.macro else GM,
        limits=LIMITS if config.spice.macro else "",
        fields=fields,
    )


LIMITS = """\
Transconductors have the limits of `spice.macro` below (cells.cir), and the recording has none: the
distance is what they do.

"""
README = """\
# A network that learns, as a netlist

{sizes}, circuit `{kind}`, chip {chip}: {samples} presentations, {end:g} s, learning always on.

    ngspice -b -r circuit.raw circuit.cir       runs it
    python compare.py                           runs it, and compares it with recording.csv

| file | what |
|---|---|
| circuit.cir | options, analysis, what is written |
| cells.cir | sub-circuits: neuron, error dendrite, synapse, learning cell of each layer |
| chip.cir | all instances; what was drawn for one device is a parameter of its instance |
| data.cir | voltages of clamped units, and noise |
| recording.csv | all states and weights at the end of each presentation, volts by node |

Layer 0 is the output, `xK_I` the soma of unit I of layer K, `wK_I_J` the weight onto it from unit J
of layer K + 1. 1 V is 1 unit of the network; a state of time constant tau is the voltage of a
capacitor of gm·tau farads, with gm = {gm:g} S.

The recording is by {by}.
compare.py is content when no state and no weight is more than {tolerance:g} units from it at the
end of any presentation. Euler's rule is O(dt) away: a smaller solver.dt records more exactly.

{limits}Made by pcsim from these settings:

{fields}
"""
