"""What the suite asks of a backend, and how what it shows is compared."""

from collections.abc import Callable, Set
from dataclasses import dataclass, field

import numpy as np
from case import Case

Trajectory = dict[str, np.ndarray]
"""By name, (step, …): x0, err1, inter1, apical1, w0, b0, w_fb0, … State, errors and weights of a
row belong to one instant: that from which a step is taken."""


@dataclass(frozen=True)
class Gap:
    """Features that a backend does not support together, and why."""

    features: frozenset[str]
    reason: str
    """A pattern in the backend's own refusal; or, where it knows no such setting and computes
    something else, the reason in words."""
    refused: bool = True

    @classmethod
    def of(cls, *features: str, reason: str, refused: bool = True) -> "Gap":
        return cls(frozenset(features), reason, refused)


@dataclass(frozen=True, eq=False)
class Adapter:
    name: str
    run: Callable[[Case], Trajectory]
    gaps: tuple[Gap, ...]
    not_shown: Callable[[Case], set[str]] = field(default=lambda case: set())
    """Names that the reference shows and this backend does not have."""

    def gaps_of(self, case: Case) -> list[Gap]:
        return [gap for gap in self.gaps if gap.features <= case.features]


def differences(
    reference: Trajectory, found: Trajectory, not_shown: Set[str] = frozenset()
) -> dict[str, float]:
    """Return the largest difference over all steps by name; both must show the same names."""
    assert set(found) <= set(reference), set(found) - set(reference)
    missing = set(reference) - set(found)
    assert missing <= not_shown, missing - not_shown
    largest = {}
    for name, rows in found.items():
        expected = reference[name]
        assert len(rows) == len(expected), name
        apart = np.abs(rows.reshape(len(rows), -1) - expected.reshape(len(rows), -1))
        largest[name] = float(apart.max())
    return largest
