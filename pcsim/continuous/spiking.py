"""The circuit `spiking` (see `pcsim.circuits.spiking`), for many chips at once.

One Euler step of everything from one state, then the events that it causes:

    τ_x dx/dt = f'(x) fb − err        τ_err derr/dt = x − μ − b − err       (clamped x stay)
    τ_w dw/dt = err_post r̂_pre − λw   τ_w db/dt = err
    dŝ/dt = −ŝ/τ_s                    for r̂, êrr and for the sums μ, fb of the receivers
    then  k = floor((s − ŝ)/q + ½),   ŝ ← ŝ + q k,   μ_post ← μ_post + w q k,   fb likewise

This is the order in which Brian2 takes a step (groups, thresholds, synapses, resets), so that both
have the same events. All senders of a chip lie in one row, somas first, then apical compartments,
each with all its samples: small tensors cost by the call and not by the number, and the compiled
steps (`pcsim.native`) find the samples of a sender in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits.spiking import APICAL, SOMA, refuse_beyond_events
from pcsim.continuous.flow import Force, Tau, clamped, reference, set_moving
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.maps.dense import add_outer
from pcsim.kernels.nonlinearity import NONLINEARITIES, Nonlinearity
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense
from pcsim.network import Mode, Network

OWN = ("q", "qe", "tau_s")
"""What may differ between the chips of one population."""


class SpikingFlow:
    """Chips that talk by events: each has its weights, and may have its own step sizes and leak."""

    feedback = None

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        mode: Mode,
        *,
        dt: float,
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        tau_w: Tensor | None = None,
        each: Sequence[Circuit] = (),
    ) -> None:
        """Build the flow; `each`: the circuits of all chips, where step sizes or leaks differ."""
        refuse_beyond_events(network, mode, "circuit.kind spiking")
        self.network, self.params, self.circuit, self.dt = network, params, circuit, dt
        self.top, self.scale = len(network.nodes) - 1, scale
        own = _circuits(circuit, each, params.replicas)
        _refuse_long_steps(own, dt)
        self.tau_x = list(tau_x or [circuit.tau_x] * len(network.nodes))
        self.tau_w = circuit.weight_time if tau_w is None else tau_w
        maps = [node.map for node in network.nodes[:-1] if isinstance(node.map, Dense)]
        self._f: list[Nonlinearity] = [NONLINEARITIES[spec.f] for spec in maps]
        units = [node.units for node in network.nodes]
        # The error of a layer is sent only if the layer above can move.
        senders = [(SOMA, k) for k in range(1, self.top + 1)]
        senders += [(APICAL, k) for k in range(self.top - 1)]
        self._senders = [f"{event.sender}{k}" for event, k in senders]
        self._widths = [units[k] for _, k in senders]
        self._sending = senders
        self._beliefs = [f"{event.belief}{k}" for event, k in senders]
        like = params.flat
        steps = [[getattr(c, event.step) for event, _ in senders] for c in own]
        self._own_steps = like.new_tensor(steps).view(len(own), 1, -1)
        """The size of a step by chip and sender."""
        keep = [1 - dt / c.tau_s if c.tau_s else 1.0 for c in own]
        self._keep = like.new_tensor(keep).view(-1, 1, 1)
        width = sum(self._widths)
        self._count = torch.zeros(len(own), width, dtype=torch.int64, device=like.device)
        self._counts = dict(
            zip(self._senders, self._count.split_with_sizes(self._widths, 1), strict=True)
        )
        self.weights = [params.flat]
        # Views that every step needs are made once: a view costs as much as a small sum.
        self._w = [views["w"] for views in params.of[:-1]]
        self._w_back = [w.mT for w in self._w]
        self._b = [views["b"].unsqueeze(1) if "b" in views else None for views in params.of[:-1]]
        self.x: list[Tensor] = []
        self._free = False
        """Whether the output moves."""
        self._stale = True
        """Whether somebody may have changed x or err since rates and errors were looked at."""

    def _allocate(self, samples: int) -> None:
        """Make all states, at rest, for `samples` samples that share the weights of a chip."""
        chips, like = self.params.replicas, self.params.flat

        def rows(units: int) -> Tensor:
            return like.new_zeros(chips, samples, units)

        self.x = [rows(node.units) for node in self.network.nodes]
        self.err = [rows(node.units) for node in self.network.nodes[:-1]]
        self._residual = [torch.zeros_like(err) for err in self.err]
        self._sizes = [samples * width for width in self._widths]
        repeats = torch.tensor(self._sizes, device=like.device)
        self._step = self._own_steps.repeat_interleave(repeats, 2)
        self._hat, self._signal = torch.zeros_like(self._step), torch.zeros_like(self._step)
        hats, signals = self._by_sender(self._hat), self._by_sender(self._signal)
        self.hat = dict(zip(self._senders, hats, strict=True))
        """r̂ (`soma1` …) and êrr (`apical0` …): what receivers believe, (chip, sample, unit)."""
        self.signal = dict(zip(self._senders, signals, strict=True))
        """What they should believe: rates and errors at the last events."""
        self._rates, self._errors = signals[: self.top], signals[self.top :]
        self._believed_rates = hats[: self.top]
        # Operands of matrix products have memory of their own: they are much faster so.
        self.mu = [rows(node.units) for node in self.network.nodes[:-1]]
        self.fb = {k: rows(self.network.nodes[k].units) for k in range(1, self.top)}
        self._traces = [self._hat, *self.mu, *self.fb.values()]
        self._sent = [rows(n) for n in self._widths]

    def _by_sender(self, row: Tensor) -> list[Tensor]:
        """Return what each sender has of a row, (chip, sample, unit)."""
        parts = row.split_with_sizes(self._sizes, 2)
        return [
            part.view(len(row), -1, width) for part, width in zip(parts, self._widths, strict=True)
        ]

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp input and label (chip or 1, sample, unit); all else flows on.

        A label of None lets the output go. Another number of samples starts from rest.
        """
        if len(clamps) != len(self.network.nodes) or clamps[-1] is None:
            raise ConfigError(
                f"load.clamps: a spiking circuit needs {len(self.network.nodes)} entries, the last "
                f"of them the input"
            )
        chips, samples = self.params.replicas, reference(clamps, self.x).shape[1]
        if not self.x or samples != self.x[0].shape[1]:
            self._allocate(samples)
        label = clamps[0]
        if label is not None:
            self.x[0] = label.expand(chips, -1, -1)
        elif not self._free:
            # A label may be a shared view.
            self.x[0] = self.x[0].clone(memory_format=torch.contiguous_format)
        self._free = label is None
        for k, clamp in enumerate(clamps[1:-1], start=1):
            if clamp is not None:
                self.x[k].copy_(clamp)
        self.x[-1] = clamps[-1].expand(chips, -1, -1)
        self._f[-1].apply(self.x[-1], self._rates[-1])
        self._stale = True

    def feedforward(self) -> None:
        """Set free somas to the feed-forward pass and errors to zero; events will follow."""
        for k in reversed(range(0 if self._free else 1, self.top)):
            above, b = self.x[k + 1], self._b[k]
            rate = self._f[k].apply(above, torch.empty_like(above))
            self.x[k].copy_(torch.bmm(rate, self._w_back[k]))
            if b is not None:
                self.x[k].add_(b)
        for err in self.err:
            err.zero_()
        self._stale = True

    def forces(self) -> list[Force]:
        """Return the forces on somas and errors, at the present state."""
        if self._stale:
            self._see()
        forces = []
        for k in range(0 if self._free else 1, self.top):
            if k:
                pull, rate = self._f[k - 1].pull, self._rates[k - 1]
                value = pull(self.fb[k].clone(), self.x[k], rate).sub_(self.err[k])
            else:
                value = -self.err[0]
            forces.append(Force(f"x{k}", self.x[k], value, self.tau_x[k], False, True))
        for k, (err, b) in enumerate(zip(self.err, self._b, strict=True)):
            residual = torch.sub(self.x[k], self.mu[k], out=self._residual[k])
            if b is not None:
                residual.sub_(b)
            forces.append(Force(f"err{k}", err, torch.sub(residual, err), self.circuit.tau_err))
        return forces

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt, at the state of the last `forces`."""
        if isinstance(self.tau_w, Tensor):
            self.params.flat.add_(self.weight_rates()[0], alpha=dt)
            return
        alpha = dt / self.tau_w
        if decay := alpha * self.circuit.weight_decay:
            for w in self._w:
                w.mul_(1 - decay)
        self._hebb(self.params.of, alpha * self.scale)

    def _hebb(self, of: Sequence[Mapping[str, Tensor]], alpha: float) -> None:
        """Add what errors and beliefs teach, times alpha."""
        for k, err in enumerate(self.err):
            add_outer(of[k]["w"], err, self._believed_rates[k], alpha)
            if "b" in of[k]:
                of[k]["b"].add_(err.sum(1), alpha=alpha)

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt, at the state of the last `forces`."""
        rate = torch.zeros_like(self.params.flat)
        views = self.params.views(rate)
        self._hebb(views, self.scale)
        for into, stored in zip(views[:-1], self.params.of[:-1], strict=True):
            into["w"].sub_(stored["w"], alpha=self.circuit.weight_decay)
        return [rate.div_(self.tau_w)]

    def follow(self) -> None:
        """No rate looks ahead."""

    def communicate(self) -> None:
        """Let traces leak over one step, then send what is off by half a step or more."""
        for trace in self._traces:
            trace.mul_(self._keep)
        self._see()
        self.send()

    def _see(self) -> None:
        """Evaluate rates and errors at the present state; those of the input stay."""
        for k in range(1, self.top):
            self._f[k - 1].apply(self.x[k], self._rates[k - 1])
        for k, error in enumerate(self._errors):
            error.copy_(self.err[k])
        self._stale = False

    def send(self) -> None:
        """Send what receivers are wrong about, and let it arrive at once.

        `communicate` does so at the end of each step: a new sample is heard of one step after
        `load`, unless this is called in between.
        """
        if self._stale:
            self._see()
        k = torch.sub(self._signal, self._hat).div_(self._step).add_(0.5).floor_()
        self._add_up(k != 0)
        k.mul_(self._step)
        self._hat += k
        for sent, part in zip(self._sent, k.split_with_sizes(self._sizes, 2), strict=True):
            sent.view_as(part).copy_(part)
        for below, mu in enumerate(self.mu):
            mu.baddbmm_(self._sent[below], self._w_back[below])
        for above, fb in self.fb.items():
            fb.baddbmm_(self._sent[self.top + above - 1], self._w[above - 1])

    def _add_up(self, sent: Tensor) -> None:
        """Count events, over all samples."""
        if sent.shape[2] == self._count.shape[1]:
            self._count += sent[:, 0]
            return
        for count, part in zip(self._counts.values(), self._by_sender(sent), strict=True):
            count += part.sum(1)

    def events(self) -> dict[str, Tensor]:
        """Return the events so far (chip, unit) by sender, over all samples: `soma1`, `apical0`."""
        return dict(self._counts)

    def settle_weights(self) -> None:
        """Nothing is kept back."""

    def settle_rows(self, rows: Tensor) -> None:
        """Nothing is kept back here."""

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back: nothing."""
        return {}

    def theta(self) -> Parameters:
        """Return the weights in the units of the network."""
        return self.params

    def stored(self) -> list[Tensor]:
        """Return all that learns."""
        return self.weights

    def energy_by_node(self) -> Tensor:
        """Return ½‖x − μ − b‖² (chip, layer) at the last `forces`, μ as it has arrived."""
        return torch.stack([0.5 * r.square().sum((1, 2)) for r in self._residual], 1)

    def held(self, k: int, name: str) -> Tensor:
        """Return a state of layer k, by its name in the equations."""
        for event, layer in self._sending:
            if (name, k) == (event.belief, layer):
                return self.hat[f"{event.sender}{k}"]
        if name == APICAL.total:
            return self.fb[k]
        return {"x": self.x, "err": self.err, SOMA.total: self.mu}[name][k]

    def clamped(self) -> dict[tuple[int, str], Tensor]:
        """Return what is clamped, by layer and name."""
        layers = (self.top,) if self._free else (0, self.top)
        return {(k, "x"): self.x[k] for k in layers}

    def saw(self, k: int, residual: Tensor) -> None:
        """Let the energy of layer k be that of a residual; steps were taken elsewhere."""
        self._residual[k].copy_(residual)
        self._stale = True

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name; whoever asks may change them."""
        self._stale = True
        return self._moving()

    def _moving(self) -> dict[str, Tensor]:
        named = {f"x{k}": self.x[k] for k in range(0 if self._free else 1, self.top)}
        named |= {f"err{k}": err for k, err in enumerate(self.err)}
        named |= dict(zip(self._beliefs, self.hat.values(), strict=True))
        named |= {f"{SOMA.total}{k}": mu for k, mu in enumerate(self.mu)}
        return named | {f"{APICAL.total}{k}": fb for k, fb in self.fb.items()}

    def states(self) -> dict[str, Tensor]:
        """Return somas, errors and traces."""
        return {f"x{k}": x for k, x in enumerate(self.x)} | self._moving()

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""
        free = {k for k in range(self.top) if k or self._free}
        return self._moving() | clamped(self.x, free) | {"events": self._count}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        self.load([state.get(f"clamp{k}") for k in range(self.top + 1)])
        set_moving(self.moving(), state)
        self._count.copy_(state["events"])


def _circuits(circuit: Circuit, each: Sequence[Circuit], chips: int) -> list[Circuit]:
    """Return the circuits of all chips, which share all but what events need."""
    own = list(each) or [circuit] * chips
    if len(own) != chips:
        raise ConfigError(f"each: {len(own)} circuits given for {chips} chips")
    shared = {name: getattr(circuit, name) for name in OWN}
    for k, other in enumerate(own):
        if other.model_copy(update=shared) != circuit:
            raise UnsupportedError(
                f"each[{k}]: the chips of one population share all of their circuit but "
                f"{', '.join(OWN)}"
            )
    return own


def _refuse_long_steps(own: Sequence[Circuit], dt: float) -> None:
    fastest = min(min(c.tau_s or inf, c.tau_x, c.tau_err) for c in own)
    if dt > fastest:
        raise ConfigError(
            f"solver.dt: must be no longer than circuit.tau_s, circuit.tau_x and circuit.tau_err "
            f"of a spiking circuit (here {fastest:g} s), got {dt:g} s: a compartment sends at most "
            f"one event per step"
        )
