"""Random damage to valid configurations: other types, extremes, lists, tables, empty text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

NUMBERS = (0, -1, 1, 2, 1e-300, 1e300, 1e-40, 1e40, 3.5e38, -0.0, 0.5, 2**31, 2**63, 2**64, 10**400)
ODD: tuple[Any, ...] = (
    *NUMBERS,
    float("nan"),
    float("inf"),
    float("-inf"),
    True,
    None,
    "",
    "x",
    "a.b-c",
    "../x",
    [],
    {},
    [1],
    [[]],
    ["tanh"],
    [{}],
    {"kind": "x"},
    {"kind": ["mlp"]},
    {"a": {"b": {"c": 1}}},
)
BASES: tuple[dict[str, Any], ...] = (
    {
        "network": {
            "kind": "mlp",
            "sizes": [64, 4, 10],
            "f": "tanh",
            "output": {"kind": "gaussian"},
        },
        "schedule": {"rule": "ipc", "T": 2, "gamma": 0.2, "init": "ff", "discount": 0.9},
        "learning": {"optimizer": "adam", "alpha": 0.01, "betas": [0.9, 0.99], "eps": 1e-8},
        "data": {"name": "digits", "limit": 4, "limit_test": 4},
        "run": {"seeds": [0], "dtype": "float32", "device": "cpu"},
        "grid": {"weight_decay": [0.1, 0.2]},
        "hardware": {"chips": 1, "seed": 0, "preset": "ecram_li"},
        "record": {"predictions": True},
    },
    {
        "network": {
            "sizes": [64, 4, 10],
            "hidden": {"variance": 1.0, "learned": True, "floor": 0.1},
        },
        "schedule": {"gamma": 0.2},
        "learning": {"alpha": 0.01, "batch": 2, "epochs": 1},
        "data": {"limit": 4, "limit_test": 4},
        "run": {"backend": "continuous", "seeds": [0, 1]},
        "circuit": {"kind": "algebraic", "tau_x": 1.0, "transport": "random", "feedback_gain": 1.0},
        "stream": {"t_pres": 0.4, "tau_label": 0.1},
        "record": {"every": 1, "trajectories": False},
        "solver": {"name": "euler", "noise_seed": 1},
        "hardware": {"pieces": {"noise": {"kind": "read_noise", "where": "rate", "sigma": 0.1}}},
        "grid": {"hardware": {"noise.sigma": [0.1, 0.2]}},
    },
    {
        "network": {"sizes": [64, 4, 10]},
        "schedule": {"T": 2},
        "learning": {"batch": 2, "epochs": 1, "reduction": "mean"},
        "data": {"limit": 4, "limit_test": 4},
        "run": {"backend": "continuous"},
        "circuit": {
            "kind": "dendritic",
            "tau_w": 100.0,
            "tau_apical": 0.3,
            "tau_inter": 0.3,
            "conductances": {"g_lk": 0.1, "g_som": 0.3},
            "inhibition": 0.9,
        },
        "solver": {"dt": 0.1},
        "hardware": {"preset": "pcm", "chips": 2},
    },
    {
        "network": {
            "kind": "cnn",
            "image": [1, 8, 8],
            "channels": [2],
            "dense": [3],
            "pool": "max",
        },
        "schedule": {"rule": "pc", "T": 2, "pc_update_at": "after"},
        "learning": {"batch": 2, "epochs": 1},
        "data": {"limit": 4, "limit_test": 4, "centre": True},
    },
    {
        "network": {"sizes": [3, 4, 64], "prior": 0.0},
        "schedule": {"T": 2, "init": "normal", "init_sd": 0.2},
        "learning": {"batch": 0},
        "data": {"limit": 4, "mode": "generative"},
    },
    {
        "network": {"sizes": [64, 4, 10]},
        "learning": {"batch": 0},
        "data": {"limit": 4},
        "run": {"automatic": True},
        "convergence": {"window": 2, "rtol": 0.1, "atol": 0.0, "max_steps": 4},
    },
)


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through the ways to every value, tables and lists included."""
    if at:
        yield at
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for name, value in items:
        yield from places(value, (*at, name))


def damaged(seed: int) -> dict[str, Any]:
    """Return a valid configuration with one to three values replaced, taken away or added."""
    rng = random.Random(seed)
    data: dict[str, Any] = deepcopy(rng.choice(BASES))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        *parents, last = rng.choice(list(places(data)))
        section: Any = data
        for name in parents:
            section = section[name]
        action = rng.random()
        if action < 0.1:
            del section[last]
        elif action < 0.2 and isinstance(section, dict):
            section[rng.choice(("kind", "", "x", "tau_x", "sigma", "network"))] = rng.choice(ODD)
        else:
            section[last] = deepcopy(rng.choice(ODD))
    return data


EXTREMES = (0.0, 1e-30, 1e-12, 1e-6, 1e-3, 0.5, 1.0, 10.0, 1e3, 1e6, 1e12, 1e30, -1.0, -1e30)
COUNTS = (0, 1, 2, 3, 5, 40)
"""Small ones: a run of 2³⁰ epochs is what it says it is."""


def extreme(seed: int, examples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a valid configuration with one or two numbers at an extreme.

    Every other one is of a chip with one piece of the examples, by kind.
    """
    rng = random.Random(seed)
    data: dict[str, Any] = deepcopy(rng.choice(BASES))
    if seed % 2:
        kind = rng.choice(sorted(examples))
        data = deepcopy(BASES[rng.choice((2, 5))])
        data["hardware"] = {"pieces": {"piece": {"kind": kind, **deepcopy(examples[kind])}}}
        data["hardware"]["chips"] = 2
        data.get("circuit", {}).pop("conductances", None)
        if data.get("circuit"):
            data["circuit"] = {"kind": "algebraic", "tau_w": 100.0}
    section: Any = data["hardware"]["pieces"] if seed % 2 and rng.random() < 0.8 else data
    for _ in range(rng.choice((1, 1, 2))):
        *parents, last = rng.choice([at for at in places(section) if _is_number(section, at)])
        target: Any = section
        for name in parents:
            target = target[name]
        target[last] = rng.choice(COUNTS if isinstance(target[last], int) else EXTREMES)
    return data


def _is_number(data: Any, at: tuple[Any, ...]) -> bool:
    for name in at:
        data = data[name]
    return type(data) in (int, float)
