"""`pcsim demo`: the main job on the embedded digits, from chips to a report, in a few minutes.

1. A noisy 6-bit population of chips, beside ideal rules: one sample at a time, nothing reset.
2. A device preset, in the same way.
3. A small phase diagram, noise × bits.
4. The same equations on Brian2, one chip, step by step.
5. Continuous iPC against discrete BP, PC and iPC on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pcsim.errors import StoreError, UnsupportedError

if TYPE_CHECKING:
    from pcsim.check import Check
    from pcsim.config import Config

PRESET = "ecram_li"
SIZES = {"chips": 32, "limit": 0, "seeds": 3}
"""How large the demo is; tests make it smaller."""
NOISY: dict[str, dict[str, Any]] = {
    "noise": {"kind": "white_noise", "sigma": 0.05},
    "slow": {"kind": "mismatch", "of": "tau_x", "sigma": 0.2},
    "read": {"kind": "array_read_noise", "sigma": 0.005, "reference": "range"},
    "weights": {"kind": "quantized_weights", "bits": 6, "range": 1.5},
}
"""Noise of the somas, mismatch of their time constants, noisy 6-bit weights with an accumulator."""
RULES = {"bp": 0.01, "pc": 0.01, "ipc": 0.005}
"""Discrete rules and their learning rates."""


def demo_config(**sections: dict[str, Any]) -> Config:
    """Return the setting of 3 to 5: digits, 64-32-10, tanh, 16 samples at a time, plain flow."""
    from pcsim import config as configuration

    base: dict[str, Any] = {
        "network": {"sizes": [64, 32, 10]},
        "schedule": {"T": 8, "gamma": 0.2},
        "learning": {"alpha": RULES["ipc"], "batch": 16, "epochs": 2},
        "data": {"name": "digits", "limit": SIZES["limit"]},
        "run": {"backend": "continuous"},
    }
    return configuration.changed(configuration.parse(base, "demo"), sections)


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for results, new or empty [out/demo, out/demo-2, …]."
        ),
    ] = None,
) -> None:
    """Check chips on the embedded digits, draw a phase diagram, compare, and write a report."""
    from pcsim.report import report as write_report
    from pcsim.terminal import console

    out = folder or next(path for path in _folders() if _is_free(path))
    if not _is_free(out):
        raise StoreError(f"{out}: is there already and not empty; give a new folder with --out")
    noisy = _check("noisy_6bit", out, {"chips": SIZES["chips"], "pieces": NOISY}, twins=True)
    device = _check(PRESET, out, {"chips": SIZES["chips"], "preset": PRESET}, twins=False)
    _phase(out)
    _compare(out)
    exact = _cross_check()
    stores = [*sorted(out.glob("check_*.h5")), out / "phase.sweep", out / "compare.h5"]
    page = write_report(stores, out / "report.html", title="pcsim demo: digits")
    for found, name in ((noisy, "the noisy 6-bit chip"), (device, PRESET)):
        console.print(found.sentence(name), style="bold")
    console.print(exact)
    console.print(f"report: {page}", soft_wrap=True)


def _folders() -> Iterator[Path]:
    """Go through the folders that a demo takes by itself."""
    yield Path("out/demo")
    yield from (Path(f"out/demo-{number}") for number in count(2))


def _is_free(path: Path) -> bool:
    """Whether nothing is lost when files are put there."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def _check(name: str, out: Path, hardware: dict[str, Any], *, twins: bool) -> Check:
    from pcsim import config as configuration
    from pcsim import store
    from pcsim.check import check
    from pcsim.plots import save
    from pcsim.terminal import console, progress

    console.print(f"check of {name}")
    settings = configuration.parse(_physical(hardware), "demo")
    answer = check(settings, twins=twins, watch=progress)
    target = out / f"check_{name}.h5"
    store.save(answer.result(), target)
    save(answer.plot(name), target.with_suffix(".png"))
    console.print(answer.table(name))
    return answer


def _physical(hardware: dict[str, Any]) -> dict[str, Any]:
    """Return what `pcsim check` runs by itself, with other hardware: one sample at a time."""
    from pcsim.check import DIGITS

    data = DIGITS["data"] | ({"limit": SIZES["limit"]} if SIZES["limit"] else {})
    return DIGITS | {"data": data, "hardware": hardware}


def _phase(out: Path) -> None:
    """Noise × bits without any hidden precision, four chips per cell, all cells in one tensor."""
    from pcsim.sweep import sweep
    from pcsim.terminal import console, progress

    pieces = {
        "read": NOISY["read"],
        "weights": {**NOISY["weights"], "rounding": "stochastic", "accumulator": False},
    }
    axes = {
        "hardware.pieces.read.sigma": [0.0, 0.01, 0.03, 0.1],
        "hardware.pieces.weights.bits": [4, 6, 8, 12],
    }
    settings = demo_config(hardware={"chips": 4, "pieces": pieces})
    description = settings.model_dump(mode="json", exclude_unset=True) | {"sweep": {"axes": axes}}
    with progress("phase diagram") as report:
        result = sweep(description, out / "phase.sweep", report=report)
    accuracy = 100 * result["accuracy"].mean((-1, -2))
    console.print("accuracy, %: rows read noise 0, 0.01, 0.03, 0.1; columns 4, 6, 8, 12 bits")
    for row in accuracy:
        console.print("  " + "  ".join(f"{value:5.1f}" for value in row))


def _compare(out: Path) -> None:
    from pcsim.compare import compare
    from pcsim.compare.tables import comparison_tables
    from pcsim.run import run
    from pcsim.terminal import console, progress

    seeds = {"seeds": list(range(SIZES["seeds"]))}
    runs: dict[str, Path] = {}
    for rule, alpha in RULES.items():
        name = f"discrete {rule}"
        sections: dict[str, dict[str, Any]] = {
            "schedule": {"rule": rule},
            "learning": {"alpha": alpha},
        }
        runs[name] = out / f"{rule}.h5"
        settings = demo_config(run={"backend": "discrete", **seeds}, **sections)
        with progress(name) as report:
            run(settings, runs[name], report=report)
    runs["continuous ipc"] = out / "continuous.h5"
    with progress("continuous ipc") as report:
        run(demo_config(run=seeds), runs["continuous ipc"], report=report)
    result = compare(runs, out=out / "compare.h5")
    for table in comparison_tables(result)[:1]:
        console.print(table.rich())


def _cross_check() -> str:
    """Run one chip for a few samples on torch and on Brian2; return how much they differ."""
    import numpy as np

    from pcsim.run import run

    few = {"limit": 8}
    settings: dict[str, Any] = {"data": few, "learning": {"batch": 1, "epochs": 1}}
    try:
        weights = [
            run(demo_config(run={"backend": backend, "dtype": "float64"}, **settings))["parameters"]
            for backend in ("continuous", "brian")
        ]
    except UnsupportedError as reason:
        return f"Brian2 cross-check left out: {reason}"
    gap = float(np.abs(weights[0] - weights[1]).max())
    return f"Brian2 cross-check: weights after 64 steps differ by {gap:.1e} at most"
