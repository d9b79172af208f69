"""A call of compiled steps: the memory that the code works on, checked, and chips over threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.native.compiler import library
from pcsim.native.formula import evaluate
from pcsim.native.threads import share
from pcsim.native.writer import Array, Program
from pcsim.substrate import Seeded

if TYPE_CHECKING:
    from pcsim.native.engine import Native

WHO = "engine native"


def code(source: str) -> ctypes.CDLL:
    """Return the compiled code, or refuse with the compiler's reason."""
    made = library(source)
    if made.code is None:
        raise UnsupportedError(f"{WHO}: {made.reason}; run.engine 'torch' needs no compiler")
    return made.code


class Ready:
    """Code with pointers to everything that it works on."""

    def __init__(self, engine: Native, program: Program, library: ctypes.CDLL) -> None:
        self.engine, self.program = engine, program
        self._function = library.advance
        self._function.restype = None
        self.seen: dict[str, Tensor] = {}
        count = len(program.arrays)
        self._held: list[object] = [None] * count
        self._pointers = (ctypes.c_void_p * max(1, count))()
        self._strides = np.ones(count, dtype=np.int64)
        self._fresh: dict[str, bool] = {}
        arrays = list(enumerate(program.arrays))
        for k, array in arrays:
            if array.kind == "keys":
                self._held[k] = keys = self._keys(array.part, engine.params.replicas)
                self._pointers[k] = keys.ctypes.data
        self._moving = [k for k, array in arrays if _moves(array)]
        self._begin()
        self._point([k for k, array in arrays if array.kind != "keys"])
        numbers = [evaluate(node, program.constants) for node in program.numbers]
        self._numbers = np.asarray(numbers, dtype=np.float64)
        self._stopped = engine.stopped.chips.to(torch.uint8).numpy().copy()
        self._scratch: dict[int, Tensor] = {}

    def again(self) -> None:
        """Take up what is clamped now; what was set at fabrication stays where it is."""
        self._begin()
        self._point(self._moving)

    def _point(self, which: Sequence[int]) -> None:
        """Check the memory of some arrays, and let the code have it."""
        program, like = self.program, self.engine.params.flat
        chips = like.shape[0]
        for k in which:
            array, size = program.arrays[k], program.sizes[k]
            tensor = self._seen(array) if array.kind == "seen" else self._laid_out(array, like)
            rows = tensor.shape[0]
            if rows not in (1, chips) or tensor.numel() != rows * size:
                raise UnsupportedError(
                    f"{WHO}: {array.name} of {array.part}: {tuple(tensor.shape)} numbers, where "
                    f"the code takes {size} of each of {chips} chips"
                )
            self._held[k] = tensor
            self._pointers[k] = tensor.data_ptr()
            self._strides[k] = 0 if rows == 1 else tensor.stride(0)

    def _keys(self, source: str, chips: int) -> np.ndarray:
        engine = self.engine
        noise = engine._noise if source.startswith("soma.") else engine.chips.noise  # type: ignore
        assert isinstance(noise, Seeded)
        return np.ascontiguousarray(noise.keys(source, chips))

    def _seen(self, array: Array) -> Tensor:
        engine = self.engine
        k, like = int(array.part[1:]), engine.params.flat
        units = engine.network.nodes[k].units
        samples = engine.somas[0].shape[1]
        made = like.new_zeros(like.shape[0], samples, units)
        self.seen[f"{array.name}@{array.part}"] = made
        return made

    def _laid_out(self, array: Array, like: Tensor) -> Tensor:
        """Return the memory of an array; what moves must be what the circuit holds."""
        tensor = self.engine.tensor(array)
        if array.kind in ("fixed", "drawn"):
            return tensor.to(like.dtype).contiguous()
        dtype = torch.int64 if array.kind == "count" else like.dtype
        if tensor.dtype != dtype or not tensor[0].is_contiguous():
            raise UnsupportedError(
                f"{WHO}: {array.name} of {array.part}: memory is not in one piece"
            )
        if tensor.shape[0] > 1 and tensor.stride(0) == 0:
            raise UnsupportedError(f"{WHO}: {array.name} of {array.part}: chips share what moves")
        return tensor

    def _begin(self) -> None:
        """Give every place its first memory; note which had none."""
        engine = self.engine
        for block in engine.plan.blocks:
            made = engine._transforms[block.place.key]
            like = engine.params.flat.new_zeros(1).expand(self._shape(block.shape))
            self._fresh[block.place.key] = made.begin(like)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        chips = self.engine.params.replicas
        if len(shape) == 2:
            return (chips, *shape)
        return (chips, self.engine.somas[0].shape[1], *shape)

    def run(self, steps: int, before: int) -> None:
        """Take steps, the first of which is number `before` of the run."""
        engine, program = self.engine, self.program
        hardware = engine.chips
        step = hardware.clock.step if hardware else 0
        places = [engine._transforms[key] for key in program.places]
        passed = np.asarray(
            [
                made.steps_since(step, fresh=self._fresh[key])
                for key, made in zip(program.places, places, strict=True)
            ],
            dtype=np.int64,
        )
        self._fresh = dict.fromkeys(self._fresh, False)
        lines = [engine._line(Array("ring", f"g{k}", name)) for name, k in program.rings]
        positions = np.asarray([line.position for line in lines], dtype=np.int64)
        chips = engine.params.replicas

        def part(thread: int, first: int, last: int) -> None:
            if thread not in self._scratch:
                self._scratch[thread] = engine.params.flat.new_empty(program.scratch + 32)
            self._function(
                self._pointers,
                _address(self._strides),
                _address(self._numbers),
                _address(passed),
                _address(positions),
                _address(self._stopped),
                ctypes.c_void_p(self._scratch[thread].data_ptr()),
                ctypes.c_int64(first),
                ctypes.c_int64(last),
                ctypes.c_int64(steps),
                ctypes.c_uint64(step),
                ctypes.c_uint64(before),
                ctypes.c_int64(chips),
            )

        share(part, chips, engine.threads)
        for line in lines:
            line.position = (line.position + steps) % (line.steps + 1)
        if hardware:
            hardware.advance(steps)
            for block in engine.plan.blocks:
                if not (block.place.gate and engine._free() == "0"):
                    engine._transforms[block.place.key].applied = step + steps - 1


def _moves(array: Array) -> bool:
    """Whether the memory of an array may be another after data were clamped anew."""
    return array.kind not in ("keys", "fixed", "drawn") or array.name == "free"


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
