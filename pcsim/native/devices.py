"""What hardware makes of an array, element by element: all of it, or where something happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pcsim.native.formula import Node, names, replaced, symbol, walk
from pcsim.native.quiet import COSTS, Quiet, possible, quiet
from pcsim.native.writer import Array, Writer

LINE = 1024
"""Elements of an array that are treated together, with the noise that they need."""
LAWS = {"uniform": 0, "normal": 1, "reach": 2}
"""What `FILL_REAL` fills an array with."""


class Noise(Protocol):
    """A source of random numbers, one for every element and time step."""

    @property
    def variable(self) -> str:
        """Name in the expressions of its place."""

    @property
    def law(self) -> str:
        """normal or uniform."""

    @property
    def key(self) -> str:
        """Name by which its keys are known."""


@dataclass
class Elements:
    """What is written about the elements (i, j) of an array, band by band of `rows`."""

    post: int | str
    pre: int | str
    """Rows and columns: numbers, or names of numbers that the code is given."""
    rows: int | str
    size: int
    """Elements of a band, at the most."""
    targets: list[str]
    """Where results go: `array[…] =` or `array[…] +=`."""
    symbols: Callable[[Mapping[str, str]], Callable[[str], str]]
    """Given the names of a place, how a symbol is written."""
    local: dict[str, str]
    """Symbols of a place, as the code knows them."""
    band: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    """Lines before a band, before a row, and about an element."""
    offset: str = ""
    """Added to the number of an element where random numbers are drawn: `first + `."""

    def loop(self, lines: Sequence[str], clause: str = "") -> list[str]:
        """Return what is done with every element of a band."""
        return [
            "for (int i = i0; i < i0 + rows; i++) {",
            *self.row,
            f"#pragma omp simd{clause}",
            f"for (int j = 0; j < {self.pre}; j++) {{",
            *lines,
            "}\n}",
        ]

    def at(self, text: str) -> str:
        """Return what is written of element (i, j) for an element e, whose row is not asked for."""
        return text.replace(f"[i*{self.pre} + j]", "[e]")

    def where(self, chosen: str, lines: Sequence[str]) -> list[str]:
        """Return the lines that say which element is number b of those chosen."""
        found = [f"const int e = {chosen}[b];"]
        for name, how in (("i", "/"), ("j", "%")):  # divisions, only where somebody needs them
            if any(f"[{name}]" in line for line in lines):
                found.append(f"const int {name} = e {how} {self.pre};")
        return found

    @property
    def values(self) -> list[tuple[str, str]]:
        """Symbols that are values of their own, not expressions of others, with their C names."""
        known = (("$s", "signal"), ("$down", "falls"))
        return [each for each in known if any(f"const REAL {each[1]} " in i for i in self.inner)]


class Devices(Writer):
    """Arrays of devices."""

    def apply_place(
        self, array: Elements, roots: list[Node], noise: Sequence[Noise], memory: Sequence[str]
    ) -> None:
        """Write what a place makes of an array; `memory` are the symbols that it keeps."""
        still = quiet(roots, [f"${each.variable}" for each in noise], memory)
        if still is not None:
            self._where_something_happens(array, roots, still, noise)
            return
        self._draw_all(array, noise)
        values = self.emit(roots, array.symbols(array.local), array.inner, moves=array.local)
        array.inner += [f"{to} {v};" for to, v in zip(array.targets, values, strict=True)]
        self.body += self._bands(array)

    def _bands(self, array: Elements, after: Sequence[str] = ()) -> list[str]:
        post, rows = array.post, array.rows
        return [
            f"for (int i0 = 0; i0 < {post}; i0 += {rows}) {{",
            f"const int rows = i0 + {rows} <= {post} ? {rows} : {post} - i0;",
            *array.band,
            *array.loop(array.inner),
            *after,
            "}",
        ]

    def _draw_all(self, array: Elements, noise: Sequence[Noise]) -> None:
        """Draw the noise of all elements of a band, one after the other."""
        pre = array.pre
        for each in noise:
            c = self._noise(each.key, array.size)
            array.band.append(self._fill(array, c, each.law))
            array.local[f"${each.variable}"] = f"{c}[(i - i0)*{pre} + j]"

    def _fill(self, array: Elements, c: str, law: str) -> str:
        return (
            f"FILL_REAL({c}, {c}_keys, 1, (int64_t)rows * {array.pre}, step, "
            f"{array.offset}(uint64_t)i0 * {array.pre}, {LAWS[law]});"
        )

    def _where_something_happens(
        self, array: Elements, roots: list[Node], still: Quiet, noise: Sequence[Noise]
    ) -> None:
        """Compute gates everywhere, and all the rest only where one is open."""
        if still.clock:
            self._between_ticks(array, still.clock)
        pre, local, inner = array.pre, array.local, array.inner
        size, here = array.size, f"[(i - i0)*{pre} + j]"
        opens = self._that_open(array, still.gates, noise)
        values = self.emit([*opens, *still.roots], array.symbols(local), inner, moves=local)
        gates, rest = values[: len(opens)], values[len(opens) :]
        busy, open_, count = self._fresh("busy"), self._fresh("open"), self._fresh("count")
        self._bytes(busy, size, 1)
        self._bytes(open_, size, 4)
        # As a sum, not as a chain of conditions, which compilers turn into branches.
        inner.append(f"const REAL opened = {' + '.join(f'FABS({g})' for g in gates)};")
        inner.append("const int works = opened != R(0.0);")
        inner.append(f"{busy}{here} = (uint8_t)works;")
        kept, held = {}, dict[str, str]()
        for number_, (gate, value) in enumerate(zip(still.gates, gates, strict=True)):
            if gate.kind != "symbol" and opens[number_] is gate:
                c = self._fresh("gate")
                self._scratch(c, size)
                inner.append(f"{c}{here} = {value};")
                kept[gate] = symbol(f"$gate{number_}")
                held[f"$gate{number_}"] = c
        for to, value in zip(array.targets, rest, strict=True):
            place, _, how = to.rpartition(" ")
            if how == "+=":
                inner.append(f"{place} += works ? R(0.0) : {value};")
            else:
                inner.append(f"{place} = works ? {place} : {value};")
        whole = [replaced(root, kept) for root in roots]
        needed = names(*whole)
        for name, value in array.values:
            if name in needed:
                c = self._fresh(value)
                self._scratch(c, size)
                inner.append(f"{c}{here} = {value};")
                held[name] = c
        drawn = [each for each in noise if f"${each.variable}" not in local]
        few = self._at_open(array, whole, held, drawn, open_, count)
        take = f"INDICES({busy}, rows * {pre}, i0 * {pre}, {open_});"
        if (worth := _worth(whole)) == 1:
            after = [f"const int {count} = {take}", *few]
        else:
            after = [
                f"const int {count} = OPEN({busy}, rows * {pre});",
                f"if ({count} * {worth} < rows * {pre}) {{\n{take}",
                *few,
                "} else {",
                *self._at_all(array, whole, held, drawn, busy),
                "}",
            ]
        if still.clock:
            after.append("}")
        self.body += self._bands(array, after)

    def _that_open(
        self, array: Elements, gates: Sequence[Node], noise: Sequence[Noise]
    ) -> list[Node]:
        """Return what says where gates may be open, with the noise drawn that this needs.

        Where normal noise decides, what it reaches at the most is known from half of its words.
        """
        reach = {
            f"${each.variable}": symbol(f"$reach_{each.variable}")
            for each in noise
            if each.law == "normal"
        }
        opens = [possible(gate, reach) or gate for gate in gates]
        used = names(*opens)
        self._draw_all(array, [each for each in noise if f"${each.variable}" in used])
        for each in noise:
            if (name := f"$reach_{each.variable}") in used:
                c = self._noise(each.key, array.size)
                array.band.append(self._fill(array, c, "reach"))
                array.local[name] = f"{c}[(i - i0)*{array.pre} + j]"
        return opens

    def _between_ticks(self, array: Elements, clock: Quiet) -> None:
        """Begin a band with what is left of it where no clock ticks; what follows is else."""
        known, ticks = array.symbols(array.local), self._fresh("ticks")
        count, work = list[str](), list(array.inner)
        gates = self.emit(clock.gates, known, count, moves=array.local)
        count.append(f"{ticks} |= {' || '.join(f'{gate} != R(0.0)' for gate in gates)};")
        values = self.emit(clock.roots, known, work, moves=array.local)
        work += [f"{to} {v};" for to, v in zip(array.targets, values, strict=True)]
        array.band += [
            f"int {ticks} = 0;",
            *array.loop(count, f" reduction(|:{ticks})"),
            f"if (!{ticks}) {{",
            *array.loop(work),
            "} else {",
        ]

    def _at_all(
        self,
        array: Elements,
        roots: list[Node],
        held: Mapping[str, str],
        noise: Sequence[Noise],
        busy: str,
    ) -> list[str]:
        """Return what computes a whole band, and keeps it where a gate is open."""
        here, before, work = f"[(i - i0)*{array.pre} + j]", list[str](), list[str]()
        local = array.local | {name: f"{c}{here}" for name, c in held.items()}
        for each in noise:
            c = self._noise(each.key, array.size)
            before.append(self._fill(array, c, each.law))
            local[f"${each.variable}"] = f"{c}{here}"
        values = self.emit(roots, array.symbols(local), work, moves=local)
        for to, value in zip(array.targets, values, strict=True):
            place, _, how = to.rpartition(" ")
            rest = "R(0.0)" if how == "+=" else place
            work.append(f"{to} {busy}{here} ? {value} : {rest};")
        return [*before, *array.loop(work)]

    def _at_open(
        self,
        array: Elements,
        roots: list[Node],
        held: Mapping[str, str],
        noise: Sequence[Noise],
        open_: str,
        count: str,
    ) -> list[str]:
        """Return what computes some elements: taken side by side, worked on, and put back."""
        size = array.size
        local = array.local | {name: f"{c}[e - i0*{array.pre}]" for name, c in held.items()}
        known = array.symbols(local)
        loop = f"for (int b = 0; b < ({count} + 15) / 16 * 16; b++)"
        own = {f"${each.variable}": each for each in noise}
        taken: dict[str, str] = {}
        before: list[str] = []
        gather: list[str] = []

        def leaf(name: str) -> str:
            text = array.at(known(name)) if name not in own else ""
            if name not in own and not text.endswith("]"):
                return text
            if name not in taken:
                c = taken[name] = self._fresh("taken")
                self._scratch(c, size)
                if (drawn := own.get(name)) is not None:
                    key, law = self._fresh("key"), drawn.law.upper()
                    self._pointer(Array("keys", drawn.key, ""), f"{key}s", 1, "const uint64_t")
                    self.head.append(f"const uint64_t {key} = {key}s[0];")
                    given = f"{key}, step, {array.offset}0, {open_}, {count}, {c}"
                    all_ = self._fresh("all")
                    self._scratch(all_, size)
                    keys = Array("keys", drawn.key, "")
                    self._pointer(keys, f"{all_}_keys", 1, "const uint64_t")
                    # Four numbers cost as much as one: where many are needed, all are drawn.
                    before.extend(
                        [
                            f"if ({count} * 4 < rows * {array.pre}) {{\nSOME_{law}({given});",
                            f"}} else {{\n{self._fill(array, all_, drawn.law)}",
                            f"{loop} {c}[b] = {all_}[{open_}[b] - i0 * {array.pre}];\n}}",
                        ]
                    )
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
            scatter.append(f"{array.at(to)} {c}[b];")
        back = f"for (int b = 0; b < {count}; b++)"
        return [
            *before,
            *([f"{loop} {{", *array.where(open_, gather), *gather, "}"] if gather else []),
            *["#pragma omp simd", f"{loop} {{", *work, "}"],
            *[f"{back} {{", *array.where(open_, scatter), *scatter, "}"],
        ]


def _worth(roots: Sequence[Node]) -> int:
    """Return how many elements are computed in the time in which one is taken and put back.

    Vectors take elements as they come, but a law of many functions costs more than the rest.
    """
    functions = sum(COSTS.get(node.kind, 0) for node in walk(*roots))
    return 4 if functions <= 8 else 1
