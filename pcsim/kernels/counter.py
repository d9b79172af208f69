"""Counting matrix multiplications while they happen.

MM: one product of a weight matrix with a batch of vectors. SMM: a group of MMs that have all their
inputs at the same moment, so that parallel hardware does them at once. Outer products (the local
weight updates) and the initial feed-forward sweep are not counted, as in the iPC paper; forward
(prediction) and backward (feedback) products are kept apart. Convolutions are such products too;
what lies between two value nodes (transparent nodes) counts as done in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["forward", "backward"]


@dataclass
class Counter:
    """What has been executed so far, and a log of weight updates.

    `updates` holds, for every update, the backward SMMs executed before it and the nodes whose
    weights received a non-zero gradient.
    """

    mm: dict[Direction, int] = field(default_factory=lambda: {"forward": 0, "backward": 0})
    smm: dict[Direction, int] = field(default_factory=lambda: {"forward": 0, "backward": 0})
    updates: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    paused: bool = False
    _open: Direction | None = None
    _inside: int = 0

    @contextmanager
    def simultaneous(self, direction: Direction) -> Iterator[None]:
        """All products inside count as one SMM (none, if none happened)."""
        self._open, self._inside = direction, 0
        yield
        if self._inside:
            self.smm[direction] += 1
        self._open = None

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Products inside are not counted: initialisation and evaluation."""
        self.paused = True
        yield
        self.paused = False

    def product(self, direction: Direction) -> None:
        """One product happened; outside of `simultaneous` it is an SMM of its own."""
        if self.paused:
            return
        self.mm[direction] += 1
        if self._open == direction:
            self._inside += 1
        else:
            self.smm[direction] += 1

    def updated(self, nodes: Iterable[int], before: int = 0) -> None:
        """A weight update took place at these nodes, `before` backward SMMs ago."""
        self.updates.append((self.smm["backward"] - before, tuple(nodes)))

    @property
    def mms(self) -> int:
        """All matrix multiplications."""
        return sum(self.mm.values())

    @property
    def smms(self) -> int:
        """All simultaneous matrix multiplications."""
        return sum(self.smm.values())
