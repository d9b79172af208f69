"""The continuous backend: one population of chips, integrated as one tensor.

A `Continuous` joins a flow (the circuit's equations) with a solver, clamps data, and steps. It
knows chips that have diverged, and it never resets anything unless it is told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from pcsim.backends.stopped import Stopped
from pcsim.circuit import Circuit
from pcsim.circuits import PAGES
from pcsim.circuits.support import require_sites
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.continuous.flow import Flow, Tau
from pcsim.continuous.plan_flow import PlanFlow
from pcsim.continuous.solvers import SINGLE_STAGE, Draw, Name, fresh, solver
from pcsim.continuous.spiking import SpikingFlow
from pcsim.engine import beyond_limit, of_run
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network
from pcsim.substrate import Chips

ONCE_PER_STEP = ("euler", "maruyama")
"""Solvers that look at the state once per time step, as hardware and events do."""
WARM_UP = 3
"""Ordinary steps before a CUDA graph is recorded."""


class Continuous:
    """Chips in continuous time."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        *,
        dt: float,
        solver_name: Name = "euler",
        mode: Mode = "supervised",
        seeds: Sequence[int] = (),
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        tau_w: Tensor | None = None,
        draw: Draw = fresh,
        fast: bool = True,
        cuda_graph: bool = False,
        chips: Chips | None = None,
        each: Sequence[Circuit] = (),
    ) -> None:
        """Build a population.

        Main arguments:
            params: initial weights (chip, …); they are moved in place.
            circuit: kind and time constants; `tau_w` must be set there.
            dt: time step in seconds.

        Rarely used:
            scale: 1 for a sum over the samples of a batch, 1/B for their mean.
            tau_x: time constants per node, each a number or a tensor (chip, 1, unit).
            tau_w: time constants per weight, (chip, parameter) or (chip, 1).
            draw: source of standard normal numbers, so that noise can be frozen in tests.
            fast: follow clamped inputs through their Gram matrix where exact.
            chips: the hardware they are, one per replica; None is ideal hardware.
            each: spiking: the circuits of all chips, where step sizes or leaks differ.
            cuda_graph: replay the step as a CUDA graph (see `_advance_by_graph`). Experimental:
                it has never been run on a GPU.
        """
        if dt <= 0:
            raise ConfigError(f"solver.dt: must be positive, got {dt}")
        self.network, self.params, self.circuit, self.dt = network, params, circuit, dt
        self.mode: Mode = mode
        self.chips = chips
        single = solver_name in SINGLE_STAGE
        self._refuse_stages(single, solver_name)
        if chips and chips.substrate.effects:
            self._refuse_hardware(chips, solver_name)
        chip_seeds = list(seeds) or list(range(params.replicas))
        self.flow: Flow
        if each and circuit.kind != "spiking":
            raise UnsupportedError(f"each: chips of a {circuit.kind} circuit share one circuit")
        if circuit.kind == "spiking":
            self.flow = SpikingFlow(
                network,
                params,
                circuit,
                mode,
                dt=dt,
                scale=scale,
                tau_x=tau_x,
                tau_w=tau_w,
                each=each,
            )
        elif circuit.kind in ("algebraic", "error_units"):
            self.flow = ErrorFlow(
                network,
                params,
                circuit,
                mode,
                dt=dt,
                seeds=chip_seeds,
                scale=scale,
                tau_x=tau_x,
                tau_w=tau_w,
                follow_inputs=fast and single,
                chips=chips,
            )
        elif tau_w is not None:
            raise UnsupportedError(f"tau_w per weight: not available for circuit {circuit.kind}")
        elif tau_x is not None and PAGES[circuit.kind].one_capacity:
            raise UnsupportedError(f"tau_x per unit: not available for circuit {circuit.kind}")
        else:
            self.flow = PlanFlow(
                network,
                params,
                circuit,
                mode,
                dt=dt,
                seeds=chip_seeds,
                scale=scale,
                tau_x=tau_x,
                chips=chips,
            )
        self.solver = solver(solver_name, dt, circuit.sigma_x, draw)
        if cuda_graph and params.flat.device.type != "cuda":
            raise UnsupportedError(
                f"cuda_graph: needs chips on a CUDA device, not on {params.flat.device}"
            )
        self._graphs = cuda_graph
        self.reason = ""
        """Why torch takes the steps, where that was a choice."""
        self.steps = 0
        self.stopped = Stopped(params.replicas)
        self.diverged_at = torch.full((params.replicas,), float("nan"), dtype=torch.float64)

    def _refuse_stages(self, single: bool, name: str) -> None:
        circuit = self.circuit
        if not single and (circuit.delay_err or circuit.delay_fb or circuit.look_soma):
            raise UnsupportedError(
                f"solver.name {name!r}: delays and somatic look-ahead use values of whole past "
                f"steps; use {' or '.join(SINGLE_STAGE)}"
            )
        if circuit.kind == "spiking" and name not in ONCE_PER_STEP:
            raise UnsupportedError(
                f"solver.name {name!r}: events are sent once per time step; use euler or maruyama"
            )

    def _refuse_hardware(self, chips: Chips, name: str) -> None:
        if name not in ONCE_PER_STEP:
            raise UnsupportedError(
                f"solver.name {name!r}: hardware acts once per time step; use euler or maruyama"
            )
        require_sites(chips, self.circuit, self.params.replicas)

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        return self.steps * self.dt

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data for `steps` steps; all else flows on.

        A node that the mode clamps but that gets None is let go, from its present value.
        """
        self.flow.load(clamps, mask, steps)

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass (a reset: something a chip must be told)."""
        self.flow.feedforward()

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Take note that a clamped tensor was changed in place: nothing to do, it is shared."""

    def set_states(self, states: Mapping[str, Tensor]) -> None:
        """Set states that move, by name."""
        moving = self.flow.moving()
        for name, value in states.items():
            moving[name].copy_(value)

    def zero_states(self) -> None:
        """Set every state that moves to zero."""
        for state in self.flow.moving().values():
            state.zero_()

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on but the hardware's own; nothing is changed."""
        state = {f"weights{k}": array for k, array in enumerate(self.flow.weights)}
        return state | self.flow.state() | of_run(self)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        for k, array in enumerate(self.flow.weights):
            array.copy_(state[f"weights{k}"])
        self.flow.restore(state)
        self.steps = int(state["steps"])
        self.diverged_at.copy_(state["diverged_at"])

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Take one step whenever the program yields; it acts between the steps."""
        for _ in program:
            self.advance(1)

    def advance(self, steps: int, watch: Callable[[], None] | None = None) -> None:
        """Integrate `steps` time steps; `watch` is called after each."""
        if self._graphs and steps > WARM_UP + 1 and watch is None:
            self._advance_by_graph(steps)
            return
        for _ in range(steps):
            self.solver.step(self.flow)
            self.steps += 1
            if self.stopped:
                self.stopped.hold(self._own())
            if watch:
                watch()

    def _advance_by_graph(self, steps: int) -> None:
        """Run a few ordinary steps, record one, and replay it: valid until data is clamped anew.

        Without noise only: a replay would repeat the random numbers of a generator it does not own.
        """
        if self.circuit.sigma_x:
            raise UnsupportedError("cuda_graph: circuits with noise are not captured")
        if self.stopped:
            raise UnsupportedError("cuda_graph: chips that have stopped are not captured")
        for _ in range(WARM_UP):
            self.solver.step(self.flow)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.solver.step(self.flow)
        for _ in range(steps - WARM_UP):  # recording runs nothing
            graph.replay()
        self.steps += steps

    def look_back(self) -> None:
        """Let errors and energies be those from which the last step was taken."""
        self.solver.look_back(self.flow)

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""
        rows = (chips.cpu() & ~self.stopped.chips).nonzero().flatten()
        self.flow.settle_rows(rows.to(self.params.flat.device))
        self.stopped.add(chips, self._own())

    def _own(self) -> dict[str, Tensor]:
        """Return all that moves: states, weights, what devices remember."""
        named = self.flow.moving() | self.flow.kept_back()
        named |= {f"events.{sender}": count for sender, count in self.flow.events().items()}
        named |= {f"weights{k}": w for k, w in enumerate(self.flow.weights)}
        memory = self.chips.state() if self.chips else {}
        return named | {f"chip.{name}": value for name, value in memory.items()}

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and by how many threads."""
        own: dict[str, str | int] = {"engine": "torch", "threads": torch.get_num_threads()}
        return own | ({"engine_reason": self.reason} if self.reason else {})

    def mark_diverged(self) -> Tensor:
        """Note the time at which chips are found diverged; return all that are (chip,)."""
        diverged = beyond_limit(self.flow.states(), self.params.flat)
        self.diverged_at[diverged & self.diverged_at.isnan() & ~self.stopped.chips] = self.time
        return ~self.diverged_at.isnan()
