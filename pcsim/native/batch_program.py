"""From a plan to C: a whole batch of a discrete rule, chip by chip.

    for every chip of a range:
        the feed-forward pass, where a batch begins with one
        for every step:  predictions → errors → feedback → changes of weights → states
        what was kept back of a clamped input

The texts are those of the circuit `algebraic` with γ = dt/τ_x and α = dt/τ_w. Which nodes take part
in a step is `pcsim.backends.discrete.Step`, given to the code as bits. Backpropagation is one such
step whose states are predictions and whose hidden errors are the feedback itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import torch

from pcsim.circuits import order
from pcsim.circuits.blocks import Block
from pcsim.circuits.error import ALGEBRAIC, error_at_drive, error_seen, error_unread, prediction_sum
from pcsim.circuits.plan import Plan
from pcsim.circuits.section import Circuit
from pcsim.circuits.shared import pulled
from pcsim.circuits.text import Equation, equations
from pcsim.native.batch_sums import BatchSums
from pcsim.native.formula import ZERO, Node, apply, symbol
from pcsim.native.program import EARLY
from pcsim.native.symbols import SHARED
from pcsim.native.writer import Array, Program, Value, own_file, prelude

HEADER = 2
"""Numbers of a schedule before those of its steps: the step that is shown, and steps waited."""
BITS = ("fresh", "active", "moving", "learning")
ERRORS = order.READ_ERR + 0.5
"""Errors as weights and feedback see them are computed behind what hardware makes of them."""


@dataclass(frozen=True)
class Batch:
    """What a batch is, besides the plan."""

    samples: int
    dtype: torch.dtype
    dt: float
    circuit: Circuit
    followed: frozenset[int] = frozenset()
    backprop: bool = False


def compose(
    plan: Plan, batch: Batch, fixed: Mapping[str, Value], seen: Mapping[str, str]
) -> Program:
    """Write the code of a plan for batches of some size.

    Main arguments:
        fixed: what is set once per unit or weight, as in `pcsim.native.program`.
        seen: what is shown of one step: name@part → expression.
    """
    if batch.backprop:
        plan = _with_errors_sent_back(plan, batch.circuit)
    return _Composer(plan, batch, fixed, seen).compose()


def _with_errors_sent_back(plan: Plan, circuit: Circuit) -> Plan:
    """Return the plan in which the error of a hidden layer is what comes from below."""
    groups = []
    for k, group in enumerate(plan.groups):
        name, text = error_unread(circuit, group.layer), group.text
        if k and group.layer.predicted_by == "above":
            sent = f"{name} = {pulled(group.layer)} : 1"
            lines = [sent if line.startswith(f"{name} = ") else line for line in text.splitlines()]
            text = "".join(f"{line}\n" for line in lines)
        groups.append(replace(group, text=text))
    return replace(plan, groups=tuple(groups))


class _Composer(BatchSums):
    def __init__(
        self, plan: Plan, batch: Batch, fixed: Mapping[str, Value], seen: Mapping[str, str]
    ) -> None:
        self.batch, self.circuit = batch, batch.circuit
        self.followed, self.last = batch.followed, []
        self._placed: list[str] = []
        super().__init__(plan, batch.samples, batch.dtype, batch.dt, "0", fixed, seen, {})

    def _pointer(self, array: Array, c: str, size: int, of: str = "REAL") -> None:
        if c not in self._taken:
            self._taken.add(c)
            super()._pointer(array, c, size, of)

    def compose(self) -> Program:
        """Write the program."""
        before = {name: copy(var) for name, var in self.vars.items()}
        self._forward()
        if self.batch.backprop:
            forward = self._cut()
            self._backward()
            backward = self._cut()
            self._change()
            self.out.source = self._source(forward, backward, self._cut())
            return self.out
        if not self.plan.blocks:  # on hardware, every step computes all errors
            for k in range(len(self.plan.groups)):
                self._within(k, ERRORS)
            for k in range(len(self.plan.groups)):
                self._errors(k)
        forward = self._cut()
        # The loop computes everything anew, into the same memory.
        self.vars |= before
        self._loop()
        self.out.source = self._source(forward, [], self._cut())
        return self.out

    def _cut(self) -> list[str]:
        """Return what was written, and begin anew."""
        self.flush()
        lines, self.body = self.body, []
        return lines

    # ---- the feed-forward pass

    def _forward(self) -> None:
        groups = self.plan.groups
        for k in reversed(range(len(groups) - 1)):
            self._of_site(k + 1, "membrane")
            self._within(k + 1, order.RATES)
            self._of_site(k + 1, "rate")
            self._arrays(k, "weight")
            for line in self._sums(k, "_post"):
                self._sum(k, line)
            for block in groups[k].blocks:
                if block.place.site == "product":
                    self._of_units(k, block)
            self.flush()
            state = self.states.get(f"x@g{k}")
            rest = ALGEBRAIC.rest(self.circuit, groups[k].layer).get("x")
            if state is not None and rest and groups[k].layer.clamped == "never":
                node = self.read(f"g{k}", rest)
                self.need(k, node)
                self.loop(k).stores.append((self.vars[f"x@g{k}"].c, node, {}))
                self.flush()

    def _within(self, k: int, when: float) -> None:
        """Write the sums over layer k that belong to its rates, its errors or its feedback."""
        for inner in self.plan.within:
            for line in equations(inner.text) if inner.layer == k else ():
                if _stage(line) == when:
                    self._sum_within(k, line)

    def _arrays(self, k: int, site: str) -> None:
        for block in self.plan.connections[k].blocks:
            if block.place.site == site and f"{block.place.result}@m{k}" in self.vars:
                self._of_synapses(k, block)
        self.flush()

    def _sums(self, k: int, onto: str) -> list[Equation]:
        lines = [each for each in self.texts[f"m{k}"] if each.role == "sum"]
        return [each for each in lines if each.name.endswith(onto)]

    # ---- steps of PC, iPC and Z-IL

    def _loop(self) -> None:
        jobs: list[tuple[float, int, str, Callable[[], None]]] = []

        def job(when: float, guard: str, what: Callable[[], None]) -> None:
            jobs.append((when, len(jobs), guard, what))

        for k, group in enumerate(self.plan.groups):
            for block in group.blocks:
                when = EARLY if block.place.when == "before_start" else block.place.order
                job(when, _where(k, block), partial(self._of_units, k, block))
            job(ERRORS, _bit("active", k), partial(self._errors, k))
            job(order.WEIGHTS, _bit("learning", k), partial(self._learn_units, k))
            job(order.NEURONS, _bit("moving", k), partial(self._move_units, k))
        for k in range(len(self.plan.connections)):
            for line in self._sums(k, "_post"):
                job(order.of_sum(line.name), _bit("fresh", k), partial(self._sum, k, line))
            back = f"{_bit('active', k)} && {_bit('moving', k + 1)}"
            for line in self._sums(k, "_pre"):
                job(order.of_sum(line.name), back, partial(self._sum, k, line))
            # The feed-forward pass belongs to the first step: arrays have been read.
            job(order.READ, "n || !forward", partial(self._arrays, k, "weight"))
            job(order.CHANGE, _bit("learning", k), partial(self._arrays, k, "write"))
            job(order.WEIGHTS, _bit("learning", k), partial(self._learn_weights, k))
        for inner in self.plan.within:
            k = inner.layer
            back = f"{_bit('active', k - 1)} && {_bit('moving', k)}" if k else "0"
            guards = {ERRORS: _bit("active", k), order.PULL: back}
            guards[order.RATES] = _bit("fresh", k - 1) if k else "0"
            for line in equations(inner.text):
                summed = partial(self._sum_within, k, line)
                job(order.of_sum(line.name), guards[_stage(line)], summed)
        job(order.RECORD, "n == shown", self._show)
        for _, _, guard, what in sorted(jobs, key=lambda each: each[:2]):
            self._guarded(guard, what)

    def _guarded(self, guard: str, what: Callable[[], None]) -> None:
        """Write a job that is done only where a guard lets it; else what it knew stays."""
        start = len(self.body)
        what()
        self.flush()
        if guard and len(self.body) > start:
            self.body[start:] = [f"if ({guard}) {{", *self.body[start:], "}"]

    def _sum(self, k: int, line: Equation) -> None:
        layer = self.plan.groups[k].layer
        if k not in self.followed or line.name != f"{prediction_sum(layer)}_post":
            super()._sum(k, line)
            return
        target, start = f"sum_g{k}_{prediction_sum(layer)}", len(self.body)
        super()._sum(k, line)
        whole, self.body = self.body[start:], self.body[:start]
        self.body += [f"if (!has_m{k}) {{", *whole, f"has_m{k} = 1;", "} else {"]
        err = self.vars[f"{error_at_drive(self.circuit, layer)}@g{k}"]
        kept = copy(err)
        # The error is still that of the step before.
        err.index, err.c, err.ready = (
            "sample",
            f"unit_{error_at_drive(self.circuit, layer)}_g{k}",
            True,
        )
        self._scratch(err.c, self.S * self.units[k])
        self.follow(k, target)
        err.__dict__.update(kept.__dict__)
        self.body.append("}")

    def _errors(self, k: int) -> None:
        """Compute the error as weights and feedback see it."""
        layer = self.plan.groups[k].layer
        if layer.predicted_by == "nothing" or layer.clamped == "always":
            return
        wanted = {error_seen(self.circuit, layer), error_at_drive(self.circuit, layer)}
        self.need(k, *(symbol(f"{name}@g{k}") for name in sorted(wanted)))

    def _learn_weights(self, k: int) -> None:
        written = {block.place.result for block in self.plan.connections[k].blocks}
        for line in self.texts[f"m{k}"]:
            if line.role == "state" and f"{line.name}_change" not in written:
                self._learn(k, line)

    def _changes(self, k: int, shared: bool) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for line in self.texts[f"g{k}"]:
            if line.role == "state" and (line.name in SHARED) == shared:
                rate = apply("mul", symbol("dt"), self._rate(k, line))
                if rate is not ZERO:
                    found[line.name] = rate
        return found

    def _learn_units(self, k: int) -> None:
        """Move biases and learned variances, all from one and the same state."""
        changes = self._changes(k, shared=True)
        self.need(k, *changes.values())
        if self.S > 1:
            late = [line for n, rate in changes.items() for line in self._shared(k, n, rate)]
            self.body += late
            return
        self._store(k, changes)

    def _move_units(self, k: int) -> None:
        changes = self._changes(k, shared=False)
        self.need(k, *changes.values())
        self._store(k, changes)

    def _store(self, k: int, changes: Mapping[str, Node]) -> None:  # type: ignore[override]
        floor = self.plan.groups[k].after.partition(" = ")
        for name, rate in changes.items():
            new = apply("add", symbol(f"{name}@g{k}"), rate)
            if floor[0] == name:
                new = self.read(f"g{k}", floor[2], {name: new})
            self.loop(k).stores.append((self.vars[f"{name}@g{k}"].c, new, {}))

    def _show(self) -> None:
        """Let observers see one step."""
        for loop in self._shown():
            self.body += loop

    # ---- backpropagation

    def _backward(self) -> None:
        """Send errors from the output to the layer below the input."""
        top = len(self.plan.groups) - 1
        for k in range(top):
            self._of_site(k, "feedback")
            self._within(k, order.PULL)
            self._within(k, ERRORS)
            self._of_site(k, "error")
            self._errors(k)
            self.flush()
            for line in self._sums(k, "_pre"):
                self._sum(k, line)
        self._show()

    def _of_site(self, k: int, site: str) -> None:
        for block in self.plan.groups[k].blocks:
            if block.place.site == site:
                self._of_units(k, block)

    def _change(self) -> None:
        for k in range(len(self.plan.connections)):
            self._arrays(k, "write")
            self._learn_weights(k)
            self._learn_units(k)
            self.flush()

    # ---- places

    def _place(self, block: Block, used: set[str]) -> dict[str, str]:
        """Write how long it is since a place was last used; say what that is called."""
        key = block.place.key
        if "$dt" in used or any(not name.startswith("since_") for name in block.memory.values()):
            if key not in self._placed:
                self._placed.append(key)
                self.head += [
                    f"int64_t since_{key} = passed[{len(self.out.places)}];",
                    f"REAL dt_{key} = R(0.0);",
                ]
                self.out.places.append(key)
            dt = self._slot(symbol("dt"))
            self.body += [
                f"const BITS moves_{key} = -(BITS)(since_{key} != 0);",
                f"if (since_{key}) dt_{key} = (REAL)since_{key} * {dt};",
                f"since_{key} = 0;",
            ]
        return {"$dt": f"dt_{key}", "$moves": f"moves_{key}"}

    # ---- all of it

    def _source(self, forward: Sequence[str], backward: Sequence[str], loop: Sequence[str]) -> str:
        single = "#define SINGLE 1\n" if self.dtype == torch.float32 else ""
        dt = self._slot(symbol("dt"))
        now = "const REAL now = (REAL)((double)step * dt_exact);\n(void)now, (void)step;"
        known = [
            f"int has_m{k} = 0, known_m{k} = 0, moved_m{k} = 0, kept_m{k} = 0;"
            for k in sorted(self.followed)
        ]
        known += [f"(void)known_m{k};" for k in sorted(self.followed)]
        later = [f"since_{key} += {{}};" for key in self._placed]
        if self.batch.backprop:
            steps = [
                f"{{\nconst uint64_t step = first_step;\n{now}",
                *forward,
                *backward,
                *(line.format("waited") for line in later),
                "}",
                f"{{\nconst uint64_t step = first_step + (uint64_t)waited;\n{now}",
                *loop,
                "}",
            ]
        else:
            steps = [
                f"if (forward) {{\nconst uint64_t step = first_step;\n{now}",
                *forward,
                "}",
                "for (int64_t n = 0; n < steps; n++) {",
                f"const uint64_t step = first_step + (uint64_t)n;\n{now}",
                *(
                    f"const uint64_t {name} = plan[{HEADER} + {len(BITS)} * n + {at}];"
                    for at, name in enumerate(BITS)
                ),
                f"(void){', (void)'.join(BITS)};",
                *loop,
                *(line.format("1") for line in later),
                "}",
                *self.last,
            ]
        lines = [
            "void batch(void **pointers, const int64_t *strides, const double *numbers,",
            "           const int64_t *passed, const uint64_t *plan, const uint8_t *stopped,",
            "           REAL *scratch, int64_t first, int64_t last, int64_t steps,",
            "           uint64_t first_step, int forward)",
            "{",
            f"const double dt_exact = numbers[{dt[1:]}];",
            "const int64_t shown = (int64_t)plan[0], waited = (int64_t)plan[1];",
            "(void)passed, (void)shown, (void)waited, (void)forward, (void)steps;",
            "for (int64_t chip = first; chip < last; chip++) {",
            "if (stopped[chip]) continue;",
            *self.head,
            *known,
            *steps,
            "}\n}",
        ]
        return f"{single}{prelude()}{own_file('product.h')}" + "\n".join(lines) + "\n"


def _stage(line: Equation) -> float:
    """Return what a sum over a layer belongs to: its rates, its feedback, or its errors."""
    when = order.of_sum(line.name)
    return when if when in (order.RATES, order.PULL) else ERRORS


def _bit(mask: str, k: int) -> str:
    return f"({mask} >> {k} & 1)"


def _where(k: int, block: Block) -> str:
    """Return when hardware acts at a place of layer k: where its signal is computed."""
    return {
        "membrane": _bit("fresh", k - 1),
        "rate": _bit("fresh", k - 1),
        "product": _bit("fresh", k),
        "error": _bit("active", k),
        "feedback": f"{_bit('active', k - 1)} && {_bit('moving', k)}",
        "velocity": _bit("moving", k),
    }[block.place.site]


def used(site: str, layer: int, steps: Sequence[Mapping[str, int]]) -> int | None:
    """Return the last of some steps (masks by name) in which a place was used, None for none."""
    wanted = {
        "weight": {},
        "membrane": {"fresh": layer - 1},
        "rate": {"fresh": layer - 1},
        "product": {"fresh": layer},
        "error": {"active": layer},
        "feedback": {"active": layer, "moving": layer + 1},
        "velocity": {"moving": layer},
        "write": {"learning": layer},
    }[site]
    for n in reversed(range(len(steps))):
        if all(steps[n][mask] >> k & 1 for mask, k in wanted.items()):
            return n
    return None
