"""The engine `spice`: the calls of `pcsim.backends.continuous`, integrated by ngspice.

Every chip is a netlist of its own. Data that follow one another without a look between them are one
transient analysis; the next one starts from the voltages at which the last one ended, so that time
grows with the number of samples and no faster. ngspice chooses its own steps: `dt` is the grid on
which data change, and on which the circuit is looked at.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pcsim.backends.planned import Planned, Value
from pcsim.circuit import Circuit
from pcsim.continuous.flow import Tau
from pcsim.continuous.solvers import as_before
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network
from pcsim.spice import ngspice
from pcsim.spice.deck import Bench, Span, deck
from pcsim.spice.elements import Hiss, NoiseSource, Wave
from pcsim.spice.netlist import Netlist
from pcsim.spice.ngspice import SpiceError, StoppedEarlyError
from pcsim.spice.refusals import WHO
from pcsim.spice_settings import Macro
from pcsim.substrate import Chips, Seeded

TOGETHER, TOGETHER_NOISY = 64, 16
"""Data that are shown in one analysis at most: ngspice reads a source from its beginning, and noise
has a point for every time step."""
LARGE = 50_000
"""Synapses from which on a netlist takes minutes per presentation."""


@dataclass
class _Shown:
    """Data, and for how many steps they are clamped."""

    clamps: list[Tensor | None]
    mask: Tensor | None
    steps: int


def refuse(network: Network, circuit: Circuit, samples: int, device: str) -> None:
    """Refuse what has no netlist, by name, before anything is built."""
    if samples != 1:
        raise UnsupportedError(
            f"{WHO}: learning.batch {samples}: a circuit sees one sample at a time; set it to 1"
        )
    if device != "cpu":
        raise UnsupportedError(f"{WHO}: run.device {device!r}: ngspice computes on the 'cpu'")
    if circuit.kind not in ("algebraic", "error_units", "dendritic"):
        raise UnsupportedError(
            f"{WHO}: circuit.kind {circuit.kind!r}: there are netlists of 'algebraic', "
            f"'error_units' and 'dendritic'"
        )
    sizes = [node.units for node in network.nodes]
    synapses = sum(a * b for a, b in pairwise(sizes))
    if synapses > LARGE:
        raise UnsupportedError(
            f"{WHO}: network: {synapses} synapses would take about {synapses * 4e-5:.0f} s per "
            f"presentation of 20 tau_x; at most {LARGE} are built"
        )


def refuse_law(source: NoiseSource) -> None:
    """Refuse noise that TRNOISE cannot be."""
    if source.law != "normal":
        raise UnsupportedError(
            f"{WHO}: spice.noise 'trnoise': {source.key.split('.')[0]!r} is {source.law}, and "
            f"TRNOISE is normal; use 'frozen'"
        )


class Spice(Planned):
    """Chips in continuous time, as netlists."""

    who = WHO

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        *,
        dt: float,
        mode: Mode = "supervised",
        seeds: Sequence[int] = (),
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        tau_w: Tensor | None = None,
        noise: Seeded | None = None,
        chips: Chips | None = None,
        reltol: float = 1e-4,
        folder: str | Path | None = None,
        trnoise: bool = False,
        macro: Macro | None = None,
        threads: int | None = None,
    ) -> None:
        """Build a population, as `Continuous` does.

        Main arguments:
            reltol: ngspice's relative tolerance; all others follow from it.
            folder: where netlists and raw files are kept; None: in a temporary folder.
            trnoise: noise is drawn by ngspice, another in every run.
            macro: what transconductors cannot do; None: ideal ones.
            noise: source of the circuit's own noise; needed where `circuit.sigma_x` is set.
            threads: so many chips run at once; None: as many as torch has threads.
        """
        refuse(network, circuit, 1, params.flat.device.type)
        ngspice.program()
        if circuit.sigma_x and noise is None:
            raise ConfigError(f"{WHO}: noise: circuit.sigma_x needs a source of counted noise")
        options: dict[str, Any] = {"dt": dt, "mode": mode, "seeds": seeds, "tau_x": tau_x}
        options["solver_name"] = "maruyama" if circuit.sigma_x else "euler"
        self._queue: list[_Shown] = []
        """What is shown and not yet integrated; the first may be what is clamped already."""
        self._origin: list[tuple[Tensor, Tensor]] = []
        """What moves, and as it was before the last time step."""
        self._noise, self.reltol, self.trnoise, self.macro = noise, reltol, trnoise, macro
        super().__init__(network, params, circuit, scale=scale, tau_w=tau_w, chips=chips, **options)
        self.threads = torch.get_num_threads() if threads is None else threads
        self.folder = Path(folder or tempfile.mkdtemp(prefix="pcsim-spice-"))
        if not folder:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._cells: dict[tuple[int, tuple[bool, ...]], Netlist] = {}
        self._netlist(0, [False] * network.nodes[0].units)

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and by how many threads."""
        return {"engine": "spice", "threads": self.threads, "ngspice": self.version}

    @property
    def version(self) -> str:
        """The version of the program."""
        return ngspice.version(ngspice.program())

    # ---- data

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; all else flows on. What can wait is integrated with what follows."""
        self.refuse_clamps(clamps)
        given = [None if clamp is None else clamp.clone() for clamp in clamps]
        samples = {clamp.shape[1] for clamp in given if clamp is not None}
        refuse(self.network, self.circuit, max(samples, default=1), "cpu")
        if not (self._queue and self._follows(given, mask)):
            self.settle()
            self._show(given, mask)
            self._queue = []
        self._count()
        self._queue.append(_Shown(given, mask, 0))
        if len(self._queue) > (TOGETHER_NOISY if self._noisy else TOGETHER):
            self.settle()

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Let a clamped layer have new values, with nothing else changed."""
        shown = self._queue[-1]
        clamps = list(shown.clamps)
        clamps[index] = value.clone()
        self.load(clamps, shown.mask)

    def _follows(self, clamps: Sequence[Tensor | None], mask: Tensor | None) -> bool:
        """Whether data can be shown in the same analysis as those before."""
        last = self._queue[-1]
        alike = [(a is None) == (b is None) for a, b in zip(clamps, last.clamps, strict=True)]
        return all(alike) and mask is last.mask and not self._reads_time

    @property
    def _noisy(self) -> bool:
        """Whether netlists have sources of noise."""
        return any(netlist.noise for netlist in self._cells.values())

    @property
    def _reads_time(self) -> bool:
        """Whether data are read by hardware that must know when: the clock moves with it."""
        effects = self.chips.substrate.at("input") if self.chips else ()
        return any(e.noise or e.memory or e.uses("t") for e in effects)

    def _show(self, clamps: Sequence[Tensor | None], mask: Tensor | None) -> None:
        assert self._flow is not None
        self._flow.load(clamps, mask)
        self.note_clamps(mask)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        self._queue = []
        super().restore(state)
        self.note_clamps(state.get("mask"))
        clamps = [state.get(f"clamp{k}") for k in range(len(self.network.nodes))]
        self._queue = [_Shown(clamps, state.get("mask"), 0)]
        self._origin = []

    # ---- steps

    def settle(self) -> None:
        """Take all steps that were asked for."""
        self._count()
        queue = [shown for shown in self._queue if shown.steps]
        if not queue:
            return
        last = self._queue[-1]
        self._queue = [_Shown(last.clamps, last.mask, 0)]
        taken = sum(shown.steps for shown in queue)
        try:
            self._integrate(queue)
        except SpiceError:
            self.steps -= taken
            raise
        if last is not queue[-1]:
            self._show(last.clamps, last.mask)

    def _count(self) -> None:
        """Let the steps that were asked for be those of the data that are shown now."""
        if self._queue:
            self._queue[-1].steps += self.pending
            self.pending = 0

    def _integrate(self, queue: Sequence[_Shown]) -> None:
        alive = [k for k in range(self.params.replicas) if not bool(self.stopped.chips[k])]
        total = sum(shown.steps for shown in queue)
        before = self.steps - total
        benches = self._benches(queue, alive, before)
        jobs = [(chip, deck(bench, self.reltol)) for chip, bench in benches.items()]
        with ThreadPoolExecutor(max(1, min(self.threads, len(jobs)))) as pool:
            ends = list(pool.map(lambda job: self._run(job[0], job[1], before), jobs))
        self._take(benches, ends)
        if self.chips:
            self.chips.clock.step += total

    def _benches(
        self, queue: Sequence[_Shown], chips: Sequence[int], before: int
    ) -> dict[int, Bench]:
        """Return the netlists of chips, with sources of the data, from the state they are in."""
        waves: dict[tuple[int, int], list[Tensor]] = {}
        free = self._free()
        for shown in queue:
            self._show(shown.clamps, shown.mask)
            for (k, name), held in self.held_clamps.items():
                assert name == "x"
                for i in range(held.shape[-1]):
                    waves.setdefault((k, i), []).append(held[:, 0, i])
        steps = [shown.steps for shown in queue]
        begins = [sum(steps[:n]) * self.dt for n in range(len(steps))]
        total = sum(steps)
        span = Span(total * self.dt, (total - 1) * self.dt, before * self.dt)
        benches = {}
        for chip in chips:
            netlist = self._netlist(chip, free)
            moves = {
                f"x{k}_{i}": Wave(f"x{k}_{i}", begins, [float(v[chip % len(v)]) for v in values])
                for (k, i), values in waves.items()
            }
            given: list[Wave | Hiss] = [moves[node] for _, _, node in netlist.clamped_nodes()]
            given += self._noise_waves(netlist, chip, before, total)
            benches[chip] = Bench(netlist, self._starts(netlist, chip), given, span)
        return benches

    def bench(self, data: Sequence[Sequence[Tensor | None]], steps: int, chip: int = 0) -> Bench:
        """Return the netlist of a chip that is shown data, each for so many steps, from now on.

        Nothing is integrated. The first of the data is clamped already.
        """
        self.settle()
        queue = [_Shown(list(clamps), None, steps) for clamps in data]
        return self._benches(queue, [chip], self.steps)[chip]

    def netlist(self, chip: int = 0) -> Netlist:
        """Return the cells of a chip."""
        return self._netlist(chip, self._free())

    def voltages(self, chip: int = 0) -> dict[str, float]:
        """Return all states and weights of a chip, by the node on which they stand."""
        return self._starts(self.netlist(chip), chip)

    def _run(self, chip: int, text: str, before: int) -> ngspice.Plot:
        try:
            return ngspice.run(text, self.folder / f"chip{chip}").plot
        except StoppedEarlyError as stopped:
            raise StoppedEarlyError(
                f"{stopped} (chip {chip}, t counted from {before * self.dt:g} s; the state at that "
                f"time is kept)",
                stopped.done,
            ) from None

    def _take(self, benches: Mapping[int, Bench], ends: Sequence[ngspice.Plot]) -> None:
        """Let the circuit be where ngspice ended, and remember where the last step began."""
        targets: dict[tuple[str, str], Tensor] = {}
        earlier: dict[tuple[str, str], Tensor] = {}
        for (chip, bench), plot in zip(benches.items(), ends, strict=True):
            at = int(abs(plot["time"] - bench.span.look).argmin())
            column = {name: n for n, name in enumerate(plot.variables)}
            for part, name, element, node in bench.netlist.capacitors():
                key = (part, name)
                if key not in targets:
                    targets[key] = self.memory_of(int(part[1:]), part, name)
                    earlier[key] = targets[key].clone()
                place = (chip, 0, *element) if part[0] == "g" else (chip, *element)
                n = column[f"v({node})"]
                targets[key][place] = float(plot.values[-1, n])
                earlier[key][place] = float(plot.values[at, n])
        self._origin = [(targets[key], earlier[key]) for key in targets]

    def look_back(self) -> None:
        """Let errors and energies be those from which the last step was taken."""
        as_before(self.flow, self._origin)

    def _free(self) -> list[bool]:
        """Return which units of the datum move."""
        units = self.network.nodes[0].units
        if self.mask is not None:
            return [not bool(held) for held in self.mask.flatten()]
        return [(0, "x") not in self.held_clamps] * units

    def _starts(self, netlist: Netlist, chip: int) -> dict[str, float]:
        starts = {}
        for part, name, element, node in netlist.capacitors():
            place = (chip, 0, *element) if part[0] == "g" else (chip, *element)
            starts[node] = float(self.memory_of(int(part[1:]), part, name)[place])
        return starts

    # ---- what the netlist is given

    def _netlist(self, chip: int, free: Sequence[bool]) -> Netlist:
        key = (chip, tuple(free))
        if key not in self._cells:
            self._cells[key] = Netlist(
                self.plan,
                self.circuit,
                self._values(),
                chip=chip,
                dt=self.dt,
                free=free,
                macro=self.macro,
            )
        return self._cells[key]

    def _values(self) -> dict[str, Value]:
        """Return what is set once, feedback weights that never move among it."""
        values = dict(self.fixed)
        if self.circuit.transport == "random":
            for k in range(len(self.plan.connections)):
                if self.plan.groups[k].layer.has_feedback:
                    values[f"w_fb@m{k}"] = self.memory_of(k, f"m{k}", "w_fb")
        return values

    def _noise_waves(
        self, netlist: Netlist, chip: int, before: int, steps: int
    ) -> list[Wave | Hiss]:
        """Return the numbers that the other engines draw, each held for one step, or ngspice's."""
        if not netlist.noise:
            return []
        times = [n * self.dt for n in range(steps)]
        waves: list[Wave | Hiss] = []
        for source in netlist.noise:
            units = self.network.nodes[source.layer].units
            if self.trnoise:
                refuse_law(source)
                waves += [Hiss(source.node(i), self.dt) for i in range(units)]
                continue
            like = self.params.flat.new_empty(self.params.replicas, 1, units)
            noise = self._noise if source.of_circuit else self.chips.noise  # type: ignore[union-attr]
            assert noise is not None
            first = before
            if not source.of_circuit and self.chips:
                first = self.chips.clock.step
            rows = [
                noise.draw(source.key, source.law, like, first + n)[chip, 0].tolist()
                for n in range(steps)
            ]
            waves += [Wave(source.node(i), times, [row[i] for row in rows]) for i in range(units)]
        return waves
