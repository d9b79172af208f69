"""Several runs on the same axes: the comparison of `pcsim compare`, made from their stores."""

from __future__ import annotations

from collections.abc import Sequence

from pcsim.compare.contrast import contrast
from pcsim.compare.figure import comparison_figure
from pcsim.compare.likeness import differences
from pcsim.compare.stored import from_result
from pcsim.compare.tables import comparison_tables
from pcsim.errors import PcsimError
from pcsim.report.drawing import Drawing
from pcsim.report.page import Section
from pcsim.report.view import View

SINGLE = ("training", "chips", "automatic")
CAPTION = (
    "Left and middle: mean over the seeds, and their range. "
    "Right: difference in test accuracy to the first run, seed by seed."
)


def comparison_drawing(view: View) -> list[Drawing]:
    """Draw a stored comparison."""
    if view.kind != "comparison":
        return []
    return [
        Drawing("comparison", "Energy, accuracy and gap", CAPTION, comparison_figure(view.result))
    ]


def side_by_side(views: Sequence[View]) -> Section | None:
    """Compare the single runs among the stores; None if there are fewer than two of them."""
    runs, left_out = [], []
    for view in views:
        if view.kind in SINGLE:
            try:
                runs.append(from_result(view.name, view.source, view.result, {}))
            except PcsimError as error:
                left_out.append(f"{view.name} is left out ({error}).")
    if len(runs) < 2:
        return None
    unlike = [text for other in runs[1:] for text in differences(runs[0], other)]
    result = contrast(runs, unpaired=bool(unlike))
    words = f"Against {runs[0].name}, the first run."
    if unlike:
        words += " These runs are not like with like, so their means are compared."
    drawing = Drawing(
        "side_by_side", "Energy, accuracy and gap", CAPTION, comparison_figure(result)
    )
    tables = comparison_tables(result)
    words = " ".join([words, *left_out])
    return Section("Side by side", words, drawings=[drawing], tables=tables)
