"""In random valid configurations, a field that is accepted stands in the stored description, where
it was set and nowhere else. That it acts, tests/test_meaning.py shows, in settings made for it."""

import json

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pcsim import config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.frozen import dotted
from pcsim.meaning import set_fields
from tests.test_meaning import (
    CONTEXTS,
    TINY,
    VALUES,
    merged,
    nested,
)

FILLED_IN = {"data.sha256", "hardware.device", "schedule.gamma", "network.levelled"}
"""Fields that follow from others where they are not set."""
DRAWN = {
    "schedule.T": st.integers(2, 5),
    "schedule.gamma": st.floats(0.05, 0.4),
    "learning.alpha": st.floats(1e-4, 1e-2),
    "learning.weight_decay": st.floats(0.01, 0.5),
    "network.prior": st.floats(0.2, 2.0),
    "network.output.variance": st.floats(0.5, 3.0),
    "circuit.tau_x": st.floats(0.5, 3.0),
    "circuit.tau_err": st.floats(0.3, 2.0),
    "circuit.feedback_gain": st.floats(0.1, 0.9),
    "circuit.inhibition": st.floats(0.1, 0.9),
    "solver.noise_seed": st.integers(1, 99),
    "hardware.seed": st.integers(1, 99),
    "run.seeds": st.integers(1, 99).map(lambda seed: [seed]),
}
"""Values of numbers; other fields take that of the table."""


@st.composite
def changes(draw, contexts):
    """Draw a base and one field more: a context, none to two fields, then another."""
    name = draw(st.sampled_from(contexts))
    field, *others = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3,
                                   unique=True))  # fmt: skip
    base = merged(TINY, CONTEXTS[name][0])
    for other in others:
        wider = merged(base, nested(other, draw(DRAWN.get(other, st.just(VALUES[other])))))
        if accepted(wider):
            base = wider
    return base, field, draw(DRAWN.get(field, st.just(VALUES[field])))


def accepted(sections):
    """Return the configuration, None where it is refused."""
    try:
        return config.parse(sections)
    except (ConfigError, UnsupportedError):
        return None


def described(setting):
    return dotted(json.loads(setting.to_json()))


@settings(max_examples=100, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])  # fmt: skip
@given(changes(list(CONTEXTS)))
def test_an_accepted_field_stands_where_it_was_set(drawn):
    base, field, value = drawn
    before, after = accepted(base), accepted(merged(base, nested(field, value)))
    assume(before is not None)
    assume(after is not None)
    one, other = described(before), described(after)
    different = {name for name in one | other if one.get(name) != other.get(name)}
    section = field.rpartition(".")[0]
    # A kind brings the fields of its kind along.
    brought = {n for n in different if n.startswith(f"{section}.")} if field.endswith(
        (".kind", ".preset", ".pieces")) else set()  # fmt: skip
    outside = {n for n in different - brought - FILLED_IN
               if not (n == field or n.startswith(f"{field}."))}  # fmt: skip
    assert outside == set()
    if {n: v for n, v, _ in set_fields(before)}.get(field) != value:
        assert different, "accepted, and not in the description"
    assert config.from_json(after.to_json()) == after
