"""Brian2's C++ standalone target: a program that is built once and then called again and again.

What it is asked to do is put off and collected: commands (writes, feed-forward passes) at their
time steps. When somebody looks, the program takes all steps in one call, with the present states as
run arguments, and its results become the present states. Brian2 has one active device per process;
it is changed while the program is built, and put back, together with everything that goes with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from brian2 import Clock, NeuronGroup, second
from brian2 import Network as BrianNetwork
from brian2.core.variables import DynamicArrayVariable
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.devices.device import reset_device, set_device
from torch import Tensor

from pcsim.backends.brian.arrays import Arrays, own_arrays
from pcsim.backends.brian.build import FEEDBACK, RECORD, Parts
from pcsim.backends.brian.cpp_text import called
from pcsim.backends.brian.draws import HEADERS, Draw, noise_code, table
from pcsim.backends.brian.forward_pass import ForwardPass
from pcsim.backends.brian.fused import fused_code
from pcsim.backends.brian.names import refuse_clashes
from pcsim.backends.brian.stream_code import (
    FORWARD_PASS,
    MEMBRANE,
    before_code,
    refuse_stream,
    stream_code,
)
from pcsim.circuit import Circuit
from pcsim.circuits.order import NOISE
from pcsim.errors import UnsupportedError
from pcsim.substrate import Chips

ENDLESS = 1 << 30
"""Steps that the program is compiled for; its stream stops it earlier."""
QUEUE_BYTES = 1 << 26
"""Commands that are collected before the program is called in any case."""


@dataclass(frozen=True)
class Building:
    """How a program is made."""

    folder: str | Path | None
    """Where; none: a temporary folder."""
    name: str
    """Every object's name starts with it."""
    fused: bool
    """One pass over the weights, instead of synapses."""
    on: Chips | None
    """The hardware, whose time goes on with the program's."""
    draws: Callable[[Parts], Sequence[Draw]]
    """The noise of what was built."""


class Standalone:
    """Takes the steps in a program of its own."""

    def __init__(
        self,
        build_parts: Callable[..., Parts],
        circuit: Circuit,
        chips: int,
        dt: float,
        how: Building,
    ) -> None:
        """Build and compile."""
        refuse_stream(circuit)
        self._chips, name = how.on, how.name
        self.folder = _writable(how.folder)
        if how.folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        _need_compiler()
        self._device = CPPStandaloneDevice()
        with _active(self._device):
            clock = Clock(dt=dt * second, name=f"{name}_clock")
            self.parts = build_parts(clock=clock)
            self._layer_arrays = [v for layer in self.parts.layers for v in own_arrays(layer)]
            self._map_arrays = [v for link in self.parts.maps for v in own_arrays(link)]
            self.arrays = Arrays(self.parts, chips, 1, self._set)
            self._forward = ForwardPass(self.arrays, circuit)
            self._moving = [v for layer in self.arrays.moving for v in layer]
            driver = NeuronGroup(1, "unused : 1", name=f"{name}_driver", namespace={}, clock=clock)
            stream = stream_code(self.parts, circuit, chips, self._layer_arrays)
            called("pcsim_stream", stream, driver, clock, "before_start", NOISE - 1)
            self._draws = list(how.draws(self.parts))
            if self._draws:
                code = noise_code(self._draws)
                called("pcsim_noise", code, driver, clock, "before_start", NOISE, HEADERS)
            called("pcsim_before", before_code(self._moving), driver, clock, "groups", RECORD)
            if how.fused:
                code = fused_code(self.parts, chips, dt)
                called("pcsim_fused", code, driver, clock, "groups", FEEDBACK)
            self.net = BrianNetwork(*self.parts.objects, driver, name=f"{name}_network")
            refuse_clashes(self.net, self.parts.objects)
            self.net.run(ENDLESS * dt * second, namespace={})
            self._keep_initial_values()
            self._compile()
        self.before = self.arrays.present()
        self._taken = self._waiting = 0
        self._commands: list[tuple[int, int, np.ndarray]] = []
        self._number = {variable: n for n, variable in enumerate(self._layer_arrays)}
        self._bytes = 0
        if self.parts.on_chip:
            self.parts.on_chip.put_off(self._set, self.settle)

    def _keep_initial_values(self) -> None:
        """Brian2 forgets the values given to synapses; they are still in what it will write."""
        device, parts = self._device, self.parts
        given: dict[str, Any] = {}
        for kind, arguments in device.main_queue:
            if kind == "set_by_array":
                given[arguments[0]] = device.static_arrays[arguments[1]]
            elif kind == "set_by_constant":
                given[arguments[0]] = arguments[1]
        counts = {
            held.name: len(parts.layers[link.post]) * parts.plan.groups[link.pre].units
            for link, held in zip(parts.plan.connections, parts.maps, strict=True)
        }
        for variable in [*self._layer_arrays, *self._map_arrays]:
            if device.array_cache.get(variable) is None:
                dynamic = isinstance(variable, DynamicArrayVariable)
                values = given.get(device.get_array_name(variable, access_data=not dynamic), 0)
                size = counts[variable.owner.name] if dynamic else variable.size
                whole = np.broadcast_to(np.asarray(values, dtype=variable.dtype), size)
                self._set(variable, whole.copy())

    def _compile(self) -> None:
        try:
            self._device.build(str(self.folder), compile=True, run=False, with_output=False)
        except RuntimeError as error:
            raise UnsupportedError(
                f"backend brian: target 'standalone': the C++ program in {self.folder} could not "
                f"be compiled ({error}); use brian.target 'numpy' or 'cython'"
            ) from error

    @property
    def steps(self) -> int:
        """Time steps so far, those that are put off included."""
        return self._taken + self._waiting

    def resume(self, steps: int, before: list[dict[str, np.ndarray]]) -> None:
        """Go on after so many steps, the last of which was taken from `before`."""
        self.settle()
        self._taken, self.before = steps, before

    def write(self, k: int, name: str, value: Tensor) -> None:
        """Set an array of layer k, at the present step."""
        variable = self.parts.layers[k].variables[name]
        numbers = self.arrays.spread(value, variable.size).astype(variable.dtype)
        self._commands.append((self._waiting, self._number[variable], numbers))
        self._bytes += numbers.nbytes

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass, at the present step."""
        if self.parts.on_chip:  # hardware shows states and weights in Python: see `OnChip`
            self.settle()
            self._forward()
            return
        self._commands.append((self._waiting, FORWARD_PASS, np.empty(0)))

    def start_membrane(self, k: int) -> None:
        """Let the membranes of layer k stand where their units stand, at the present step."""
        self._commands.append((self._waiting, MEMBRANE - k, np.empty(0)))

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Put off one step whenever the program yields."""
        for _ in program:
            self._waiting += 1
            if self._chips:
                self._chips.advance()
            if self._bytes > QUEUE_BYTES or self._waiting == ENDLESS - 1:
                self.settle()

    def settle(self) -> None:
        """Take all steps that were put off, so that arrays are up to date."""
        commands, steps = self._commands, self._waiting
        noise = table(self._draws, steps)
        self._commands, self._waiting, self._bytes = [], 0, 0
        if steps:
            self._call(steps, [command for command in commands if command[0] < steps], noise)
            self._taken += steps
        for step, which, numbers in commands:
            if step == steps:  # no step follows
                self._now(which, numbers)

    def _now(self, which: int, numbers: np.ndarray) -> None:
        """Execute a command in Python instead of C++."""
        if which == FORWARD_PASS:
            self._forward()
        elif which <= MEMBRANE:
            self.arrays.write(MEMBRANE - which, "u", self.arrays.read(MEMBRANE - which, "x"))
        else:
            self._set(self._layer_arrays[which], numbers)

    def _call(self, steps: int, commands: list[tuple[int, int, np.ndarray]], noise: bytes) -> None:
        device = self._device
        results = Path(device.results_dir)
        results.mkdir(exist_ok=True)
        (results / "noise.bin").write_bytes(noise)
        if self._chips and self.parts.on_chip:
            clock = self._chips.clock
            self.parts.on_chip.begin((clock.step - steps) * clock.dt)
        with (results / "stream.bin").open("wb") as file:
            file.write(np.int64(steps).tobytes())
            for step, which, numbers in commands:
                file.write(np.array([step, which], dtype=np.int64).tobytes())
                file.write(numbers.tobytes())
        arguments = []
        for variable in [*self._layer_arrays, *self._map_arrays]:
            path = f"static_arrays/now_{variable.owner.name}_{variable.name}.dat"
            variable.get_value().tofile(self.folder / path)
            arguments.append(f"{variable.owner.name}.{variable.name}={path}")
        with np.errstate(over="ignore", invalid="ignore"):  # in Brian2's check for huge numbers
            device.run(str(self.folder), with_output=False, run_args=arguments)
        for variable in [*self._layer_arrays, *self._map_arrays]:
            values = np.fromfile(results / device.get_array_filename(variable), variable.dtype)
            self._set(variable, values)
        self._read_before(results / "before.bin")

    def _read_before(self, path: Path) -> None:
        """Take up the states from which the last step was taken."""
        raw = path.read_bytes()
        self.before = [{} for _ in self.parts.layers]
        offset, layers = 0, {layer.name: k for k, layer in enumerate(self.parts.layers)}
        for variable in self._moving:
            values = np.frombuffer(raw, variable.dtype, variable.size, offset)
            self.before[layers[variable.owner.name]][variable.name] = values
            offset += values.nbytes

    def _set(self, variable: Any, values: np.ndarray) -> None:
        """Put values where Brian2 looks for those of a standalone variable."""
        self._device.array_cache[variable] = values


@contextmanager
def _active(device: CPPStandaloneDevice) -> Iterator[None]:
    """Let a device be Brian2's active one, for a while."""
    set_device(device, build_on_run=False)
    try:
        yield
    finally:
        reset_device()


def _writable(folder: str | Path | None) -> Path:
    """Return the folder to build in, made if need be."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="pcsim_brian_"))
    path = Path(folder).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise UnsupportedError(
            f"brian.folder: {path} cannot be written ({error.strerror}); give a folder that can "
            f"be, or none for a temporary one"
        ) from None
    return path


def _need_compiler() -> None:
    compiler = os.environ.get("CXX", "g++").split()[0]
    for tool in ("make", compiler):
        if os.name == "posix" and shutil.which(tool) is None:
            raise UnsupportedError(
                f"backend brian: target 'standalone': there is no {tool!r} on the path, and the "
                f"program is C++; install a compiler, or use brian.target 'numpy'"
            )
