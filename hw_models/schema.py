"""The JSON schema of a chip file, for editors (taplo, VS Code's Even Better TOML)."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from hw_models.pieces import PIECES
from hw_models.whole_chip import WholeChip

FILE = "pcsim-hardware.schema.json"
"""Name of the schema beside a chip file."""
LINE = f"#:schema ./{FILE}"
"""First line of a chip file: where an editor finds the schema."""
DRAFT = "http://json-schema.org/draft-07/schema#"


def kind_definitions() -> dict[str, Any]:
    """Return the schema of every kind, and of what is around arrays, by the name of its model."""
    models = [(model, "validation") for model in (*PIECES.values(), WholeChip)]
    _, made = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    definitions: dict[str, Any] = made["$defs"]
    return definitions


def any_piece() -> dict[str, Any]:
    """Return the schema of a piece of any kind, told apart by `kind`."""
    return {"oneOf": [{"$ref": f"#/$defs/{piece.__name__}"} for piece in PIECES.values()]}


def hardware_schema() -> dict[str, Any]:
    """Return the schema of a chip file: name, about, sources, chip, and pieces of any kind."""
    text = {"type": "string"}
    return {
        "$schema": DRAFT,
        "title": "A chip for pcsim",
        "type": "object",
        "additionalProperties": False,
        "required": ["pieces"],
        "properties": {
            "name": {**text, "description": "Name of the chip; the file's name if left out."},
            "about": {**text, "description": "What it is, in one line."},
            "sources": {
                "type": "array",
                "items": text,
                "description": "Where the numbers come from.",
            },
            "chip": {"$ref": "#/$defs/WholeChip"},
            "pieces": {
                "type": "object",
                "minProperties": 1,
                "description": "Non-idealities by name; they act by their physical place.",
                "additionalProperties": any_piece(),
            },
        },
        "$defs": kind_definitions(),
    }
