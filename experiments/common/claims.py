"""Claims of a paper beside what was measured: holds, does not hold, or not decided at this scale.

Every study of the paper's experiments ends in a list of claims. They are printed, and stored with
the result, so that a report can quote them without measuring again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from rich.table import Table

from pcsim.store import Result, Variable


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided at this scale"


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, what was found, and the numbers that say so."""

    text: str
    verdict: Verdict
    evidence: str


def judged(true: bool) -> Verdict:
    """Return the verdict of a measurement that can decide."""
    return Verdict.HOLDS if true else Verdict.FAILS


def variables(claims: Sequence[Claim]) -> dict[str, Variable]:
    """Return the claims as variables of a result, on the axis `claim`."""
    columns = {
        "claim_text": [claim.text for claim in claims],
        "claim_verdict": [claim.verdict.value for claim in claims],
        "claim_evidence": [claim.evidence for claim in claims],
    }
    return {name: Variable(("claim",), np.array(values)) for name, values in columns.items()}


def stored(result: Result) -> list[Claim]:
    """Return the claims of a stored result."""
    columns = (result[f"claim_{part}"] for part in ("text", "verdict", "evidence"))
    return [
        Claim(str(text), Verdict(verdict), str(evidence))
        for text, verdict, evidence in zip(*columns, strict=True)
    ]


def table(claims: Sequence[Claim], title: str = "the paper's claims") -> Table:
    """Return the claims for the terminal."""
    made = Table(title=title, show_lines=True)
    made.add_column("claim", ratio=2)
    made.add_column("here")
    made.add_column("evidence", ratio=3)
    for claim in claims:
        made.add_row(claim.text, claim.verdict.value, claim.evidence)
    return made
