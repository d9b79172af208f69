"""What a user adds to the equations of a circuit: lines, currents, constants, another f, weights.

A place is `hidden`, `output`, `input`, `layers` (all of them), `synapses` (all of them), or one
object: `layer1`, `map0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from brian2 import BrianObjectException, Equations
from brian2.equations.equations import EquationError
from numpy.typing import ArrayLike

from pcsim.circuits.plan import Connection, Group, Plan
from pcsim.errors import ConfigError
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.maps import Dense
from pcsim.network import Network

Texts = str | Mapping[str, str]
Weights = Sequence[ArrayLike | tuple[ArrayLike, ArrayLike]]
_RATE = re.compile(r"^(d[xu]/dt = (?:free\*)?\()(.*)(\)/(?:\w+|\([^()]*\))(?: \+ [^:]*)? : 1.*)$")
_FORCE = re.compile(r"^((?:force|drift) = )(.*)( : 1.*)$")
_LEARNT = re.compile(r"^(dw/dt = )(.*)( : 1 \(clock-driven\).*)$")


def hooked(
    plan: Plan, extra: Texts | None, current: Texts | None, constants: Mapping[str, Any] | None
) -> Plan:
    """Return a plan with lines, currents and constants of a user's own."""
    given = {
        "extra": {"hidden": extra} if isinstance(extra, str) else dict(extra or {}),
        "current": {"hidden": current} if isinstance(current, str) else dict(current or {}),
    }
    for argument, texts in given.items():
        for place, text in texts.items():
            plan = _changed(plan, argument, place, text)
    added = "\n".join(text for texts in given.values() for text in texts.values())
    for name in constants or {}:
        if not re.search(rf"\b{re.escape(name)}\b", added):
            raise ConfigError(f"build: constants: no line or current that you add speaks of {name}")
        if any(name in part.constants for part in plan.on_chip):
            raise ConfigError(f"build: constants: {name} is a constant of the circuit already")
    return plan


def _changed(plan: Plan, argument: str, place: str, text: str) -> Plan:
    """Return a plan with a text at one place."""
    change = _with_lines if argument == "extra" else _with_current
    groups, links = _places(plan, argument, place)
    return replace(
        plan,
        groups=tuple(change(p, text) if p.name in groups else p for p in plan.groups),
        connections=tuple(change(p, text) if p.name in links else p for p in plan.connections),
    )


def _places(plan: Plan, argument: str, place: str) -> tuple[set[str], set[str]]:
    """Return the names of the layers and of the synapses at a place."""
    layers, maps = [g.name for g in plan.groups], [c.name for c in plan.connections]
    known: dict[str, tuple[list[str], list[str]]] = {
        "hidden": (layers[1:-1], []),
        "output": (layers[:1], []),
        "input": (layers[-1:], []),
        "layers": (layers, []),
        "synapses": ([], maps),
    }
    known |= {f"layer{k}": ([name], []) for k, name in enumerate(layers)}
    known |= {f"map{k}": ([], [name]) for k, name in enumerate(maps)}
    if place not in known:
        raise ConfigError(f"build: {argument}: no place {place!r}; there are {', '.join(known)}")
    groups, links = known[place]
    if not groups and not links:
        raise ConfigError(f"build: {argument}: this network has no {place} layer")
    return set(groups), set(links)


def _with_lines(part: Any, text: str) -> Any:
    own = _names(part.name, part.text)
    for name in _names(f"extra of {part.name}", text):
        if name in own:
            raise ConfigError(
                f"build: extra: {part.name} has a variable {name!r} already; call yours otherwise"
            )
    return replace(part, text=f"{part.text.rstrip()}\n{text.strip()}\n")


def _names(where: str, text: str) -> set[str]:
    try:
        return set(Equations(text).names)
    except (EquationError, BrianObjectException, SyntaxError, ValueError) as error:
        told = str(error).strip().splitlines()
        raise ConfigError(
            f"build: {where}: is no equation of Brian2 ({told[0] if told else 'cannot be read'}); "
            "write lines such as 'da/dt = (x - a)/tau_a : 1'"
        ) from None


def _with_current(part: Group | Connection, text: str) -> Any:
    """Add a text to τ_x dx/dt of a layer, or to dw/dt of synapses."""
    patterns = (_FORCE, _RATE) if isinstance(part, Group) else (_LEARNT,)
    lines = part.text.splitlines()
    for pattern in patterns:
        for k, line in enumerate(lines):
            if match := pattern.match(line):
                before, body, behind = match.groups()
                lines[k] = f"{before}{body} + ({text.strip()}){behind}"
                return replace(part, text="\n".join(lines) + "\n")
    moves = "x that moves" if isinstance(part, Group) else "dw/dt"
    raise ConfigError(f"build: current: {part.name} has no {moves} to which it could be added")


def with_nonlinearity(network: Network, f: str) -> Network:
    """Return the network with another f of its hidden layers; its slope is derived."""
    top = len(network.nodes) - 1
    nodes = [
        replace(node, map=replace(node.map, f=f))
        if isinstance(node.map, Dense) and node.parents != (top,)
        else node
        for node in network.nodes
    ]
    if tuple(nodes) == network.nodes and top < 2:
        raise ConfigError("build: f: this network has no hidden layer")
    return replace(network, nodes=tuple(nodes))


def parameters_of(
    network: Network, weights: Parameters | Weights | None, seeds: Sequence[int]
) -> Parameters:
    """Return initial weights: drawn, or NumPy arrays (post, pre) or (chip, post, pre) per map."""
    if isinstance(weights, Parameters):
        return weights
    if weights is None:
        return initial_parameters(network, list(seeds) or [0], torch.float64)
    mapped = [k for k, node in enumerate(network.nodes) if isinstance(node.map, Dense)]
    if len(weights) != len(mapped):
        raise ConfigError(
            f"build: {len(weights)} arrays of weights for {len(mapped)} maps; give one for each, "
            "onto the output first"
        )
    arrays = [one if isinstance(one, tuple) else (one, None) for one in weights]
    chips = max(np.asarray(w).shape[0] if np.ndim(w) == 3 else 1 for w, _ in arrays)
    made = initial_parameters(network, [0] * chips, torch.float64)
    for number, (k, (w, b)) in enumerate(zip(mapped, arrays, strict=True)):
        _put(made.of[k]["w"], w, f"weights[{number}]", "(post, pre)")
        if "b" in made.of[k]:
            _put(made.of[k]["b"], 0.0 if b is None else b, f"biases[{number}]", "(post,)")
        elif b is not None:
            raise ConfigError(f"build: biases[{number}]: the map onto layer {k} has no biases")
    return made


def _put(target: torch.Tensor, values: Any, where: str, axes: str) -> None:
    given = np.asarray(values, dtype=np.float64)
    shape = tuple(target.shape)
    if given.ndim and given.shape not in (shape, shape[1:]):
        raise ConfigError(
            f"build: {where}: has shape {given.shape}; needed {axes} = {shape[1:]}, or with an "
            f"axis of {shape[0]} chips before"
        )
    if not np.isfinite(given).all():
        raise ConfigError(f"build: {where}: all numbers must be finite")
    target[:] = torch.as_tensor(np.broadcast_to(given, shape).copy())


def shaped(values: Iterable[float], chips: int, post: int, pre: int) -> np.ndarray:
    """Return the weights of synapses as (post, pre), or (chip, post, pre) of several chips."""
    array = np.array(values, dtype=np.float64).reshape(chips, post, pre)
    return array[0] if chips == 1 else array
