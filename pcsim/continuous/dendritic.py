"""The dendritic microcircuit: soma, basal and apical compartments, interneurons.

For layer l of a chain (layer 0 the output, layer L the input), with a_B = g_B/G, a_A = g_A/G,
G = g_lk + g_B + g_A, a_D = g_D/(g_lk + g_D), λ the nudging of the interneurons:

    basal         v_B^l = W_B^l f(x^{l+1}) + b_B^l,           v̂_B = a_B v_B
    interneuron   v_I^l = W_I^l f(x^l) + b_I^l,               v̂_I = a_D v_I
                  τ_I di^l/dt = −i^l + (1−λ) v̂_I^l + λ x^{l−1}
    apical        τ_a dv_A^l/dt = −v_A^l + W_F^l (x^{l−1} − κ i^l)
    soma          C dx^l/dt = −g_lk x + g_B (v_B − x) + g_A (f'(x)∘v_A − x),    C = τ_x G
    plasticity    τ_w dW_B = (x^l − v̂_B) f(x^{l+1})ᵀ / a_B
                  τ_w dW_I = ρ (i^l − v̂_I) f(x^l)ᵀ / (λ a_D)     (λ = 0: x^{l−1} in place of i^l)

With W_B = θ/a_B, W_I = θ^{l−1}/a_D, W_F = θ^{(l−1)ᵀ}/(a_A (1−λ)), no lags, κ = ρ = 1, this is iPC:
x − v̂_B = ε^l and a_A v_A = θᵀ ε^{l−1}. The arrays are stored in these physical units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.continuous.dendritic_arrays import DendriticArrays
from pcsim.continuous.flow import Force, Tau, clamped, reference, set_moving
from pcsim.errors import UnsupportedError
from pcsim.kernels.hooks import IDEAL, map_hooks
from pcsim.kernels.nonlinearity import NONLINEARITIES
from pcsim.kernels.on_chip import Encoder, Somas, fabricated
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense, Prior
from pcsim.network import UNIT_GAUSSIAN, Mode, Network
from pcsim.substrate import Chips


def chain(network: Network, circuit: str) -> list[Dense]:
    """Return the maps of a chain of dense, unit-Gaussian, pre-activation nodes, or refuse."""
    maps = []
    for index, node in enumerate(network.nodes[:-1]):
        spec = node.map
        dense = spec if isinstance(spec, Dense) and spec.positions == 1 else None
        if dense is None or node.parents != (index + 1,):
            raise UnsupportedError(
                f"circuit.kind {circuit}: needs a chain of dense layers, but node {index} is "
                f"predicted by {type(spec).__name__}; the circuits 'algebraic' and 'error_units' "
                f"take every network"
            )
        if dense.g != "identity" or dense.f == "softmax":
            raise UnsupportedError(
                f"circuit.kind {circuit}: potentials are the value nodes, so network.convention "
                f"must be 'pre'"
            )
        if node.energy != UNIT_GAUSSIAN:
            raise UnsupportedError(
                f"circuit.kind {circuit}: node {index} needs the unit Gaussian energy"
            )
        maps.append(dense)
    return maps


class DendriticFlow:
    """A chain of dense layers as somas with basal and apical dendrites and interneurons."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        mode: Mode,
        *,
        seeds: list[int],
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        chips: Chips | None = None,
    ) -> None:
        """`params` holds θ at the start, and the basal arrays W_B = θ/a_B from then on."""
        self.network, self.params, self.circuit, self.mode = network, params, circuit, mode
        self.maps = chain(network, "dendritic")
        self.depth = len(self.maps)
        count = len(network.nodes)
        self.tau_x = fabricated(chips, "tau_x", network, tau_x or [circuit.tau_x] * count)
        self.tau_apical = fabricated(chips, "tau_apical", network, [circuit.tau_apical] * count)
        self.tau_inter = fabricated(chips, "tau_inter", network, [circuit.tau_inter] * count)
        self.prior = network.nodes[-1].map
        g = circuit.conductances
        self.nudging = g.nudging
        # The output soma has no apical dendrite.
        self.total = [g.g_lk + g.g_B + (g.g_A if k else 0.0) for k in range(self.depth + 1)]
        self.a_basal = [g.g_B / total for total in self.total]
        self.a_apical = g.g_A / self.total[1]
        # What was designed maps weights to conductances; what was made carries the currents.
        self.g_basal = fabricated(chips, "g_basal", network, [g.g_B] * count)
        self.g_apical = fabricated(chips, "g_apical", network, [g.g_A] * count)
        self.chips = chips
        self.somas = Somas(chips, network)
        self._encode = Encoder(chips, network, mode == "supervised")
        self.hooks = [map_hooks(chips, network, k) if chips else IDEAL for k in range(self.depth)]
        self._error_reads = [
            chips.transform("error", k, (network.nodes[k].units,)) if chips else None
            for k in range(self.depth)
        ]
        self.arrays = DendriticArrays(
            params, circuit, self.a_basal, self.hooks, seeds=seeds, scale=scale, chips=chips
        )
        self.feedback, self.weights = self.arrays.feedback, self.arrays.weights
        self.inter, self.a_inter = self.arrays.inter, self.arrays.a_inter
        self.holds: tuple[str, ...] = network.holds(mode)
        if "masked" in self.holds:
            raise UnsupportedError("circuit.kind dendritic: a layer cannot be clamped in part")
        self.x: list[Tensor] = []
        none = [torch.empty(0)] * (self.depth + 1)
        self.seen, self.fired, self.rates = list(none), list(none), list(none)
        self.err: list[Tensor] = []
        self.i: dict[int, Tensor] = {}
        self.v_apical: dict[int, Tensor] = {}
        self.inter_err: dict[int, Tensor] = {}

    @property
    def free(self) -> list[int]:
        """Layers whose somas move."""
        return [k for k, hold in enumerate(self.holds) if hold == "free"]

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; free states keep their values (or start at zero)."""
        self._clamp(self._encode(clamps))

    def _clamp(self, clamps: Sequence[Tensor | None]) -> None:
        """Clamp data as the chips receive it."""
        like = reference(clamps, self.x)
        chips, samples = self.params.replicas, like.shape[1]
        kept = self.x if self.x and self.x[0].shape[1] == samples else None
        self.holds = tuple("free" if clamp is None else "clamped" for clamp in clamps)
        states = []
        for k, (clamp, node) in enumerate(zip(clamps, self.network.nodes, strict=True)):
            if clamp is not None:
                states.append(clamp.expand(chips, -1, -1))
            elif kept is not None:
                states.append(kept[k].clone())
            else:
                states.append(like.new_zeros(chips, samples, node.units))
        self.x = states
        for k in range(1, self.depth + 1):
            if k not in self.i or self.i[k].shape[1] != samples:
                self.i[k] = torch.zeros_like(self.x[k - 1], memory_format=torch.contiguous_format)
                self.v_apical[k] = torch.zeros_like(
                    self.x[k], memory_format=torch.contiguous_format
                )
        if self.holds[self.depth] == "clamped":
            self.i.pop(self.depth)
            self.v_apical.pop(self.depth)

    def feedforward(self) -> None:
        """Set somas to their basal prediction, the other compartments to their rest there."""
        self.arrays.read()
        for k in reversed(range(self.depth)):
            self._fire(k + 1)
            if self.holds[k] == "free":
                self.x[k].copy_(self.a_basal[k] * self.arrays.basal(k, self.rates[k + 1]))
        for k in self.i:
            self.i[k].copy_(self._inter_target(k)[1])
            self.v_apical[k].copy_(self._apical_target(k, self.i[k]))

    def _fire(self, k: int) -> None:
        """Set the rate r = f(x) of a layer, as computed and as sent."""
        name, hooks, seen = self.maps[k - 1].f, self.hooks[k - 1], self.x[k]
        if hooks.membrane:
            seen = hooks.membrane(seen)
        rate = seen
        if name != "identity":
            rate = NONLINEARITIES[name].apply(seen, torch.empty_like(seen).contiguous())
        self.seen[k], self.fired[k] = seen, rate
        self.rates[k] = hooks.rate(rate) if hooks.rate else rate

    def _inter_target(self, k: int) -> tuple[Tensor, Tensor]:
        """Return v̂_I and what i^k relaxes to."""
        predicted = self.arrays.predicted(k - 1, self.rates[k])
        return predicted, torch.lerp(predicted, self.x[k - 1], self.nudging)

    def _apical_target(self, k: int, inter: Tensor) -> Tensor:
        """Return W_F (x^{k−1} − κ i), W_F = Bᵀ/(a_A (1−λ))."""
        sent = self.x[k - 1] - self.circuit.inhibition * inter
        return self.arrays.fed_back(k - 1, sent, 1 / (self.a_apical * (1 - self.nudging)))

    def forces(self) -> list[Force]:
        """Return the force on every soma, apical dendrite and interneuron that has a lag."""
        g = self.circuit.conductances
        self.arrays.read()
        for k in range(1, self.depth + 1):
            self._fire(k)
        basal = [self.arrays.basal(k, self.rates[k + 1]) for k in range(self.depth)]
        self.err = [self.x[k] - self.a_basal[k] * basal[k] for k in range(self.depth)]
        if isinstance(self.prior, Prior):
            self.err.append(self.x[self.depth] - self.prior.mean)
        self.inter_err = {}  # a clamped layer needs no apical error, hence no interneurons
        forces = []
        for k in self.free:
            x, g_basal, g_apical = self.x[k], self.g_basal[k], self.g_apical[k]
            if k < self.depth:
                total = -g.g_lk * x + g_basal * (basal[k] - x)
            elif isinstance(self.prior, Prior):
                # The current that alone would hold the soma, against all its leaks, at the mean.
                total = self.prior.mean * self.total[k] - (g.g_lk + g_basal) * x
            else:
                total = torch.zeros_like(x)  # flat prior: a soma without leak
            if k:
                apical, more = self._apical(k)
                forces += more
                gated = apical.clone()
                f = NONLINEARITIES[self.maps[k - 1].f]
                f.pull(gated, self.seen[k], self.fired[k])
                leak = x if k < self.depth or isinstance(self.prior, Prior) else 0.0
                total = total + g_apical * (gated - leak)
            value = self.somas.force(k, x, total / self.total[k], self.tau_x[k])
            leaky = k < self.depth or isinstance(self.prior, Prior)
            forces.append(Force(f"x{k}", x, value, self.tau_x[k], leaky, True))
        return forces

    def _apical(self, k: int) -> tuple[Tensor, list[Force]]:
        """Return the apical potential that the soma sees, and forces on lagged parts."""
        circuit, forces = self.circuit, []
        predicted, target = self._inter_target(k)
        if circuit.tau_inter:
            force = target - self.i[k]
            tau = self.tau_inter[k - 1]  # one interneuron per unit of the layer below
            forces.append(Force(f"inter{k}", self.i[k], force, tau))
            inter = self.i[k] + (circuit.look_inter / tau) * force
        else:
            self.i[k] = inter = target
        # What teaches the interneuron's weights: i − v̂_I, or the layer below where λ = 0.
        taught = inter - predicted if self.nudging else self.x[k - 1] - predicted
        self.inter_err[k] = taught
        apical = self._apical_target(k, inter)
        if circuit.tau_apical:
            force = apical - self.v_apical[k]
            tau = self.tau_apical[k]
            forces.append(Force(f"apical{k}", self.v_apical[k], force, tau))
            apical = self.v_apical[k] + (circuit.look_apical / tau) * force
        else:
            self.v_apical[k] = apical
        return apical, forces

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt."""
        self.arrays.learn(dt, self.weight_rates())
        if self.chips:
            self.chips.advance()

    def follow(self) -> None:
        """No rate looks ahead."""

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt of basal, interneuron and learned feedback weights."""
        taught = [
            err if hook is None else hook(err)
            for hook, err in zip(self._error_reads, self.err, strict=False)
        ]
        return self.arrays.rates(taught, self.inter_err, self.rates, self.nudging)

    def settle_weights(self) -> None:
        """Nothing is kept back."""

    def settle_rows(self, rows: Tensor) -> None:
        """Nothing is kept back here."""

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back: nothing."""
        return {}

    def theta(self) -> Parameters:
        """Return θ = a_B W_B, the weights in the units of the network."""
        flat = self.params.flat.clone()
        for k, views in enumerate(self.params.views(flat)[: self.depth]):
            for array in views.values():
                array.mul_(self.a_basal[k])
        return Parameters(self.network, flat)

    def stored(self) -> list[Tensor]:
        """Return all that learns."""
        return self.weights

    def energy_by_node(self) -> Tensor:
        """Return ½‖x − v̂_B‖² (chip, layer), summed over samples, at the last `forces`."""
        return torch.stack([0.5 * err.square().sum((1, 2)) for err in self.err], 1)

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name."""
        named = {f"x{k}": self.x[k] for k in self.free}
        if self.circuit.tau_inter:
            named |= {f"inter{k}": i for k, i in self.i.items()}
        if self.circuit.tau_apical:
            named |= {f"apical{k}": v for k, v in self.v_apical.items()}
        return named

    def states(self) -> dict[str, Tensor]:
        """Return somas, and errors, interneurons and apical potentials that were computed."""
        named = {f"x{k}": x for k, x in enumerate(self.x)}
        named |= {f"err{k}": err for k, err in enumerate(self.err)}
        if self.circuit.tau_inter or self.err:
            named |= {f"inter{k}": i for k, i in self.i.items()}
        if self.circuit.tau_apical or self.err:
            named |= {f"apical{k}": v for k, v in self.v_apical.items()}
        return named

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""
        return self.moving() | clamped(self.x, self.free)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        self._clamp([state.get(f"clamp{k}") for k in range(self.depth + 1)])
        set_moving(self.moving(), state)
