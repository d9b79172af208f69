"""One table of nonlinearities: its text, its slopes, the kernels beside it, and one's own."""

import ast

import numpy as np
import pytest
import torch

import pcsim
from pcsim import config as configuration
from pcsim.errors import ConfigError
from pcsim.kernels import nonlinearity
from pcsim.kernels.nonlinearity import FUSED, from_text
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.maps.derivative import slope_of
from pcsim.maps.nonlinearities import NONLINEARITIES, row
from pcsim.native.c_text import in_c
from pcsim.run import run
from pcsim.substrate.expression import Expression

OWN = {
    "x/(1 + abs(x))": lambda x: x / (1 + x.abs()),
    "x*sigmoid(x)": lambda x: x * torch.sigmoid(x),
    "clip(x, -1, 1)": lambda x: x.clamp(-1, 1),
    "int(x > 0)*tanh(x)**2": lambda x: (x > 0) * torch.tanh(x) ** 2,
    "x/sqrt(1 + x**2)": lambda x: x / torch.sqrt(1 + x**2),
    "log(1 + exp(-abs(x))) + relu(x)": torch.nn.functional.softplus,
    "0.25*leaky_relu(2*x - 1)": lambda x: 0.25 * torch.nn.functional.leaky_relu(2 * x - 1),
}
X = torch.linspace(-8, 8, 1601, dtype=torch.float64) + 1e-4  # away from kinks


def by_autograd(f, x):
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(f(x).sum(), x)
    return slope


PLAIN = [name for name, one in NONLINEARITIES.items() if one.plain]


@pytest.mark.parametrize("name", PLAIN)
def test_fused_kernels_are_the_text(name):
    text, v = from_text(name), torch.randn(X.shape, dtype=X.dtype)
    for f in (text, FUSED.get(name, text)):  # a fused form is a choice
        r = f.apply(X, torch.empty_like(X))
        torch.testing.assert_close(r, FUNCTIONS[name](X), rtol=0, atol=1e-15)
        expected = by_autograd(FUNCTIONS[name], X) * v
        torch.testing.assert_close(f.pull(v.clone(), X, r), expected, rtol=0, atol=1e-14)


def test_gelu_is_its_text():
    names = {"erf": torch.erf, "exp": torch.exp, "x": X}
    for text, expected in (
        (row("gelu").f, FUNCTIONS["gelu"](X)),
        (row("gelu").slope, by_autograd(FUNCTIONS["gelu"], X)),
    ):
        torch.testing.assert_close(eval(text, names), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", PLAIN)
def test_given_slopes_are_the_derived_ones(name):
    """A slope in the table is written for speed: it is the derivative of the text beside it."""
    f = row(name).f
    slope = slope_of(ast.parse(f, mode="eval").body)
    r = Expression(f).bind({})({"x": X})
    value = Expression(slope).bind({})({"x": X, "r": r})
    given = Expression(row(name).slope).bind({})({"x": X, "r": r})
    torch.testing.assert_close(
        torch.as_tensor(value, dtype=X.dtype).expand_as(X),
        torch.as_tensor(given, dtype=X.dtype).expand_as(X),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("text", OWN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_own_expressions(text, dtype):
    """Kernel, plain function and slope against torch's own functions and autograd."""
    x, tolerance = X.to(dtype), 1e-13 if dtype == torch.float64 else 2e-5
    kernel = nonlinearity.NONLINEARITIES[text]
    r = kernel.apply(x, torch.empty_like(x))
    assert r.dtype == dtype
    torch.testing.assert_close(r, OWN[text](x), rtol=0, atol=tolerance)
    torch.testing.assert_close(FUNCTIONS[text](x), OWN[text](x), rtol=0, atol=tolerance)
    slope = kernel.pull(torch.ones_like(x), x, r)
    torch.testing.assert_close(slope, by_autograd(OWN[text], x), rtol=0, atol=tolerance)
    torch.testing.assert_close(by_autograd(FUNCTIONS[text], x), slope, rtol=0, atol=tolerance)


@pytest.mark.parametrize("text", [*OWN, "floor(x/2) + ceil(x) + sign(x)", "1/3*x"])
def test_the_same_in_c(text, tmp_path):
    import ctypes
    import subprocess

    known = row(text)
    f, slope = (in_c(t, {"x": "x", "r": "r"}) for t in (known.f, known.slope))
    (tmp_path / "f.c").write_text(
        f"#include <math.h>\ndouble f(double x) {{ return {f}; }}\n"
        f"double slope(double x, double r) {{ return {slope}; }}\n"
    )
    library = tmp_path / "f.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "f.c", "-lm"], check=True)
    c = ctypes.CDLL(str(library))
    c.f.restype = c.slope.restype = ctypes.c_double
    c.f.argtypes, c.slope.argtypes = [ctypes.c_double], [ctypes.c_double] * 2
    r = from_text(text).apply(X, torch.empty_like(X))
    expected = from_text(text).pull(torch.ones_like(X), X, r)
    np.testing.assert_allclose([c.f(x) for x in X.tolist()], r, rtol=1e-13, atol=1e-13)
    slopes = [c.slope(x, v) for x, v in zip(X.tolist(), r.tolist(), strict=True)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tahn", "did you mean 'tanh'?"),
        ("x + y", "knows no y; it is an expression in x alone"),
        ("1 + 1", "does not depend on x"),
        ("log(x)", "at x = "),
        ("sqrt(abs(x))", "slope"),
        ("exp(x)", "is inf at x ="),
        ("x/(1 + exp(-x))", "and tanh may be called, and do not overflow"),
        ("sinh(x)", "unknown function; known are"),
        ("x > 0", "one comparison stands inside int(…)"),
        ("int(x)", "one comparison stands inside int(…)"),
        ("clip(x)", "cannot be evaluated"),
        ("x if x else 0", "IfExp is not allowed"),
        ("__import__('os').system('x')", "unknown function"),
        ("x +", "is not an expression"),
        ("x/(1 - 1)", "at x ="),
        ("", "is not an expression"),
    ],
)
def test_refused(text, words):
    with pytest.raises(ConfigError) as error:
        configuration.parse({"network": {"sizes": [4, 3, 2], "f": text}})
    assert "network.f: " in str(error.value)
    assert words in str(error.value)
    with pytest.raises(ConfigError, match=r"network\.f"):
        pcsim.Network.mlp([4, 3, 2], text)


def test_softmax_is_no_function_of_one_unit():
    with pytest.raises(ConfigError, match="no function of one unit; choose one of identity"):
        configuration.parse({"network": {"sizes": [4, 3, 2], "f": "softmax"}})


DIGITS = {
    "data": {"limit": 12, "limit_test": 20},
}
STEPS = {"ipc": {"gamma": 0.05, "T": 4}, "pc": {"gamma": 0.2, "T": 4}, "zil": {"gamma": 0.2}}
CIRCUITS = {
    "algebraic": {},
    "error_units": {"tau_err": 0.1},
    "dendritic": {"tau_inter": 0.05},
    "sacramento": {"conductances": {"g_som": 0.8}},
}


def trained(f, backend="discrete", rule="ipc", kind="algebraic", f_input=False):
    continuous = backend != "discrete"
    return run(
        configuration.parse(
            DIGITS
            | {
                "network": {"sizes": [64, 5, 10], "f": f, "bias": False, "f_input": f_input},
                "schedule": {"rule": rule, **STEPS.get(rule, {})},
                "learning": {"alpha": 0.01, "batch": 4, "epochs": 1},
                "run": {"dtype": "float64", "backend": backend},
                "circuit": {"kind": kind, **CIRCUITS[kind]} if continuous else {},
            }
        )
    )["parameters"]


TANH = "(exp(clip(2*x, -40, 40)) - 1)/(exp(clip(2*x, -40, 40)) + 1)"
"""tanh in other words: a run with it is a run with tanh."""


@pytest.mark.parametrize("rule", ["ipc", "pc", "zil", "bp"])
def test_discrete_runs(rule):
    expected = trained("tanh", rule=rule)
    np.testing.assert_allclose(trained(TANH, rule=rule), expected, rtol=0, atol=1e-13)
    assert np.abs(trained("x/(1 + abs(x))", rule=rule) - expected).max() > 1e-6


@pytest.mark.parametrize("kind", CIRCUITS)
def test_continuous_runs(kind):
    expected = trained("tanh", "continuous", kind=kind)
    own = trained(TANH, "continuous", kind=kind)
    np.testing.assert_allclose(own, expected, rtol=0, atol=1e-13)
    assert np.abs(trained("x/(1 + abs(x))", "continuous", kind=kind) - expected).max() > 1e-6


@pytest.mark.parametrize("kind", CIRCUITS)
@pytest.mark.parametrize("f", ["x/(1 + abs(x))", "clip(x, -1, 1)", "x*sigmoid(x)"])
def test_brian_runs(kind, f):
    pytest.importorskip("brian2")
    if (kind != "algebraic") == (f == "clip(x, -1, 1)"):
        pytest.skip("one circuit for every expression, one expression for every circuit")
    expected = trained(f, "continuous", kind=kind)
    np.testing.assert_allclose(trained(f, "brian", kind=kind), expected, rtol=0, atol=1e-12)
