"""Speed: ratios measured in one run, contestants in turn, medians. Run it on an idle machine.

`pcsim experiment speed` prints the table and writes `speed.h5`.
"""

from __future__ import annotations

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
from . import brian, continuous, device, discrete, hardware, layers, population


def on_device(out: Path, name: str) -> None:
    """Measure a device against the CPU, print, store."""
    file = f"speed_{name.replace(':', '_')}.h5"
    claim(out / file, "speed")
    result = device.measure(name)
    terminal().print(device.table(result))
    keep(result, out / file, "speed")


def main(out: Path) -> None:
    """Measure, print, store."""
    claim(out / "speed.h5", "speed")
    rows = discrete.measure() + continuous.measure()
    rows += population.measure() + hardware.measure() + layers.measure()
    try:
        rows += brian.measure()
    except UnsupportedError as reason:  # no Brian2, or no compiler
        terminal().print(f"without Brian2's rows: {reason}", markup=False)
    table = Table(title=f"median time per call, {torch.get_num_threads()} threads")
    for column in ("case", "contestant", "ms", "ratio"):
        table.add_column(column, justify="left" if column in ("case", "contestant") else "right")
    for case, name, milliseconds, ratio in rows:
        table.add_row(case, name, f"{milliseconds:.3f}", f"{ratio:.2f}")
    terminal().print(table)
    cases, names, times, ratios = (np.asarray(column) for column in zip(*rows, strict=True))
    variables = {
        "case": Variable(("row",), cases),
        "contestant": Variable(("row",), names),
        "time": Variable(("row",), times, {"units": "ms", "long_name": "median time per call"}),
        "ratio": Variable(("row",), ratios, {"long_name": "to the first contestant of the case"}),
    }
    attrs: dict[str, store.Attr] = {**provenance(), "threads": torch.get_num_threads()}
    keep(Result(variables, {}, attrs), out / "speed.h5", "speed")
