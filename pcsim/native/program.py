"""From a plan to C: one time step after the other of one chip, all of it in the cache.

    for every chip of a range:  for every time step:
        potentials and rates → arrays as read → predictions → errors → feedback
        → changes as hardware makes them → weights → states

That is the order of `pcsim.circuits.order`, with the texts of the plan. Sizes are constants of the
code; numbers and arrays are given to it by pointers, so that one library serves every value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files

import torch
from torch import Tensor

from pcsim.circuits import order
from pcsim.circuits.blocks import Block, Noise, Place
from pcsim.circuits.plan import Plan, Within
from pcsim.circuits.text import Equation, equations
from pcsim.errors import UnsupportedError
from pcsim.native.formula import (
    ONE,
    ZERO,
    Node,
    Term,
    apply,
    evaluate,
    names,
    number,
    parse,
    replaced,
    symbol,
    terms,
    walk,
)
from pcsim.native.quiet import Quiet, quiet

SHARED = ("b", "b_inter", "log_var")
"""States that all samples of a chip share."""
LINE = 1024
"""Elements of an array that are treated together, with the noise that they need."""
EARLY = -100
"""Before all other orders: what hardware shows of potentials."""
ONCE = ("write", "velocity", "error")
"""Sites that nobody asks twice in one time step; the others have shown a feed-forward pass."""
SCOPE = {"second": ONE, "t_before": ZERO}

Value = float | Tensor


@dataclass(frozen=True)
class Array:
    """An array that the code takes, by where it stands in the plan."""

    kind: str
    """state, clamp, fixed, drawn, memory, ring, seen, keys."""
    part: str
    """`g0` is layer 0, `m0` the synapses onto it."""
    name: str


@dataclass(eq=False)
class Var:
    """A symbol of the plan as the code knows it."""

    index: str = ""
    """sample, unit, one (of layers); element, row, column (of synapses); "" is no array."""
    c: str = ""
    value: float = 0.0
    node: Node | None = None
    """The expression of what is computed where it is needed."""
    ready: bool = True


@dataclass
class Program:
    """The source, and what has to be given to it."""

    source: str = ""
    arrays: list[Array] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """How many numbers of each chip the code finds there."""
    numbers: list[Node] = field(default_factory=list)
    """Expressions of constants, in the order in which the code takes their values."""
    constants: dict[str, float] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    """Places whose memory or time step depends on when they were used last."""
    rings: list[tuple[str, int]] = field(default_factory=list)
    """Delay lines: the field of the circuit, and the layer."""
    scratch: int = 0
    """Numbers of working memory per thread."""


@cache
def _prelude() -> str:
    folder = files("pcsim.native")
    return "".join(
        (folder / name).read_text(encoding="utf-8") for name in ("counter.c", "kernel.h")
    )


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


class _Composer:
    def __init__(
        self,
        plan: Plan,
        samples: int,
        dtype: torch.dtype,
        dt: float,
        free: str,
        fixed: Mapping[str, Value],
        seen: Mapping[str, str],
        delays: Mapping[str, int],
    ) -> None:
        self.plan, self.S, self.dtype, self.seen, self.delays = plan, samples, dtype, seen, delays
        self.out = Program(constants={"dt": dt})
        self.vars: dict[str, Var] = {"dt": Var(value=dt), "now": Var("step", "now")}
        self.head: list[str] = []
        self.body: list[str] = []
        """Lines before the loop over time, and in it."""
        self.free = free
        self.plain: dict[str, Node] = {}
        """Constants that are 0 or 1: what they make of an expression is another code."""
        self.open: dict[int, _Units] = {}
        self._slots: dict[Node, str] = {}
        self._count = 0
        self.units = [group.units for group in plan.groups]
        self.states: dict[str, Equation] = {}
        self.texts: dict[str, tuple[Equation, ...]] = {}
        for k, group in enumerate(plan.groups):
            self._declare(f"g{k}", group.text, group.constants, group.blocks, fixed)
        for k, link in enumerate(plan.connections):
            self._declare(f"m{k}", link.text, link.constants, link.blocks, fixed)

    # ---- symbols

    def _declare(
        self,
        part: str,
        text: str,
        constants: Mapping[str, float],
        blocks: Sequence[Block],
        fixed: Mapping[str, Value],
    ) -> None:
        lines = {line.name: line for line in equations(text)}
        self.texts[part] = tuple(lines.values())
        known: dict[str, Value] = dict(constants)
        known |= {n.removesuffix(f"@{part}"): v for n, v in fixed.items() if n.endswith(f"@{part}")}
        own: set[str] = set()
        for block in blocks:
            known |= block.constants
            own |= {*block.drawn, *block.variables}
            for name, drawn in block.drawn.items():
                if name in block.alike:
                    self._constant(f"{name}@{part}", float(drawn.flatten()[0]))
                else:
                    self.vars[f"{name}@{part}"] = self._array("drawn", part, name, drawn)
        for name, value in known.items():
            key = f"{name}@{part}"
            if isinstance(value, Tensor):
                self.vars[key] = self._array("fixed", part, name, value)
            else:
                self._constant(key, float(value))
        for name, line in lines.items():
            key = f"{name}@{part}"
            if key in self.vars or name in own or name == "t_before":
                continue
            if line.role == "value":
                self.vars[key] = Var(node=self.read(part, line.text), ready=False)
            elif line.role == "state":
                self.states[key] = line
                self.vars[key] = self._array("state", part, name, None)
            elif line.role == "given" and name == "free":
                if self.free == "mask":
                    self.vars[key] = self._array("fixed", part, name, None)
            elif line.role == "given" and name in ("x", "target"):
                self.vars[key] = self._array("clamp", part, name, None)
            elif line.role == "given" and name == "w_fb" and "constant" in line.flags:
                self.vars[key] = self._array("state", part, name, None)
            elif line.role == "given" and part[0] == "m" and "constant" in line.flags:
                if name in ("row", "column"):
                    self.vars[key] = Var(name, f"{name}_{part}")
                    self._positions(part, name)
                else:
                    self.vars[key] = self._array("state", part, name, None)
            elif line.role == "given":
                self.vars[key] = Var("sample" if part[0] == "g" else "element", "", ready=False)

    def _constant(self, key: str, value: float) -> None:
        self.vars[key] = Var(value=value)
        self.out.constants[key] = value
        if value in (0.0, 1.0):
            self.plain[key] = number(value)

    def _array(self, kind: str, part: str, name: str, value: Tensor | None) -> Var:
        """Let the code take an array of a chip."""
        c = f"{kind}_{part}_{name}"
        if value is None:
            if part[0] == "m":
                index = "element"
            else:
                index = "unit" if name in SHARED else "sample"
        elif part[0] == "g":
            index = "unit" if value.shape[-1] > 1 or self.units[int(part[1:])] == 1 else "one"
        else:
            post, pre = self._shape(part)
            both = (value.shape[-2] == post, value.shape[-1] == pre)
            index = {
                (True, True): "element",
                (True, False): "row",
                (False, True): "column",
                (False, False): "one",
            }[both]
        self._pointer(Array(kind, part, name), c, self._size(part, index))
        return Var(index, c)

    def _size(self, part: str, index: str) -> int:
        """Return how many numbers an array has."""
        if part[0] == "g":
            units = self.units[int(part[1:])]
            return {"sample": self.S * units, "unit": units, "one": 1}[index]
        post, pre = self._shape(part)
        return {"element": post * pre, "row": post, "column": pre, "one": 1}[index]

    def _pointer(self, array: Array, c: str, size: int, of: str = "REAL") -> None:
        """Let the code take an array with `size` numbers of each chip."""
        n = len(self.out.arrays)
        self.out.arrays.append(array)
        self.out.sizes.append(size)
        self.head.append(f"{of} *restrict const {c} = ({of} *)pointers[{n}] + chip * strides[{n}];")

    def _shape(self, part: str) -> tuple[int, int]:
        link = self.plan.connections[int(part[1:])]
        return self.units[link.post], self.units[link.pre]

    def _positions(self, part: str, name: str) -> None:
        post, pre = self._shape(part)
        count = post if name == "row" else pre
        self._scratch(f"{name}_{part}", count)
        c = f"{name}_{part}"
        self.head.append(f"for (int j = 0; j < {count}; j++) {c}[j] = (REAL)(j + 1) / {count};")

    def _scratch(self, c: str, count: int) -> None:
        self.head.append(f"REAL *restrict const {c} = scratch + {self.out.scratch};")
        self.out.scratch += -(-count // 16) * 16 + 16

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def read(self, part: str, text: str, local: Mapping[str, Node] | None = None) -> Node:
        """Read an expression of a layer or of synapses; symbols get the part they belong to."""
        node = parse(text, SCOPE | dict(local or {}))
        by = {}
        for each in walk(node):
            if each.kind == "symbol" and not each.name.startswith("$") and "@" not in each.name:
                by[each] = self._resolved(part, each.name)
        return replaced(node, by)

    def _resolved(self, part: str, name: str) -> Node:
        if name == "dt":
            return symbol("dt")
        if name in ("t", "now"):
            return symbol("now")
        k = int(part[1:])
        if part[0] == "m":
            link = self.plan.connections[k]
            for suffix, layer in (("_post", link.post), ("_pre", link.pre)):
                if name.endswith(suffix):
                    return self._resolved(f"g{layer}", name.removesuffix(suffix))
        if name in ("free", "nudged") and self.free != "mask":
            return ONE if (name == "free") == (self.free == "1") else ZERO
        key = f"{name}@{part}"
        return self.plain.get(key) or symbol(key)

    # ---- expressions

    def _fixed(self, name: str) -> bool:
        var = self.vars[name]
        return not var.index and var.node is None

    def emit(
        self,
        roots: Sequence[Node],
        leaf: Callable[[str], str],
        into: list[str],
        moves: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Write what computes some nodes; return the C expressions of their values."""
        text: dict[Node, str] = {}
        fixed: dict[Node, bool] = {}
        wanted = set(roots)
        uses: dict[Node, int] = {}
        nodes = list(walk(*roots))
        for node in nodes:
            for arg in node.args:
                uses[arg] = uses.get(arg, 0) + 1
            if node.kind == "number":
                fixed[node] = True
            elif node.kind == "symbol":
                fixed[node] = not node.name.startswith("$") and self._fixed(node.name)
            else:
                fixed[node] = all(fixed[arg] for arg in node.args)

        def of(node: Node) -> str:
            if node.kind == "number":
                return _literal(float(node.value))
            if fixed[node]:
                return self._slot(node)
            return text[node]

        for node in nodes:
            if fixed[node]:
                continue
            if node.kind == "symbol":
                text[node] = leaf(node.name)
                continue
            value = _operation(
                node, [of(arg) for arg in node.args], (moves or {}).get("$moves", "")
            )
            if uses.get(node, 0) > 1 or (node in wanted and node.args):
                name = self._fresh("v")
                into.append(f"const REAL {name} = {value};")
                value = name
            text[node] = value
        return [of(root) for root in roots]

    def _slot(self, node: Node) -> str:
        """Return the constant that stands for an expression of constants."""
        if node not in self._slots:
            name = f"c{len(self.out.numbers)}"
            self.head.append(f"const REAL {name} = (REAL)numbers[{len(self.out.numbers)}];")
            self.out.numbers.append(node)
            self._slots[node] = name
        return self._slots[node]

    # ---- layers

    def loop(self, k: int) -> _Units:
        """Return the loop over units of a layer that is being written."""
        if k not in self.open:
            self.open[k] = _Units(self, k)
        return self.open[k]

    def flush(self, *layers: int) -> None:
        """Write out the loops over the units of some layers."""
        for k in layers or tuple(self.open):
            if (loop := self.open.pop(k, None)) is not None:
                self.body += loop.lines()

    def need(self, k: int, *roots: Node) -> None:
        """Let everything that some expressions of a layer need be computed."""
        for name in sorted(names(*roots)):
            if name.startswith("$"):
                continue
            var = self.vars.get(name)
            if var is None:
                raise UnsupportedError(f"engine native: {name} is not known in this circuit")
            if var.ready or (name in self.loop(k).locals):
                continue
            if var.node is None:
                raise UnsupportedError(f"engine native: {name} is needed before it is computed")
            if all(map(self._fixed, names(var.node))):
                var.value, var.ready = evaluate(var.node, self.out.constants), True
                var.node, self.out.constants[name] = None, var.value
                continue
            self.need(k, var.node)
            part = int(name.rpartition("@g")[2])
            assert part == k, name
            alias = self.vars[var.node.name] if var.node.kind == "symbol" else None
            if alias is not None and alias.index == "sample" and alias.c and alias.ready:
                var.index, var.c, var.ready = "sample", alias.c, True
                continue
            self.loop(k).compute(name, var.node)

    def array_of(self, k: int, node: Node) -> str:
        """Return the array (sample, unit) of an expression of a layer."""
        self.need(k, node)
        if node.kind == "symbol":
            var = self.vars[node.name]
            if var.index == "sample" and var.c:
                return var.c
        name = f"{self._fresh('factor')}@g{k}"
        self.vars[name] = Var(node=node, ready=False)
        self.loop(k).compute(name, node)
        return self.vars[name].c

    # ---- the whole step

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
        return f"{single}{_prelude()}" + "\n".join(lines) + "\n"

    # ---- hardware

    def _block(self, part: str, block: Block) -> tuple[Node, dict[str, Node]]:
        """Return the result of a block, and its memory by name; the signal is `$s`."""
        place, since = block.place, f"since_{block.place.key}"
        again = place.site not in ONCE
        env = {name: symbol(f"${name}") for name in block.variables}
        env |= {"s": symbol("$s"), "dt": symbol("$dt"), since: symbol("$dt")}
        for line in block.code.splitlines()[1:]:
            name, _, text = line.partition(" = ")
            if name == since:  # time is counted by whoever calls this code
                continue
            node = self.read(part, text, env)
            if again and name in block.memory.values():
                node = apply("moved", node, symbol(f"${name}"))
            env[name] = node
        memory = {name: env[name] for name in block.memory.values() if name != since}
        return env[place.result], memory

    def _place(self, block: Block, used: set[str]) -> dict[str, str]:
        """Return the C names of a place's time step, and of whether its memory moves."""
        key = block.place.key
        if "$dt" in used or any(not name.startswith("since_") for name in block.memory.values()):
            self.head.append(f"const int64_t passed_{key} = passed[{len(self.out.places)}];")
            self.out.places.append(key)
            dt = self._slot(symbol("dt"))
            self.body.append(f"const int moves_{key} = n || passed_{key};")
            self.body.append(f"const REAL dt_{key} = n ? {dt} : (REAL)passed_{key} * {dt};")
            self.body.append(f"(void)moves_{key}, (void)dt_{key};")
        return {"$dt": f"dt_{key}", "$moves": f"moves_{key}"}

    def _noise(self, key: str, size: int) -> str:
        c = self._fresh("noise")
        self._scratch(c, size)
        self._pointer(Array("keys", key, ""), f"{c}_keys", 1, "const uint64_t")
        return c

    def _of_units(self, k: int, block: Block) -> None:
        part, place = f"g{k}", block.place
        key = f"{place.result}@{part}"
        if place.gate and self.free == "0":  # a clamped soma has no velocity
            self.vars[key], self.out.constants[key] = Var(value=0.0), 0.0
            return
        signal = self.read(part, place.signal)
        result, memory = self._block(part, block)
        by = {symbol("$s"): signal}
        result = replaced(result, by)
        memory = {name: replaced(node, by) for name, node in memory.items()}
        self.need(k, result, *memory.values())
        used = names(result, *memory.values())
        loop = self.loop(k)
        local = self._place(block, used)
        for noise in block.noise:
            if f"${noise.variable}" in used:
                local[f"${noise.variable}"] = loop.noise(noise.key, noise.law, "step")
        for name in memory:
            c = f"memory_{part}_{place.key}_{name}"
            checkpoint = next(long for long, short in block.memory.items() if short == name)
            self._pointer(Array("memory", place.key, checkpoint), c, self._size(part, "sample"))
            local[f"${name}"] = f"{c}[{loop.at}]"
            memory_c = c
            loop.stores.append((memory_c, memory[name], local))
        loop.compute(key, result, local)

    # ---- synapses

    def _side(self, k: int) -> Callable[[str], str]:
        link = self.plan.connections[k]
        ends = {f"g{link.pre}": "pre", f"g{link.post}": "post", f"m{k}": "synapse"}

        def side(name: str) -> str:
            if not name.startswith("$") and self._fixed(name):
                return ""
            return ends[name.rpartition("@")[2]]

        return side

    def _factors(self, k: int, node: Node) -> list[tuple[Term, str, str]]:
        """Return the terms of a synaptic expression, with the arrays of both neurons' factors."""
        link, found = self.plan.connections[k], []
        for term in terms(node, self._side(k)):
            pre = "" if term.pre is ONE else self.array_of(link.pre, term.pre)
            post = "" if term.post is ONE else self.array_of(link.post, term.post)
            found.append((term, pre, post))
        self.flush(link.pre, link.post)
        return found

    def _element(self, k: int, local: Mapping[str, str] | None = None) -> Callable[[str], str]:
        """Return how symbols are written in a loop over the synapses (i, j) of a map."""
        link = self.plan.connections[k]
        pre = self.units[link.pre]
        at = {"element": f"[i*{pre} + j]", "row": "[i]", "column": "[j]", "one": "[0]"}

        def leaf(name: str) -> str:
            if local and name in local:
                return local[name]
            if name == "now":
                return "now"
            var = self.vars[name]
            if not var.ready:
                raise UnsupportedError(f"engine native: {name} is needed before it is computed")
            if name.endswith(f"@g{link.post}"):
                return f"{var.c}{'[0]' if var.index == 'one' else '[i]'}"
            if name.endswith(f"@g{link.pre}"):
                return f"{var.c}{'[0]' if var.index == 'one' else '[j]'}"
            return f"{var.c}{at[var.index]}"

        return leaf

    def _synapse(self, k: int, node: Node, into: list[str]) -> str:
        return self.emit([node], self._element(k), into)[0]

    def _target(self, k: int, name: str) -> str:
        """Return the array that a sum over synapses fills."""
        var = self.vars[f"{name}@g{k}"]
        var.index, var.c, var.ready = "sample", f"sum_g{k}_{name}", True
        self._scratch(var.c, self.S * self.units[k])
        return var.c

    def _sum(self, k: int, line: Equation) -> None:
        link = self.plan.connections[k]
        onto_post = line.name.endswith("_post")
        factors = self._factors(k, self.read(f"m{k}", line.text))
        name = line.name.removesuffix("_post").removesuffix("_pre")
        target = self._target(link.post if onto_post else link.pre, name)
        if onto_post:
            self._sum_rows(k, target, factors, "largest" in line.flags)
        else:
            self._sum_columns(k, target, factors, "largest" in line.flags)

    def _sum_rows(
        self, k: int, target: str, factors: list[tuple[Term, str, str]], largest: bool = False
    ) -> None:
        """Σ over the layer above: a dot product of every row."""
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        for number_, (term, pre, post) in enumerate(factors):
            gain = self.emit([term.constant], str, [])[0]
            gain = f"{gain} * {post}[q*{n_post} + i]" if post else gain
            add = "+=" if number_ else "="
            inner: list[str] = []
            weight = self._synapse(k, term.synapse, inner)
            if term.synapse is ONE:  # one sum for all
                self.body += [
                    *self._total(pre, n_pre, largest),
                    f"for (int i = 0; i < {n_post}; i++) "
                    f"{target}[q*{n_post} + i] {add} {gain} * sum;\n}}",
                ]
                continue
            if S > 1 and pre:
                wide = -(-n_post // 16) * 16
                turned, product = self._fresh("turned"), self._fresh("product")
                self._scratch(turned, n_pre * wide)
                self._scratch(product, S * wide)
                self.head.append(f"memset({turned}, 0, {n_pre * wide} * sizeof(REAL));")
                self.body += [
                    f"for (int i = 0; i < {n_post}; i++)",
                    f"for (int j = 0; j < {n_pre}; j++) {{",
                    *inner,
                    f"{turned}[j*{wide} + i] = {weight};\n}}",
                    f"PRODUCT({S}, {wide}, {n_pre}, {pre}, {n_pre}, 1, {turned}, {wide}, "
                    f"{product}, {wide});",
                    f"for (int q = 0; q < {S}; q++)\n#pragma omp simd",
                    f"for (int i = 0; i < {n_post}; i++) "
                    f"{target}[q*{n_post} + i] {add} {gain} * {product}[q*{wide} + i];",
                ]
                continue
            signal = f" * {pre}[q*{n_pre} + j]" if pre else ""
            self.body += [
                f"for (int q = 0; q < {S}; q++)",
                f"for (int i = 0; i < {n_post}; i++) {{\nREAL sum = R(0.0);",
                "#pragma omp simd reduction(+:sum)",
                f"for (int j = 0; j < {n_pre}; j++) {{",
                *inner,
                f"sum += {weight}{signal};\n}}",
                f"{target}[q*{n_post} + i] {add} {gain} * sum;\n}}",
            ]

    def _total(self, source: str, units: int, largest: bool = False) -> list[str]:
        """Return the beginning of a loop over samples with the sum, or maximum, over a layer."""
        each = f"{source}[q*{units} + u]" if source else "R(1.0)"
        if largest:
            return [
                f"for (int q = 0; q < {self.S}; q++) {{\nREAL sum = {source}[q*{units}];",
                f"for (int u = 1; u < {units}; u++) if ({each} > sum) sum = {each};",
            ]
        return [
            f"for (int q = 0; q < {self.S}; q++) {{\nREAL sum = R(0.0);",
            "#pragma omp simd reduction(+:sum)",
            f"for (int u = 0; u < {units}; u++) sum += {each};",
        ]

    def _sum_columns(
        self, k: int, target: str, factors: list[tuple[Term, str, str]], largest: bool = False
    ) -> None:
        """Σ over the layer below: rows, each times what its neuron sends, added up."""
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        for number_, (term, pre, post) in enumerate(factors):
            gain = self.emit([term.constant], str, [])[0]
            inner: list[str] = []
            weight = self._synapse(k, term.synapse, inner)
            sent = f" * {post}[q*{n_post} + i]" if post else ""
            into = target if not number_ and not pre else self._fresh("product")
            if into != target:
                self._scratch(into, S * n_pre)
            if term.synapse is ONE:  # one sum for all
                self.body += [
                    *self._total(post, n_post, largest),
                    f"for (int j = 0; j < {n_pre}; j++) {into}[q*{n_pre} + j] = {gain} * sum;\n}}",
                ]
            elif S > 1 and post:
                matrix = ""
                if (
                    term.synapse.kind == "symbol"
                    and self.vars[term.synapse.name].index == "element"
                ):
                    matrix = self.vars[term.synapse.name].c
                if not matrix:
                    matrix = self._fresh("matrix")
                    self._scratch(matrix, n_post * n_pre)
                    self.body += [
                        f"for (int i = 0; i < {n_post}; i++)\n#pragma omp simd",
                        f"for (int j = 0; j < {n_pre}; j++) {{",
                        *inner,
                        f"{matrix}[i*{n_pre} + j] = {weight};\n}}",
                    ]
                self.body.append(
                    f"PRODUCT({S}, {n_pre}, {n_post}, {post}, {n_post}, 1, {matrix}, {n_pre}, "
                    f"{into}, {n_pre});"
                )
                if gain != "R(1.0)":
                    self.body.append(f"for (int j = 0; j < {S * n_pre}; j++) {into}[j] *= {gain};")
            else:
                self.body += [
                    f"for (int q = 0; q < {S}; q++) {{",
                    f"for (int j = 0; j < {n_pre}; j++) {into}[q*{n_pre} + j] = R(0.0);",
                    f"for (int i = 0; i < {n_post}; i++) {{",
                    f"const REAL sent = {gain}{sent};\n#pragma omp simd",
                    f"for (int j = 0; j < {n_pre}; j++) {{",
                    *inner,
                    f"{into}[q*{n_pre} + j] += {weight} * sent;\n}}\n}}\n}}",
                ]
            if into != target:
                own = f" * {pre}[j]" if pre else ""
                add = "+=" if number_ else "="
                self.body.append(
                    f"for (int j = 0; j < {S * n_pre}; j++) {target}[j] {add} {into}[j]{own};"
                )

    def _signal(self, k: int, node: Node, rows: int) -> tuple[list[str], list[str], list[str], str]:
        """Return a synaptic expression summed over samples: lines before a band of rows, before a
        row, and before an element, and the value at (i, j)."""
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        band: list[str] = []
        row: list[str] = []
        inner: list[str] = []
        parts: list[str] = []
        for term, pre, post in self._factors(k, node):
            gain = self.emit([term.constant], str, [])[0]
            weight = "" if term.synapse is ONE else self._synapse(k, term.synapse, inner)
            if term.local:
                parts.append(f"{gain} * {weight}" if weight else gain)
            elif S == 1:
                name = self._fresh("row")
                sent = f"{gain} * {post}[i]" if post else gain
                row.append(f"const REAL {name} = {sent};")
                factors = (name, weight, f"{pre}[j]" if pre else "")
                parts.append(" * ".join(filter(None, factors)))
            else:
                if not (pre and post):
                    raise UnsupportedError("engine native: a rate of weights without both neurons")
                hebb = self._fresh("hebb")
                self._scratch(hebb, rows * n_pre)
                band.append(
                    f"PRODUCT(rows, {n_pre}, {S}, {post} + i0, 1, {n_post}, {pre}, {n_pre}, "
                    f"{hebb}, {n_pre});"
                )
                summed = f"{hebb}[(i - i0)*{n_pre} + j]"
                parts.append(" * ".join(filter(None, (gain, weight, summed))))
        return band, row, inner, " + ".join(parts)

    def _learn(self, k: int, line: Equation) -> None:
        """w ← w + dt·dw/dt."""
        link = self.plan.connections[k]
        n_pre = self.units[link.pre]
        w = self.vars[f"{line.name}@m{k}"].c
        rate = apply("mul", symbol("dt"), self.read(f"m{k}", line.text))
        if rate is ZERO:
            return
        rows = self._rows(k)
        band, row, inner, value = self._signal(k, rate, rows)
        inner.append(f"{w}[i*{n_pre} + j] += {value};")
        self.body += self._bands(k, rows, band, row, inner)

    def _rows(self, k: int) -> int:
        """Return how many rows of an array are treated together."""
        post, pre = self._shape(f"m{k}")
        return min(post, max(1, LINE // pre))

    def _bands(
        self,
        k: int,
        rows: int,
        band: list[str],
        row: list[str],
        inner: list[str],
        after: Sequence[str] = (),
    ) -> list[str]:
        post, pre = self._shape(f"m{k}")
        return [
            f"for (int i0 = 0; i0 < {post}; i0 += {rows}) {{",
            f"const int rows = i0 + {rows} <= {post} ? {rows} : {post} - i0;",
            *band,
            "for (int i = i0; i < i0 + rows; i++) {",
            *row,
            "#pragma omp simd",
            f"for (int j = 0; j < {pre}; j++) {{",
            *inner,
            "}\n}",
            *after,
            "}",
        ]

    def _of_synapses(self, k: int, block: Block) -> None:
        """What hardware makes of an array as it is read, or of a change that is asked for."""
        part, place = f"m{k}", block.place
        link = self.plan.connections[k]
        pre = self.units[link.pre]
        result, memory = self._block(part, block)
        used = names(result, *memory.values())
        rows = self._rows(k)
        for name in used:  # what the layers know of it
            if name.endswith(f"@g{link.post}"):
                self.need(link.post, symbol(name))
            elif name.endswith(f"@g{link.pre}"):
                self.need(link.pre, symbol(name))
        signal = self.read(part, place.signal)
        if place.site == "write":
            band, row, inner, value = self._signal(k, signal, rows)
            inner.append(f"const REAL signal = {value};")
        else:
            for layer in (link.post, link.pre):
                need = [n for n in names(signal) if n.endswith(f"@g{layer}")]
                self.need(layer, *map(symbol, need))
            self.flush(link.post, link.pre)
            band, row, inner = [], [], []
            result = replaced(result, {symbol("$s"): signal})
            memory = {n: replaced(node, {symbol("$s"): signal}) for n, node in memory.items()}
        self.flush(link.post, link.pre)
        local = self._place(block, used)
        local["$s"] = "signal"
        stores = {}
        for long, name in block.memory.items():
            if name in memory:
                c = f"memory_{part}_{place.key}_{name}"
                self._pointer(Array("memory", place.key, long), c, self._size(part, "element"))
                local[f"${name}"] = f"{c}[i*{pre} + j]"
                stores[c] = memory[name]
        array = _Elements(k, pre, rows, band, row, inner, local, self._targets(k, place, stores))
        noise = [each for each in block.noise if f"${each.variable}" in used]
        roots = [result, *stores.values()]
        drawn = [f"${each.variable}" for each in noise]
        still = quiet(roots, drawn, [f"${name}" for name in memory])
        if still is None:
            self._draw_all(array, noise)
            values = self.emit(roots, self._element(k, local), inner, moves=local)
            inner += [f"{to} {v};" for to, v in zip(array.targets, values, strict=True)]
            self.body += self._bands(k, rows, band, row, inner)
        else:
            self._where_something_happens(array, roots, still, noise)

    def _targets(self, k: int, place: Place, stores: Mapping[str, Node]) -> list[str]:
        """Return where the result of a place goes, and its memory: `array[…] =`."""
        part, (post, pre) = f"m{k}", self._shape(f"m{k}")
        if place.site == "write":
            w = self.vars[f"{place.result.removesuffix('_change')}@{part}"].c
            first = f"{w}[i*{pre} + j] +="
        else:
            var = self.vars[f"{place.result}@{part}"]
            var.index, var.c, var.ready = "element", f"read_{part}_{place.result}", True
            self._scratch(var.c, post * pre)
            first = f"{var.c}[i*{pre} + j] ="
        return [first, *(f"{c}[i*{pre} + j] =" for c in stores)]

    def _draw_all(self, array: _Elements, noise: Sequence[Noise]) -> None:
        """Draw the noise of all elements of a band, one after the other."""
        pre = array.pre
        for each in noise:
            c = self._noise(each.key, array.rows * pre)
            array.band.append(
                f"FILL_REAL({c}, {c}_keys, 1, (int64_t)rows * {pre}, step, "
                f"(uint64_t)i0 * {pre}, {int(each.law == 'normal')});"
            )
            array.local[f"${each.variable}"] = f"{c}[(i - i0)*{pre} + j]"

    def _where_something_happens(
        self, array: _Elements, roots: list[Node], still: Quiet, noise: Sequence[Noise]
    ) -> None:
        """Compute gates everywhere, and all the rest only where one is open."""
        k, pre, local, inner = array.k, array.pre, array.local, array.inner
        size, here = array.rows * pre, f"[(i - i0)*{pre} + j]"
        in_gates = names(*still.gates)
        self._draw_all(array, [each for each in noise if f"${each.variable}" in in_gates])
        values = self.emit(
            [*still.gates, *still.roots], self._element(k, local), inner, moves=local
        )
        gates, rest = values[: len(still.gates)], values[len(still.gates) :]
        busy, open_, count = self._fresh("busy"), self._fresh("open"), self._fresh("count")
        self._bytes(busy, size, 1)
        self._bytes(open_, size, 4)
        # As a sum, not as a chain of conditions, which compilers turn into branches.
        inner.append(f"const REAL opened = {' + '.join(f'FABS({g})' for g in gates)};")
        inner.append("const int works = opened != R(0.0);")
        inner.append(f"{busy}{here} = (uint8_t)works;")
        kept = {}
        for number_, (gate, value) in enumerate(zip(still.gates, gates, strict=True)):
            if gate.kind != "symbol":
                c = self._fresh("gate")
                self._scratch(c, size)
                inner.append(f"{c}{here} = {value};")
                kept[gate] = symbol(f"$gate{number_}")
                local[f"$gate{number_}"] = f"{c}[e - i0*{pre}]"
        for to, value in zip(array.targets, rest, strict=True):
            place, _, how = to.rpartition(" ")
            if how == "+=":
                inner.append(f"{place} += works ? R(0.0) : {value};")
            else:
                inner.append(f"{place} = works ? {place} : {value};")
        if array.signal:
            c = self._fresh("signal")
            self._scratch(c, size)
            inner.append(f"{c}{here} = signal;")
            local["$s"] = f"{c}[e - i0*{pre}]"
        whole = [replaced(root, kept) for root in roots]
        after = self._at_open(array, whole, noise, open_, count)
        after.insert(0, f"const int {count} = INDICES({busy}, rows * {pre}, i0 * {pre}, {open_});")
        self.body += self._bands(k, array.rows, array.band, array.row, inner, after)

    def _at_open(
        self, array: _Elements, roots: list[Node], noise: Sequence[Noise], open_: str, count: str
    ) -> list[str]:
        """Return what computes some elements: taken side by side, worked on, and put back."""
        size, known = array.rows * array.pre, self._element(array.k, array.local)
        loop = f"for (int b = 0; b < ({count} + 15) / 16 * 16; b++)"
        where = f"const int e = {open_}[b], i = e / {array.pre}, j = e % {array.pre};"
        own = {f"${each.variable}": each for each in noise}
        taken: dict[str, str] = {}
        before: list[str] = []
        gather: list[str] = []

        def leaf(name: str) -> str:
            text = known(name) if name not in own else ""
            if name not in own and not text.endswith("]"):
                return text
            if name not in taken:
                c = taken[name] = self._fresh("taken")
                self._scratch(c, size)
                if (drawn := own.get(name)) is not None:
                    key, law = self._fresh("key"), drawn.law.upper()
                    self._pointer(Array("keys", drawn.key, ""), f"{key}s", 1, "const uint64_t")
                    self.head.append(f"const uint64_t {key} = {key}s[0];")
                    before.append(f"#pragma omp simd\n{loop}")
                    before.append(f"{c}[b] = {law}_AT({key}, step, (uint64_t){open_}[b]);")
                else:
                    gather.append(f"{c}[b] = {text};")
            return f"{taken[name]}[b]"

        work: list[str] = []
        values = self.emit(roots, leaf, work, moves=array.local)
        scatter = []
        for to, value in zip(array.targets, values, strict=True):
            c = self._fresh("given")
            self._scratch(c, size)
            work.append(f"{c}[b] = {value};")
            scatter.append(f"{to} {c}[b];")
        used = "(void)i, (void)j;"
        return [
            *before,
            *([f"{loop} {{", where, used, *gather, "}"] if gather else []),
            *["#pragma omp simd", f"{loop} {{", *work, "}"],
            *[f"for (int b = 0; b < {count}; b++) {{", where, used, *scatter, "}"],
        ]

    def _bytes(self, c: str, count: int, size: int) -> None:
        """Take working memory for whole numbers, with room behind it."""
        kind = {1: "uint8_t", 4: "int32_t"}[size]
        self.head.append(f"{kind} *restrict const {c} = ({kind} *)(scratch + {self.out.scratch});")
        self.out.scratch += -(-count * size // 64) * 16 + 32

    # ---- sums within a layer, delay lines

    def _sum_within(self, k: int, line: Equation) -> None:
        """Σ over all units of a layer, the same for each."""
        node = self.read(f"g{k}", re.sub(r"_pre\b", "", line.text))
        source = self.array_of(k, node)
        self.flush(k)
        target, units = self._target(k, line.name.removesuffix("_post")), self.units[k]
        self.body += [
            f"for (int q = 0; q < {self.S}; q++) {{\nREAL sum = R(0.0);",
            "#pragma omp simd reduction(+:sum)",
            f"for (int u = 0; u < {units}; u++) sum += {source}[q*{units} + u];",
            f"for (int u = 0; u < {units}; u++) {target}[q*{units} + u] = sum;\n}}",
        ]

    def _ring(self, inner: Within) -> tuple[str, int, int]:
        return f"ring_{inner.delay}_{inner.layer}", self.delays[inner.delay] + 1, inner.layer

    def _store(self, inner: Within) -> None:
        c, slots, k = self._ring(inner)
        source = inner.store.partition(" = ")[2].partition("_pre*")[0]
        array = self.array_of(k, self.read(f"g{k}", source))
        self.flush(k)
        n = len(self.out.rings)
        self.out.rings.append((inner.delay, k))
        self._pointer(Array("ring", f"g{k}", inner.delay), c, self._size(f"g{k}", "sample"))
        size = self.S * self.units[k]
        self.head.append(f"const int64_t {c}_apart = {size} * chips;")
        self.body += [
            f"const int64_t {c}_in = (positions[{n}] + n) % {slots};",
            f"const int64_t {c}_out = (positions[{n}] + n + 1) % {slots};",
            f"memcpy({c} + {c}_in * {c}_apart, {array}, {size} * sizeof(REAL));",
        ]

    def _deliver(self, inner: Within) -> None:
        c, _, k = self._ring(inner)
        target = equations(inner.text)[0].name.removesuffix("_post")
        array = self._target(k, target)
        size = self.S * self.units[k]
        self.body.append(f"memcpy({array}, {c} + {c}_out * {c}_apart, {size} * sizeof(REAL));")

    # ---- the end of a step

    def _show(self) -> None:
        """Let observers see what the last step was taken from."""
        self.flush()
        lines: list[str] = []
        for name, text in self.seen.items():
            wanted, _, part = name.partition("@")
            node, k = self.read(part, text), int(part[1:])
            self.need(k, node)
            self.flush()
            c = f"seen_{part}_{wanted}"
            self._pointer(Array("seen", part, wanted), c, self._size(part, "sample"))
            loop = _Units(self, k)
            value = self.emit([node], loop.leaf, loop.text)[0]
            loop.text.append(f"{c}[{loop.at}] = {value};")
            lines += loop.lines()
        self.body += ["if (n + 1 == steps) {", *lines, "}"] if lines else []

    def _move(self) -> None:
        """s ← s + dt·ds/dt of every state, all from one and the same state."""
        for k, group in enumerate(self.plan.groups):
            changes: dict[str, Node] = {}
            for line in self.texts[f"g{k}"]:
                if line.role == "state":
                    rate = apply("mul", symbol("dt"), self._rate(k, line))
                    if rate is not ZERO:
                        changes[line.name] = rate
            noise = {n for n in names(*changes.values()) if n.startswith("$")}
            self.need(k, *changes.values())
            summed = [name for name in changes if name in SHARED and self.S > 1]
            # What samples share takes its change from states that have not moved yet.
            late = [line for name in summed for line in self._shared(k, name, changes.pop(name))]
            loop = self.loop(k)
            local = {
                n: loop.noise(f"soma.{n[1:].partition('_')[2]}", "normal", "soma_step")
                for n in sorted(noise)
            }
            floor = group.after.partition(" = ")
            for name, rate in changes.items():
                c = self.vars[f"{name}@g{k}"].c
                own = symbol(f"{name}@g{k}")
                new = apply("add", own, rate)
                if floor[0] == name:
                    new = self.read(f"g{k}", floor[2], {name: new})
                loop.stores.append((c, new, local))
            self.flush(k)
            self.body += late

    def _shared(self, k: int, name: str, rate: Node) -> list[str]:
        """Write the change of what samples share; return what adds it, when states have moved."""
        self.flush(k)
        units, total = self.units[k], self._fresh("total")
        c = self.vars[f"{name}@g{k}"].c
        self._scratch(total, units)
        adding = _Units(self, k)
        value = self.emit([rate], adding.leaf, adding.text)[0]
        adding.text.append(f"{total}[u] += {value};")
        self.body += [f"for (int u = 0; u < {units}; u++) {total}[u] = R(0.0);", *adding.lines()]
        floor = self.plan.groups[k].after.partition(" = ")
        new = apply("add", symbol(f"{name}@g{k}"), symbol("$total"))
        if floor[0] == name:
            new = self.read(f"g{k}", floor[2], {name: new})
        last: list[str] = []
        at = {"$total": f"{total}[u]", f"{name}@g{k}": f"{c}[u]"}
        value = self.emit([new], at.__getitem__, last)[0]
        return [f"for (int u = 0; u < {units}; u++) {{", *last, f"{c}[u] = {value};\n}}"]

    def _rate(self, k: int, line: Equation) -> Node:
        """Return ds/dt; white noise over one step is N(0, 1)/√dt."""
        node = self.read(f"g{k}", line.text)
        by = {}
        states = {"xi": f"x{k}", "xi_inter": f"inter{k + 1}"}
        for name, state in states.items():
            each = apply("div", symbol(f"$soma_{state}"), apply("sqrt", symbol("dt")))
            by[symbol(f"{name}@g{k}")] = each
        return replaced(node, by)


@dataclass
class _Elements:
    """What is written about the synapses (i, j) of an array, band by band of `rows`."""

    k: int
    pre: int
    rows: int
    band: list[str]
    row: list[str]
    inner: list[str]
    local: dict[str, str]
    """Symbols of a place, as the code knows them."""
    targets: list[str]

    @property
    def signal(self) -> bool:
        """Whether the signal is a value of its own, not an expression of other symbols."""
        return any(line.startswith("const REAL signal") for line in self.inner)


class _Units:
    """One loop over the units (and samples) of a layer."""

    def __init__(self, composer: _Composer, k: int) -> None:
        self.composer, self.k = composer, k
        units = composer.units[k]
        self.at = "u" if composer.S == 1 else f"q*{units} + u"
        self.before: list[str] = []
        self.text: list[str] = []
        self.locals: dict[str, str] = {}
        self.stores: list[tuple[str, Node, Mapping[str, str]]] = []
        """What is written when everything else of an element was read."""

    def leaf(self, name: str) -> str:
        """Return a symbol as this loop knows it."""
        if name in self.locals:
            return self.locals[name]
        if name == "now":
            return "now"
        var = self.composer.vars[name]
        at = {"sample": self.at, "unit": "u", "one": "0"}
        return f"{var.c}[{at[var.index]}]"

    def _leaf(self, local: Mapping[str, str]) -> Callable[[str], str]:
        return lambda name: local[name] if name in local else self.leaf(name)

    def noise(self, key: str, law: str, step: str) -> str:
        """Draw the noise of one source; return it as an expression."""
        composer = self.composer
        size = composer.S * composer.units[self.k]
        c = composer._noise(key, size)
        self.before.append(
            f"FILL_REAL({c}, {c}_keys, 1, {size}, {step}, 0, {int(law == 'normal')});"
        )
        return f"{c}[{self.at}]"

    def compute(self, name: str, node: Node, local: Mapping[str, str] | None = None) -> None:
        """Compute a symbol, and keep it for others."""
        composer = self.composer
        value = composer.emit([node], self._leaf(local or {}), self.text, moves=local)[0]
        c = "unit_" + name.replace("@", "_")
        composer._scratch(c, composer.S * composer.units[self.k])
        self.text.append(f"{c}[{self.at}] = {value};")
        var = composer.vars[name]
        var.index, var.c, var.ready, self.locals[name] = "sample", c, True, f"{c}[{self.at}]"

    def lines(self) -> list[str]:
        """Return the loop."""
        composer = self.composer
        ends = []
        for c, node, local in self.stores:
            value = composer.emit([node], self._leaf(local), self.text, moves=local)[0]
            ends.append((f"{c}[{self.at}]", value))
        stored = []
        for place, value in ends:
            name = composer._fresh("new")
            self.text.append(f"const REAL {name} = {value};")
            stored.append(f"{place} = {name};")
        if not self.text and not stored:
            return self.before
        outer = [f"for (int q = 0; q < {composer.S}; q++)"] if composer.S > 1 else []
        return [
            *self.before,
            *outer,
            "#pragma omp simd",
            f"for (int u = 0; u < {composer.units[self.k]}; u++) {{",
            *self.text,
            *stored,
            "}",
        ]


def _literal(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return f"({'-' if value < 0 else ''}(REAL)INFINITY)"
    return f"R({value!r})" if value >= 0 else f"(-R({-value!r}))"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _operation(node: Node, args: list[str], moves: str) -> str:
    """Return an operation in C."""
    kind = node.kind
    if kind in _INFIX:
        return f"({args[0]} {_INFIX[kind]} {args[1]})"
    if kind in _ORDER:
        return f"({args[0]} {_ORDER[kind]} {args[1]} ? R(1.0) : R(0.0))"
    if kind == "neg":
        return f"(-{args[0]})"
    if kind == "int":
        return args[0]
    if kind == "moved":
        return f"({moves} ? {args[0]} : {args[1]})"
    if kind == "abs":
        return f"FABS({args[0]})"
    if kind == "pow":
        power = node.args[1].number
        if power in (3, 4):
            return f"({' * '.join([args[0]] * int(power))})"
    return f"{kind.upper()}({', '.join(args)})"
