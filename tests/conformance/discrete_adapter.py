"""The discrete backends under the schedule iPC: γ = dt/τ_x, α = dt/τ_w."""

from functools import partial

import numpy as np
from adapter import Adapter, Gap
from case import DT

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.native.discrete import NativeDiscrete


def run(case, backend=Discrete):
    params, circuit = case.parameters(), case.circuit
    gamma = DT / (circuit.tau_x if case.tau_x is None else case.tau_x[0][:, 0, 0])
    schedule = Schedule(rule="ipc", T=case.steps, gamma=0.1, init="zero", fast=False)
    decay = circuit.weight_decay / case.scale
    optimizer = Optimizer(
        OptimizerSpec("sgd"), params, DT / circuit.tau_w * case.scale, decay, in_place=False
    )
    chips = backend(
        case.network,
        params,
        schedule,
        optimizer,
        gamma=gamma,
        mode=case.mode,
        chips=case.population(),
    )
    field, rows = chips.field, []
    for shown in case.script:
        carried = {k: field.x[k].clone() for k in field.free} if rows else {}
        chips.start(case.clamps(shown), case.mask)
        for k, state in carried.items():
            if field.holds[k] == "free":
                field.x[k].copy_(state)
        if shown.feedforward:
            field.read_weights()
            field.feedforward()
        for _ in range(shown.steps):
            row = {f"x{k}": x.clone() for k, x in enumerate(field.x)}
            for k, views in enumerate(params.of):
                row |= {f"{name}{k}": array.clone() for name, array in views.items()}
            chips.step()
            row |= {f"err{k}": field.energies[k].xi.clone() for k in field.predicted}
            rows.append(row)
    return {name: np.stack([row[name].numpy() for row in rows]) for name in rows[0]}


def other(feature, reason):
    """A setting that the discrete backend does not have: given the rest, it computes iPC."""
    return Gap.of(feature, reason=reason, refused=False)


GAPS = (
    other("circuit error_units", "errors are exact at every step"),
    other("circuit dendritic", "there are no compartments"),
    other("circuit equilibrium", "changes of rates teach nothing there"),
    other("circuit sacramento", "there are no compartments"),
    other("circuit spiking", "rates and errors are seen all the time"),
    other("transport random", "gradients need the transposed weights"),
    other("transport sign", "gradients need the transposed weights"),
    other("transport kolen_pollack", "gradients need the transposed weights"),
    other("delay_err", "errors are exact at every step"),
    other("delay_fb", "errors are exact at every step"),
    other("look_soma", "states are their own rates"),
    other("tau_x per unit", "gamma is one number per replica"),
    other("tau_w per weight", "alpha is one number per replica"),
    Gap.of("hardware at tau_w", reason="'slow_synapses': a discrete schedule has no site"),
    Gap.of("label let go", reason="data is missing"),
)
DISCRETE = Adapter("discrete", run, GAPS)
COMPILED = Adapter(
    "native discrete",
    partial(run, backend=NativeDiscrete),
    (
        *GAPS,
        Gap.of("f gelu", reason="network.f 'gelu' has no elementwise"),
        Gap.of("mode associative", reason="mode 'associative'.*in part"),
    ),
)
