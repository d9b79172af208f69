"""Any network as a section of a file: its nodes, each with its map, parents and energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pcsim import maps
from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.errors import ConfigError
from pcsim.frozen import Count, Frozen
from pcsim.network import Network, Node

KINDS: dict[str, type] = {
    **maps.MAPS,
    "gaussian": Gaussian,
    "categorical": Categorical,
}
"""Maps and energies by the name that a file gives them."""
_NAMES = {made: name for name, made in KINDS.items()}
_ENERGIES = ("gaussian", "categorical")


class NodeConfig(Frozen):
    """A group of value nodes, or an operation on the way (without an energy)."""

    shape: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """Units of the node, along one axis or more."""
    parents: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    """Numbers of the nodes that predict it, all of them larger than its own."""
    map: Mapping[str, Any] | None = None
    """How it is predicted: a type (dense, convolution, …) with the fields of that map."""
    energy: Mapping[str, Any] | None = None
    """What it pays for its error: type gaussian or categorical; unset: no value node."""

    def build(self) -> Node:
        """Return the description object."""
        energy = None if self.energy is None else _made("energy", self.energy, _ENERGIES)
        known = tuple(name for name in KINDS if name not in _ENERGIES)
        spec = None if self.map is None else _made("map", self.map, known)
        return Node(self.shape, spec, self.parents, energy)


class Graph(Frozen):
    """A network of one's own, node by node from the datum (0) to the top; see `Network`."""

    kind: Literal["graph"] = "graph"
    nodes: Annotated[tuple[NodeConfig, ...], Field(strict=False, min_length=2)]
    """The nodes, from the datum or label to the input."""

    @model_validator(mode="after")
    def _is_a_network(self) -> Self:
        try:
            self.build()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def build(self) -> Network:
        """Return the description object."""
        return Network(tuple(node.build() for node in self.nodes))

    @classmethod
    def of(cls, network: Network) -> Graph:
        """Return the section that describes a network."""
        nodes = [
            {
                "shape": node.shape,
                **({"parents": node.parents} if node.parents else {}),
                **({"map": _fields(node.map)} if node.map else {}),
                **({"energy": _fields(node.energy)} if node.energy else {}),
            }
            for node in network.nodes
        ]
        return cls.model_validate({"nodes": nodes})


def _fields(made: maps.Map | Energy) -> dict[str, Any]:
    """Return the type and all fields of a map or energy as plain data."""
    plain = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(made).items()}
    return {"type": _NAMES[type(made)], **plain}


def _made(field: str, given: Mapping[str, Any], known: tuple[str, ...]) -> Any:
    kind = given.get("type")  # a map may have a field called kind
    if kind not in known:
        raise ConfigError(f"{field}.type: must be one of {', '.join(known)}, got {kind!r}")
    model = KINDS[kind]
    names = [one.name for one in fields(model)]
    strange = sorted(given.keys() - {"type", *names})
    if strange:
        raise ConfigError(
            f"{field}.{strange[0]}: unknown name; known for {kind!r} are {', '.join(names)}"
        )
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in given.items() if n != "type"}
    try:
        return model(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{field}: {kind!r} cannot be made of these fields ({error})") from None
