"""The reference: Euler steps of the continuous backend."""

import numpy as np
from adapter import Adapter, Gap

from pcsim.backends.continuous import Continuous


def run(case, engine=Continuous, **options):
    chips = engine(
        *case.nouns(),
        **case.options(),
        **options,
    )
    flow, rows = chips.flow, []
    for shown in case.script:
        chips.load(case.clamps(shown), case.mask)
        if shown.feedforward:
            chips.feedforward()
        for _ in range(shown.steps):
            flow.settle_weights()
            before = {name: state.clone() for name, state in flow.moving().items()}
            before |= {name: array.clone() for name, array in _arrays(flow)}
            chips.advance(1)
            # Clamped and computed values are those of the step; what moves is taken from before.
            after = {name: state.clone() for name, state in flow.states().items()}
            rows.append(after | before)
    # A membrane exists only while its layer is free, an apical dendrite of a clamped one never.
    names = set.intersection(*map(set, rows))
    return {name: np.stack([row[name].numpy() for row in rows]) for name in names}


def _arrays(flow):
    """Yield all arrays by the names they have in Brian2."""
    top = len(flow.params.of) - 1
    separate = {"w_fb": getattr(flow.feedback, "of", None)}
    if flow.circuit.kind == "sacramento":
        separate = {name: flow.of[name] for name in ("w_inter", "w_pi", "w_down")}
    for k, views in enumerate(flow.params.of[:top]):
        yield from ((f"{name}{k}", array) for name, array in views.items())
        for name, arrays in separate.items():
            if arrays and "w" in arrays[k] and flow.circuit.transport != "sign":
                yield f"{name}{k}", arrays[k]["w"]
        if flow.circuit.kind == "dendritic" and flow.circuit.inter_learned:
            yield from (
                (f"{name}_inter{k}", array) for name, array in flow.of["w_inter"][k].items()
            )


CARRY = "error units and delayed errors carry x − μ"
GAPS = (
    Gap.of("circuit dendritic", "f softmax", reason="unit alone"),
    Gap.of("circuit dendritic", "mode associative", reason="cannot be clamped in part"),
    Gap.of("circuit dendritic", "variance", reason="has unit variance"),
    Gap.of("circuit dendritic", "convention post", reason="use 'pre'"),
    Gap.of("circuit dendritic", "tau_w per weight", reason="tau_w per weight: not available"),
    Gap.of("circuit equilibrium", "mode generative", reason="mode 'generative'.*at most a target"),
    Gap.of("circuit equilibrium", "convention post", reason="use 'pre'"),
    Gap.of("circuit equilibrium", "variance", reason="has unit variance"),
    Gap.of("circuit equilibrium", "tau_w per weight", reason="tau_w per weight: not available"),
    Gap.of("circuit equilibrium", "hardware at error", reason="has no site 'error'"),
    Gap.of("circuit sacramento", "biases", reason="without biases"),
    Gap.of("circuit sacramento", "mode generative", reason="an input and at most a target"),
    Gap.of("circuit sacramento", "tau_x per unit", reason="tau_x per unit: not available"),
    Gap.of("circuit spiking", "mode generative", reason="mode 'generative'.*clamped input"),
    Gap.of("circuit spiking", "convention post", reason="neurons are potentials"),
    Gap.of("circuit spiking", "variance", reason="of unit variance"),
    Gap.of("circuit spiking", "prior", reason="network.prior"),
    Gap.of("circuit spiking", "hardware at tau_w", reason="hardware effects are not available"),
    Gap.of("circuit error_units", "categorical datum", reason=CARRY),
    Gap.of("delay_err", "categorical datum", reason=CARRY),
    Gap.of("delay_err", "learned variance", reason=CARRY),
)
CONTINUOUS = Adapter("continuous", lambda case: run(case, fast=False), GAPS)
