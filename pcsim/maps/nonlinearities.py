"""The nonlinearities: one table of what f is, as text, from which all engines follow.

A row is an expression in x and its slope in x and r = f(x). Where no slope is given it is derived.
A name of the table, or an expression of one's own such as "x/(1 + abs(x))", may stand wherever a
network asks for a nonlinearity; an expression may call rows of the table, as in "x*sigmoid(x)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from pcsim.errors import ConfigError

_LEAKY = "0.01 + 0.99*int(x > 0)"
_GELU_SLOPE = "0.5*(1 + erf(x/2**0.5)) + x*exp(-x**2/2)/(2*3.141592653589793)**0.5"
EXAMPLE = "x/(1 + abs(x))"


@dataclass(frozen=True)
class Row:
    """f(x) as an expression, and f'(x) in x and r = f(x)."""

    f: str
    slope: str = ""
    """Empty: derived from f."""

    @property
    def elementwise(self) -> bool:
        """Whether each rate depends on its own unit alone."""
        return bool(self.f)

    @property
    def plain(self) -> bool:
        """Whether f and its slope are in the grammar of expressions, which every engine runs."""
        return self.elementwise and "erf" not in self.f

    def at(self, x: str) -> str:
        """Return f of a variable called x."""
        return _put(self.f, {"x": x})

    def slope_at(self, x: str, r: str) -> str:
        """Return f' of variables called x and r."""
        return _put(self.slope, {"x": x, "r": r})


NONLINEARITIES: Mapping[str, Row] = {
    "identity": Row("x", "1"),
    "tanh": Row("tanh(x)", "1 - r**2"),
    "sigmoid": Row("1/(1 + exp(-x))", "r*(1 - r)"),
    "relu": Row("x*int(x > 0)", "int(x > 0)"),
    "leaky_relu": Row(f"x*({_LEAKY})", _LEAKY),
    "gelu": Row("0.5*x*(1 + erf(x/2**0.5))", _GELU_SLOPE),
    "softmax": Row("", ""),  # over all units of a layer: no function of one
}


_SOFTPLUS = Row("x*int(x > 0) + log(1 + exp(-abs(x)))", "1/(1 + exp(-x))")
_WITHOUT_OVERFLOW: Mapping[str, Row] = {"log(1+exp(x))": _SOFTPLUS, "log(exp(x)+1)": _SOFTPLUS}
"""What people write, and the same number where exp(x) is beyond the range."""


def _put(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[xr]\b", lambda match: names[match.group()], text)


@lru_cache(maxsize=256)
def row(name: str) -> Row:
    """Return the row of a name, or of an expression in x; its slope is derived where none is given.

    An unknown name, or an expression that cannot be used, is refused.
    """
    known = NONLINEARITIES.get(name) or _WITHOUT_OVERFLOW.get(name.replace(" ", ""))
    if known is not None and (known.slope or not known.f):
        return known
    if known is None and name.isidentifier() and name != "x":
        close = get_close_matches(name, NONLINEARITIES, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(f"unknown nonlinearity {name!r}; {hint}{CHOICES}")
    from pcsim.maps.derivative import derived  # sympy takes half a second to load

    f, slope = derived(known.f if known else name)
    return Row(f, slope)


CHOICES = (
    f"choose one of {', '.join(name for name, one in NONLINEARITIES.items() if one.f)}, or an "
    f"expression in x such as {EXAMPLE!r}"
)


def check_nonlinearities(kind: str, f: str, g: str = "identity") -> None:
    """Refuse what is no nonlinearity, and f before the weights together with g behind them."""
    for field, name in (("f", f), ("g", g)):
        try:
            row(name)
        except ConfigError as error:
            raise ConfigError(f"{kind}.{field}: {error}") from None
    if g == "softmax":
        raise ConfigError(f"{kind}.g: softmax outputs are logit nodes with the categorical energy")
    if f != "identity" and g != "identity":
        raise ConfigError(f"{kind}.f, {kind}.g: the node conventions must not be mixed in one map")


def check_sizes(kind: str, **sizes: int) -> None:
    """Refuse what is smaller than 1."""
    for field, value in sizes.items():
        if value < 1:
            raise ConfigError(f"{kind}.{field}: must be at least 1, got {value}")
