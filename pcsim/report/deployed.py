"""A deployed network: accuracy over time, and what programming came to."""

from __future__ import annotations

import json

from pcsim.plots import deployment_figure
from pcsim.report.drawing import Drawing
from pcsim.report.view import View
from pcsim.rows import Rows


def deployment_drawing(view: View) -> list[Drawing]:
    """Draw accuracy over time since programming, with and without compensation."""
    if view.kind != "deploy":
        return []
    timed = len(view.result["wait"]) > 1
    caption = (
        "Test accuracy over the time since programming: median and 5–95 % over the chips, as the "
        "arrays are, and with one gain per array that makes up for drift; dotted: as trained."
        if timed
        else "Distribution of the test accuracy over the chips; dotted: as trained."
    )
    figure = deployment_figure(view.result)
    return [Drawing("deployment", "Accuracy of the deployed network", caption, figure)]


def deployment_tables(view: View) -> list[Rows]:
    """Return the tables that were stored with the result."""
    return [Rows.from_json(one) for one in json.loads(str(view.result.attrs["deployment_tables"]))]
