"""How many events does learning cost? Accuracy against event rate, over the step size q.

`pcsim experiment spiking` trains chips that talk by leaky graded sigma-delta events (the circuit
`spiking`) beside the ODE they stand for: (a) trajectories of a random network, (b) XOR, (c) the
digits. Six step sizes q with qe = q/2, and one chip without leak (pure sigma-delta) as a
control. It prints tables, writes `spiking.h5` and `spiking.png`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from pcsim import plots, store
from pcsim.limits.lags import Floats
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common import keeping
from ..common.keeping import claim, collect, keep
from .fidelity import TAU_S, Events, Fidelity, random_fidelity
from .tasks import DIGITS, DT, SEEDS, TAU_ERR, TAU_X, XOR, Learned, learn

STEPS = (1.6, 0.8, 0.4, 0.2, 0.1, 0.05)
"""Step sizes q of the rates; errors have qe = q/2."""
SPIKING = tuple(Events(q=q, qe=q / 2, tau_s=TAU_S) for q in STEPS)
PURE = Events(q=0.05, qe=0.025, tau_s=0.0)
CHIPS = (*SPIKING, PURE)
TASKS = {"xor": XOR, "digits": DIGITS}


def learned(task: str) -> Result:
    """Train one task: a cell of the study."""
    return Result(as_variables(task, learn(TASKS[task], CHIPS)))


def all_learned(path: Path, console: Console) -> dict[str, Learned]:
    """Train both tasks, in parallel where there are two processors."""
    jobs = {task: partial(learned, task) for task in TASKS}
    setting = repr((TASKS, CHIPS, SEEDS, TAU_X, TAU_ERR, DT))
    found = collect(jobs, path, setting, console, keeping.PROCESSES)
    return {task: as_learned(task, cell) for task, cell in found.items()}


def main(out: Path) -> None:
    """Measure, print, store, draw."""
    claim(out / "spiking.h5", "spiking")
    console = terminal()
    random = random_fidelity(CHIPS, seeds=len(SEEDS))
    console.print(fidelity_table("(a) random 4-16-16-3 network, random samples", random))
    found = all_learned(out / "spiking.h5", console)
    for task, result in found.items():
        console.print(fidelity_table(f"{task}: against the ODE", result.fidelity))
        console.print(accuracy_table(task, result))
    keep(as_result(random, found), out / "spiking.h5", "spiking")
    console.print(f"figure: {draw(random, found, out / 'spiking.png')}")


def as_result(random: Fidelity, found: dict[str, Learned]) -> Result:
    """Collect all numbers with their axes."""
    variables = _fidelity("random", random)
    for task, result in found.items():
        variables |= as_variables(task, result)
    leaks = [s.tau_s or np.inf for s in CHIPS]
    coords: dict[str, Any] = {"chip": np.array(names(CHIPS)), "seed": np.array(SEEDS)}
    variables["q"] = Variable(("chip",), np.array([s.q for s in CHIPS]))
    variables["qe"] = Variable(("chip",), np.array([s.qe for s in CHIPS]))
    variables["tau_s"] = Variable(("chip",), np.array(leaks), {"units": "s"})
    attrs: dict[str, store.Attr] = {**provenance(), "tau_x": TAU_X, "tau_err": TAU_ERR, "dt": DT}
    for task, learning in TASKS.items():
        attrs |= {f"{task}_t_pres": learning.t_pres, f"{task}_eta": learning.eta}
        attrs |= {f"{task}_presentations": learning.presentations}
    return Result(variables, coords, attrs)


def _fidelity(task: str, found: Fidelity) -> dict[str, Variable]:
    return {
        f"{task}_{field.name}": Variable(("chip", "seed"), getattr(found, field.name))
        for field in fields(found)
    }


def as_variables(task: str, found: Learned) -> dict[str, Variable]:
    """Return what was learnt on a task under the names of the stored result."""
    return _fidelity(task, found.fidelity) | {
        f"{task}_accuracy": Variable(("chip", "seed"), found.accuracy),
        f"{task}_accuracy_by_events": Variable(("chip", "seed"), found.accuracy_by_events),
        f"{task}_accuracy_ode": Variable(("seed",), found.reference),
    }


def as_learned(task: str, stored: Result) -> Learned:
    """Return what was learnt on a task: the inverse of `as_variables`."""
    return Learned(
        Fidelity(**{field.name: stored[f"{task}_{field.name}"] for field in fields(Fidelity)}),
        stored[f"{task}_accuracy"],
        stored[f"{task}_accuracy_by_events"],
        stored[f"{task}_accuracy_ode"],
    )


def names(chips: Sequence[Events]) -> list[str]:
    """Return what each chip is called in tables."""
    return [f"{s.q:g}" + ("" if s.tau_s else ", no leak") for s in chips]


def fidelity_table(title: str, found: Fidelity) -> Table:
    """Return means over the seeds, per step size."""
    made = Table(title=title)
    for column in ("q", "rms of x, %", "cosine of ΔW", "soma events/s", "apical events/s"):
        made.add_column(column, justify="left" if column == "q" else "right")
    for row, name in enumerate(names(CHIPS)):
        alive = np.isfinite(found.rms[row]).all()
        made.add_row(
            name,
            f"{100 * found.rms[row].mean():.2g}" if alive else "diverged",
            f"{found.cosine[row].mean():.5f}" if alive else "",
            f"{found.soma[row].mean():.0f}",
            f"{found.apical[row].mean():.0f}",
        )
    return made


def accuracy_table(task: str, found: Learned) -> Table:
    """Return accuracies, mean ± sd over the seeds, and what they cost in events."""
    learning = TASKS[task]
    made = Table(title=f"{task}: accuracy, %, mean±sd of {len(SEEDS)} chips; events per neuron")
    columns = ("q", "of the weights", "by events", "events/s", "events/sample")
    for column in columns:
        made.add_column(column, justify="left" if column == "q" else "right")
    for row, name in enumerate(names(CHIPS)):
        rate = found.fidelity.rate[row].mean()
        made.add_row(
            name,
            _spread(found.accuracy[row]),
            _spread(found.accuracy_by_events[row]),
            f"{rate:.0f}",
            f"{rate * learning.t_pres:.1f}",
        )
    made.add_section()
    made.add_row("ODE", _spread(found.reference), "", "", "")
    return made


def _spread(values: Floats) -> str:
    if np.isnan(values).any():
        return "diverged"
    return f"{100 * values.mean():.1f}±{100 * values.std(ddof=1):.1f}"


def draw(random: Fidelity, found: dict[str, Learned], path: Path) -> Path:
    """Draw the error over q, and accuracy over the event rate."""
    figure = Figure(figsize=(13.5, 4.4), layout="constrained")
    left, *others = figure.subplots(1, 3)
    errors = {"random 4-16-16-3": random} | {t: r.fidelity for t, r in found.items()}
    for k, (name, fidelity) in enumerate(errors.items()):
        style = {"color": plots.COLOURS[k], "marker": "osD"[k]}
        mean = 100 * fidelity.rms.mean(1)
        left.loglog(STEPS, mean[:-1], linestyle=plots.DASHES[k], label=name, **style)
        left.plot(PURE.q, mean[-1], markerfacecolor="none", markersize=9, linestyle="", **style)
    guide = np.array([0.06, 0.6])
    left.plot(guide, 4 * guide, color="0.6", label="∝ q")
    left.set(
        title="trajectories; hollow: no leak (pure sigma-delta)",
        xlabel="step size q of the rates (errors: q/2)",
        ylabel="rms(x − x_ODE)/rms(x_ODE), %",
    )
    left.xaxis.set_major_formatter("{x:g}")
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(frameon=False)
    for axes, (task, result) in zip(others, found.items(), strict=True):
        _draw_accuracy(axes, task, result)
    for axes in (left, *others):
        axes.grid(alpha=0.25)
    return plots.save(figure, path)


def _draw_accuracy(axes: Axes, task: str, found: Learned) -> None:
    rate, learning = found.fidelity.rate.mean(1), TASKS[task]
    mean, sd = 100 * found.reference.mean(), 100 * found.reference.std(ddof=1)
    axes.axhline(mean, color=plots.COLOURS[6], label="ODE, mean ± sd")
    axes.axhspan(mean - sd, mean + sd, color=plots.COLOURS[6], alpha=0.12)
    kinds = {"weights, read out without events": found.accuracy}
    kinds["the circuit itself, label let go"] = found.accuracy_by_events
    for k, (name, values) in enumerate(kinds.items()):
        mid, bar = 100 * values.mean(1), 100 * values.std(1, ddof=1)
        style: dict[str, Any] = {"color": plots.COLOURS[k], "marker": "os"[k], "capsize": 2}
        # Points of the two kinds stand side by side, so that their bars can be told apart.
        at = rate * (0.985, 1.015)[k]
        axes.errorbar(at[:-1], mid[:-1], bar[:-1], linestyle=plots.DASHES[k], label=name, **style)
        axes.errorbar(at[-1:], mid[-1:], bar[-1:], linestyle="", markerfacecolor="none", **style)
    for q, x in zip(STEPS, rate, strict=False):
        axes.annotate(
            f"q = {q:g}",
            (x, 0.02),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=7,
        )
    sizes = "-".join(map(str, learning.sizes))
    axes.set(
        xscale="log",
        title=f"{task}, {sizes}, {learning.presentations} samples of {learning.t_pres:g} s",
        xlabel="events per neuron and second (both kinds)",
        ylabel=f"accuracy, %: mean ± sd of {len(SEEDS)} chips",
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8, loc="center right")
