"""Which architecture a section `network` describes: its field `kind`, "mlp" if it is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Tag, ValidationError

from pcsim.architectures.alexnet import AlexNet
from pcsim.architectures.cnn import Cnn
from pcsim.architectures.graph import Graph
from pcsim.architectures.mlp import Mlp
from pcsim.architectures.transformer import Transformer
from pcsim.errors import ConfigError
from pcsim.fields.explain import explanations
from pcsim.network import Network

ARCHITECTURES: dict[str, type[Mlp | Cnn | AlexNet | Transformer]] = {
    "mlp": Mlp,
    "cnn": Cnn,
    "alexnet": AlexNet,
    "transformer": Transformer,
}


def _kind(section: Any) -> str:
    """Return the tag; what is no text has none, and is shown in the refusal as it was written."""
    if isinstance(section, Mapping):
        kind = section.get("kind", "mlp")
    else:
        kind = getattr(section, "kind", "mlp")
    return kind if isinstance(kind, str) else repr(kind)


NetworkConfig = Annotated[
    Annotated[Mlp, Tag("mlp")]
    | Annotated[Cnn, Tag("cnn")]
    | Annotated[AlexNet, Tag("alexnet")]
    | Annotated[Transformer, Tag("transformer")]
    | Annotated[Graph, Tag("graph")],
    Discriminator(_kind),
]


def section_of(network: Network) -> Mlp | Graph:
    """Return the section of a file that describes a network, the shortest that does."""
    return Mlp.of(network) or Graph.of(network)


def build(kind: str, options: Mapping[str, Any]) -> Network:
    """Build a network from the fields of its architecture; errors name the field."""
    model: type[BaseModel] = ARCHITECTURES[kind]
    try:
        section = ARCHITECTURES[kind].model_validate(dict(options))
    except ValidationError as error:
        problems = "; ".join(explanations(error, model))
        raise ConfigError(f"Network.{kind}: {problems}") from None
    return section.build()
