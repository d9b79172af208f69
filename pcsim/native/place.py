"""What hardware makes of a signal at one place, compiled, for engines that step in torch.

    s ← effectₙ(… effect₁(s))        element by element, in one pass through memory

The texts, constants and random numbers are those of `pcsim.substrate.transform`. Noise that matters
only where something happens is drawn only there, as in whole compiled steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.native.compiler import library
from pcsim.native.devices import LINE, Devices, Elements
from pcsim.native.formula import Node, apply, evaluate, names, number, parse, symbol
from pcsim.native.threads import share
from pcsim.native.writer import Array, Program, Value, Var, prelude
from pcsim.substrate.effect import Effect
from pcsim.substrate.noise import Seeded

WHO = "engine native"
ARGUMENTS = (
    *(ctypes.c_void_p,) * 4,
    *(ctypes.c_int64,) * 2,
    *(ctypes.c_uint64,) * 2,
    *(ctypes.c_int,) * 4,
)
"""What the code of a place takes."""
PARALLEL = 1 << 17
"""Elements from which on chips are divided among threads."""
AT = {"element": "[i*pre + j]", "row": "[i]", "column": "[j]", "one": "[0]"}
FLAT = ("element", "one")
Kinds = Mapping[str, str]
"""Symbols by where they are: element, row, column, one (of each chip); number."""


class Part(Protocol):
    """One effect at its place, as `pcsim.substrate.transform` has it."""

    effect: Effect
    fixed: Mapping[str, Value]
    sources: Mapping[str, str]
    memory: dict[str, Tensor]


@dataclass(frozen=True)
class _Drawn:
    variable: str
    law: str
    key: str


class _Composer(Devices):
    """Writes the code of a place for symbols of certain kinds."""

    def __init__(self, parts: Sequence[Part], given: Kinds, size: int, once: bool) -> None:
        super().__init__({})
        self.once, self.given = once, given
        noise: list[_Drawn] = []
        memory: dict[str, Node] = {}
        signal = symbol("$s")
        for n, part in enumerate(parts):
            signal = self._effect(n, part, signal, noise, memory)
        roots = [signal, *memory.values()]
        used = names(*roots)
        for n, part in enumerate(parts):
            self._declare({f"{name}@{n}": value for name, value in part.fixed.items()}, used)
        for name, kind in given.items():
            if name in used:
                self._symbol(name, kind)
        self._pointer(Array("signal", "", ""), "s_in", 0, "const REAL")
        self._pointer(Array("out", "", ""), "out", 0)
        local = {"$s": "signal", "$moves": "moves"}
        targets = ["out[i*pre + j] ="]
        for k, name in enumerate(memory):
            self._pointer(Array("memory", "", name), f"memory{k}", 0)
            local[f"${name}"] = f"memory{k}[i*pre + j]"
            targets.append(f"memory{k}[i*pre + j] =")
        array = Elements(
            "post", "pre", "band", size, targets, self._symbols, local, offset="first + "
        )
        array.inner.append("const REAL signal = s_in[i*pre + j];")
        drawn = [each for each in noise if f"${each.variable}" in used]
        self.apply_place(array, roots, drawn, [f"${name}" for name in memory])
        self.flat = all(not var.index or var.index in FLAT for var in self.vars.values())

    def _effect(
        self, n: int, part: Part, signal: Node, noise: list[_Drawn], memory: dict[str, Node]
    ) -> Node:
        """Return what an effect makes of a signal; its noise and memory are added to the lists."""
        known = {name: symbol(name) for name in self.given} | {"s": signal}
        for name, value in part.fixed.items():
            plain = not isinstance(value, Tensor) and value in (0.0, 1.0)
            known[name] = number(float(value)) if plain else symbol(f"{name}@{n}")
        for name, law in part.effect.noise.items():
            known[name] = symbol(f"${name}@{n}")
            noise.append(_Drawn(f"{name}@{n}", law, part.sources[name]))
        before = known | {name: symbol(f"${name}@{n}") for name in part.effect.memory}
        for name, memory_ in part.effect.memory.items():
            old, new = before[name], parse(memory_.update, before)
            known[name] = new if self.once else apply("moved", new, old)
            memory[f"{name}@{n}"] = known[name]
        return parse(part.effect.becomes, known)

    def _declare(self, values: Mapping[str, Value], used: set[str]) -> None:
        for name, value in values.items():
            if name not in used:
                continue
            if isinstance(value, Tensor):
                self._symbol(name, "one" if value.numel() == 1 else kind_of(value))
            else:
                self.vars[name], self.out.constants[name] = Var(value=value), float(value)

    def _symbol(self, name: str, kind: str) -> None:
        if kind == "number":
            self.vars[name] = Var()
            return
        c = f"given{len(self.out.arrays)}"
        self._pointer(Array("given", "", name), c, 0, "const REAL")
        self.vars[name] = Var(kind, c)

    def _symbols(self, local: Mapping[str, str]) -> Callable[[str], str]:
        def leaf(name: str) -> str:
            if name in local:
                return local[name]
            var = self.vars[name]
            return f"{var.c}{AT[var.index]}"

        return leaf

    def source(self, dtype: torch.dtype) -> str:
        """Return the code for one precision."""
        single = "#define SINGLE 1\n" if dtype == torch.float32 else ""
        lines = [
            "void place(void **pointers, const int64_t *strides, const double *numbers,",
            "           REAL *scratch, int64_t from, int64_t to, uint64_t step, uint64_t first,",
            "           int post, int pre, int band, int moving)",
            "{",
            "const BITS moves = -(BITS)(moving != 0);",
            "(void)scratch, (void)step, (void)first, (void)moves, (void)numbers;",
            "for (int64_t chip = from; chip < to; chip++) {",
            *self.head,
            *self.body,
            "}\n}",
        ]
        return f"{single}{prelude()}" + "\n".join(lines) + "\n"


def kind_of(value: Tensor) -> str:
    """Return where a value of an array is, by its last two axes."""
    post, pre = ([1, 1, *value.shape])[-2:]
    return {(True, True): "element", (True, False): "row", (False, True): "column"}.get(
        (post > 1, pre > 1), "one"
    )


@dataclass
class Code:
    """The code of a place for signals and symbols of certain kinds."""

    program: Program
    flat: bool
    size: int
    function: Callable[..., None]
    fixed: dict[str, Tensor]
    """What is fixed per chip and element, in memory of its own."""
    numbers: dict[tuple[float, ...], np.ndarray]
    calls: dict[torch.Size, Call]
    """By the shape of a signal: what need not be found again."""


class Call:
    """The code of a place with the memory it works on, for signals of one shape."""

    def __init__(self, code: Code, shape: torch.Size, noise: Seeded) -> None:
        chips, post, pre = shape
        self.noise = noise
        self.post, self.pre = _reshaped(post, pre, code.size) if code.flat else (post, pre)
        self.band = min(self.post, max(1, code.size // max(1, self.pre)))
        arrays = code.program.arrays
        self.pointers = (ctypes.c_void_p * len(arrays))()
        self.strides = (ctypes.c_int64 * len(arrays))()
        self.moving: list[tuple[int, Array]] = []
        """Arrays that are elsewhere at every call, by their number."""
        self._held: list[np.ndarray] = []
        for n, array in enumerate(arrays):
            if array.kind == "keys":
                keys = np.ascontiguousarray(noise.keys(array.part, chips))
                self._held.append(keys)
                self.pointers[n], self.strides[n] = keys.ctypes.data, 1
            elif array.kind == "given" and array.name in code.fixed:
                self.put(n, code.fixed[array.name], chips)
            else:
                self.moving.append((n, array))

    def put(self, n: int, tensor: Tensor, chips: int) -> None:
        """Let array n be a tensor (chip, row, column), or one that all chips share."""
        rows = tensor.shape[0] if tensor.ndim == 3 else 1
        if rows not in (1, chips):
            raise UnsupportedError(f"{WHO}: {tuple(tensor.shape)} numbers for {chips} chips")
        self.pointers[n] = tensor.data_ptr()
        self.strides[n] = 0 if rows == 1 else tensor.stride(0)


class Place:
    """The effects at one place, in compiled code."""

    def __init__(self, parts: Sequence[Part], *, once: bool) -> None:
        """`once`: nobody asks this place twice in one time step."""
        self.parts, self.once = parts, once
        self._codes: dict[tuple[object, ...], Code | None] = {}
        self._known: dict[tuple[object, ...], Code | None] = {}
        """Codes by shapes, which are looked up faster than kinds."""
        self._scratch: dict[tuple[int, int, torch.dtype], np.ndarray] = {}

    def code(self, s: Tensor, symbols: Mapping[str, Value]) -> Code | None:
        """Return the code for a signal and its symbols, compiled now if it never was."""
        shapes = [value.shape if isinstance(value, Tensor) else None for value in symbols.values()]
        key = (s.dtype, s.shape[2], *symbols, *shapes)
        if key not in self._known:
            self._known[key] = self._code(s, symbols)
        return self._known[key]

    def _code(self, s: Tensor, symbols: Mapping[str, Value]) -> Code | None:
        kinds = {
            name: kind_of(value) if isinstance(value, Tensor) else "number"
            for name, value in symbols.items()
        }
        size = LINE if s.shape[2] <= LINE else 1 << (s.shape[2] - 1).bit_length()
        key = (s.dtype, size, *kinds.items())
        if key not in self._codes:
            self._codes[key] = self._compiled(s.dtype, size, kinds)
        return self._codes[key]

    def _compiled(self, dtype: torch.dtype, size: int, kinds: Kinds) -> Code | None:
        try:
            composer = _Composer(self.parts, kinds, size, self.once)
        except UnsupportedError:
            return None
        made = library(composer.source(dtype))
        if made.code is None:
            return None
        function = made.code.place
        function.restype, function.argtypes = None, ARGUMENTS
        fixed = {
            f"{name}@{n}": value.to(dtype).contiguous()
            for n, part in enumerate(self.parts)
            for name, value in part.fixed.items()
            if isinstance(value, Tensor)
        }
        return Code(composer.out, composer.flat, size, function, fixed, {}, {})

    def run(
        self,
        code: Code,
        s: Tensor,
        symbols: Mapping[str, Value],
        when: tuple[int, int, bool],
        noise: Seeded,
    ) -> Tensor:
        """Return the signal behind all effects.

        `when` is the time step, the elements of each chip before those of the signal, and whether
        memory moves; `noise` gives the keys of a source for so many chips.
        """
        chips, (step, before, moves) = s.shape[0], when
        out = torch.empty(s.shape, dtype=s.dtype)
        call = code.calls.get(s.shape)
        if call is None or call.noise is not noise:
            call = code.calls[s.shape] = Call(code, s.shape, noise)
        held = [(n, self._tensor(array, s, symbols, out)) for n, array in call.moving]
        for n, tensor in held:
            call.put(n, tensor, chips)
        numbers = self._numbers(code, symbols).ctypes.data

        def part(thread: int, first: int, last: int) -> None:
            code.function(
                call.pointers,
                call.strides,
                numbers,
                self._room(thread, code, s.dtype),
                first,
                last,
                step,
                before,
                call.post,
                call.pre,
                call.band,
                moves,
            )

        share(part, chips, torch.get_num_threads() if s.numel() >= PARALLEL else 1)
        return out

    def _room(self, thread: int, code: Code, dtype: torch.dtype) -> int:
        """Return the address of a thread's working memory."""
        key = (thread, code.program.scratch, dtype)
        if key not in self._scratch:
            self._scratch[key] = np.empty(code.program.scratch + 32, dtype=_NUMPY[dtype])
        return self._scratch[key].ctypes.data

    def _tensor(self, array: Array, s: Tensor, symbols: Mapping[str, Value], out: Tensor) -> Tensor:
        """Return an array that is elsewhere at every call."""
        if array.kind == "out":
            return out
        if array.kind == "memory":
            short, _, n = array.name.partition("@")
            memory = self.parts[int(n)].memory
            if not memory[short].is_contiguous():
                memory[short] = memory[short].contiguous()
            return memory[short]
        given = s if array.kind == "signal" else symbols[array.name]
        assert isinstance(given, Tensor)
        if given.dtype != s.dtype:
            given = given.to(s.dtype)
        if given.is_contiguous():
            return given
        rows = given.ndim == 3 and given.shape[0] == s.shape[0] and given[0].is_contiguous()
        return given if rows else given.contiguous()

    def _numbers(self, code: Code, symbols: Mapping[str, Value]) -> np.ndarray:
        given = {n: float(v) for n, v in symbols.items() if not isinstance(v, Tensor)}
        key = tuple(given.values())
        if key not in code.numbers:
            known = code.program.constants | given
            values = [evaluate(node, known) for node in code.program.numbers]
            code.numbers.clear()
            code.numbers[key] = np.asarray(values, dtype=np.float64)
        return code.numbers[key]


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _reshaped(post: int, pre: int, size: int) -> tuple[int, int]:
    """Return an array of the same elements with longer rows, where rows mean nothing."""
    for rows in range(min(post, max(1, size // max(1, pre))), 1, -1):
        if post % rows == 0:
            return post // rows, pre * rows
    return post, pre
