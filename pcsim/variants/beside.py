"""What is found beside a check, in the check's own result: sentence, tables, numbers, losses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pcsim.rows import Rows
from pcsim.store import Attr, Result, Variable
from pcsim.variants.limit import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pcsim.check import Check


class Beside(ABC):
    """An answer that is given beside that of a check, from variants of its chip."""

    name: ClassVar[str]
    check: Check

    @abstractmethod
    def sentence(self) -> str:
        """Return the answer in a sentence."""

    @abstractmethod
    def tables(self) -> list[Rows]:
        """Return its tables."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """Return its numbers as JSON has them."""

    @abstractmethod
    def plot(self) -> Figure:
        """Draw it."""

    @abstractmethod
    def beside(self, result: Result) -> Result:
        """Return a result of the check with the answer added."""

    def result(self) -> Result:
        """Return the result of the check with the answer beside it."""
        return self.beside(self.check.result())

    def __repr__(self) -> str:
        """Return the sentence; `tables()`, `plot()` and `to_pandas()` say more."""
        return f"<{type(self).__name__}: {self.sentence()}>"

    def _repr_html_(self) -> str:
        tables = "\n".join(table.html() for table in self.tables())
        return f"<p><strong>{escape(self.sentence())}</strong></p>\n{tables}"


def with_variants(
    result: Result,
    name: str,
    sentence: str,
    tables: dict[str, list[Rows]],
    data: dict[str, Any],
    losses: Mapping[str, tuple[Sequence[float], np.ndarray]],
) -> Result:
    """Return the result of a check with another answer: sentence, tables, numbers and losses."""
    attrs: dict[str, Attr] = dict(result.attrs) | {
        f"{name}_sentence": sentence,
        f"{name}_data": json.dumps(data),
    }
    for key, rows in tables.items():
        attrs[key] = json.dumps([json.loads(one.to_json()) for one in rows])
    variables, coords = dict(result.variables), dict(result.coords)
    for key, (values, lost) in losses.items():
        axis = f"{name}.{key}"
        coords[axis] = np.asarray(values)
        about: dict[str, Attr] = {"long_name": "accuracy lost to the reference", "units": "1"}
        variables[f"{axis}.loss"] = Variable((axis, "seed", "variant_chip"), lost, about)
    return Result(variables, coords, attrs, dict(result.coord_attrs))


def plain_interval(one: Estimate) -> dict[str, float | None]:
    """Return an interval as JSON has it: null where there is no end."""
    ends = {"value": one.value, "low": one.low, "high": one.high}
    return {name: end if isfinite(end) else None for name, end in ends.items()}
