"""The circuits `algebraic` and `error_units`, for every network.

    algebraic      τ_x dx^l/dt = own^l + Σ_children Jᵀ ξ^child
    error_units    τ_e de^l/dt = ε^l − σ² e^l,  and e^l stands for ξ^l everywhere
                   look-ahead: ê = e + τ̂ de/dt stands for it
    weights        τ_w dθ^l/dt = (∂μ^l/∂θ^l)ᵀ ξ^l − λ θ^l
    soma look-ahead (latent equilibrium): all of the above at x̆ = x + τ̂ dx/dt of the last step

Errors may arrive late (`delay_err`), or their feedback alone (`delay_fb`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.continuous.delay import DelayLine, whole_steps
from pcsim.continuous.flow import Force, Tau, clamped, reference, set_moving
from pcsim.energies import Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.energy import PrecisionGaussian, UnitGaussian
from pcsim.kernels.field import Field
from pcsim.kernels.followed_inputs import FollowedInputs
from pcsim.kernels.maps.convolution import ConvolutionKernel
from pcsim.kernels.maps.dense import DenseKernel, PerPositionKernel
from pcsim.kernels.on_chip import (
    Array,
    Encoder,
    Somas,
    fabricated,
    fabricated_tau_w,
    followable,
    times_of,
)
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback
from pcsim.maps import Prior
from pcsim.network import Mode, Network
from pcsim.substrate import Chips


class ErrorFlow:
    """A network whose errors are computed, or carried by units of their own."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        mode: Mode,
        *,
        dt: float,
        seeds: list[int],
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        tau_w: Tensor | None = None,
        follow_inputs: bool = False,
        chips: Chips | None = None,
    ) -> None:
        """Build the flow; `tau_x` per node and `tau_w` per weight may replace the circuit's."""
        self.network, self.params, self.circuit = network, params, circuit
        self.scale, self.dt = scale, dt
        self.field = Field(network, params, mode, chips=chips)
        self.feedback = Feedback(circuit.transport, params, seeds, circuit.feedback_gain)
        count = len(network.nodes)
        self.tau_x = fabricated(chips, "tau_x", network, tau_x or [circuit.tau_x] * count)
        self.tau_err = fabricated(chips, "tau_err", network, [circuit.tau_err] * count)
        nominal = circuit.weight_time if tau_w is None else tau_w
        self.tau_w = fabricated_tau_w(chips, params, nominal)
        self.chips = chips
        self.somas = Somas(chips, network)
        self._encode = Encoder(chips, network, mode == "supervised")
        self._forward = Array(chips, params.of, reads=False)
        self._backward = Array(chips, self.feedback.of, "feedback")
        self.lagged = circuit.kind == "error_units"
        self._distorted = self.lagged or circuit.delay_err > 0
        self.field.reads_errors_late = self._distorted
        self._gaussian = self._gaussians() if self._distorted else {}
        plain = not isinstance(self.tau_w, Tensor) and not circuit.weight_decay
        plain &= circuit.transport == "shared"
        plain &= followable(chips)
        self.inputs = FollowedInputs(self.field, enabled=follow_inputs and plain)
        predicted = self.field.predicted
        steps = whole_steps("circuit.delay_err", circuit.delay_err, dt)
        steps_fb = whole_steps("circuit.delay_fb", circuit.delay_fb, dt)
        self._late = {i: DelayLine(steps) for i in predicted}
        self._late_fb = {i: DelayLine(steps_fb) for i in predicted}
        self._delays_fb = steps_fb > 0
        dense = all(isinstance(self.field.maps[i], DenseKernel | None) for i in predicted)
        if self._delays_fb and not (dense and not self.field.transparent):
            raise UnsupportedError(
                "circuit.delay_fb: only dense layers keep the feedback of past steps; "
                "use circuit.delay_err, which delays the errors of every Gaussian node"
            )
        self._floors = [
            (views, log(node.energy.floor))
            for node, views in zip(network.nodes, params.of, strict=True)
            if isinstance(node.energy, Gaussian) and node.energy.learned
        ]
        self.err: dict[int, Tensor] = {}
        self._raw: dict[int, Tensor] = {}
        self._membrane: dict[int, Tensor] = {}
        self._next_rates: dict[int, Tensor] = {}
        self._load_steps = 0
        self.weights = [params.flat]
        if self.feedback.learns and self.feedback.flat is not None:
            self.weights.append(self.feedback.flat)

    def _gaussians(self) -> dict[int, UnitGaussian | PrecisionGaussian]:
        energies: dict[int, UnitGaussian | PrecisionGaussian] = {}
        for index in self.field.costed:
            spec, energy = self.network.nodes[index].energy, self.field.energies[index]
            if not isinstance(spec, Gaussian) or spec.learned:
                raise UnsupportedError(
                    f"circuit: error units and delayed errors carry x − μ, so node {index} needs a "
                    f"Gaussian energy of fixed variance"
                )
            assert isinstance(energy, UnitGaussian | PrecisionGaussian)
            energies[index] = energy
        return energies

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data for `steps` steps; free states keep their values (or start at zero).

        A node that the mode clamps but that gets no data is let go, from its present value.
        """
        self._clamp(self._encode(clamps), mask, steps)

    def _clamp(self, clamps: Sequence[Tensor | None], mask: Tensor | None, steps: int) -> None:
        """Clamp data as the chips receive it."""
        self.settle_weights()
        field, self._load_steps = self.field, steps
        like = reference(clamps, field.x)
        chips, samples = self.params.replicas, like.shape[1]
        kept = field.x if field.x and field.x[0].shape[1] == samples else None
        holds = self.network.holds(field.mode)
        states: list[Tensor | None] = []
        released = []
        for index, node in enumerate(self.network.nodes):
            clamp = clamps[index]
            if holds[index] == "transparent":
                states.append(None)
                continue
            if clamp is not None and holds[index] == "clamped":
                states.append(clamp)
                continue
            if clamp is None and holds[index] == "clamped":
                released.append(index)
            if clamp is not None:
                states.append(clamp.expand(chips, -1, -1).clone())
            elif kept is None:
                states.append(like.new_zeros(chips, samples, node.units))
            else:
                # A label may be a shared view: what becomes a state needs memory of its own.
                states.append(kept[index].clone() if index in released else kept[index])
        field.load(states, mask, released)
        for index in field.costed if self._distorted else ():
            shape = (chips, samples, self.network.nodes[index].units)
            if index not in self._raw or self._raw[index].shape != shape:
                self.err[index] = like.new_zeros(shape)
                self._raw[index] = like.new_zeros(shape)
        self._next_rates = {}
        for index in field.free if self.circuit.look_soma else ():
            known = self._membrane.get(index)
            if index in released or known is None or known.shape[1] != samples:
                self._membrane[index] = field.x[index].clone()
            elif (free := field.free_units(index)) is not None:
                # Membranes of clamped units follow the clamp at once: else they would drive x̆.
                known.copy_(torch.where(free.bool(), known, field.x[index]))
        self.inputs.load(samples, steps)

    def feedforward(self) -> None:
        """Set the states to the feed-forward pass; error units to zero."""
        self.settle_weights()
        self._read_arrays()
        self.field.feedforward()
        for drive in self.inputs.active.values():
            drive.load()  # it was computed afresh, with all that was kept back
        for err in self.err.values():
            err.zero_()
        for index, membrane in self._membrane.items():
            membrane.copy_(self.field.x[index])

    def keep_floors(self) -> None:
        """Let no learned variance be below its floor."""
        for views, floor in self._floors:
            views["log_var"].clamp_(min=floor)

    def forces(self) -> list[Force]:
        """Return the force on every fast state, at the present state."""
        field, circuit = self.field, self.circuit
        self.feedback.refresh()
        self.keep_floors()
        self._read_arrays()
        self.inputs.predict(field.predicted, self._alpha())
        field.errors(field.predicted)
        forces = self._distort() if self._distorted else []
        for index, drift in self._drift():
            # Errors that were computed elsewhere or before hold the soma's own leak as well.
            leaky = index in field.predicted and not self._distorted
            leaky |= circuit.look_soma > 0  # a membrane always relaxes to where its rate goes
            state = field.x[index]
            drift = self.somas.force(index, state, drift, self.tau_x[index])
            drift = field.hold_masked(index, drift)
            if circuit.look_soma:
                state, drift = self._look_ahead(index, drift)
            free = field.free_units(index)
            forces.append(Force(f"x{index}", state, drift, self.tau_x[index], leaky, True, free))
        return forces

    def _read_arrays(self) -> None:
        """Let every array present its weights for this step."""
        self.field.read_weights()
        if self.feedback.flat is not None:
            for index in self.feedback.nodes:
                kernel = self.field.maps[index]
                assert isinstance(kernel, DenseKernel | PerPositionKernel | ConvolutionKernel)
                kernel.feedback = self._backward.read(index)

    def _distort(self) -> list[Force]:
        """Let error units and delays stand between ε and its uses; return forces on the units."""
        forces = []
        for index, energy in self._gaussian.items():
            kernel, raw = self.field.maps[index], self._raw[index]
            raw.copy_(energy.eps)
            if self.lagged:
                err = self.err[index]
                force = raw - energy.variance * err
                tau = self.tau_err[index]
                ahead = self.circuit.look_err / tau
                torch.add(err, force * ahead, out=energy.xi)
                unit = isinstance(energy, UnitGaussian)
                forces.append(Force(f"err{index}", err, force, tau, leaky=unit))
            energy.xi.copy_(self._late[index].pass_through(energy.xi))
            self.field.read_error(index)
            if kernel:
                kernel.receive(energy.xi)
        self.field.pass_through(self.field.predicted)
        return forces

    def _drift(self) -> list[tuple[int, Tensor]]:
        field = self.field
        if not self._delays_fb:
            return field.drift(field.free, field.predicted)
        present = {}
        for index in field.predicted:
            kernel = field.maps[index]
            if isinstance(kernel, DenseKernel):
                present[index] = kernel.delta
                kernel.delta = self._late_fb[index].pass_through(kernel.delta)
        drift = field.drift(field.free, field.predicted)
        for index, delta in present.items():  # weights see the error where it arises
            kernel = field.maps[index]
            assert isinstance(kernel, DenseKernel)
            kernel.delta = delta
        return drift

    def _look_ahead(self, index: int, drift: Tensor) -> tuple[Tensor, Tensor]:
        """Rates come from x̆ (held in field.x); the membrane relaxes to x̆_new = x̆ + drift.

        τ dx/dt = −x + (x̆ + drift), and the next x̆ is x + τ̂ dx/dt.
        """
        membrane, ahead = self._membrane[index], self.field.x[index]
        force = ahead + drift - membrane
        look = self.circuit.look_soma / self.tau_x[index]
        self._next_rates[index] = membrane + look * force
        return membrane, force

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt, and let rates follow a look-ahead."""
        if self._forward.writes:
            changes = [self.params.views(rate.mul_(dt)) for rate in self.weight_rates()]
            times = times_of(self.params, self.tau_w)
            rate = dt * self.scale / self.tau_w
            decay = dt * self.circuit.weight_decay / self.tau_w
            for array, change in zip((self._forward, self._backward), changes, strict=False):
                asked = array.requests(self.field, self.field.predicted, rate, decay)
                array.write(change, times, by_sample=asked)
        elif isinstance(self.tau_w, Tensor):
            for weights, rate in zip(self.weights, self.weight_rates(), strict=True):
                weights.add_(rate, alpha=dt)
        else:
            alpha = dt / self.tau_w
            decay = alpha * self.circuit.weight_decay
            for views in (self.params.of, self.feedback.of if self.feedback.learns else []):
                for named in views if decay else ():
                    for name in named:
                        if name.startswith("w"):
                            named[name].mul_(1 - decay)
            self.inputs.learn(self.field.predicted, self.params.of, alpha * self.scale, 1.0)
            if self.feedback.learns:
                self._learn_feedback(alpha * self.scale)
        self.follow()
        if self.chips:
            self.chips.advance()

    def follow(self) -> None:
        """Let rates follow a look-ahead."""
        for index, rates in self._next_rates.items():
            self.field.x[index].copy_(rates)

    def _learn_feedback(self, alpha: float) -> None:
        for index in self.feedback.nodes:
            kernel = self.field.maps[index]
            if kernel:
                kernel.learn({"w": self.feedback.of[index]["w"]}, alpha, 1.0)

    def _alpha(self) -> float:
        """Return the rate of a followed input (there is none where τ_w differs per weight)."""
        return 0.0 if isinstance(self.tau_w, Tensor) else self.dt / self.tau_w * self.scale

    def communicate(self) -> None:
        """Signals flow all the time: there are no events."""

    def events(self) -> dict[str, Tensor]:
        """Return no events."""
        return {}

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt of every weight array, at the state of the last `forces`."""
        rates = []
        for arrays, flat in self._arrays():
            gradient = torch.zeros_like(flat)
            views = self.params.views(gradient)
            self.field.learn(self.field.predicted, views, self.scale, 0.0)
            for named, source in zip(views, arrays, strict=True):
                for name in named if self.circuit.weight_decay else ():
                    if name.startswith("w"):
                        named[name].sub_(source[name], alpha=self.circuit.weight_decay)
            rates.append(gradient.div_(self.tau_w))
        return rates

    def _arrays(self) -> list[tuple[list[dict[str, Tensor]], Tensor]]:
        arrays = [(self.params.of, self.params.flat)]
        if self.feedback.learns and self.feedback.flat is not None:
            arrays.append((self.feedback.of, self.feedback.flat))
        return arrays

    def settle_weights(self) -> None:
        """Write what was kept back while an input was clamped."""
        self.inputs.write(self._alpha())
        self.keep_floors()

    def settle_rows(self, rows: Tensor) -> None:
        """Write what was kept back of these chips alone."""
        self.inputs.write_rows(self._alpha(), rows)
        self.keep_floors()

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back, by name."""
        return self.inputs.tensors()

    def theta(self) -> Parameters:
        """Return the weights in the units of the network."""
        self.settle_weights()
        return self.params

    def stored(self) -> list[Tensor]:
        """Return all that learns, up to date."""
        self.settle_weights()
        return self.weights

    def energy_by_node(self) -> Tensor:
        """Return E_l (chip, predicted value node), summed over samples, at the last `forces`."""
        if not self._distorted:
            return self.field.energy_by_node()
        totals = [energy.cost(self._raw[i]) for i, energy in self._gaussian.items()]
        return torch.stack(totals, 1)

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name."""
        named = {f"x{i}": self.field.x[i] for i in self.field.free}
        if self.lagged:
            named |= {f"err{i}": err for i, err in self.err.items()}
        return named | {f"u{i}": u for i, u in self._membrane.items() if i in self.field.free}

    def states(self) -> dict[str, Tensor]:
        """Return every named state, and observable that was computed, (chip, sample, unit)."""
        hidden = self.field.transparent
        named = {f"x{i}": x for i, x in enumerate(self.field.x) if i not in hidden}
        named |= {f"u{i}": u for i, u in self._membrane.items()}
        for index in self.field.costed if self.lagged or self.field.knows_errors else ():
            energy = self.field.energies[index]
            assert energy
            named[f"err{index}"] = self.err[index] if self.lagged else energy.xi
        return named

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""
        field = self.field
        state = self.moving() | clamped(field.x, {*field.free, *field.transparent})
        state |= {f"u{i}": u for i, u in self._membrane.items()} | self.inputs.state()
        for name, lines in self.lines().items():
            for index, line in lines.items():
                state |= line.state(f"{name}{index}")
        if field.mask is not None:
            state["mask"] = field.mask
        return state | {"load_steps": torch.tensor(self._load_steps)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        clamps = [state.get(f"clamp{k}") for k in range(len(self.network.nodes))]
        self._clamp(clamps, state.get("mask"), int(state["load_steps"]))
        self._membrane = {
            int(name[1:]): value.clone() for name, value in state.items() if name[0] == "u"
        }
        set_moving(self.moving(), state)
        self.inputs.restore(state)
        for name, lines in self.lines().items():
            for index, line in lines.items():
                line.restore(f"{name}{index}", state)

    def held(self, k: int, name: str) -> Tensor:
        """Return the memory of a state of node k, by its name in the equations."""
        if name == "err":
            return self.err[k]
        known = self._membrane.get(k) if name == "u" else self.field.x[k]
        return self.field.x[k].clone() if known is None else known

    def saw(
        self,
        k: int,
        x: Tensor | None,
        mu: Tensor | None,
        err: Tensor | None,
        log_var: Tensor | None,
    ) -> None:
        """Let errors and energy of node k be those that somebody else has computed a step from.

        Main arguments:
            x, mu: state and prediction; None: the clamped state, the mean of the prior.
            err: the error as soma, feedback and plasticity saw it; None: as it was computed.
            log_var: ln σ² where it learns: it has moved since.
        """
        field = self.field
        energy, prior = field.energies[k], self.network.nodes[k].map
        assert energy
        x = field.x[k] if x is None else x
        if mu is None:
            assert isinstance(prior, Prior)
            mu = torch.full_like(x, prior.mean)
        field.knows_errors, field.mu[k] = True, mu
        energy.errors(x, mu)
        if isinstance(energy, PrecisionGaussian) and log_var is not None:
            energy.seen_with(log_var)
        if k in self._raw:
            self._raw[k].copy_(self._gaussian[k].eps)
        if err is not None:
            field.error_was_read(k, err)

    def lines(self) -> dict[str, dict[int, DelayLine]]:
        """Return all delay lines, by name and node."""
        return {"late": self._late, "late_feedback": self._late_fb}
