"""Configuration, provenance, and how to make a store again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pcsim.config import from_json
from pcsim.errors import ConfigError
from pcsim.report.answer import PARTS
from pcsim.report.toml_text import toml_text
from pcsim.report.view import View
from pcsim.rows import Rows

HIDDEN = frozenset(
    {
        "config", "configs", "base_config", "sweep", "axes", "devices", "settings", "unlike",
        "check_config", "check", "outcome", "passed", "deployment", "deployment_tables",
        "plan", *(name for name, _ in PARTS),
    }
)  # fmt: skip
"""Attributes that are shown elsewhere, in a form a person can read."""


@dataclass(frozen=True)
class Listing:
    """A text to be shown as it is, with a title."""

    title: str
    text: str


def configurations(view: View) -> list[Listing]:
    """Return the configurations behind a store, as TOML."""
    attrs = view.result.attrs
    if "base_config" in attrs:
        data = json.loads(str(attrs["base_config"])) | {"sweep": json.loads(str(attrs["sweep"]))}
        return [Listing(f"{view.name}.toml", toml_text(data))]
    if "check_config" in attrs:
        return [Listing(f"{view.name}.toml", toml_text(json.loads(str(attrs["check_config"]))))]
    if "config" in attrs:
        return [Listing(f"{view.name}.toml", toml_text(_meant(str(attrs["config"]))))]
    if "configs" in attrs:
        given = json.loads(str(attrs["configs"]))
        return [
            Listing(f"{name}.toml", toml_text(_meant(text))) for name, text in given.items() if text
        ]
    return []


def _meant(text: str) -> Any:
    """Return a stored configuration without defaults that had no meaning: `pcsim` takes it back."""
    try:
        return from_json(text).model_dump(mode="json", exclude_unset=True)
    except ConfigError:  # of another version
        return json.loads(text)


def provenance_rows(view: View) -> Rows:
    """Return versions, commit, command line, machine: all that is not shown elsewhere."""
    rows = [
        (name.removeprefix("version_") if name.startswith("version_") else name, str(value))
        for name, value in sorted(view.result.attrs.items())
        if name not in HIDDEN
    ]
    return Rows("Provenance", ("", ""), (("file", view.source), *rows), words=True)


def commands(view: View) -> list[str]:
    """Return the steps that make this store again."""
    attrs = view.result.attrs
    commit, command = str(attrs.get("commit", "unknown")), str(attrs.get("command_line", ""))
    steps = []
    clean = commit.removesuffix("+changes")
    if clean != "unknown":
        note = "  # the source had further changes" if clean != commit else ""
        steps.append(f"git checkout {clean}{note}")
    steps.append("pip install -c constraints.txt .")
    verbs = {"comparison": "", "sweep": "sweep", "check": "check", "deploy": ""}
    verb = verbs.get(view.kind, "run")
    if verb and configurations(view):
        words = [f"pcsim {verb} {view.name}.toml", _options(view)]
        steps.append(" ".join(filter(None, words)) + "  # the configuration on this page")
        if verb == "check" and command:
            steps.append(f"# it was asked for by: {command}")
    elif command:
        steps.append(command)
    steps.append(f"pcsim report {view.source}")
    return steps


def _options(view: View) -> str:
    """Return what a check was asked for beside its configuration."""
    if view.kind != "check":
        return ""
    return str(json.loads(str(view.result.attrs["answer"]))["command"])
