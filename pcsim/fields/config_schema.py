"""The JSON schema of a configuration file, with the pieces of hardware and the table [sweep]."""

from __future__ import annotations

from typing import Any

from pcsim.config import Config

DRAFT = "http://json-schema.org/draft-07/schema#"


def config_schema() -> dict[str, Any]:
    """Return the schema: what a file may hold; `hardware.device` is filled in by itself."""
    from hw_models.schema import any_piece, kind_definitions

    schema = Config.model_json_schema(ref_template="#/$defs/{model}")
    definitions = schema["$defs"] | kind_definitions()
    hardware = definitions["HardwareConfig"]["properties"]
    del hardware["device"]
    for unused in ("Device",):
        definitions.pop(unused, None)
    description = hardware["pieces"]["description"]
    changed = {
        "type": "object",
        "description": "Fields to change in a piece of the preset.",
        "not": {"required": ["kind"]},
    }
    hardware["pieces"] = {
        "type": "object",
        "description": description,
        "additionalProperties": {"anyOf": [any_piece(), changed]},
    }
    properties = schema["properties"] | {
        "sweep": {"type": "object", "description": "For `pcsim sweep`: fields that vary, and how."}
    }
    about = "A configuration of pcsim"
    return {
        "$schema": DRAFT,
        **schema,
        "title": about,
        "properties": properties,
        "$defs": definitions,
    }
