"""Random networks and circuits: the backends still take the very same steps."""

import numpy as np
import pytest
from adapter import differences
from brian_adapter import NUMPY
from case import Case, Presentation
from continuous_adapter import CONTINUOUS
from discrete_adapter import DISCRETE
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from native_adapter import NATIVE
from random_runs import configuration

from pcsim import config, run
from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Gaussian
from pcsim.network import Network

LIMIT = 1e-12
FIRST = Presentation(0, 40, feedforward=True)


def times(*values):
    return st.sampled_from(values)


@st.composite
def circuits(draw):
    kind = draw(st.sampled_from(["algebraic", "error_units", "dendritic", "sacramento"]))
    fields = {"kind": kind, "tau_w": 5.0, "weight_decay": draw(times(0.0, 0.2))}
    if kind != "sacramento":
        ways = ["shared", "random", "sign", "kolen_pollack"]
        fields["transport"] = draw(st.sampled_from(ways))
    if kind in ("algebraic", "error_units"):
        fields["delay_err"] = draw(times(0.0, 0.1, 0.3))
        fields["delay_fb"] = draw(times(0.0, 0.2))
    if kind == "algebraic" and not (fields["delay_err"] or fields["delay_fb"]):
        fields["look_soma"] = draw(times(0.0, 0.5))
    if kind == "error_units":
        fields |= {"tau_err": 0.3, "look_err": draw(times(0.0, 0.1))}
    if kind in ("dendritic", "sacramento"):
        conductance = st.floats(0.5, 1.5)
        fields["conductances"] = Conductances(
            g_lk=draw(times(0.0, 0.2)),
            g_B=draw(conductance),
            g_A=draw(conductance),
            g_D=draw(conductance),
            g_som=draw(times(0.3, 0.6) if kind == "sacramento" else times(0.0, 0.4)),
        )
        fields["tau_inter"] = draw(times(0.0, 0.3))
    if kind == "dendritic":
        fields["tau_apical"] = draw(times(0.0, 0.3))
        fields["inter_learned"] = draw(st.booleans())
    return Circuit(**fields)


@st.composite
def cases(draw):
    circuit = draw(circuits())
    mode = draw(st.sampled_from(["supervised", "generative", "free"]))
    f = draw(st.sampled_from(["identity", "tanh", "sigmoid", "relu", "leaky_relu"]))
    plain = circuit.kind in ("algebraic", "error_units")
    network = Network.mlp(
        draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)),
        f,
        bias=circuit.kind != "sacramento" and draw(st.booleans()),
        prior=0.1 if mode == "generative" else None,
        convention=draw(st.sampled_from(["pre", "post"])) if plain else "pre",
        hidden=Gaussian(draw(times(1.0, 1.5))) if plain else None,
    )
    chips = draw(st.integers(1, 3))
    second = Presentation(1, 40, label=mode != "supervised" or draw(st.booleans()))
    return Case("random", network, circuit, mode, (FIRST, second), chips, gain=0.5)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # one example takes a second: shrinking would take minutes
    suppress_health_check=list(HealthCheck),
)
@given(case=cases())
def test_random_networks(case):
    assume(not CONTINUOUS.gaps_of(case))
    expected = CONTINUOUS.run(case)
    for adapter in (NUMPY, DISCRETE, NATIVE):
        if not adapter.gaps_of(case):
            found = differences(expected, adapter.run(case), adapter.not_shown(case))
            assert max(found.values()) <= LIMIT, (adapter.name, found)


NUMBERS = (2, 13, 17, 18, 20, 28, 36, 46, 69, 70, 83, 94, 104, 125)
"""Among them, all circuits, transports, streams, energies, lags and nearly all pieces occur."""


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_random_runs(number):
    """Whole runs, with streams, records, hardware and its noise: the engines agree in all."""
    theirs, ours = (
        run(config.pruned(configuration(number, backend), "at random")[0])
        for backend in ("continuous", "brian")
    )
    assert ours.variables.keys() == theirs.variables.keys()
    # Verdicts follow from what is compared here, by thresholds that round-off may cross.
    named = [n for n in (*theirs.variables, *theirs.coords) if not n.startswith("verdict.")]
    for name in named:
        if theirs[name].dtype.kind == "f":
            np.testing.assert_allclose(
                ours[name], theirs[name], rtol=1e-10, atol=1e-10, err_msg=name
            )
        else:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert float(np.abs(theirs["weight_change"]).max()) > 1e-4, "control: weights have moved"
