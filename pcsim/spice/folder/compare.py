"""Run the netlist of this folder in ngspice and compare it with recording.csv.

    python compare.py [--tolerance UNITS] [--keep]

Needs Python and NumPy, and ngspice where circuit.raw is to be computed (--keep: it is not). The
recording has a row for the end of each presentation, and a column for each node, in volts.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent
Waves = dict[str, NDArray[np.float64]]


def run(folder: Path) -> str:
    """Run ngspice; return what went wrong, "" if nothing did."""
    program = shutil.which(os.environ.get("PCSIM_NGSPICE", "ngspice"))
    if program is None:
        return "ngspice is needed: 'apt install ngspice' or 'conda install -c conda-forge ngspice'"
    command = [program, "-b", "-r", "circuit.raw", "circuit.cir"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    (folder / "circuit.log").write_text(log, encoding="utf-8")
    if done.returncode or "simulation(s) aborted" in log:
        return "ngspice did not come to the end; circuit.log says why"
    return ""


def waveforms(path: Path) -> Waves:
    """Read a binary raw file: all waveforms by name."""
    head, _, data = path.read_bytes().partition(b"Binary:\n")
    text = head.decode("utf-8", "replace")
    names = [line.split("\t")[2].lower() for line in text.splitlines() if line.startswith("\t")]
    points = re.search(r"No. Points:\s*(\d+)", text)
    if not names or points is None:
        raise SystemExit(f"{path}: not a binary raw file of ngspice")
    values = np.frombuffer(data, np.float64, int(points[1]) * len(names))
    return dict(zip(names, values.reshape(-1, len(names)).T, strict=True))


def recording(path: Path) -> Waves:
    """Read the recording: time and node voltages by name."""
    with path.open(encoding="utf-8", newline="") as file:
        names = next(csv.reader(file))
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return dict(zip(names, rows.T, strict=True))


def compare(waves: Waves, expected: Waves, unit: float) -> dict[str, float]:
    """Print the distances in units of the network, and return the largest of states and weights."""
    time = expected["time"]
    if waves["time"][-1] < time[-1] * (1 - 1e-6):
        raise SystemExit(f"ngspice ended at {waves['time'][-1]:g} s, before {time[-1]:g} s")
    kinds: dict[str, list[str]] = {"states": [], "weights": []}
    for name in expected:
        if name != "time":
            kinds["weights" if name[2] in "wb" else "states"].append(name)
    print("            largest   at the node         rms      change while learning")
    largest = {}
    for kind, names in kinds.items():
        if not names:
            continue
        found = np.stack([np.interp(time, waves["time"], waves[name]) for name in names])
        wanted = np.stack([expected[name] for name in names])
        apart = np.abs(found - wanted) / unit
        node = names[int(apart.max(axis=1).argmax())]
        change = np.abs(wanted[:, -1] - wanted[:, 0]).max() / unit
        rms = float(np.sqrt((apart**2).mean()))
        print(f"{kind:8} {apart.max():10.3g}   {node:14} {rms:10.3g} {change:16.3g}")
        largest[kind] = float(apart.max())
    return largest


def main() -> int:
    """Return 0 where the distance is below the tolerance, 1 where it is not, 2 at a fault."""
    about = json.loads((FOLDER / "recording.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description="Run the netlist, and compare it.")
    parser.add_argument("--tolerance", type=float, default=about["tolerance"], metavar="UNITS")
    parser.add_argument("--keep", action="store_true", help="do not run ngspice again")
    options = parser.parse_args()
    if not options.keep and (fault := run(FOLDER)):
        print(fault, file=sys.stderr)
        return 2
    if not (FOLDER / "circuit.raw").exists():
        print("there is no circuit.raw; leave out --keep", file=sys.stderr)
        return 2
    waves = waveforms(FOLDER / "circuit.raw")
    largest = compare(waves, recording(FOLDER / "recording.csv"), about["unit"])
    near = max(largest.values()) <= options.tolerance
    print(f"recorded by {about['recorded_by']}")
    print(f"{'within' if near else 'NOT within'} {options.tolerance:g} units")
    return 0 if near else 1


if __name__ == "__main__":
    sys.exit(main())
