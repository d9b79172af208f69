"""Initial values of all synaptic arrays and biases, in the units in which a circuit stores them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
import torch
from brian2 import NeuronGroup, Synapses, second

from pcsim.circuit import Circuit
from pcsim.circuits import PAGES
from pcsim.circuits.conductances import conductances
from pcsim.energies import Gaussian
from pcsim.kernels.parameters import Parameters, Views
from pcsim.kernels.transport import Feedback


def basal_gain(circuit: Circuit, k: int) -> float:
    """Return a_B of layer k, by which a basal potential is seen at the soma; else 1."""
    return conductances(circuit, k)["a_B"] if PAGES[circuit.kind].compartments else 1.0


def set_initial_weights(
    layers: Sequence[NeuronGroup],
    maps: Sequence[Synapses],
    circuit: Circuit,
    params: Parameters,
    seeds: list[int],
    samples: int = 1,
) -> None:
    """Write weights, biases and learned variances; a dendritic circuit stores W_B = θ/a_B.

    A batch of `samples` in a chip shares them: what stands beside the units is written for each.
    """
    page, arrays = PAGES[circuit.kind], _separate_arrays(circuit, params, seeds)
    for k, (layer, link) in enumerate(zip(layers, maps, strict=False)):
        theta, known = params.of[k], conductances(circuit, k)
        for name in {"w": 1.0} | dict(page.divided):
            gain = known[page.divided[name]] if name in page.divided else 1.0
            if name in link.variables:
                setattr(link, name, numbers(theta["w"]) / gain)
            bias = name.replace("w", "b")
            if bias in layer.variables:
                setattr(layer, bias, for_each(theta["b"], samples) / gain)
        for name, views in arrays.items():
            if name in link.variables:
                setattr(link, name, numbers(views[k]["w"]))
        energy = params.network.nodes[k].energy
        if "log_var" in layer.variables and isinstance(energy, Gaussian):
            layer.log_var = np.maximum(for_each(theta["log_var"], samples), log(energy.floor))


def _separate_arrays(circuit: Circuit, params: Parameters, seeds: list[int]) -> dict[str, Views]:
    """Return the arrays that are not θ itself, drawn as every engine draws them."""
    drawn = PAGES[circuit.kind].drawn(circuit, params, seeds)
    arrays = {name: params.views(flat) for name, flat in drawn.items()}
    feedback = Feedback(circuit.transport, params, seeds, circuit.feedback_gain)
    return arrays | {"w_fb": feedback.of}


def set_weight_times(
    layers: Sequence[NeuronGroup], maps: Sequence[Synapses], params: Parameters, tau_w: np.ndarray
) -> None:
    """Write time constants per weight, bias and learned variance, in seconds."""
    each = np.broadcast_to(tau_w, tuple(params.flat.shape)).copy()
    for k, views in enumerate(params.views(torch.from_numpy(each))[: len(maps)]):
        maps[k].tau_w = numbers(views["w"]) * second
        for name, time in (("b", "tau_b"), ("log_var", "tau_var")):
            if name in views and time in layers[k].variables:
                setattr(layers[k], time, numbers(views[name]) * second)


def for_each(tensor: Any, samples: int) -> np.ndarray:
    """Return what (chip, unit) share, once for every sample."""
    return numbers(tensor[:, None].expand(-1, samples, -1))


def numbers(tensor: Any) -> np.ndarray:
    """Return all numbers of a tensor (chip, …) in Brian2's order."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64).ravel()
