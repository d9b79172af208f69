"""What a check has found, as the page opens with it: the answer, then the next questions.

A check stores its answer as JSON in attributes of its result; other commands add attributes of
their own. `PARTS` says which function shows which attribute, in the order of the page: a new kind
of answer is one function and one line there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pcsim.figures.remedy_bars import remedy_bars
from pcsim.figures.spec_surface import spec_surface
from pcsim.figures.tornado import tornado
from pcsim.plots import plain, row_accuracies
from pcsim.report.drawing import Drawing
from pcsim.report.view import Array, View
from pcsim.rows import Rows

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Banner:
    """The answer in one look: the outcome, the sentence, and what it rests on."""

    outcome: str
    sentence: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Strip:
    """One row: its numbers, and one point per training on a common scale from 0 to 1."""

    name: str
    group: str
    """What rows are shown or hidden by."""
    points: Array
    tips: tuple[str, ...]
    """What each point says when it is touched."""
    cells: tuple[str, ...]
    marked: bool = False


@dataclass(frozen=True, eq=False)
class Strips:
    """A table whose rows have points on a common scale, with lines across all rows."""

    title: str
    columns: tuple[str, ...]
    strips: tuple[Strip, ...]
    lines: Mapping[str, tuple[float, str]]
    """Where lines are, by class of the page, and what they are."""
    caption: str


Part = Rows | Strips | Drawing
LISTED = 12
"""Numbers of a chip that are shown unfolded: the rows shall stay on the first screens."""
FURTHER = {"margins": "Margins", "specs": "Specifications", "remedies": "Remedies"}
"""What commands add to a check: NAME_sentence is its answer, NAME_data its numbers."""


def banner(view: View) -> Banner | None:
    """Return the answer of a stored check."""
    if view.kind != "check":
        return None
    answer: Numbers = json.loads(str(view.result.attrs["answer"]))
    good, chips = answer["good"], answer["chips"]
    confidence = 100 * answer["criterion"]["confidence"]
    loss = answer["loss"]
    doubt = (
        f"{good['count']} of {chips} chips are good: {100 * good['low']:.0f}–"
        f"{100 * good['high']:.0f} % of all such chips, at {confidence:g} % confidence; median "
        f"loss {100 * loss['median']:.1f} ± {100 * loss['error']:.1f} points over "
        f"{answer['seeds']} seeds"
    )
    facts = [("Criterion", answer["criterion_words"]), ("Uncertainty", doubt)]
    facts.append(("Run", f"{answer['data']}, {answer['stream']}"))
    if answer["chip"]:
        facts.append(("Chip", "; ".join(answer["chip"])))
    if answer["idealisations"]:
        facts.append(("Idealised", "; ".join(answer["idealisations"])))
    for name, words in FURTHER.items():
        if sentence := view.result.attrs.get(f"{name}_sentence"):
            facts.append((words, str(sentence)))
    # The reference of an outcome is what it was compared with; below, it has a row of its own.
    reference = answer["reference"]
    floor = f"the floor (what needs no learning) is {100 * answer['floor']:.1f} %"
    facts.append(
        ("Compared with", f"{reference['row']}: {100 * reference['accuracy']:.1f} %; {floor}")
    )
    return Banner(answer["outcome"], answer["sentence"], tuple(facts))


def row_values(view: View, found: Numbers) -> dict[str, Array]:
    """Return the test accuracies (seed, chip) of every row of a check."""
    known = {
        str(variable.attrs.get("long_name", "")): variable.values
        for name, variable in view.result.variables.items()
        if name.startswith("twin.")
    }
    values = {}
    for row in found["rows"]:
        own = known.get(f"test accuracy, {row}", view.result["accuracy"])
        values[row] = np.nan_to_num(np.asarray(own, dtype=float)).reshape(len(own), -1)
    return values


def _rows(view: View, found: Numbers) -> list[Part]:
    values = row_values(view, found)
    reference = values[found["reference"]["row"]].mean(1)[:, None]
    limit = float(reference.mean()) - found["criterion"]["tolerance"]
    strips = []
    for row, accuracy in values.items():
        about = found["rows"][row]
        low, middle, high = 100 * np.quantile(accuracy, (0.05, 0.5, 0.95))
        loss = 100 * float(np.median((reference - accuracy).mean(0)))
        without = f" (without {', '.join(about['left_out'])})" if about["left_out"] else ""
        rate = f"{about['rate']:.3g}" if about["rate"] is not None else "given"
        seeds, chips = accuracy.shape
        tips = tuple(
            f"{row}: {100 * accuracy[seed, chip]:.1f} %, seed {seed}"
            + (f", chip {chip}" if chips > 1 else "")
            for seed in range(seeds)
            for chip in range(chips)
        )
        cells = (f"{low:.1f}", f"{middle:.1f}", f"{high:.1f}", f"{loss:+.1f}")
        strips.append(
            Strip(
                row + without,
                row.partition(",")[0],
                accuracy.reshape(-1),
                tips,
                (*cells, f"{seeds} × {chips}", rate),
                marked=row == found["reference"]["row"],
            )
        )
    lines = {
        "limit": (limit, f"limit {100 * limit:.1f} %: reference minus tolerance"),
        "floor": (found["floor"], f"floor {100 * found['floor']:.1f} %"),
    }
    columns = ("5 %", "median", "95 %", "loss", "seeds × chips", "rate")
    caption = (
        "Test accuracy in %, one point per training. The green line is the limit (the reference, "
        "marked ←, minus the tolerance), the dotted one the floor. Loss: points below the "
        "reference with the same seed, median over chips. Rate: learning rate per sample."
    )
    return [Strips("All rows", columns, tuple(strips), lines, caption)]


def _chip(view: View, found: Numbers) -> list[Part]:
    columns = ("piece", "number", "value", "meaning")
    rows, last = [], ""
    for piece, *cells in found["chip_numbers"]:
        rows.append(("" if piece == last else piece, *cells))  # a piece is named once
        last = piece
    folded = len(rows) > LISTED
    return [Rows("The chip", columns, tuple(rows), words=True, folded=folded)] if rows else []


def _stored_tables(view: View, found: Any) -> list[Part]:
    """Show tables that a command stored as they are (`pcsim.rows.Rows.to_json`)."""
    return [Rows.from_json(one) for one in (found if isinstance(found, list) else [found])]


def _tornado(view: View, found: Any) -> list[Part]:
    caption = (
        "Left: how test accuracy changes where a number is doubled or halved (bits: one more or "
        "less). Right: how far it goes until the verdict changes, with the interval."
    )
    name = str(json.loads(str(view.result.attrs["answer"]))["hardware"])
    return [Drawing("margins", "Sensitivity and margins", caption, tornado(found, name))]


def _remedy_bars(view: View, found: Any) -> list[Part]:
    caption = "What each remedy brings back, the best on top, with its interval."
    name = str(json.loads(str(view.result.attrs["answer"]))["hardware"])
    return [Drawing("remedies", "Remedies", caption, remedy_bars(found, name))]


def _spec_surface(view: View, found: Any) -> list[Part]:
    caption = "The loss that the yield of all chips stay within; the verdict changes at the line."
    name = str(json.loads(str(view.result.attrs["answer"]))["hardware"])
    return [Drawing("specs", "Where it trains", caption, spec_surface(found, name))]


PARTS: tuple[tuple[str, Callable[[View, Any], list[Part]]], ...] = (
    ("answer", _chip),
    ("answer", _rows),
    ("margins", _stored_tables),
    ("margins_data", _tornado),
    ("bottleneck", _stored_tables),
    ("specs", _stored_tables),
    ("specs_data", _spec_surface),
    ("remedies", _stored_tables),
    ("remedies_data", _remedy_bars),
    ("cost", _stored_tables),
)
"""Attributes of a result that hold an answer, and who shows them."""


def opening(view: View) -> list[Part]:
    """Return all answers of a store, in the order of the page."""
    attrs = view.result.attrs
    if view.kind != "check":
        return []
    return [
        part
        for name, show in PARTS
        if name in attrs
        for part in show(view, json.loads(str(attrs[name])))
    ]


def row_drawing(view: View) -> list[Drawing]:
    """Draw the accuracies of all rows for a paper, with the outcome as title."""
    if view.kind != "check":
        return []
    answer: Numbers = json.loads(str(view.result.attrs["answer"]))
    values = row_values(view, answer)
    limit = answer["reference"]["accuracy"] - answer["criterion"]["tolerance"]
    figure = Figure(figsize=(6.5, 1.2 + 0.4 * len(values)), layout="constrained")
    row_accuracies(figure.subplots(), values, limit, answer["floor"])
    figure.suptitle(plain(f"{answer['hardware']}: {answer['outcome']}"), fontsize="medium")
    caption = "Test accuracy of every training; boxes are quartiles. " + answer["stream"] + "."
    return [Drawing("rows", "Accuracy of all rows", caption, figure)]
