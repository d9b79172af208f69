"""Synaptic equations multiplied out, against the value of the equation itself."""

import math

import numpy as np
import pytest

from pcsim.circuits.products import coefficient, quotient, terms
from pcsim.errors import UnsupportedError

TEXTS = [
    "w*(x_post - kappa*inter_post)",
    "(err_post*r_pre/a - decay*w)/tau",
    "-eta*r_post*x_pre/tau",
    "size_post*sign(w)*err_post",
    "abs(w)*r_pre**2",
    "w*r_pre*(1 - (1 - column)**2)",
    "eta*r_post*(r_pre - x_pre)/tau + w*(a*r_post + err_post)*(r_pre + 2)",
]


def _numbers() -> dict[str, float]:
    rng = np.random.default_rng(3)
    names = ("w", "column", "kappa", "a", "decay", "tau", "eta")
    sided = (f"{n}{s}" for n in ("x", "r", "err", "inter", "size") for s in ("_pre", "_post"))
    return {name: float(rng.uniform(0.5, 2)) for name in (*names, *sided)}


def _value(text: str, known: dict[str, float], suffix: str = "") -> float:
    bare = {n.removesuffix(suffix): v for n, v in known.items() if n.endswith(suffix)}
    functions = {"sign": lambda v: math.copysign(1, v), "abs": abs}
    return float(eval(text, functions, known | bare))


@pytest.mark.parametrize("text", TEXTS)
def test_the_sum_of_the_products_is_the_equation(text: str) -> None:
    known = _numbers()
    total = 0.0
    for term in terms(text, {"w", "column"}):
        own = _value(term.constant, known) * _value(term.synapse, known)
        total += own * _value(term.pre, known, "_pre") * _value(term.post, known, "_post")
    assert total == pytest.approx(_value(text, known), rel=1e-14)


def test_sides_are_kept_together() -> None:
    (term,) = terms("w*(x_post - kappa*inter_post)", {"w"})
    assert (term.synapse, term.pre, term.post) == ("w", "1", "x - kappa * inter")


def test_what_is_no_product_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"tanh\(w \* r_pre\) is no product"):
        terms("tanh(w*r_pre)", {"w"})


def test_the_leak_of_a_soma() -> None:
    known = {"g": 0.1, "h": 2.0, "k": 3.0, "v": 0.3, "u": 0.7, "x": 0.9}
    text = "-g*x + h*(v - x) + k*(u*v - x)"
    leak = coefficient(text, "x")
    assert leak is not None
    assert eval(leak, known) == pytest.approx(-5.1)
    assert coefficient("g*v", "x") is None
    with pytest.raises(UnsupportedError, match="not linear"):
        coefficient("x*x", "x")


def test_quotient() -> None:
    assert quotient("f*(a - b)/(c*d)") == ("f * (a - b)", "c * d")
    assert quotient("a - b") == ("a - b", "1")
