"""The circuit `sacramento` (Sacramento, Costa, Bengio & Senn 2018).

Weights of the synapses from layer l+1
(pre) to layer l (post): `w` basal; `w_inter` (W_IP) onto the interneurons beside layer l; and, used
backwards, `w_down` from layer l and `w_pi` (W_PI) from those interneurons to the apical dendrites
of layer l+1.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor

from pcsim.circuits.conductances import conductances
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Page, no, nowhere
from pcsim.circuits.section import Circuit, Conductances
from pcsim.circuits.shared import plastic, rate, soma
from pcsim.frozen import Duration, NotNegative
from pcsim.kernels.parameters import Parameters, generator
from pcsim.kernels.transport import FEEDBACK_KEY
from pcsim.maps import Dense
from pcsim.network import Mode, Network

INTER_KEY = 4
"""First element of the spawn key of random initial interneuron weights."""


class Sacramento(Circuit):
    """The dendritic microcircuit of Sacramento et al. 2018, with top-down weights of its own."""

    INTERNEURONS_LIKE_SOMAS = True
    kind: Literal["sacramento"] = "sacramento"
    conductances: Conductances
    """Conductances between compartments; g_som must be positive."""
    tau_inter: Duration = 0.0
    """Time constant of the interneurons; 0 is quasi-static."""
    eta_inter: NotNegative = 1.0
    """Rate of W^IP relative to 1/tau_w."""
    eta_apical: NotNegative = 0.0
    """Rate of W^PI relative to 1/tau_w."""
    eta_down: NotNegative = 0.0
    """Rate of the top-down weights relative to 1/tau_w (0: fixed)."""
    self_predicting: bool = True
    """Start in the self-predicting state (apical potentials vanish without target)."""

    @model_validator(mode="after")
    def _nudged(self) -> Self:
        if not self.conductances.g_som:
            raise ValueError("circuit.conductances.g_som must be positive for sacramento")
        return self


def sacramento_layer(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of pyramidal cells and of the interneurons beside them."""
    assert layer.f is not None
    current = "-g_lk*x + g_B*(basal - x)"
    if not layer.output:
        current += " + g_A*(v_apical - x)"
    elif layer.clamped == "switched":
        current += " + nudged*g_som*(target - x)"
    never = Layer(clamped="never")  # a target only pulls: the soma always moves
    lines = [
        soma(circuit, never, current, over="(g_cell*tau_x)"),
        "err_rate = r - rate_alone : 1",
        f"rate_alone = {rate(layer.f, 'v_alone')} : 1  # of a soma with its basal dendrite only",
        "v_alone = a_B*basal : 1",
        "basal : 1  # a sum over the layer above",
    ]
    if not layer.output:
        lines += [
            "v_apical = td + lateral : 1",
            "td : 1  # top-down, a sum over the layer below",
            "lateral : 1  # inhibition, a sum over this layer's interneurons",
        ]
        lines += [f"rate_td = {rate(layer.f, 'td')} : 1"] if circuit.eta_down else []
    lines += _interneuron(circuit, layer.f) if layer.interneurons else []
    lines += [f"r = {rate(layer.f, 'x')} : 1 (constant over dt)", "tau_x : second (constant)"]
    if layer.output and layer.clamped == "switched":
        lines += ["target : 1", "nudged : 1 (constant)  # 1: there is a target, 0: there is none"]
    return lines


def sacramento_synapses(circuit: Circuit, post: Layer) -> list[str]:
    """Return the equations of four kinds of synapses, or of the basal kind alone."""
    lines = plastic(circuit, "w", "err_rate_post*r_pre")
    sums = ["basal_post = w*r_pre : 1 (summed)"]
    if post.sends_feedback:
        lines += [
            _relative("w_inter", "eta_inter*err_inter_post*r_pre", circuit.eta_inter),
            _relative("w_pi", "-eta_apical*r_inter_post*v_apical_pre", circuit.eta_apical),
            _relative("w_down", "eta_down*r_post*(r_pre - rate_td_pre)", circuit.eta_down),
        ]
        sums += [
            "inter_in_post = w_inter*r_pre : 1 (summed)",
            "td_pre = w_down*r_post : 1 (summed)",
            "lateral_pre = w_pi*r_inter_post : 1 (summed)",
        ]
    return lines + sums


def _relative(name: str, hebb: str, rate_of_change: float) -> str:
    if not rate_of_change:
        return f"{name} : 1 (constant)"
    return f"d{name}/dt = {hebb}/tau_w : 1 (clock-driven)"


def _interneuron(circuit: Circuit, f: str) -> list[str]:
    noise = " + sigma_x*xi_inter" if circuit.sigma_x else ""
    force = "((1 - nudging)*v_inter + nudging*x - inter)/tau_inter"
    return [
        f"dinter/dt = {force}{noise} : 1",
        "v_inter = a_D*inter_in : 1",
        f"r_inter = {rate(f, 'inter')} : 1",
        f"err_inter = r_inter - {rate(f, 'v_inter')} : 1",
        "inter_in : 1  # a sum over the layer above",
    ]


def sacramento_rest(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return the stationary state without a target and without apical input."""
    nudged = {"inter": "(1 - nudging)*v_inter + nudging*x"} if layer.interneurons else {}
    return {"x": "v_alone"} | nudged


def first_weights(circuit: Circuit, params: Parameters, seeds: list[int]) -> dict[str, Tensor]:
    """Return W_IP, W_PI and W_down: random, or in the self-predicting state.

    There W_PI = −W_down, and W_IP is such that interneurons copy the layer below without a target.
    """
    arrays = {name: torch.zeros_like(params.flat) for name in ("w_inter", "w_pi", "w_down")}
    inter, pi, down = (params.views(flat) for flat in arrays.values())
    for k, node in enumerate(params.network.nodes):
        if not isinstance(node.map, Dense):
            continue
        size = (node.map.n_out, node.map.n_in)
        bound = circuit.feedback_gain / sqrt(node.map.n_in)
        for views, key in ((down, (FEEDBACK_KEY,)), (inter, (INTER_KEY, 0))):
            for row, seed in enumerate(seeds):
                drawn = generator(seed, *key, k).uniform(-bound, bound, size)
                views[k]["w"][row] = torch.as_tensor(drawn)
        torch.neg(down[k]["w"], out=pi[k]["w"])
        if circuit.self_predicting:
            known = conductances(circuit, k)
            torch.mul(params.of[k]["w"], known["a_B"] / known["a_D"], out=inter[k]["w"])
    return arrays


def refuse(network: Network, mode: Mode, who: str) -> None:
    """Refuse what Sacramento's circuit is not defined for."""
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "the sacramento circuit has an input and at most a target", who)
    if any(isinstance(node.map, Dense) and node.map.bias for node in network.nodes):
        raise no("network.bias true", "the sacramento circuit is defined without biases", who)


SACRAMENTO = Page(
    Sacramento,
    "Sacramento et al. 2018: apical dendrites carry errors of rates, which interneurons cancel",
    sacramento_layer,
    sacramento_synapses,
    nowhere,
    nowhere,
    interneurons=True,
    compartments=True,
    drawn=first_weights,
    rest=sacramento_rest,
    residual="x - v_alone",
    shown=("v_apical",),
    output_fires=True,
    one_capacity=True,
    instead="dendritic",
    potentials=True,
    refuse=refuse,
)
