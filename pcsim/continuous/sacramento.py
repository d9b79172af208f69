"""The dendritic microcircuit of Sacramento, Costa, Bengio & Senn (NeurIPS 2018).

Layers here count from the output (0) to the input (L); φ is the network's nonlinearity.

    hidden   C du/dt = −g_lk u + g_B (v_B − u) + g_A (v_A − u),        v_B = W φ(u_above)
             v_A = W_down φ(u_below) + W_PI φ(u_I)
    inter    C du_I/dt = −g_lk u_I + g_D (v_I − u_I) + g_som (u_below − u_I),   v_I = W_IP φ(u)
    output   C du/dt = −g_lk u + g_B (v_B − u) + g_som (target − u)       (g_som only with a target)

    τ_w dW      = [φ(u) − φ(v̂_B)] φ(u_above)ᵀ,          v̂_B = g_B/(g_lk + g_B + g_A) v_B
    τ_w dW_IP   = η_inter [φ(u_I) − φ(v̂_I)] φ(u)ᵀ,      v̂_I = g_D/(g_lk + g_D) v_I
    τ_w dW_PI   = η_apical [0 − v_A] φ(u_I)ᵀ
    τ_w dW_down = η_down [φ(u) − φ(W_down φ(u_below))] φ(u_below)ᵀ

(the output's v̂_B has no g_A). "above" is one layer nearer to the input. C is chosen so that hidden
somas have τ_x = C/(g_lk + g_B + g_A); interneurons use tau_inter, or that same C when it is 0.
In the self-predicting state W_PI = −W_down and W_IP mirrors W, so that v_A = 0 without a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.continuous.dendritic import chain
from pcsim.continuous.flow import Force, clamped, set_moving
from pcsim.errors import UnsupportedError
from pcsim.kernels.feedforward import FUNCTIONS
from pcsim.kernels.parameters import Parameters, generator
from pcsim.kernels.transport import FEEDBACK_KEY
from pcsim.network import Mode, Network

INTER_KEY = 4
"""First element of the spawn key of random initial interneuron weights."""


class SacramentoFlow:
    """Pyramidal cells, interneurons, and four kinds of plastic synapses."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        mode: Mode,
        *,
        seeds: list[int],
        scale: float = 1.0,
    ) -> None:
        self.network, self.params, self.circuit = network, params, circuit
        self.maps = chain(network, "sacramento")
        self.depth = len(self.maps)
        if mode not in ("supervised", "free") or any(spec.bias for spec in self.maps):
            raise UnsupportedError(
                "circuit.kind sacramento: is defined for supervised and free mode, without biases "
                "(network.bias = false)"
            )
        self.scale = scale
        self.feedback = None
        self.tau_w = circuit.weight_time
        names = {spec.f for spec in self.maps[:-1]} or {self.maps[0].f}
        self.phi = FUNCTIONS[names.pop()]
        self.phi_top = FUNCTIONS[self.maps[-1].f]
        g = circuit.conductances
        self.total = [g.g_lk + g.g_B + (g.g_A if k else 0.0) for k in range(self.depth)]
        self.capacity = circuit.tau_x * (g.g_lk + g.g_B + g.g_A)
        self.down_flat = torch.zeros_like(params.flat)
        self.ip_flat = torch.zeros_like(params.flat)
        self.pi_flat = torch.zeros_like(params.flat)
        # All in the layout of W (below, above): down and pi are used transposed.
        self.down = params.views(self.down_flat)
        self.ip = params.views(self.ip_flat)
        self.pi = params.views(self.pi_flat)
        self._draw(seeds)
        if circuit.self_predicting:
            self.make_self_predicting()
        self.weights = [params.flat, self.ip_flat, self.pi_flat, self.down_flat]
        self.u: list[Tensor] = []
        self.u_inter: dict[int, Tensor] = {}
        self.target: Tensor | None = None
        self.v_basal: list[Tensor] = []
        self.err: list[Tensor] = []
        self.v_apical: dict[int, Tensor] = {}
        self.v_inter: dict[int, Tensor] = {}

    def _draw(self, seeds: list[int]) -> None:
        for k, spec in enumerate(self.maps):
            bound = self.circuit.feedback_gain / sqrt(spec.n_in)
            for views, key in ((self.down, (FEEDBACK_KEY,)), (self.ip, (INTER_KEY, 0))):
                for row, seed in enumerate(seeds):
                    drawn = generator(seed, *key, k).uniform(-bound, bound, (spec.n_out, spec.n_in))
                    views[k]["w"][row] = torch.as_tensor(drawn)
            self.pi[k]["w"].copy_(self.down[k]["w"]).neg_()

    def make_self_predicting(self) -> None:
        """Set W_PI = −W_down, and W_IP so that u_I equals the activity below without a target."""
        g = self.circuit.conductances
        for k in range(self.depth):
            mirror = g.g_B * (g.g_lk + g.g_D) / (g.g_D * self.total[k])
            torch.mul(self.params.of[k]["w"], mirror, out=self.ip[k]["w"])
            self.pi[k]["w"].copy_(self.down[k]["w"]).neg_()

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp the input; clamps[0] is the soft target of the output, or None."""
        source = clamps[-1]
        if source is None:
            raise UnsupportedError("circuit.kind sacramento: the input must be clamped")
        chips, samples = self.params.replicas, source.shape[1]
        fresh = not self.u or self.u[0].shape[1] != samples
        if fresh:
            units = [node.units for node in self.network.nodes]
            self.u = [source.new_zeros(chips, samples, n) for n in units]
            self.u_inter = {
                k: source.new_zeros(chips, samples, units[k - 1]) for k in range(1, self.depth)
            }
        self.u[-1] = source.expand(chips, -1, -1)
        self.target = clamps[0]

    def _rate(self, k: int) -> Tensor:
        return self.phi_top(self.u[k]) if k == self.depth else self.phi(self.u[k])

    def feedforward(self) -> None:
        """Set potentials to the stationary state without target and apical input."""
        g = self.circuit.conductances
        for k in reversed(range(self.depth)):
            basal = torch.bmm(self._rate(k + 1), self.params.of[k]["w"].mT)
            self.u[k].copy_(g.g_B / self.total[k] * basal)
        for k, u in self.u_inter.items():
            drive = torch.bmm(self._rate(k), self.ip[k - 1]["w"].mT)
            whole = g.g_lk + g.g_D + g.g_som
            u.copy_((g.g_D * drive + g.g_som * self.u[k - 1]) / whole)

    def forces(self) -> list[Force]:
        """Return the force on every pyramidal soma and interneuron."""
        g = self.circuit.conductances
        rates = [self._rate(k) for k in range(self.depth + 1)]
        self.v_basal = [
            torch.bmm(rates[k + 1], self.params.of[k]["w"].mT) for k in range(self.depth)
        ]
        self.err = [self.u[k] - g.g_B / self.total[k] * self.v_basal[k] for k in range(self.depth)]
        forces = []
        for k in range(self.depth):
            u = self.u[k]
            current = -g.g_lk * u + g.g_B * (self.v_basal[k] - u)
            if k:
                inter = self.phi(self.u_inter[k])
                apical = torch.bmm(rates[k - 1], self.down[k - 1]["w"])
                self.v_apical[k] = apical + torch.bmm(inter, self.pi[k - 1]["w"])
                current = current + g.g_A * (self.v_apical[k] - u)
                forces.append(self._inter_force(k, rates[k]))
            elif self.target is not None:
                current = current + g.g_som * (self.target - u)
            total = self.total[k] + (g.g_som if not k and self.target is not None else 0.0)
            forces.append(Force(f"x{k}", u, current / total, self.capacity / total, True, True))
        return forces

    def _inter_force(self, k: int, rate: Tensor) -> Force:
        g, u = self.circuit.conductances, self.u_inter[k]
        self.v_inter[k] = torch.bmm(rate, self.ip[k - 1]["w"].mT)
        whole = g.g_lk + g.g_D + g.g_som
        drive = g.g_D * self.v_inter[k] + g.g_som * self.u[k - 1]
        tau = self.circuit.tau_inter or self.capacity / whole
        return Force(f"inter{k}", u, drive / whole - u, tau, True, True)

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt."""
        for array, rate in zip(self.weights, self.weight_rates(), strict=True):
            array.add_(rate, alpha=dt)

    def follow(self) -> None:
        """No rate looks ahead."""

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt of W, W_IP, W_PI and W_down."""
        circuit, g = self.circuit, self.circuit.conductances
        rates = [torch.zeros_like(flat) for flat in self.weights]
        up, ip, pi, down = (self.params.views(rate) for rate in rates)
        phi = self.phi
        gain = self.scale / self.tau_w
        decay = circuit.weight_decay / self.tau_w
        for k in range(self.depth):
            above = self._rate(k + 1)
            hat = phi(g.g_B / self.total[k] * self.v_basal[k])
            self._hebb(up[k]["w"], phi(self.u[k]) - hat, above, gain)
            up[k]["w"].sub_(self.params.of[k]["w"], alpha=decay)
            if k + 1 == self.depth:
                continue
            below, inter = phi(self.u[k]), phi(self.u_inter[k + 1])
            hat = phi(g.g_D / (g.g_lk + g.g_D) * self.v_inter[k + 1])
            self._hebb(ip[k]["w"], inter - hat, above, gain * circuit.eta_inter)
            self._hebb(pi[k]["w"], inter, -self.v_apical[k + 1], gain * circuit.eta_apical)
            predicted = phi(torch.bmm(below, self.down[k]["w"]))
            self._hebb(down[k]["w"], below, above - predicted, gain * circuit.eta_down)
        return rates

    def _hebb(self, into: Tensor, post: Tensor, pre: Tensor, gain: float) -> None:
        if gain:
            torch.bmm(post.mT, pre, out=into).mul_(gain)

    def settle_weights(self) -> None:
        """Nothing is kept back."""

    def settle_rows(self, rows: Tensor) -> None:
        """Nothing is kept back here."""

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back: nothing."""
        return {}

    def theta(self) -> Parameters:
        """Return weights of the equivalent feed-forward network: u = g_B/G W φ(u_above)."""
        flat = self.params.flat.clone()
        g_basal = self.circuit.conductances.g_B
        for k, views in enumerate(self.params.views(flat)[: self.depth]):
            views["w"].mul_(g_basal / self.total[k])
        return Parameters(self.network, flat)

    def stored(self) -> list[Tensor]:
        """Return all that learns."""
        return self.weights

    def energy_by_node(self) -> Tensor:
        """Return ½‖u − v̂_B‖² (chip, layer) at the last `forces`.

        It is not what this circuit descends, but comparable.
        """
        return torch.stack([0.5 * err.square().sum((1, 2)) for err in self.err], 1)

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name."""
        named = {f"x{k}": u for k, u in enumerate(self.u[:-1])}
        return named | {f"inter{k}": u for k, u in self.u_inter.items()}

    def states(self) -> dict[str, Tensor]:
        """Return somas, interneurons and apical potentials."""
        named = {f"x{k}": u for k, u in enumerate(self.u)}
        named |= {f"inter{k}": u for k, u in self.u_inter.items()}
        return named | {f"apical{k}": v for k, v in self.v_apical.items()}

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""
        state = self.moving() | clamped(self.u, range(self.depth))
        return state | ({} if self.target is None else {"clamp0": self.target})

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        self.load([state.get(f"clamp{k}") for k in range(self.depth + 1)])
        set_moving(self.moving(), state)
