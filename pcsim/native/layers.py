"""What happens in a layer: hardware at its units, sums within it, delay lines, and its motion."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Within
from pcsim.circuits.text import Equation, equations
from pcsim.native.formula import ZERO, Node, apply, names, replaced, symbol
from pcsim.native.symbols import SHARED, Symbols, Units
from pcsim.native.writer import Array, Var
from pcsim.substrate.effect import ONCE


class Layers(Symbols):
    """The layers of a plan."""

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
            self.body.append(f"const BITS moves_{key} = -(BITS)(n || passed_{key});")
            self.body.append(f"const REAL dt_{key} = n ? {dt} : (REAL)passed_{key} * {dt};")
            self.body.append(f"(void)moves_{key}, (void)dt_{key};")
        return {"$dt": f"dt_{key}", "$moves": f"moves_{key}"}

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

    # ---- sums within a layer, delay lines

    def _target(self, k: int, name: str) -> str:
        """Return the array that a sum over synapses fills."""
        var = self.vars[f"{name}@g{k}"]
        var.index, var.c, var.ready = "sample", f"sum_g{k}_{name}", True
        self._scratch(var.c, self.S * self.units[k])
        return var.c

    def _sum_within(self, k: int, line: Equation) -> None:
        """Σ over all units of a layer, the same for each."""
        node = self.read(f"g{k}", re.sub(r"_pre\b", "", line.text))
        source = self.array_of(k, node)
        self.flush(k)
        target, units = self._target(k, line.name.removesuffix("_post")), self.units[k]
        self.body += [
            f"for (int q = 0; q < {self.S}; q++) {{",
            f"const REAL sum = SUM({units}, {source} + q*{units});",
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
        lines = [line for loop in self._shown() for line in loop]
        self.body += ["if (n + 1 == steps) {", *lines, "}"] if lines else []

    def _shown(self) -> Iterator[list[str]]:
        """Give the loop that writes each observable, with all that it needs computed before."""
        for name, text in self.seen.items():
            wanted, _, part = name.partition("@")
            node, k = self.read(part, text), int(part[1:])
            self.need(k, node)
            self.flush()
            c = f"seen_{part}_{wanted}"
            self._pointer(Array("seen", part, wanted), c, self._size(part, "sample"))
            loop = Units(self, k)
            value = self.emit([node], loop.leaf, loop.text)[0]
            loop.text.append(f"{c}[{loop.at}] = {value};")
            yield loop.lines()

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
        adding = Units(self, k)
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
