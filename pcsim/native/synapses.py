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
from pcsim.substrate.effect import DOWN


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
            matrix = self._stored(term.synapse)
            if S == 1 and pre and matrix:
                plain = gain == "R(1.0)" and not number_
                into = target if plain else self._fresh("product")
                self.body.append(f"ROWS({n_post}, {n_pre}, {matrix}, {pre}, {into});")
                if not plain:
                    self._scratch(into, n_post)
                    each = gain.replace("[q*", "[0*")
                    self.body.append(
                        f"for (int i = 0; i < {n_post}; i++) {target}[i] {add} {each} * {into}[i];"
                    )
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
        if largest:
            each = f"{source}[q*{units} + u]"
            return [
                f"for (int q = 0; q < {self.S}; q++) {{\nREAL sum = {source}[q*{units}];",
                f"for (int u = 1; u < {units}; u++) if ({each} > sum) sum = {each};",
            ]
        total = f"SUM({units}, {source} + q*{units})" if source else f"R({float(units)!r})"
        return [f"for (int q = 0; q < {self.S}; q++) {{\nconst REAL sum = {total};"]

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
            matrix = self._stored(term.synapse)
            into = target if not number_ and not pre else self._fresh("product")
            if into != target:
                self._scratch(into, S * n_pre)
            if term.synapse is ONE:  # one sum for all
                self.body += [
                    *self._total(post, n_post, largest),
                    f"for (int j = 0; j < {n_pre}; j++) {into}[q*{n_pre} + j] = {gain} * sum;\n}}",
                ]
            elif S > 1 and post:
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
                self.body += self._times(into, S * n_pre, gain)
            elif post and matrix:
                self.body.append(f"COLUMNS({n_post}, {n_pre}, {matrix}, {post}, {into});")
                self.body += self._times(into, n_pre, gain)
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

    def _stored(self, node: Node) -> str:
        """Return the array that an expression of synapses is, "" where it is computed."""
        if node.kind != "symbol" or self.vars[node.name].index != "element":
            return ""
        return self.vars[node.name].c

    def _times(self, array: str, count: int, gain: str) -> list[str]:
        return (
            [] if gain == "R(1.0)" else [f"for (int j = 0; j < {count}; j++) {array}[j] *= {gain};"]
        )

    def _signal(
        self, k: int, node: Node, array: Elements, name: str, *, each: bool = False
    ) -> tuple[str, str]:
        """Return the value at (i, j) of an expression of synapses, summed over samples.

        The second value, with `each`, is the sum of what single samples ask for, without signs.
        What they need is written before a band of rows, before a row, and before an element.
        """
        factors, samples = self._factors(k, node), self.S
        if (trains := self.plan.connections[k].trains.get(name)) is not None:
            factors = [self._as_pulses(k, factor, trains) for factor in factors]
            samples *= self.slots
        net = self._products(k, factors, array, samples)
        if not each:
            return net, ""
        if samples == 1:
            return net, f"FABS({net})"
        sizes = [self._without_sign(k, factor, samples) for factor in factors]
        return net, self._products(k, sizes, array, samples)

    def _as_pulses(
        self, k: int, factor: tuple[Term, str, str], trains: tuple[Block, Block]
    ) -> tuple[Term, str, str]:
        """Write the pulses of rows and columns that take the place of a product of samples."""
        term, pre, post = factor
        if term.local:
            return factor
        if term.synapse is not ONE or not (pre and post):
            raise UnsupportedError(
                "hardware: pulse trains of rows and columns write one rate, and this circuit "
                'learns with one of each synapse; use lines = "device" of the pulse_train'
            )
        link, gain = self.plan.connections[k], self._fresh("gain")
        self.body.append(f"const REAL {gain} = {self.emit([term.constant], str, [])[0]};")
        sign = f"({gain} > R(0.0) ? R(1.0) : R(-1.0)) * "
        row = self._line_of_pulses(k, trains[0], self.units[link.post], f"{sign}{post}", gain)
        column = self._line_of_pulses(k, trains[1], self.units[link.pre], pre, gain)
        return Term(pre=term.pre, post=term.post), column, row

    def _line_of_pulses(self, k: int, train: Block, units: int, signal: str, gain: str) -> str:
        """Write the trains of the units of one side; return their array (sample·slot, unit)."""
        size = self.S * self.slots * units
        env = {"s": symbol("$s"), "rate": symbol("$rate")}
        local = {"$s": f"({signal}[q / {self.slots} * {units} + u])", "$rate": f"FABS({gain})"}
        for noise in train.noise:
            c = self._noise(noise.key, size)
            normal = int(noise.law == "normal")
            self.body.append(f"FILL_REAL({c}, {c}_keys, 1, {size}, step, 0, {normal});")
            env[noise.variable] = symbol(f"${noise.variable}")
            local[f"${noise.variable}"] = f"{c}[q*{units} + u]"
        for line in train.code.splitlines()[1:]:
            name, _, text = line.partition(" = ")
            env[name] = self.read(f"m{k}", text, env)
        known, inner = self._element(k, local), list[str]()
        value = self.emit([env[train.place.result]], known, inner)[0]
        sent = self._fresh("sent")
        self._scratch(sent, size)
        self.body += [
            f"for (int q = 0; q < {self.S * self.slots}; q++)",
            f"for (int u = 0; u < {units}; u++) {{",
            *inner,
            f"{sent}[q*{units} + u] = {value};\n}}",
        ]
        return sent

    @property
    def slots(self) -> int:
        """The slots of pulse trains, alike for all arrays."""
        pairs = [pair for link in self.plan.connections for pair in link.trains.values()]
        return max((block.slots for pair in pairs for block in pair), default=1)

    def _without_sign(
        self, k: int, factor: tuple[Term, str, str], samples: int
    ) -> tuple[Term, str, str]:
        """Return a product of what samples ask for, whichever way."""
        term, pre, post = factor
        link, sizes = self.plan.connections[k], []
        for array, units in ((pre, self.units[link.pre]), (post, self.units[link.post])):
            if not array:
                sizes.append("")
                continue
            c, count = self._fresh("size"), samples * units
            self._scratch(c, count)
            self.body.append(f"for (int u = 0; u < {count}; u++) {c}[u] = FABS({array}[u]);")
            sizes.append(c)
        made = Term(apply("abs", term.constant), apply("abs", term.synapse), term.pre, term.post)
        return made, sizes[0], sizes[1]

    def _products(
        self, k: int, factors: list[tuple[Term, str, str]], array: Elements, S: int
    ) -> str:
        """Return a sum of products, each summed over samples, at (i, j)."""
        link = self.plan.connections[k]
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        parts: list[str] = []
        for term, pre, post in factors:
            gain = self.emit([term.constant], str, [])[0]
            weight = "" if term.synapse is ONE else self._synapse(k, term.synapse, array.inner)
            if term.local:
                parts.append(f"{gain} * {weight}" if weight else gain)
            elif S == 1:
                name = self._fresh("row")
                sent = f"{gain} * {post}[i]" if post else gain
                array.row.append(f"const REAL {name} = {sent};")
                each = (name, weight, f"{pre}[j]" if pre else "")
                parts.append(" * ".join(filter(None, each)))
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
        value, _ = self._signal(k, rate, array, line.name)
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
        array = self._elements(k, {})
        if place.site == "write":
            own = {"dt": symbol("$dt")}  # as a block reads it
            falls = {self.read(part, place.symbols[DOWN], own): symbol("$down")}
            result = replaced(result, falls)
            memory = {name: replaced(node, falls) for name, node in memory.items()}
        used = names(result, *memory.values())
        for name in used:  # what the layers know of it
            if name.endswith(f"@g{link.post}"):
                self.need(link.post, symbol(name))
            elif name.endswith(f"@g{link.pre}"):
                self.need(link.pre, symbol(name))
        signal = self.read(part, place.signal)
        if place.site == "write":
            each = "$down" in used
            array_name = place.result.removesuffix("_change")
            value, gross = self._signal(k, signal, array, array_name, each=each)
            array.inner.append(f"const REAL signal = {value};")
            if each:
                rest = f"({gross} - signal) / 2"
                array.inner.append(f"const REAL falls = {rest} > R(0.0) ? {rest} : R(0.0);")
        else:
            for layer in (link.post, link.pre):
                need = [n for n in names(signal) if n.endswith(f"@g{layer}")]
                self.need(layer, *map(symbol, need))
            result = replaced(result, {symbol("$s"): signal})
            memory = {n: replaced(node, {symbol("$s"): signal}) for n, node in memory.items()}
        self.flush(link.post, link.pre)
        array.local |= self._place(block, used) | {"$s": "signal", "$down": "falls"}
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
