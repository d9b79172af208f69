"""The tables of a store: accuracy, verdict, points of a sweep, and all it holds."""

from __future__ import annotations

import numpy as np

from pcsim.compare.tables import comparison_tables
from pcsim.report.deployed import deployment_tables
from pcsim.report.drawing import quantiles
from pcsim.report.view import View, field_name
from pcsim.rows import Rows

POINTS = 80
"""Sweeps with more points than this show the best ones only."""
VERDICT = {
    "start": "energy at the start",
    "floor": "energy floor",
    "spread": "spread of the floor",
    "settled_at": "settling time, s",
    "margin": "margin of Euler's step",
    "accuracy": "test accuracy (fraction)",
}

SENTENCES = ("margins", "specs", "remedies", "deployment")
"""Attributes that are the answer of a store of their own."""
OF_A_RUN = ("settled_at", "margin")
"""What describes the integration, and is no property of a chip."""


def tables(view: View) -> list[Rows]:
    """Return every table for which the store has what it needs."""
    if view.kind == "comparison":
        return comparison_tables(view.result)
    if view.kind == "deploy":
        return deployment_tables(view)
    tables = [points(view), _outcomes(view), _verdict(view), _failures(view)]
    return [table for table in tables if table and table.rows]


def headline(view: View) -> str:
    """Return the numbers one wants first, as a sentence; empty if there are none."""
    sentences = [str(view.result.attrs[name]) for name in SENTENCES if name in view.result.attrs]
    if sentences and view.kind != "check":
        return " ".join(sentences)
    words = []
    accuracy, outcome = view.values("accuracy"), view.outcomes()
    if view.kind == "comparison":
        return ""
    if outcome is not None:
        judged = outcome[outcome != ""]
        words.append(f"{(judged == 'converged').sum()} of {judged.size} replicas converged")
    if accuracy is not None and np.isfinite(accuracy).any():
        known = 100 * accuracy[np.isfinite(accuracy)]
        if view.varied:
            words.append(f"test accuracy from {known.min():.2f} to {known.max():.2f} %")
        elif known.size > 1:
            words.append(f"test accuracy {known.mean():.2f} ± {known.std(ddof=1):.2f} % (SD)")
        else:
            words.append(f"test accuracy {known[0]:.2f} %")
    text = "; ".join(words)
    return text[:1].upper() + text[1:] + "." if text else ""


def points(view: View) -> Rows | None:
    """Return accuracy (mean, SD, range) and the share converged, one row per point."""
    accuracy, converged = view.values("accuracy"), view.converged()
    if accuracy is None:
        return None
    status = view.result.variables.get("status")
    cells = list(view.cells())
    with_status = status is not None and status.dims == view.swept
    caption = ""
    if len(cells) > POINTS:
        best = np.argsort([-_finite_mean(accuracy[cell]) for cell in cells], kind="stable")
        caption = f"the {POINTS} points of highest accuracy, of {len(cells)}"
        cells = [cells[k] for k in best[:POINTS]]
    axes = view.varied or ()
    columns = [*(field_name(axis) for axis in axes), "accuracy, %", "SD", "min", "max", "replicas"]
    columns += ["converged, %"] if converged is not None else []
    columns += ["status"] if with_status else []
    rows = []
    for cell in cells:
        row = [view.labels(a)[cell[view.swept.index(a)]] for a in axes]
        values = 100 * accuracy[cell][np.isfinite(accuracy[cell])]
        if len(values):
            sd = f"{values.std(ddof=1):.3g}" if len(values) > 1 else "–"
            row += [f"{values.mean():.2f}", sd, f"{values.min():.2f}", f"{values.max():.2f}"]
        else:
            row += ["–"] * 4
        row.append(str(len(values)))
        if converged is not None:
            row.append(f"{100 * converged[cell]:.0f}" if np.isfinite(converged[cell]) else "–")
        if with_status and status is not None:
            row.append(str(status.values[cell]))
        rows.append(tuple(row))
    return Rows("Test accuracy", tuple(columns), tuple(rows), caption)


def _finite_mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else -np.inf


def _outcomes(view: View) -> Rows | None:
    outcome = view.outcomes()
    if outcome is None:
        return None
    names, counts = np.unique(outcome[outcome != ""], return_counts=True)
    total = counts.sum()
    rows = tuple(
        (str(name), str(count), f"{100 * count / total:.1f}")
        for name, count in sorted(zip(names, counts, strict=True), key=lambda pair: -pair[1])
    )
    return Rows("Outcomes", ("outcome", "replicas", "%"), rows)


def _verdict(view: View) -> Rows | None:
    """Return quantiles over all replicas."""
    rows = []
    for name, text in VERDICT.items():
        if view.kind == "check" and name in OF_A_RUN:
            continue
        values = view.values(f"verdict.{name}")
        if values is not None and np.isfinite(values.astype(float)).any():
            numbers = quantiles(values.astype(float).reshape(-1))
            rows.append((text, *(f"{number:.4g}" for number in numbers)))
    title = "Energies, another question than accuracy" if view.kind == "check" else "Verdict"
    return Rows(title, ("", "5 %", "median", "95 %"), tuple(rows), "over all replicas")


def _failures(view: View) -> Rows | None:
    """Return why points of a sweep have no numbers."""
    status, reason = (view.result.variables.get(n) for n in ("status", "reason"))
    if status is None or reason is None or status.dims != view.swept:
        return None
    bad = [c for c in view.cells() if status.values[c] != "done" or reason.values[c]]
    rows = tuple(
        (view.cell_name(c) or "–", str(status.values[c]), str(reason.values[c]))
        for c in bad[:POINTS]
    )
    more = f"{len(bad) - POINTS} more are not shown" if len(bad) > POINTS else ""
    return Rows(
        "Points that did not end well", ("point", "status", "reason"), rows, more, words=True
    )
