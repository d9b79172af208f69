"""Speed: ratios measured in one run, contestants in turn, medians. Run it on an idle machine.

`pcsim experiment speed` prints the table and writes `speed.h5`; with `--part compiled` it is the
rows of compiled steps alone, in `speed_compiled.h5`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from pcsim import store
from pcsim.errors import UnsupportedError
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common.keeping import claim, keep
from . import brian, compiled, continuous, device, discrete, hardware, layers, memory, population

Row = tuple[str, str, float, float]
ONE, SIDE = "Euler step of 64 chips 64-32-10, 1 ", "Euler step of 64 chips 64-32-10, 32 "
TARGETS = {
    (ONE, "ideal, compiled"): 0.5,
    (ONE, "on hardware, compiled"): 0.8,
    (ONE, "ecram_li, compiled"): 4.0,
    (ONE, "reram_sb, compiled"): 4.0,
    (ONE, "pcm, compiled"): 8.0,
    (SIDE, "on hardware, compiled"): 1.4,
    ("ideal step of 16 chips", "compiled"): 1.0,
    ("400 compiled steps", "2 threads"): 1 / 1.8,
    ("update of a 256×256 array", "pulsed,"): 2.0,
    ("iPC batch", "pcsim, compiled"): 0.4,
}
"""Largest ratio that is aimed at, by the beginnings of a case and of a contestant."""
MILLISECONDS = {"compiled": 2000.0, "from the cache": 50.0}
"""Longest times for the code of a chip."""
PARTS: dict[str, tuple[Callable[[], list[Row]], ...]] = {
    "compiled": (population.measure, compiled.measure, hardware.measure),
    "discrete": (discrete.measure, layers.measure),
    "continuous": (continuous.measure,),
    "brian": (brian.measure,),
    "memory": (),
}
"""Rows that can be measured alone; `memory` is a table of its own, which is asked for by name."""
SPREAD = 1.3
"""Largest and smallest cost per chip of compiled steps, over the sizes of a population."""


def target(case: str, name: str) -> str:
    """Return what is aimed at, "" where nothing is."""
    if case.startswith("code of a chip"):
        return f"≤ {MILLISECONDS[name]:.0f} ms"
    if case.startswith("ideal compiled step") and name.endswith("per chip"):
        return f"within {SPREAD}"
    for (start, who), most in TARGETS.items():
        if case.startswith(start) and name.startswith(who):
            return f"≤ {most:.2f}"
    return ""


def on_device(out: Path, name: str) -> None:
    """Measure a device against the CPU, print, store."""
    file = f"speed_{name.replace(':', '_')}.h5"
    claim(out / file, "speed")
    result = device.measure(name)
    terminal().print(device.table(result))
    keep(result, out / file, "speed")


def main(out: Path, part: str | None = None) -> None:
    """Measure all rows, or those of a part; print, store."""
    file = f"speed_{part}.h5" if part else "speed.h5"
    claim(out / file, "speed")
    if part == "memory":
        used = memory.measure()
        terminal().print(memory.table(used))
        keep(used, out / file, "speed")
        return
    rows: list[Row] = []
    for name in [part] if part else PARTS:
        for measure in PARTS[name]:
            try:
                rows += measure()
            except UnsupportedError as reason:  # no Brian2, or no compiler
                terminal().print(f"without the rows of {name}: {reason}", markup=False)
    if not rows:
        return
    table = Table(title=f"median time per call, {torch.get_num_threads()} threads")
    for column in ("case", "contestant", "ms", "ratio", "target"):
        table.add_column(column, justify="left" if column in ("case", "contestant") else "right")
    for case, name, milliseconds, ratio in rows:
        table.add_row(case, name, f"{milliseconds:.3f}", f"{ratio:.2f}", target(case, name))
    terminal().print(table)
    cases, names, times, ratios = (np.asarray(column) for column in zip(*rows, strict=True))
    variables = {
        "case": Variable(("row",), cases),
        "contestant": Variable(("row",), names),
        "time": Variable(("row",), times, {"units": "ms", "long_name": "median time per call"}),
        "ratio": Variable(("row",), ratios, {"long_name": "to the first contestant of the case"}),
    }
    attrs: dict[str, store.Attr] = {**provenance(), "threads": torch.get_num_threads()}
    keep(Result(variables, {}, attrs), out / file, "speed")
