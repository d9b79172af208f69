"""Brian2, with monitors of everything; one uninterrupted run per case."""

import numpy as np
from adapter import Adapter, Gap
from brian2 import StateMonitor
from brian2.codegen.runtime.numpy_rt import NumpyCodeObject
from plan_gaps import PLAN_GAPS

from pcsim.backends.brian import RECORD, BrianBackend

LAYER = {
    "x": "x",
    "u": "u",
    "err": "err",
    "inter": "inter",
    "v_apical": "apical",
    "b": "b",
    "b_inter": "b_inter",
    "log_var": "log_var",
}
TRACES = ("r_hat", "err_hat", "mu", "fb")
"""What events leave behind, shown where it is a state of its own."""
SYNAPSES = ("w", "w_fb", "w_inter", "w_pi", "w_down")


def run(case, target="numpy"):
    engine = backend(case, target)
    monitors = watch(engine)
    starts = np.cumsum([0, *(shown.steps for shown in case.script)])[:-1].tolist()
    script = dict(zip(starts, case.script, strict=True))

    def present():
        if (shown := script.get(engine.steps)) is not None:
            engine.load(case.clamps(shown), case.mask)
            if shown.feedforward:
                engine.feedforward()

    present()
    engine.advance(case.steps, present)
    return {
        label: np.asarray(getattr(monitor, name)).T.copy()
        for label, (monitor, name) in monitors.items()
    }


def backend(case, target="numpy", **options):
    return BrianBackend(
        *case.nouns(),
        **case.options(),
        target=target,
        **options,
    )


def watch(engine):
    """Add monitors of all states and weights; return monitor and variable by name."""
    found = {}
    first = engine.parts.layers[0]
    options = {"record": True, "when": "groups", "order": RECORD, "clock": first.clock}
    for made, names in [(m, LAYER) for m in engine.parts.layers] + [
        (m, {n: n for n in SYNAPSES}) for m in engine.parts.maps
    ]:
        k = int(made.name[-1])
        seen = [name for name in names if name in made.variables]
        seen += [name for name in TRACES if name in made.equations.diff_eq_names]
        if engine.parts.plan.groups[k].layer.clamped == "switched":
            seen = [name for name in seen if name != "u"]
        monitor = StateMonitor(
            made, seen, name=f"seen_{made.name}", codeobj_class=NumpyCodeObject, **options
        )
        engine.net.add(monitor)
        for name in seen:
            # Interneurons stand beside the layer that they predict, but belong to the one above.
            found[f"{names.get(name, name)}{k + (name == 'inter')}"] = (monitor, name)
    return found


def not_shown(case):
    """A clamped top hears nothing, so that nothing is sent to it; its own error moves nothing."""
    top = len(case.network.nodes) - 1
    if case.network.holds(case.mode)[top] == "free":
        return set()
    arrays = {f"{name}{top - 1}" for name in ("w_fb", "w_inter", "b_inter", "w_pi", "w_down")}
    return arrays | {f"err{top}"}


GAPS = (
    *PLAN_GAPS,
    Gap.of("batch", reason="learning.batch 4.*one sample at a time"),
    Gap.of("circuit dendritic", "tau_w per weight", reason="tau_w per weight: all arrays"),
    Gap.of("circuit equilibrium", "tau_w per weight", reason="tau_w per weight: all arrays"),
    Gap.of("circuit sacramento", "tau_x per unit", reason="tau_x per unit.*one capacity"),
)
NUMPY = Adapter("brian numpy", run, GAPS, not_shown)
CYTHON = Adapter("brian cython", lambda case: run(case, "cython"), GAPS, not_shown)
