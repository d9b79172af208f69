"""Claims, tables and figure of the studies `masked_lm` and `conditional_lm`, from their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..claims import Claim, Verdict, judged
from ..held_out_choice import compare, is_searched
from ..seed_statistics import interval, judge_as_large, told
from ..styles import STYLES
from .setting import Setting

Floats = npt.NDArray[np.float64]
THRESHOLDS = {"BP": 200.0, "PC": 800.0, "iPC": 200.0}
"""Test perplexity below which the paper calls a seed converged."""
# fmt: off
PAPER: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "masked": {
        "BP": (83.619, 147.775, 787.334, 133.073, 358.486, 455.535, 92.951, 95.322, 152.135, 135.3),
        "PC": (503.548, 1042.125, 1158.864, 909.209, 557.766, 1155.093, 1176.144, 901.295, 507.916,
               1162.502),
        "iPC": (93.998, 93.899, 93.449, 137.027, 94.491, 108.241, 92.411, 97.724, 156.112, 94.504),
    },
    "conditional": {
        "BP": (112.655, 113.454, 113.454, 113.235, 113.726, 115.153, 112.391, 112.877, 113.359,
               112.921),
        "PC": (201.096, 206.322, 198.798, 187.0, 214.385, 213.66, 218.577, 221.076, 219.609,
               182.898),
        "iPC": (137.086, 138.435, 235.153, 160.08, 139.284, 140.68, 149.148, 237.234, 281.977,
                133.098),
    },
}
# fmt: on
"""Test perplexity of each of ten seeds (the paper's supplement)."""


def converged(rule: str, perplexities: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which seeds lie below the paper's threshold."""
    return np.asarray(np.asarray(perplexities) < THRESHOLDS[rule])


def setting_of(result: Result) -> Setting:
    """Return the setting a stored result was made with."""
    return Setting.model_validate_json(str(result.attrs["setting"]))


def judge(result: Result, setting: Setting) -> list[Claim]:
    """Set the perplexities beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    found = dict(zip(rules, np.asarray(result["test_perplexity"]), strict=True))
    pairs = [("iPC", "PC"), ("iPC", "BP") if setting.model == "masked" else ("BP", "iPC")]
    claims = [
        _lower(result, setting, first, second)
        for first, second in pairs
        if first in rules and second in rules
    ]
    return [*claims, _convergence(found, setting)] if set(THRESHOLDS) <= set(rules) else claims


def _lower(result: Result, setting: Setting, first: str, second: str) -> Claim:
    """Judge that a rule reaches a lower perplexity than another, by the logarithms.

    Where a search chose the settings, the paper's difference between converged seeds may be
    refuted, too; a rule that chose an end of what was tried leaves it open.
    """
    rules = [str(r) for r in result["rule"]]
    ours = [np.asarray(result["test_perplexity"])[rules.index(r)] for r in (first, second)]
    evidence = f"{first} {_mean(ours[0])}, {second} {_mean(ours[1])}"
    gain = np.log(ours[1]) - np.log(ours[0])
    verdict = compare(gain, np.zeros_like(gain))
    if setting.search is not None:
        found, claimed = interval(gain), claimed_gain(setting.model, first, second)
        verdict = judge_as_large(found, claimed)
        evidence += (
            f"; difference of logarithms {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}], the "
            f"paper's {claimed:.3f}; {len(gain)} seeds tell {told(found.sd, len(gain)):.3f} with a "
            "power of 80 %"
        )
        edges = [r for r in (first, second) if result["edge"][rules.index(r)]]
        if edges:
            verdict = Verdict.OPEN
            evidence += f"; but {' and '.join(edges)} chose an end of what was tried"
    text = f"{setting.model} model: {first} reaches a lower test perplexity than {second}"
    return Claim(text, verdict, evidence)


def claimed_gain(model: str, first: str, second: str) -> float:
    """Return the paper's difference of ln perplexity, second less first, of converged seeds."""
    means = [
        np.mean([one for one in PAPER[model][rule] if one < THRESHOLDS[rule]])
        for rule in (first, second)
    ]
    return float(np.log(means[1]) - np.log(means[0]))


def _convergence(found: Mapping[str, Floats], setting: Setting) -> Claim:
    """Compare numbers of converged seeds; thresholds are for the paper's text and vocabulary."""
    below = {rule: int(converged(rule, values).sum()) for rule, values in found.items()}
    if setting.model == "masked":
        text = "masked model: all seeds converge by iPC, fewer by PC"
        true = below["iPC"] == len(setting.seeds) > below["PC"]
    else:
        text = "conditional model: all seeds converge by BP and by PC, not all by iPC"
        true = below["BP"] == below["PC"] == len(setting.seeds) > below["iPC"]
    counts = ", ".join(f"{rule} {n} of {len(setting.seeds)}" for rule, n in below.items())
    published = setting.text.source == "benchmark" and setting.text.vocabulary == 8001
    evidence = f"below the paper's threshold: {counts}"
    if not published:
        evidence += f"; it was set for 8001 tokens, these are {setting.text.vocabulary}"
    return Claim(text, judged(true) if published else Verdict.OPEN, evidence)


def _mean(values: Sequence[float] | Floats) -> str:
    if len(values) == 0:
        return "none"
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


def tables(result: Result) -> Sequence[Table]:
    """Return means over seeds beside the paper's, and every seed."""
    setting = setting_of(result)
    rules = [str(r) for r in result["rule"]]
    ours = dict(zip(rules, np.asarray(result["test_perplexity"]), strict=True))
    summary = Table(
        title=f"{setting.model} language model: test perplexity, mean ± sample SD over seeds",
        caption=f"text: {result.attrs['data_origin']}",
    )
    for column in ("", *rules):
        summary.add_column(column, justify="right")
    rates = rates_of(result)
    rows: tuple[tuple[str, Mapping[str, Sequence[float] | Floats]], ...] = (
        (f"here ({setting.text.vocabulary} tokens)", ours),
        ("the paper (8001 tokens)", PAPER[setting.model]),
    )
    for name, of in rows:
        summary.add_row(f"{name}: all seeds", *(_mean(of[r]) for r in rules))
        below = {r: np.asarray(of[r])[converged(r, of[r])] for r in rules}
        summary.add_row("converged seeds alone", *(_mean(below[r]) for r in rules))
        summary.add_row("number of them", *(f"{len(below[r])} of {len(of[r])}" for r in rules))
    summary.add_row("learning rate, here", *(f"{rate:g}" for rate in rates))
    each = Table(title="test perplexity by seed")
    for column in ("seed", *rules):
        each.add_column(column, justify="right")
    for k, seed in enumerate(result["seed"]):
        each.add_row(str(seed), *(f"{ours[r][k]:.2f}" for r in rules))
    return [summary, each]


def rates_of(result: Result) -> Floats:
    """Return the learning rate (rule,) that was chosen."""
    name = "chosen_alpha" if is_searched(result) else "alpha"
    return np.asarray(result[name], np.float64)


def rows(result: Result) -> list[dict[str, str]]:
    """Return test perplexities, a line for each rule.

    `ipc_gain` is ln of the rule's perplexity less ln of iPC's, paired by seed: above zero, iPC's
    is the lower.
    """
    made, rules = [], [str(r) for r in result["rule"]]
    ours = np.asarray(result["test_perplexity"])
    for k, rule in enumerate(rules):
        found = interval(ours[k])
        line = {"rule": rule, "mean": f"{found.mean:.3f}", "sd": f"{found.sd:.3f}"}
        line |= dict.fromkeys(("ipc_gain", "ipc_gain_low", "ipc_gain_high"), "")
        if "iPC" in rules and rule != "iPC":
            gap = interval(np.log(ours[k]) - np.log(ours[rules.index("iPC")]))
            line["ipc_gain"] = f"{gap.mean:.4f}"
            line |= {"ipc_gain_low": f"{gap.low:.4f}", "ipc_gain_high": f"{gap.high:.4f}"}
        line["alpha"] = f"{rates_of(result)[k]:g}"
        line["gamma"] = f"{result['chosen_gamma'][k]:g}" if is_searched(result) else ""
        line["edge"] = ("yes" if result["edge"][k] else "no") if is_searched(result) else ""
        made.append(line)
    return made


def draw(result: Result, path: Path) -> Path:
    """Draw the dev perplexity of all seeds over the training windows."""
    setting = setting_of(result)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for rule, curves in zip(result["rule"], result["dev_perplexity"], strict=True):
        colour, _, marker = STYLES[str(rule)]
        for k, curve in enumerate(curves):
            label = str(rule) if k == 0 else None
            every = max(1, len(curve) // 12)
            axes.plot(
                result["windows"], curve, marker=marker, ms=3, markevery=every, lw=1.2,
                color=colour, label=label,
            )  # fmt: skip
    vocabulary = setting.text.vocabulary
    axes.axhline(vocabulary, color="0.5", ls=":", label=f"all {vocabulary} tokens alike")
    axes.set(
        title=f"{setting.model} language model",
        xlabel=f"training windows of {setting.text.positions} tokens",
        ylabel="dev perplexity",
        yscale="log",
    )
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    axes.grid(alpha=0.25, which="both")
    axes.legend(frameon=False)
    return plots.save(figure, path)
