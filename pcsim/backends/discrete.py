"""The discrete schedules PC, Z-IL and iPC: one loop, which differ only in who learns when.

At step t, from one and the same state (x_t, θ_t):

    ξ ← errors;  d ← −∂F/∂x;  g ← −∂F/∂θ of the nodes that learn at t
    x_{t+1} = x_t + γ d;      θ_{t+1} = optimiser(θ_t, g)

iPC: every node learns at every step. PC: every node at the last step (or after it).
Z-IL: the nodes of level t at step t, T = depth; it is backpropagation where the network is
levelled (see `Network.levelled`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from pcsim.backends.stopped import Stopped
from pcsim.config import Schedule
from pcsim.continuous.flow import clamped
from pcsim.errors import ConfigError
from pcsim.kernels.counter import Counter
from pcsim.kernels.field import Field
from pcsim.kernels.followed_inputs import FollowedInputs
from pcsim.kernels.on_chip import Array, Encoder, Somas, fabricated, followable
from pcsim.kernels.optim import Optimizer, Rate
from pcsim.kernels.parameters import Parameters, initial_states
from pcsim.maps import Prior
from pcsim.network import Mode, Network
from pcsim.substrate import Chips
from pcsim.substrate.effect import COMMON_SITES
from pcsim.substrate.expression import Value

Nodes = tuple[int, ...]
NOT_COUNTED: AbstractContextManager[None] = nullcontext()


@dataclass(frozen=True)
class Step:
    """Which nodes take part in one step."""

    fresh: Nodes
    """Prediction must be computed again: a parent or the weights have changed."""
    active: Nodes
    """Error may differ from zero."""
    moving: Nodes
    """State moves."""
    learning: Nodes
    """Weights move."""


class Discrete:
    """One population of replicas under a discrete schedule."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        schedule: Schedule,
        optimizer: Optimizer,
        *,
        gamma: Rate | None = None,
        mode: Mode = "supervised",
        seeds: Sequence[int] = (),
        counter: Counter | None = None,
        chips: Chips | None = None,
    ) -> None:
        if schedule.rule == "bp":
            raise ConfigError(
                "Discrete.schedule: BP is not a schedule; use pcsim.backends.backprop"
            )
        self.network = network
        self.params = params
        self.schedule = schedule
        self.optimizer = optimizer
        self.gamma: Rate = schedule.gamma if gamma is None else gamma
        self.counter = counter
        self.field = Field(network, params, mode, counter=counter, chips=chips)
        self.chips = chips
        self._ideal = chips is None or not chips.substrate.effects
        if chips:
            chips.substrate.require(COMMON_SITES | {"tau_x", "velocity"}, "a discrete schedule")
        self.somas = Somas(chips, network)
        self._encode = Encoder(chips, network, mode == "supervised")
        self._array = Array(chips, params.of, reads=False)
        # γ = dt/τ_x: a soma that is slower than designed moves less per step.
        self._slowness: list[Value] = fabricated(
            chips, "tau_x", network, [1.0] * len(network.nodes)
        )
        self.seeds = list(seeds) or list(range(params.replicas))
        self.T = network.depth if schedule.rule == "zil" else schedule.T
        self.batches = 0
        self.carried: dict[int, Tensor] = {}
        """States that the next batch starts from, with init = "carry"."""
        self._last_energy: Tensor | None = None
        self._start_energy: Tensor | None = None
        self._rate: Rate = self.gamma
        self.stopped = Stopped(params.replicas)
        fast = schedule.fast and optimizer.plain and schedule.rule == "ipc" and followable(chips)
        self.inputs = FollowedInputs(self.field, enabled=fast)
        self._planned: dict[int, Step] = {}
        everything = self.field.predicted
        self._full = Step(everything, everything, self.field.free, everything)
        # A move that the next batch's initialisation throws away need not be computed.
        self._skips_last_move = (
            schedule.fast and schedule.init != "carry" and schedule.pc_update_at == "last"
        )

    def _learners(self, t: int) -> Nodes:
        rule, last = self.schedule.rule, self.schedule.pc_update_at == "last"
        if rule == "ipc" or (rule == "pc" and last and t == self.T - 1):
            return self.field.predicted
        if rule == "zil":
            return tuple(i for i in self.field.predicted if self.network.levels[i] == t)
        return ()

    @property
    def steps(self) -> Iterator[Step]:
        """The plans of all steps of a batch, one after the other."""
        return (self._planned_step(t) for t in range(self.T))

    def _planned_step(self, t: int) -> Step:
        """Return the plan of step t; once errors are everywhere, all steps but the last are alike.

        A presentation of 2³⁰ steps needs no list of them.
        """
        alike = max(*self.network.reach, *self.network.stirred, 0) + 1
        if self.schedule.rule != "zil" and t != self.T - 1:
            t = min(t, alike)
        if t not in self._planned:
            self._planned[t] = self._plan(t)
        return self._planned[t]

    def _plan(self, t: int) -> Step:
        """Leave out what is known to be zero or unchanged after a feed-forward start.

        The only error then is at node 0, and errors spread by one value node per step. Nothing may
        stir: no prior that pulls, and no weight that moves without an error (decay, momentum,
        learned variances).
        """
        field, network = self.field, self.network
        learning = self._learners(t)
        has_prior = any(isinstance(node.map, Prior) for node in network.nodes)
        if self.schedule.rule == "zil" and t == self.T - 1 and not has_prior and network.levelled:
            # Only the top map is left: its prediction has not changed since the feed-forward pass.
            return Step((), learning, (), learning)
        quiet = self.schedule.fast and self.schedule.init == "ff" and self._ideal
        quiet &= not has_prior
        if self.schedule.rule == "ipc":
            quiet &= self.optimizer.plain
            quiet &= not any("log_var" in views for views in self.params.of)
        if not quiet:
            return Step(field.predicted, field.predicted, field.free, learning)
        reach, stirred = network.reach, network.stirred
        learnt = bool(learning) and self.schedule.rule != "pc"
        changed = {i for i in (*field.free, *field.transparent) if stirred[i] <= t}
        fresh = tuple(
            i
            for i in field.predicted
            if any(p in changed for p in network.nodes[i].parents) or (learnt and reach[i] < t)
        )
        reached = tuple(i for i in field.predicted if reach[i] <= t)
        active = field.predicted if self.schedule.rule == "pc" and learning else reached
        if self.schedule.rule == "ipc":
            learning = reached
        moving = tuple(i for i in field.free if stirred[i] <= t + 1)
        return Step(fresh, active, moving, learning)

    def start(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """Clamp new data (one tensor or None per node) and initialise the states."""
        field = self.field
        clamps = self._encode(clamps)
        like = next(c for c in clamps if c is not None)
        samples = like.shape[1]
        replicas = self.params.replicas
        states: list[Tensor | None] = []
        carried = bool(self.carried) and all(v.shape[1] == samples for v in self.carried.values())
        for index, node in enumerate(self.network.nodes):
            clamp = clamps[index]
            hold = field.holds[index]
            if (clamp is None) != (hold in ("free", "transparent")):
                raise ConfigError(
                    f"node {index} is {hold} in mode {field.mode!r}: "
                    + ("data is missing" if clamp is None else "it takes no data")
                )
            if hold == "transparent":
                states.append(None)
            elif hold == "clamped":
                assert clamp is not None
                states.append(clamp)
            elif hold == "masked":
                assert clamp is not None
                states.append(clamp.expand(replicas, -1, -1).clone())
            elif carried:
                states.append(self.carried[index])
            elif self.schedule.init == "ff" and node.parents and field.holds_room(index, samples):
                states.append(field.x[index])  # will be overwritten by the feed-forward pass
            else:
                states.append(self._fresh_state(index, (replicas, samples, node.units), like))
        field.load(states, mask)
        self._initialise(samples, feedforward=not carried and self.schedule.init in ("ff", "carry"))
        self.batches += 1
        if self.schedule.init == "carry":
            self.carried = {i: field.x[i] for i in field.free if field.holds[i] == "free"}
        self._last_energy, self._rate = None, self.gamma

    def _fresh_state(self, index: int, shape: tuple[int, int, int], like: Tensor) -> Tensor:
        init, sd = self.schedule.init, self.schedule.init_sd
        is_root = not self.network.nodes[index].parents
        if init == "normal" or (is_root and init != "zero"):
            drawn = initial_states(self.seeds, self.batches, index, sd, shape[1:])
            return torch.as_tensor(drawn, dtype=like.dtype, device=like.device)
        return like.new_zeros(shape)

    def _initialise(self, samples: int, feedforward: bool) -> None:
        if self.counter:
            self.counter.paused = True
        if feedforward:
            self.field.read_weights()
            self.field.feedforward()
            self.field.errors(self.field.predicted)  # zeros that the plan will not visit
            if self.schedule.rule == "zil":
                self._start_energy = self.field.energy()
        self.inputs.load(samples, self.T, predict=not feedforward)
        if self.counter:
            self.counter.paused = False

    def evaluate(self, step: Step, *, move: bool = False) -> list[tuple[int, Tensor]]:
        """Compute predictions and errors of one step; return the drift too if states shall move."""
        field, counter = self.field, self.counter
        field.read_weights()
        with counter.simultaneous("forward") if counter else NOT_COUNTED:
            self.inputs.predict(step.fresh, self._drive_rate())
        # Errors that pass through transparent nodes are products on the way back, as the drift is.
        with counter.simultaneous("backward") if counter else NOT_COUNTED:
            field.errors(step.active)
            return field.drift(step.moving, step.active) if move else []

    def _drive_rate(self) -> Rate:
        return self.optimizer.alpha * self.optimizer.scale

    def step(self, step: Step | None = None, *, move: bool = True) -> None:
        """One joint step from one state: errors, drift, learning, then both moves."""
        step = step or self._full
        counter = self.counter
        drift = self.evaluate(step, move=move)
        self._learn(step.learning)
        if self.schedule.discount < 1:
            self._discount()
        for index, d in drift:
            self._move(index, d)
        if self.chips:
            self.chips.advance()
        if self.stopped:
            self.stopped.hold(self._own())
        if counter and step.learning:
            # logged behind the drift's products: the update uses errors from before them
            counter.updated(self._changed(step.learning), before=1 if drift else 0)

    def _move(self, index: int, drift: Tensor) -> None:
        """Do x ← x + γ d, on hardware x ← x + dt·velocity(γ d/dt; x)."""
        x, rate = self.field.x[index], self._rate
        if isinstance(rate, Tensor):
            rate = rate.view(-1, 1, 1)
        if not self._ideal and self.chips:
            rate = rate / self._slowness[index]
            drift = self.somas.force(index, x, drift, self.chips.clock.dt / rate)
        if isinstance(rate, Tensor):
            x.addcmul_(drift, rate)
        else:
            x.add_(drift, alpha=rate)

    def _changed(self, nodes: Nodes) -> list[int]:
        """Return the nodes whose weights received a non-zero gradient."""
        return [i for i in nodes if self.field.has_error(i)]

    def _learn(self, nodes: Nodes) -> None:
        if not nodes:
            return
        before = self.params.flat.clone() if self._array.writes else None
        asked = self._array.asked_by(self.field, nodes, self.optimizer)
        into, alpha, beta = self.optimizer.target
        self.optimizer.commit(self.inputs.learn(nodes, into, alpha, beta))
        if before is not None:
            self._array.rewrite(self.params, before, nodes, self.optimizer.alpha, asked)

    def _discount(self) -> None:
        energy = self.field.energy()
        if self._last_energy is not None:
            stalled = energy >= self._last_energy
            # In the precision of the states: `where` of two Python numbers is a float32.
            factor = torch.ones_like(energy).masked_fill_(stalled, self.schedule.discount)
            self._rate = factor * self._rate
        self._last_energy = energy

    def set_rates(self, gamma: Rate, alpha: Rate) -> None:
        """Change the step sizes between two steps; what was kept back is written first."""
        self.inputs.predict(tuple(self.inputs.active), self._drive_rate())
        self.finish()
        if self.optimizer.direct and isinstance(alpha, Tensor):
            raise ConfigError("set_rates.alpha: one per replica needs Optimizer(in_place=False)")
        self.gamma = self._rate = gamma
        self.optimizer.alpha = alpha

    def stop(self, replicas: Tensor) -> None:
        """Let replicas (replica,) leave: nothing of theirs moves from now on."""
        rows = (replicas.cpu() & ~self.stopped.chips).nonzero().flatten()
        self.inputs.write_rows(self._drive_rate(), rows.to(self.params.flat.device))
        self.stopped.add(replicas, self._own())

    def _own(self) -> dict[str, Tensor]:
        """Return all that moves: states, weights, what an optimiser and devices remember."""
        named = {f"x{i}": self.field.x[i] for i in self.field.free}
        named |= {"flat": self.params.flat, **self.optimizer.moments(), **self.inputs.tensors()}
        memory = self.chips.state() if self.chips else {}
        return named | {f"chip.{name}": value for name, value in memory.items()}

    def state(self) -> dict[str, Tensor]:
        """Return the states in the middle of a batch, what is clamped, and what was kept back."""
        field = self.field
        state = {f"x{i}": field.x[i] for i in field.free}
        state |= clamped(field.x, {*field.free, *field.transparent}) | self.inputs.state()
        state |= {"batches": torch.tensor(self.batches), "stopped": self.stopped.chips}
        if field.mask is not None:
            state["mask"] = field.mask
        if self._last_energy is not None:
            rate = torch.as_tensor(self._rate, dtype=torch.float64)
            state |= {"last_energy": self._last_energy, "rate": rate}
        return state

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on in the middle of a batch; weights, optimiser and chips are restored before."""
        nodes = range(len(self.network.nodes))
        states = [state.get(f"clamp{i}", state.get(f"x{i}")) for i in nodes]
        self.field.load(states, state.get("mask"))
        self.batches = int(state["batches"])
        like = next(s for s in states if s is not None)
        self.inputs.load(like.shape[1], self.T)
        self.inputs.restore(state)
        self._rate = self.gamma
        self._last_energy = state.get("last_energy")
        if self._last_energy is not None:
            rate = state["rate"]
            self._rate = rate.to(like) if rate.ndim else float(rate)
        self.stopped.add(state["stopped"], self._own())

    def finish(self) -> None:
        """Write what was kept back during the batch."""
        self.inputs.write(self._drive_rate())

    def batch(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """Run one batch from its initialisation to its last weight update.

        With `fast`, a last state move that no weight would see is left out.
        """
        self.start(clamps, mask)
        for t, step in enumerate(self.steps):
            last = t == self.T - 1
            self.step(step, move=not (last and self._skips_last_move))
        if self.schedule.rule == "pc" and self.schedule.pc_update_at == "after":
            self.evaluate(self._full)
            self._learn(self.field.predicted)
            if self.counter:
                self.counter.updated(self._changed(self.field.predicted))
        self.finish()

    def energy(self) -> Tensor:
        """Return F (replica,) at the last evaluated state, summed over samples.

        Z-IL evaluates different nodes at different steps; there it is F at the start of the batch,
        which is the loss of BP.
        """
        return self.field.energy() if self._start_energy is None else self._start_energy
