"""The tables of a comparison: plain rows of text, for the terminal and for the report."""

from __future__ import annotations

import json
import warnings

import numpy as np

from pcsim.compare.contrast import SPREAD
from pcsim.rows import Rows
from pcsim.store import Result


def comparison_tables(result: Result) -> list[Rows]:
    """Return accuracy and gap; spread over chips; agreement; cost of the target; differences."""
    tables = [_gaps(result)]
    tables += [_spread(result)] if "chips" in result.variables else []
    tables += [_agreement(result), _costs(result)]
    settings = json.loads(str(result.attrs["settings"]))
    rows = tuple(
        (run, field, text) for run, all_ in settings.items() for field, text in all_.items()
    )
    if rows:
        columns = ("run", "field", "reference → run")
        tables.append(Rows("settings that differ", columns, rows, words=True))
    return tables


def _gaps(result: Result) -> Rows:
    percent = round(100 * float(result.attrs["confidence"]), 3)
    paired = bool(result.attrs["paired"])
    bootstrap = bool(np.isfinite(result["gap_bootstrap_low"]).any())
    columns = ["run", "accuracy, %", "SD", "seeds", "gap, points", f"{percent:g} % interval (t)"]
    columns += ["bootstrap"] if bootstrap else []
    rows = []
    for k, name in enumerate(result["run"]):
        accuracy = 100 * result["accuracy"][k]
        accuracy = accuracy[np.isfinite(accuracy)]
        sd = f"{accuracy.std(ddof=1):.3g}" if len(accuracy) > 1 else "–"
        row = [str(name), f"{accuracy.mean():.2f}", sd, str(len(accuracy))]
        if k == 0:
            row += ["reference", "", ""]
        else:
            row += [f"{100 * result['gap_mean'][k]:+.3f}", _limits(result, k, ""), ""]
            row[-1] = _limits(result, k, "bootstrap_")
        rows.append(tuple(row[: len(columns)]))
    how = "paired by seed" if paired else "unpaired (Welch)"
    unlike = json.loads(str(result.attrs["unlike"]))
    caption = "; ".join(text for sentences in unlike.values() for text in sentences)
    return Rows(
        f"test accuracy, {how}",
        tuple(columns),
        tuple(rows),
        f"not like with like: {caption}" if caption else "",
    )


def _spread(result: Result) -> Rows:
    columns = ("run", "chips per seed", "5 %", "median", "95 %")
    rows = []
    for k, name in enumerate(result["run"]):
        if result["chips"][k]:
            numbers = [f"{100 * result[n][k]:.2f}" for n in SPREAD]
            rows.append((str(name), str(result["chips"][k]), *numbers))
    caption = "over all chips of all seeds; the gaps above are between means over chips"
    return Rows("spread over chips, accuracy in %", columns, tuple(rows), caption)


def _limits(result: Result, k: int, prefix: str) -> str:
    low, high = 100 * result[f"gap_{prefix}low"][k], 100 * result[f"gap_{prefix}high"][k]
    return f"{low:+.3f} … {high:+.3f}" if np.isfinite([low, high]).all() else "–"


def _agreement(result: Result) -> Rows:
    columns = ("run", "energy at the end", "|θ−θ_r|/|θ_r|", "cos θ", "cos Δθ", "same class, %")
    rows = []
    for k, name in enumerate(result["run"]):
        energy = "–"
        if "energy" in result.variables:
            energy = _number(_last(result["energy"][k]))
        measures = ("weight_distance", "weight_cosine", "change_cosine")
        numbers = [_number(_mean(result[m][k])) for m in measures]
        same = _number(100 * _mean(result["prediction_agreement"][k]))
        rows.append((str(name), energy, *(numbers if k else [""] * 3), same if k else ""))
    caption = "means over seeds; r: the reference; Δθ: what was learnt, θ − θ(0)"
    return Rows("agreement with the reference", columns, tuple(rows), caption)


def _costs(result: Result) -> Rows:
    target = 100 * float(result.attrs["target"])
    columns = ("run", "seeds there", "samples", "updates", "simulated time, s")
    rows = []
    for k, name in enumerate(result["run"]):
        reached = (result["test_accuracy"][k] >= float(result.attrs["target"])).any(axis=1)
        count = f"{reached.sum()} of {np.isfinite(result['accuracy'][k]).sum()}"
        costs = [
            _number(_median(result[f"{c}_to_target"][k]))
            for c in ("samples", "updates", "simulated_time")
        ]
        rows.append((str(name), count, *costs))
    caption = "median over the seeds that reach it; accuracy is known at records only"
    return Rows(f"to reach {target:.2f} %", columns, tuple(rows), caption)


def _last(curve: np.ndarray) -> float:
    """Return the mean over seeds of the last record of each."""
    last = [row[np.isfinite(row)][-1] for row in curve if np.isfinite(row).any()]
    return float(np.mean(last)) if last else np.nan


def _mean(values: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no seed has it: NaN
        return float(np.nanmean(values))


def _median(values: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(np.nanmedian(values))


def _number(value: float) -> str:
    return f"{value:.5g}" if np.isfinite(value) else "–"
