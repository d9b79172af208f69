"""The spiking circuit of `pcsim.spiking`, for many chips at once.

One Euler step of everything from one state, then the events that it causes:

    τ_x dx/dt = f'(x) fb − err        τ_err derr/dt = x − μ − b − err       (clamped x stay)
    τ_w dw/dt = err_post r̂_pre        τ_w db/dt = err
    dŝ/dt = −ŝ/τ_s                    for r̂, êrr and for the sums μ, fb of the receivers
    then  k = floor((s − ŝ)/q + ½),   ŝ ← ŝ + q k,   μ_post ← μ_post + w q k,   fb likewise

This is the order in which Brian2 takes a step (groups, thresholds, synapses, resets), so that the
model in `pcsim.backends.brian.spiking` has the same events. All senders lie in one tensor, somas
first, then apical compartments, because small tensors cost by the call and not by the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.errors import ConfigError
from pcsim.kernels.dense import add_outer
from pcsim.kernels.nonlinearity import NONLINEARITIES, Nonlinearity
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense
from pcsim.network import Network
from pcsim.spiking import Spiking, refuse_beyond_events


class SpikingChips:
    """Chips that talk by events: each has its weights and its own step sizes."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        spiking: Sequence[Spiking],
        *,
        dt: float,
        plastic: bool = True,
    ) -> None:
        """Build a population.

        Main arguments:
            params: initial weights (chip, …); they are moved in place.
            circuit: of the kind `error_units`; `tau_w` must be set there.
            spiking: one description per chip.
            dt: time step in seconds; a compartment sends at most one event in it.

        Rarely used:
            plastic: False keeps the weights, for a test with the label let go.
        """
        refuse_beyond_events(network, circuit)
        if len(spiking) != params.replicas:
            raise ConfigError(
                f"SpikingChips.spiking: {len(spiking)} descriptions given for "
                f"{params.replicas} chips"
            )
        fastest = min((s.tau_s for s in spiking if s.tau_s is not None), default=float("inf"))
        if not 0 < dt <= min(fastest, circuit.tau_x, circuit.tau_err):
            raise ConfigError(
                f"SpikingChips.dt: must be positive and no longer than tau_s, tau_x and tau_err, "
                f"got {dt}"
            )
        self.network, self.params, self.circuit, self.dt = network, params, circuit, dt
        self.spiking, self.plastic = tuple(spiking), plastic
        self.top = len(network.nodes) - 1
        self.steps = 0
        maps = [node.map for node in network.nodes[:-1] if isinstance(node.map, Dense)]
        self._f: list[Nonlinearity] = [NONLINEARITIES[spec.f] for spec in maps]
        units = [node.units for node in network.nodes]
        # The error of a layer is sent only if the layer above can move.
        sender = [(f"soma{k}", units[k]) for k in range(1, self.top + 1)]
        sender += [(f"apical{k}", units[k]) for k in range(self.top - 1)]
        self._sender = _places(sender)
        like = params.flat
        self._step = torch.stack(
            [
                torch.cat(
                    [like.new_full((n,), s.q if name[0] == "s" else s.qe) for name, n in sender]
                )
                for s in self.spiking
            ]
        ).unsqueeze(1)
        self._keep = like.new_tensor([s.keep(dt) for s in self.spiking]).view(-1, 1, 1)
        self._count = torch.zeros(params.replicas, self._step.shape[2], dtype=torch.int64)
        self._free_output = False
        self._allocate(0)

    def _allocate(self, samples: int) -> None:
        """Make all states, at rest, for `samples` samples that share the weights of a chip."""
        chips, like = self.params.replicas, self.params.flat

        def rows(units: int) -> Tensor:
            return like.new_zeros(chips, samples, units)

        self.x = [rows(node.units) for node in self.network.nodes]
        self.err = [rows(node.units) for node in self.network.nodes[:-1]]
        width = self._step.shape[2]
        self._hat, self._signal = rows(width), rows(width)
        self.hat = {name: self._hat[..., place] for name, place in self._sender.items()}
        """r̂ (`soma1` …) and êrr (`apical0` …): what receivers believe, (chip, sample, unit)."""
        self.signal = {name: self._signal[..., place] for name, place in self._sender.items()}
        """What they should believe: rates and errors at the last events."""
        # Operands of matrix products have memory of their own: they are much faster so.
        self.mu = [rows(node.units) for node in self.network.nodes[:-1]]
        self.fb = {k: rows(self.network.nodes[k].units) for k in range(1, self.top)}
        self._traces = [self._hat, *self.mu, *self.fb.values()]
        self._sent = {name: rows(hat.shape[2]) for name, hat in self.hat.items()}

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        return self.steps * self.dt

    def load(self, clamps: Sequence[Tensor | None]) -> None:
        """Clamp input and label (chip or 1, sample, unit); all else flows on.

        A label of None lets the output go. Another number of samples starts from rest.
        """
        source = clamps[-1]
        if len(clamps) != len(self.x) or source is None:
            raise ConfigError(
                f"SpikingChips.load: needs {len(self.x)} entries, the last of them the input"
            )
        if source.shape[1] != self.x[0].shape[1]:
            self._allocate(source.shape[1])
        self._free_output = clamps[0] is None
        for x, clamp in zip(self.x, clamps, strict=True):
            if clamp is not None:
                x.copy_(clamp)
        self._see()

    def feedforward(self) -> None:
        """Set free somas to the feed-forward pass and errors to zero; events will follow."""
        lowest = 0 if self._free_output else 1
        for k in reversed(range(lowest, self.top)):
            views, above = self.params.of[k], self.x[k + 1]
            rate = self._f[k].apply(above, torch.empty_like(above))
            self.x[k].copy_(torch.bmm(rate, views["w"].mT))
            if "b" in views:
                self.x[k].add_(views["b"].unsqueeze(1))
        for err in self.err:
            err.zero_()
        self._see()

    def advance(self, steps: int) -> None:
        """Integrate `steps` time steps."""
        for _ in range(steps):
            self._flow()
            self._see()
            self.communicate()
            self.steps += 1

    def _flow(self) -> None:
        """Take one Euler step of somas, errors, weights and traces, all from one state."""
        circuit, dt = self.circuit, self.dt
        drift = []
        for k in range(0 if self._free_output else 1, self.top):
            if k == 0:
                drift.append((0, -self.err[0]))
                continue
            f, rate = self._f[k - 1], self.signal[f"soma{k}"]
            drift.append((k, f.pull(self.fb[k].clone(), self.x[k], rate).sub_(self.err[k])))
        lag = []
        for k, err in enumerate(self.err):
            difference = torch.sub(self.x[k], self.mu[k])
            if "b" in self.params.of[k]:
                difference.sub_(self.params.of[k]["b"].unsqueeze(1))
            lag.append(difference.sub_(err))
        if self.plastic:
            self._learn(dt / circuit.weight_time)
        for k, force in drift:
            self.x[k].add_(force, alpha=dt / circuit.tau_x)
        for err, force in zip(self.err, lag, strict=True):
            err.add_(force, alpha=dt / circuit.tau_err)
        for trace in self._traces:
            trace.mul_(self._keep)

    def _learn(self, alpha: float) -> None:
        for k, err in enumerate(self.err):
            views = self.params.of[k]
            add_outer(views["w"], err, self.hat[f"soma{k + 1}"], alpha)
            if "b" in views:
                views["b"].add_(err.sum(1), alpha=alpha)

    def _see(self) -> None:
        """Evaluate rates and errors at the present state."""
        for k, f in enumerate(self._f):
            f.apply(self.x[k + 1], self.signal[f"soma{k + 1}"])
        for k in range(self.top - 1):
            self.signal[f"apical{k}"].copy_(self.err[k])

    def communicate(self) -> None:
        """Send what has changed by half a step or more, and let it arrive at once.

        `advance` does so at the end of each step: a new sample is heard of one step after `load`,
        unless this is called in between.
        """
        k = torch.sub(self._signal, self._hat).div_(self._step).add_(0.5).floor_()
        self._count += (k != 0).sum(1)
        k.mul_(self._step)
        self._hat += k
        for name, place in self._sender.items():
            self._sent[name].copy_(k[..., place])
        for below, mu in enumerate(self.mu):
            mu.baddbmm_(self._sent[f"soma{below + 1}"], self.params.of[below]["w"].mT)
        for above, fb in self.fb.items():
            fb.baddbmm_(self._sent[f"apical{above - 1}"], self.params.of[above - 1]["w"])

    def events(self) -> dict[str, np.ndarray]:
        """Return the number of events so far (chip, unit) by sender: `soma1` …, `apical0` …."""
        return {
            name: self._count[:, place].cpu().numpy().copy() for name, place in self._sender.items()
        }


def _places(sizes: Sequence[tuple[str, int]]) -> dict[str, slice]:
    """Return where each part lies in a tensor that holds all of them side by side."""
    ends = [0, *np.cumsum([n for _, n in sizes]).tolist()]
    return {name: slice(a, b) for (name, _), (a, b) in zip(sizes, pairwise(ends), strict=True)}
