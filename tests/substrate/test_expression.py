"""Expressions: one text, checked names, and constants folded without changing the value."""

import math

import numpy as np
import pytest
import torch

from pcsim.errors import ConfigError
from pcsim.substrate.expression import FUNCTIONS, Expression

S = torch.linspace(-2, 2, 41, dtype=torch.float64)


@pytest.mark.parametrize(
    ("text", "oracle"),
    [
        ("clip(s, -a, a)", lambda s, a: np.clip(s, -a, a)),
        ("a*floor(s/a + 0.5)", lambda s, a: a * np.floor(s / a + 0.5)),
        ("s*int(s > a) + sign(s)*(1 - int(s > a))", lambda s, a: np.where(s > a, s, np.sign(s))),
        ("exp(-abs(s)/a)**2 - sqrt(a)", lambda s, a: np.exp(-np.abs(s) / a) ** 2 - np.sqrt(a)),
        (
            "log(s**2 + 1)*tanh(a) + ceil(s)",
            lambda s, a: np.log(s**2 + 1) * np.tanh(a) + np.ceil(s),
        ),
    ],
)
def test_torch_evaluates_what_numpy_does(text, oracle):
    bound = Expression(text).bind({"a": 0.7})
    np.testing.assert_allclose(bound({"s": S}), oracle(S.numpy(), 0.7), atol=1e-15)


def test_parts_that_need_only_constants_are_computed_once(monkeypatch):
    calls = []

    def counted(value):
        calls.append(value)
        return math.exp(value)

    monkeypatch.setitem(
        __import__("pcsim.substrate.expression").substrate.expression.FUNCTIONS, "exp", counted
    )
    bound = Expression("s*exp(-dt/tau) + exp(dt)").bind({"dt": 0.1, "tau": 2.0})
    for _ in range(5):
        bound({"s": S})
    assert len(calls) == 2


def test_bounds_may_be_tensors_or_numbers():
    bound = Expression("clip(s, low, 1)").bind({})
    low = torch.full_like(S, -0.5)
    np.testing.assert_array_equal(bound({"s": S, "low": low}), np.clip(S.numpy(), -0.5, 1))


@pytest.mark.parametrize(
    "text",
    ["s.__class__", "open('x')", "s[0]", "lambda: s", "s if s else 1", "s and 1", "s +", "'a'*s"],
)
def test_anything_but_arithmetic_is_refused(text):
    with pytest.raises(ConfigError, match="expression"):
        Expression(text).bind({})({"s": S})


def test_renaming_keeps_functions_and_adds_brackets():
    text = Expression("exp(s)*t").renamed({"s": "a + b", "t": "(t/second)", "exp": "no"})
    assert text == "exp(a + b) * (t / second)"


@pytest.mark.parametrize(
    "text",
    [
        "a*floor(s/a + 0.5)",
        "1 - (s + 1)*(s - b)",
        "2/(1 + abs(s*3))",
        "clip(s + b, -a, a) + clip(s*2, b - 1, b + 1)",
        "s - (b - s*s)",
        "(s + 1)*(s + 1)**2 - exp(-abs(s))",
        "tanh(s + b)*int(s > 0) + (1 - int(s > 0))*(s*2)",
    ],
)
@pytest.mark.parametrize("shape", [(1, 1, 41), (3, 1, 1)])
def test_overwriting_intermediate_results_changes_no_bit(text, shape):
    """Against Python's own evaluation, for draws of full and of smaller shape; inputs stay."""
    s = torch.linspace(-2, 2, 41, dtype=torch.float64).view(1, 1, 41).repeat(3, 1, 1)
    b = torch.rand(shape, dtype=torch.float64)
    kept = s.clone(), b.clone()
    got = Expression(text).bind({"a": 0.7, "b": b})({"s": s})
    assert torch.equal(
        got, eval(text, {"__builtins__": {}}, FUNCTIONS | {"a": 0.7, "b": b, "s": s})
    )
    assert torch.equal(s, kept[0])
    assert torch.equal(b, kept[1])


def test_repeated_parts_are_computed_once_and_give_the_same():
    calls = []

    class Counted(float):
        def __sub__(self, other):
            return Counted(float(self) - other)

        def __abs__(self):
            calls.append(1)
            return float.__abs__(self)

    once = Expression("abs(s - m)*abs(s - m) + int(abs(s - m) > 1)*abs(s - m) + k*m")
    value = once.bind({"k": 3.0})({"s": Counted(5.0), "m": 2.0})
    assert value == 9 + 3 + 6
    assert len(calls) == 1


def test_root_of_exact_zero_and_of_negative_numbers():
    root = Expression("sqrt(s)").bind({})
    values = root({"s": torch.tensor([0.0, 4.0, -1.0])})
    assert values[:2].tolist() == [0, 2]
    assert torch.isnan(values[2])
