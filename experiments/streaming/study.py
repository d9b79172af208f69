"""Which streaming regime trains a chip that nobody tells when a sample begins?

`pcsim experiment streaming` compares regimes (`regimes`) over the presentation time
T_pres/τ_x: (a) the bias that a switch writes, in a linear network, against its closed form
(`bias`); final accuracy (b) on XOR and (c) on the digits, sample by sample. The learning
per sample is the same everywhere: τ_w = T_pres/η. It prints a table, writes `streaming.h5` and
`streaming.png`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from pcsim import config, plots, store
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import generator, initial_parameters
from pcsim.limits.lags import Floats
from pcsim.network import Network
from pcsim.provenance import provenance
from pcsim.runner.chip_run import ChipRun
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common import keeping
from ..common.keeping import claim, collect, keep
from .bias import KINDS, World, measured_bias
from .regimes import REGIMES, Presenter, Regime, StreamRun

TAU_X, DT = 1.0, 0.2
SEEDS = tuple(range(8))
BIAS_TIMES = np.array([0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0])
TIMES = {"xor": (2.0, 5.0, 10.0, 20.0, 50.0, 100.0), "digits": (2.0, 5.0, 10.0, 20.0)}
ETA = {"xor": 0.2, "digits": 0.03}
"""T_pres/τ_w: the weights' change per sample, the same for every T_pres."""
XOR_PRESENTATIONS = 400
DIGITS_SAMPLES, DIGITS_EPOCHS = 500, 2
XOR_ORDER_KEY = 7
XOR_U = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
XOR_Y = torch.tensor([[-1.0], [1.0], [1.0], [-1.0]])
STYLES = (
    (plots.COLOURS[6], "-", "o"),
    (plots.COLOURS[0], "-", "s"),
    (plots.COLOURS[5], "-", "D"),
    (plots.COLOURS[2], "-", "^"),
    (plots.COLOURS[4], "-", "v"),
    (plots.COLOURS[1], "--", "P"),
    (plots.COLOURS[3], "--", "X"),
    (plots.COLOURS[3], ":", "*"),
)


def xor_accuracy(regime: Regime, t_pres: float, presentations: int = XOR_PRESENTATIONS) -> Floats:
    """Train 2-16-1 tanh networks, one chip per seed; return accuracy (chip,) over the patterns."""
    network = Network.mlp((2, 16, 1), "tanh")
    params = initial_parameters(network, list(SEEDS), torch.float32)
    circuit = Circuit(tau_x=TAU_X, tau_w=t_pres / ETA["xor"], look_soma=regime.look * TAU_X)
    engine = Continuous(network, params, circuit, dt=DT, fast=not regime.tau_both)
    presenter = Presenter(engine, regime, t_pres, TAU_X)
    orders = np.stack([generator(s, XOR_ORDER_KEY).integers(0, 4, presentations) for s in SEEDS])
    for order in torch.as_tensor(orders).T:
        presenter.present([XOR_Y[order][:, None], None, XOR_U[order][:, None]])
    right = outputs(network, engine.flow.theta(), XOR_U) * XOR_Y > 0
    return np.asarray(right.double().mean((1, 2)).numpy())


def digits_config(
    regime: Regime, t_pres: float, samples: int = DIGITS_SAMPLES, epochs: int = DIGITS_EPOCHS
) -> config.Config:
    """Return the configuration of a run on the digits, one sample at a time."""
    options = regime.options(TAU_X)
    options["circuit"] |= {"tau_x": TAU_X, "tau_w": t_pres / ETA["digits"]}
    options["stream"] |= {"t_pres": t_pres}
    plain: dict[str, Any] = {
        "network": {"sizes": [64, 32, 10]},
        "run": {"backend": "continuous", "seeds": list(SEEDS)},
        "data": {"name": "digits", "limit": samples},
        "learning": {"batch": 1, "epochs": epochs},
        "solver": {"dt": DT},
    }
    return config.parse(plain | options)


def digits_accuracy(regime: Regime, t_pres: float, **size: int) -> Floats:
    """Train 64-32-10 tanh networks, one chip per seed; return the test accuracy (chip,)."""
    settings = digits_config(regime, t_pres, **size)
    if regime.built_in:
        run = ChipRun(settings)
    else:
        run = StreamRun(settings)
        assert isinstance(run.engine, Continuous)
        run.presenter = Presenter(run.engine, regime, t_pres, TAU_X)
    run.run()
    return np.asarray(run.accuracy_rows[-1][1], dtype=float)


def accuracy(task: str, regime: int, t_pres: float) -> Result:
    """Run one cell of the study."""
    train = xor_accuracy if task == "xor" else digits_accuracy
    return Result({"accuracy": Variable(("seed",), train(REGIMES[regime], t_pres))})


def accuracies(path: Path, console: Console) -> dict[str, Floats]:
    """Return accuracy (regime, T_pres, chip) of both tasks, cells in parallel."""
    # Long cells first, so that no processor waits for the last one.
    places = {
        f"{task} {REGIMES[r].name} {t:g}": (task, r, t)
        for task, r, t, _ in sorted(_cells(), key=lambda cell: -cell[3])
    }
    jobs = {name: partial(accuracy, *place) for name, place in places.items()}
    setting = repr((TAU_X, DT, SEEDS, ETA, XOR_PRESENTATIONS, DIGITS_SAMPLES, DIGITS_EPOCHS))
    found = collect(jobs, path, setting + repr(REGIMES), console, keeping.PROCESSES)
    values = {
        task: np.empty((len(REGIMES), len(times), len(SEEDS))) for task, times in TIMES.items()
    }
    for name, (task, r, t) in places.items():
        values[task][r, TIMES[task].index(t)] = found[name]["accuracy"]
    return values


def _cells() -> Iterator[tuple[str, int, float, float]]:
    """Give task, regime, T_pres and a guess of the cost."""
    shown = {"xor": XOR_PRESENTATIONS, "digits": DIGITS_SAMPLES * DIGITS_EPOCHS}
    for task, times in TIMES.items():
        for r, regime in enumerate(REGIMES):
            for t in times:
                yield task, r, t, shown[task] * (t + regime.extra)


def biases(world: World) -> tuple[Floats, Floats, Floats]:
    """Return measured, standard error and closed form (kind, T, hidden, input) of the bias."""
    cells = [[measured_bias(world, kind, float(t)) for t in BIAS_TIMES] for kind in KINDS]
    predicted = [[world.bias(kind, float(t)) for t in BIAS_TIMES] for kind in KINDS]
    measured = np.array([[mean for mean, _ in row] for row in cells])
    return measured, np.array([[se for _, se in row] for row in cells]), np.array(predicted)


def main(out: Path) -> None:
    """Measure, print, store, draw."""
    claim(out / "streaming.h5", "streaming")
    console = terminal()
    world = World.make()
    console.print("(a) bias of a linear network")
    measured, error, predicted = biases(world)
    console.print(bias_table(measured, error, predicted, world))
    console.print("(b), (c) XOR and digits")
    found = accuracies(out / "streaming.h5", console)
    for task, values in found.items():
        console.print(accuracy_table(task, values))
    bias_dims = ("kind", "bias_time", "hidden", "input")
    variables = {
        "bias_measured": Variable(bias_dims, measured),
        "bias_standard_error": Variable(bias_dims, error),
        "bias_predicted": Variable(bias_dims, predicted),
        "true_update": Variable(("hidden", "input"), world.update, {"long_name": "E[ε* uᵀ]"}),
    }
    coords: dict[str, Any] = {
        "kind": np.array(KINDS),
        "bias_time": BIAS_TIMES,
        "regime": np.array([regime.name for regime in REGIMES]),
        "seed": np.array(SEEDS),
    }
    for task, values in found.items():
        variables[f"{task}_accuracy"] = Variable(("regime", f"{task}_time", "seed"), values)
        coords[f"{task}_time"] = np.array(TIMES[task])
    attrs: dict[str, store.Attr] = {**provenance(), "dt_over_tau_x": DT / TAU_X}
    attrs |= {f"eta_{task}": eta for task, eta in ETA.items()}
    attrs |= {"xor_presentations": XOR_PRESENTATIONS, "digits_samples": DIGITS_SAMPLES}
    attrs |= {"digits_epochs": DIGITS_EPOCHS, "time_units": "tau_x"}
    keep(Result(variables, coords, attrs), out / "streaming.h5", "streaming")
    ratio = tuple(_size(values, world) for values in (measured, predicted))
    console.print(f"figure: {draw(ratio[0], ratio[1], found, out / 'streaming.png')}")


def _size(bias: Floats, world: World) -> Floats:
    """Return ‖bias‖/‖E[ε* uᵀ]‖ (kind, T)."""
    return np.asarray(np.linalg.norm(bias, axis=(2, 3)) / np.linalg.norm(world.update))


def bias_table(measured: Floats, error: Floats, predicted: Floats, world: World) -> Table:
    """Return ‖bias‖ in parts of the true update, and the worst deviation in standard errors."""
    made = Table(title="bias of θ^1 at a switch, in parts of the true update")
    for column in ("regime", "T_pres/τ_x", "measured", "closed form", "worst entry, SE"):
        made.add_column(column, justify="left" if column == "regime" else "right")
    sizes, laws = _size(measured, world), _size(predicted, world)
    worst = np.abs((measured - predicted) / error).max((2, 3))
    for i, kind in enumerate(KINDS):
        for j, t in enumerate(BIAS_TIMES):
            row = f"{t:g}", f"{sizes[i, j]:.3f}", f"{laws[i, j]:.3f}", f"{worst[i, j]:.1f}"
            made.add_row(kind, *row, end_section=j == len(BIAS_TIMES) - 1)
    return made


def accuracy_table(task: str, values: Floats) -> Table:
    """Return mean ± standard deviation over the chips, in per cent."""
    digits = {"xor": 0, "digits": 1}[task]
    made = Table(title=f"{task}: accuracy, %, mean±sd of {len(SEEDS)} chips, over T_pres/τ_x")
    made.add_column("regime", no_wrap=True)
    for t in TIMES[task]:
        made.add_column(f"{t:g}", justify="right")
    for regime, row in zip(REGIMES, 100 * values, strict=True):
        cells = (f"{v.mean():.{digits}f}±{v.std(ddof=1):.{digits}f}" for v in row)
        made.add_row(regime.name, *cells)
    return made


def draw(measured: Floats, predicted: Floats, found: dict[str, Floats], path: Path) -> Path:
    """Draw bias with its closed form, and accuracy over the presentation time."""
    figure = Figure(figsize=(14, 5.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for k, (kind, place) in enumerate(zip(KINDS, (0, 1, 6), strict=True)):
        colour, _, marker = STYLES[place]
        left.loglog(BIAS_TIMES, predicted[k], color=colour)
        left.plot(BIAS_TIMES, measured[k], marker, color=colour, label=kind)
    left.set(
        title="linear 4-3-2 network: what a switch writes\nlines closed form, points simulated",
        xlabel="presentation time T_pres/τ_x",
        ylabel="|bias of the θ¹ update| / |true update|",
    )
    left.legend(frameon=False, fontsize=8)
    _draw_accuracy(middle, "xor", found["xor"])
    middle.set(title=f"XOR, 2-16-1, {XOR_PRESENTATIONS} presentations", ylim=(20, 104))
    _draw_accuracy(right, "digits", found["digits"])
    shown = DIGITS_SAMPLES * DIGITS_EPOCHS
    right.set(title=f"digits, 64-32-10, {shown} presentations")
    for axes in (left, middle, right):
        axes.grid(alpha=0.25, which="both")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
    handles, labels = middle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return plots.save(figure, path)


def _draw_accuracy(axes: Axes, task: str, values: Floats) -> None:
    times = np.array(TIMES[task])
    for k, (regime, row) in enumerate(zip(REGIMES, 100 * values, strict=True)):
        colour, dash, marker = STYLES[k]
        # Points of the regimes stand side by side, so that their bars can be told apart.
        shifted = times * 1.025 ** (k - (len(REGIMES) - 1) / 2)
        mean, sd = row.mean(1), row.std(1, ddof=1)
        line = axes.errorbar(shifted, mean, sd, color=colour, linestyle=dash, marker=marker, ms=5)
        line.set_label(regime.name + ("" if regime.automatic else " (needs a signal)"))
    axes.set(
        xscale="log",
        xlabel="presentation time T_pres/τ_x",
        ylabel="accuracy, %: mean ± sd of chips",
    )
    axes.set_xticks(times, [f"{t:g}" for t in times])
    axes.set_xticks([], minor=True)
