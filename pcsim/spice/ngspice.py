"""ngspice in batch mode: find it, run a netlist, read what it wrote.

    plots = run(netlist, folder).plots           text → list of plots, binary or ASCII
    plots[0]["v(x)"], plots[0].last              one waveform; all values at the last point

ngspice is a program of its own, which is not installed with pcsim. What goes wrong is said in one
sentence; an analysis that stops early keeps the points it reached (`StoppedEarlyError.done`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcsim.errors import PcsimError, StoreError, UnsupportedError

NAME = "ngspice"
INSTALL = "'apt install ngspice' on Debian and Ubuntu, 'conda install -c conda-forge ngspice'"
NETLIST, RAW = "circuit.cir", "circuit.raw"
ABORTED = re.compile(r"^doAnalyses:\s*(?P<what>.+)$", re.MULTILINE)
FAULT = re.compile(r"^\s*(?:Fatal error|Error):?\s*(?P<what>.+)$", re.MULTILINE | re.IGNORECASE)
EMPTY = ("there aren't any circuits loaded", "incomplete or empty netlist")
"""What follows from another fault, and says nothing by itself."""


class SpiceError(PcsimError):
    """A netlist that ngspice does not take or does not finish."""


class StoppedEarlyError(SpiceError):
    """An analysis that did not converge; `done` has all that was computed before."""

    def __init__(self, message: str, done: Done) -> None:
        """`done`: the plots up to the last good point."""
        super().__init__(message)
        self.done = done


@dataclass(frozen=True, eq=False)
class Plot:
    """One analysis: named waveforms at common points."""

    name: str
    variables: tuple[str, ...]
    """In lower case, as ngspice knows them: `time`, `v(x)`, `i(v1)`, …"""
    values: NDArray[Any]
    """Real, or complex of an .ac analysis: (point, variable)"""

    def __getitem__(self, variable: str) -> NDArray[Any]:
        """Return one waveform (point,)."""
        try:
            return self.values[:, self.variables.index(variable.lower())]
        except ValueError:
            known = ", ".join(self.variables[:12])
            raise SpiceError(
                f"ngspice: no variable {variable!r} in the plot {self.name!r}; it has {known}"
            ) from None

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.values)

    @property
    def last(self) -> dict[str, float]:
        """Return all values at the last point, by name."""
        if not len(self):
            raise SpiceError(f"ngspice: the plot {self.name!r} has no points")
        return dict(zip(self.variables, self.values[-1].real.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Done:
    """What a call of ngspice gave."""

    plots: list[Plot]
    log: str

    @property
    def plot(self) -> Plot:
        """The only plot, or the first of several."""
        if not self.plots:
            raise SpiceError("ngspice: nothing was written; the netlist needs an analysis (.tran)")
        return self.plots[0]


def program() -> str:
    """Return the path of ngspice, `$PCSIM_NGSPICE` first, or say how to get it."""
    asked = os.environ.get("PCSIM_NGSPICE")
    found = shutil.which(asked or NAME)
    if found is None:
        where = f"$PCSIM_NGSPICE is {asked!r}, which is no program" if asked else "it is not here"
        raise UnsupportedError(f"ngspice is needed, and {where}: {INSTALL}")
    return found


def missing() -> str:
    """Return why ngspice cannot be run, "" where it can: for tests that skip."""
    try:
        program()
    except UnsupportedError as error:
        return str(error)
    return ""


@cache
def version(path: str) -> str:
    """Return the version of a program, such as `ngspice-39`."""
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"ngspice-[\w.]+", shown.stdout)
    return found[0] if found else NAME


def run(netlist: str, folder: Path, seconds: float | None = None) -> Done:
    """Run a netlist in batch mode, in a folder that keeps netlist, log and raw file.

    An analysis line such as `.tran` writes its points to the raw file by itself; a `.control`
    section may write further files. Other files of the netlist are sought from the folder.

    Main argument:
        seconds: time after which the program is ended; None: as long as it takes.
    """
    path = program()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NETLIST).write_text(netlist, encoding="utf-8")
    (folder / RAW).unlink(missing_ok=True)
    command = [path, "-b", "-r", RAW, NETLIST]
    quiet = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SpiceError(
            f"ngspice: not done after {seconds:g} s; the netlist is in {folder}"
        ) from None
    log = ended.stdout + ended.stderr
    (folder / "circuit.log").write_text(log, encoding="utf-8")
    raw = folder / RAW
    stopped = ABORTED.search(log)
    try:
        done = Done(read_raw(raw) if raw.exists() else [], log)
    except StoreError:  # an analysis that fails at its first point leaves half a header
        if stopped is None:
            raise
        done = Done([], log)
    if stopped is not None:
        raise StoppedEarlyError(_stopped(stopped["what"], done), done)
    if ended.returncode:
        raise SpiceError(f"ngspice: {_fault(log, ended.returncode)}; the netlist is in {folder}")
    return done


def _stopped(what: str, done: Done) -> str:
    """Return one sentence for an analysis that does not converge."""
    reached = ""
    if done.plots and len(done.plots[0]) and done.plots[0].variables[0] == "time":
        reached = f"; the last good point is t = {done.plots[0].last['time']:g} s"
    return (
        f"ngspice: no convergence ({' '.join(what.split())}){reached}; try a larger reltol, other "
        f"initial conditions or smaller gains"
    )


def _fault(log: str, code: int) -> str:
    faults = [" ".join(found["what"].split()) for found in FAULT.finditer(log)]
    telling = [fault for fault in faults if not any(empty in fault for empty in EMPTY)]
    return (telling or faults or [f"exit code {code}"])[0].rstrip(".!")


def read_raw(path: Path) -> list[Plot]:
    """Read all plots of a raw file, binary or ASCII; what a broken run left counts too."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
    plots: list[Plot] = []
    position = 0
    while data[position:].strip():
        plot, position = _read_plot(data, position, path)
        plots.append(plot)
    return plots


def _read_plot(data: bytes, position: int, path: Path) -> tuple[Plot, int]:
    about: dict[str, str] = {}
    while True:
        end = data.find(b"\n", position)
        if end < 0:
            raise StoreError(f"{path}: not a raw file of ngspice: a header without its end")
        line = data[position:end].decode("utf-8", "replace").strip("\r")
        position = end + 1
        key, colon, value = line.partition(":")
        if line.startswith("\t"):  # a variable; names may contain a colon
            about["rows"] = about.get("rows", "") + line + "\n"
        elif not colon and line.strip():
            raise StoreError(f"{path}: not a raw file of ngspice: {line[:40]!r} in its header")
        elif key in ("Binary", "Values"):
            break
        else:
            about[key] = value.strip()
    try:
        width, points = int(about["No. Variables"]), int(about["No. Points"])
        rows = about["rows"].splitlines()
        names = tuple(row.split("\t")[2].lower() for row in rows)
    except (KeyError, ValueError, IndexError):
        raise StoreError(f"{path}: not a raw file of ngspice: its header is incomplete") from None
    kind = np.dtype(np.complex128 if "complex" in about.get("Flags", "") else np.float64)
    if key == "Binary":
        size = width * kind.itemsize
        held = (len(data) - position) // size
        points = min(points, held) if points else held  # 0: the run broke off before the count
        values = np.frombuffer(data, kind, points * width, position).reshape(points, width).copy()
        position += points * size
    else:
        values, position = _ascii(data, position, width, kind, path)
    return Plot(about.get("Plotname", ""), names, values), position


def _ascii(
    data: bytes, position: int, width: int, kind: np.dtype[Any], path: Path
) -> tuple[NDArray[Any], int]:
    """Return the values of an ASCII plot, up to the next header; a row that broke off is left."""
    end = data.find(b"\nTitle:", position)
    end = len(data) if end < 0 else end + 1
    words = data[position:end].split()
    rows = [words[k + 1 : k + 1 + width] for k in range(0, len(words), width + 1)]
    rows = [row for row in rows if len(row) == width]
    try:
        numbers = [[_number(word) for word in row] for row in rows]
    except ValueError:
        raise StoreError(f"{path}: not a raw file of ngspice: a value is no number") from None
    values = np.array(numbers, dtype=np.complex128).reshape(len(rows), width)
    return (values if kind == np.complex128 else values.real).astype(kind), end


def _number(word: bytes) -> complex:
    real, comma, imaginary = word.partition(b",")
    return complex(float(real), float(imaginary) if comma else 0.0)
