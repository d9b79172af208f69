"""The symbols of a plan as its code knows them, and the loops over the units of its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Plan
from pcsim.circuits.text import Equation, equations
from pcsim.errors import UnsupportedError
from pcsim.native.devices import Devices
from pcsim.native.formula import (
    ONE,
    ZERO,
    Node,
    evaluate,
    names,
    number,
    parse,
    replaced,
    symbol,
    walk,
)
from pcsim.native.writer import Array, Value, Var

SHARED = ("b", "b_inter", "log_var")
"""States that all samples of a chip share."""
SCOPE = {"second": ONE, "t_before": ZERO}


class Symbols(Devices):
    """All that a plan speaks of, declared."""

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
        super().__init__({"dt": dt})
        self.vars |= {"dt": Var(value=dt), "now": Var("step", "now")}
        self.free = free
        self.plain: dict[str, Node] = {}
        """Constants that are 0 or 1: what they make of an expression is another code."""
        self.open: dict[int, Units] = {}
        self.again = ""
        """What the names of values end with that are computed a second time in a step."""
        self.units = [group.units for group in plan.groups]
        self.states: dict[str, Equation] = {}
        self.texts: dict[str, tuple[Equation, ...]] = {}
        for k, group in enumerate(plan.groups):
            self._declare(f"g{k}", group.text, group.constants, group.blocks, fixed)
        for k, link in enumerate(plan.connections):
            pulses = tuple(block for pair in link.trains.values() for block in pair)
            self._declare(f"m{k}", link.text, link.constants, (*link.blocks, *pulses), fixed)

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

    def _shape(self, part: str) -> tuple[int, int]:
        link = self.plan.connections[int(part[1:])]
        return self.units[link.post], self.units[link.pre]

    def _positions(self, part: str, name: str) -> None:
        post, pre = self._shape(part)
        count = post if name == "row" else pre
        self._scratch(f"{name}_{part}", count)
        c = f"{name}_{part}"
        self.head.append(f"for (int j = 0; j < {count}; j++) {c}[j] = (REAL)(j + 1) / {count};")

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

    # ---- layers

    def loop(self, k: int) -> Units:
        """Return the loop over units of a layer that is being written."""
        if k not in self.open:
            self.open[k] = Units(self, k)
        return self.open[k]

    def flush(self, *layers: int) -> None:
        """Write out the loops over the units of some layers."""
        for k in layers or tuple(self.open):
            if (loop := self.open.pop(k, None)) is not None:
                self.body += loop.lines()

    def begin_again(self) -> None:
        """Forget all that was computed: states have moved since."""
        self.flush()
        self.again = "_again"
        for var in self.vars.values():
            if var.node is not None:
                var.index, var.c, var.ready = "", "", False

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


class Units:
    """One loop over the units (and samples) of a layer."""

    def __init__(self, composer: Symbols, k: int) -> None:
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
        c = "unit_" + name.replace("@", "_") + composer.again
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
