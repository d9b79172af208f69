"""From a plan to C: one time step after the other of one chip, all of it in the cache.

    for every chip of a range:  for every time step:
        potentials and rates → arrays as read → predictions → errors → feedback
        → changes as hardware makes them → weights → states → events

That is the order of `pcsim.circuits.order`, with the texts of the plan. Sizes are constants of the
code; numbers and arrays are given to it by pointers, so that one library serves every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch

from pcsim.circuits import order
from pcsim.circuits.plan import Plan
from pcsim.circuits.text import equations
from pcsim.native.events import Events
from pcsim.native.formula import symbol
from pcsim.native.writer import Program, Value, prelude

EARLY = -100
"""Before all other orders: what hardware shows of potentials."""


def compose(
    plan: Plan,
    *,
    samples: int,
    dtype: torch.dtype,
    dt: float,
    free: str,
    fixed: Mapping[str, Value],
    seen: Mapping[str, str],
    delays: Mapping[str, int],
) -> Program:
    """Write the code of a plan.

    Main arguments:
        free: how the datum is held: "0" clamped, "1" let go, "mask" in part.
        fixed: what is set once per unit or weight, `tau_x@g1`: a number, or what fits
            (chip, 1, unit) or (chip, post, pre).
        seen: what observers want of the last step: name@part → expression.
        delays: time steps of the circuit's delays, by field.
    """
    return _Composer(plan, samples, dtype, dt, free, fixed, seen, delays).compose()


class _Composer(Events):
    """The whole step."""

    def compose(self) -> Program:
        """Write the program."""
        jobs: list[tuple[int, int, Callable[[], None]]] = []

        def job(when: int, what: Callable[[], None]) -> None:
            jobs.append((when, len(jobs), what))

        for k, group in enumerate(self.plan.groups):
            for block in group.blocks:
                when = EARLY if block.place.when == "before_start" else block.place.order
                job(when, partial(self._of_units, k, block))
        for k, link in enumerate(self.plan.connections):
            for line in self.texts[f"m{k}"]:
                if line.role == "sum":
                    job(order.of_sum(line.name), partial(self._sum, k, line))
            written = {block.place.result for block in link.blocks}
            for block in link.blocks:
                if block.place.site == "weight" and f"{block.place.result}@m{k}" not in self.vars:
                    continue  # an array that nobody hears is not read
                job(block.place.order, partial(self._of_synapses, k, block))
            for line in self.texts[f"m{k}"]:
                if line.role == "state" and f"{line.name}_change" not in written:
                    job(order.WEIGHTS, partial(self._learn, k, line))
        for inner in self.plan.within:
            if inner.delay:
                store, deliver = order.OF_RING[inner.delay]
                job(store, partial(self._store, inner))
                job(deliver, partial(self._deliver, inner))
            else:
                for line in equations(inner.text):
                    job(order.of_sum(line.name), partial(self._sum_within, inner.layer, line))
        job(order.RECORD, self._show)
        job(order.NEURONS, self._move)
        job(order.AFTER, self._communicate)
        for _, _, what in sorted(jobs, key=lambda each: each[:2]):
            what()
        self.flush()
        self.out.source = self._source()
        return self.out

    def _source(self) -> str:
        single = "#define SINGLE 1\n" if self.dtype == torch.float32 else ""
        dt = self._slot(symbol("dt"))
        lines = [
            "void advance(void **pointers, const int64_t *strides, const double *numbers,",
            "             const int64_t *passed, const int64_t *positions, const uint8_t *stopped,",
            "             REAL *scratch, int64_t first, int64_t last, int64_t steps,",
            "             uint64_t first_step, uint64_t first_soma, int64_t chips)",
            "{",
            f"const double dt_exact = numbers[{dt[1:]}];",
            "for (int64_t chip = first; chip < last; chip++) {",
            "if (stopped[chip]) continue;",
            *self.head,
            "for (int64_t n = 0; n < steps; n++) {",
            "const uint64_t step = first_step + (uint64_t)n, soma_step = first_soma + (uint64_t)n;",
            "const REAL now = (REAL)((double)step * dt_exact);",
            "(void)soma_step, (void)now, (void)passed, (void)positions, (void)chips;",
            *self.body,
            "}\n}\n}",
        ]
        return f"{single}{prelude()}" + "\n".join(lines) + "\n"
