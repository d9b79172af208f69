"""What happens between layers: products with arrays and their changes, hardware among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pcsim.circuits.blocks import Block, Place
from pcsim.circuits.text import Equation
from pcsim.errors import UnsupportedError
from pcsim.native.devices import LINE, Elements
from pcsim.native.formula import ONE, ZERO, Node, Term, apply, names, replaced, symbol, terms
from pcsim.native.layers import Layers
from pcsim.native.writer import Array


class Synapses(Layers):
    """The connections of a plan."""

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

    def _signal(self, k: int, node: Node, array: Elements) -> str:
        """Return the value at (i, j) of a synaptic expression summed over samples.

        What it needs is written before a band of rows, before a row, and before an element.
        """
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        parts: list[str] = []
        for term, pre, post in self._factors(k, node):
            gain = self.emit([term.constant], str, [])[0]
            weight = "" if term.synapse is ONE else self._synapse(k, term.synapse, array.inner)
            if term.local:
                parts.append(f"{gain} * {weight}" if weight else gain)
            elif S == 1:
                name = self._fresh("row")
                sent = f"{gain} * {post}[i]" if post else gain
                array.row.append(f"const REAL {name} = {sent};")
                factors = (name, weight, f"{pre}[j]" if pre else "")
                parts.append(" * ".join(filter(None, factors)))
            else:
                if not (pre and post):
                    raise UnsupportedError("engine native: a rate of weights without both neurons")
                hebb = self._fresh("hebb")
                self._scratch(hebb, array.size)
                array.band.append(
                    f"PRODUCT(rows, {n_pre}, {S}, {post} + i0, 1, {n_post}, {pre}, {n_pre}, "
                    f"{hebb}, {n_pre});"
                )
                summed = f"{hebb}[(i - i0)*{n_pre} + j]"
                parts.append(" * ".join(filter(None, (gain, weight, summed))))
        return " + ".join(parts)

    def _learn(self, k: int, line: Equation) -> None:
        """w ← w + dt·dw/dt."""
        link = self.plan.connections[k]
        n_pre = self.units[link.pre]
        w = self.vars[f"{line.name}@m{k}"].c
        rate = apply("mul", symbol("dt"), self.read(f"m{k}", line.text))
        if rate is ZERO:
            return
        array = self._elements(k, {})
        value = self._signal(k, rate, array)
        array.inner.append(f"{w}[i*{n_pre} + j] += {value};")
        self.body += self._bands(array)

    def _elements(self, k: int, local: dict[str, str]) -> Elements:
        """Return an array of which nothing is written yet."""
        post, pre = self._shape(f"m{k}")
        rows = min(post, max(1, LINE // pre))
        return Elements(post, pre, rows, rows * pre, [], partial(self._element, k), local)

    # ---- hardware

    def _of_synapses(self, k: int, block: Block) -> None:
        """What hardware makes of an array as it is read, or of a change that is asked for."""
        part, place = f"m{k}", block.place
        link = self.plan.connections[k]
        pre = self.units[link.pre]
        result, memory = self._block(part, block)
        used = names(result, *memory.values())
        array = self._elements(k, {})
        for name in used:  # what the layers know of it
            if name.endswith(f"@g{link.post}"):
                self.need(link.post, symbol(name))
            elif name.endswith(f"@g{link.pre}"):
                self.need(link.pre, symbol(name))
        signal = self.read(part, place.signal)
        if place.site == "write":
            value = self._signal(k, signal, array)
            array.inner.append(f"const REAL signal = {value};")
        else:
            for layer in (link.post, link.pre):
                need = [n for n in names(signal) if n.endswith(f"@g{layer}")]
                self.need(layer, *map(symbol, need))
            result = replaced(result, {symbol("$s"): signal})
            memory = {n: replaced(node, {symbol("$s"): signal}) for n, node in memory.items()}
        self.flush(link.post, link.pre)
        array.local |= self._place(block, used) | {"$s": "signal"}
        stores = {}
        for long, name in block.memory.items():
            if name in memory:
                c = f"memory_{part}_{place.key}_{name}"
                self._pointer(Array("memory", place.key, long), c, self._size(part, "element"))
                array.local[f"${name}"] = f"{c}[i*{pre} + j]"
                stores[c] = memory[name]
        array.targets = self._targets(k, place, stores)
        noise = [each for each in block.noise if f"${each.variable}" in used]
        kept = [f"${name}" for name in memory]
        self.apply_place(array, [result, *stores.values()], noise, kept)

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
