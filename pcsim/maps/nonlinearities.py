"""The nonlinearities by name, and what a map may ask of them."""

from __future__ import annotations

from pcsim.errors import ConfigError

NONLINEARITIES = ("identity", "tanh", "sigmoid", "relu", "leaky_relu", "gelu", "softmax")


def check_nonlinearities(kind: str, f: str, g: str = "identity") -> None:
    """Refuse unknown names, and f before the weights together with g behind them."""
    for field, name in (("f", f), ("g", g)):
        if name not in NONLINEARITIES:
            raise ConfigError(
                f"{kind}.{field}: unknown nonlinearity {name!r}; "
                f"choose one of {', '.join(NONLINEARITIES)}"
            )
    if g == "softmax":
        raise ConfigError(f"{kind}.g: softmax outputs are logit nodes with the categorical energy")
    if f != "identity" and g != "identity":
        raise ConfigError(f"{kind}.f, {kind}.g: the node conventions must not be mixed in one map")


def check_sizes(kind: str, **sizes: int) -> None:
    """Refuse what is smaller than 1."""
    for field, value in sizes.items():
        if value < 1:
            raise ConfigError(f"{kind}.{field}: must be at least 1, got {value}")
