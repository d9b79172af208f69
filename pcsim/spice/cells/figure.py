"""Waveforms as a designer expects them: soma, error and weights, transistors over ideal cells."""

from __future__ import annotations

from pathlib import Path

from pcsim.spice.cells.network import Learnt


def draw_waves(learnt: Learnt, reference: Learnt, path: Path, process: str) -> None:
    """Draw output, error and a hidden soma at the end of learning, and all weights."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    task = learnt.task
    last = len(task.layers) - 1
    end = task.learning_time / task.tau_x
    recent = (end - 8 * task.present, end + 16 * task.present)
    figure, axes = pyplot.subplots(4, 1, figsize=(9, 10), layout="constrained")
    for run, style, label in ((reference, "--", "ideal cells"), (learnt, "-", process)):
        waves, time = run.waves, run.time
        soma, basal = waves[f"x{last}_0"], waves[f"vb{last}_0"]
        axes[0].plot(time, soma, "k" + style, lw=0.8, label=f"soma, {label}")
        axes[0].plot(time, basal, "C0" + style, lw=1, label=f"basal dendrite, {label}")
        axes[1].plot(time, soma - basal, "C3" + style, lw=1, label=f"error, {label}")
        axes[2].plot(time, waves["x1_0"], "C2" + style, lw=1, label=f"hidden soma, {label}")
        colours = (f"C{k % 10}" for k in range(10_000))
        for name in (name for name in waves if name.startswith("w")):
            axes[3].plot(time, waves[name], color=next(colours), ls=style, lw=0.9)
    for axis, about in zip(axes, ("output", "error", "hidden", "weights"), strict=True):
        axis.axvline(end, color="0.6", lw=0.8)
        axis.set_ylabel(f"{about} (units)")
        axis.grid(alpha=0.3)
    for axis in axes[:3]:
        axis.set_xlim(recent)
        axis.legend(fontsize=7, loc="upper left", ncols=2)
    axes[0].set_ylim(-1.6, 1.6)
    axes[1].set_ylim(-2.5, 2.5)
    axes[3].set_xlim(0, end)
    axes[3].set_xlabel("time (τ_x); at the grey line learning and the clamp of the output go off")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
