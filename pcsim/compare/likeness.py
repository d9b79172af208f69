"""Like with like: the same network, data and seeds, or a refusal that names what differs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pcsim.compare.contender import Contender
from pcsim.errors import ConfigError

SAME = ("network.", "data.")
"""Sections of the configuration that must agree."""
DECLARED = ("network.sizes", "data.name")
"""What an external result must say about itself to be compared seed by seed."""
# Whether a local file was accepted without a checksum shows in the origin of the data.
_IGNORED = frozenset({"data.unverified"})
_ABSENT = object()


def differences(reference: Contender, other: Contender) -> list[str]:
    """Return one sentence for each field of network, data or seeds that is not the same."""
    sentences = []
    for field in DECLARED:
        for one in (reference, other):
            if field not in one.fields:
                sentences.append(
                    f"{field}: {one.name} does not say; declare it in the file "
                    f"(`# {field} = …` at the head of a CSV, an attribute in HDF5)"
                )
    shared = reference.fields.keys() & other.fields.keys()
    if reference.config and other.config:
        shared = reference.fields.keys() | other.fields.keys()
    for field in sorted(f for f in shared if f.startswith(SAME) and f not in _IGNORED):
        here, there = reference.fields.get(field, _ABSENT), other.fields.get(field, _ABSENT)
        if here != there:
            sentences.append(
                f"{field}: {_show(here)} in {reference.name}, {_show(there)} in {other.name}"
            )
    if reference.origin and other.origin and reference.origin != other.origin:
        sentences.append(
            f"files of the data set: {_show(dict(reference.origin))} in {reference.name}, "
            f"{_show(dict(other.origin))} in {other.name}"
        )
    if sorted(reference.seeds.tolist()) != sorted(other.seeds.tolist()):
        sentences.append(
            f"run.seeds: {reference.seeds.tolist()} in {reference.name}, "
            f"{other.seeds.tolist()} in {other.name}"
        )
    return sentences


def require_like(contenders: Sequence[Contender]) -> None:
    """Refuse to compare seed by seed what does not belong together."""
    for other in contenders[1:]:
        apart = differences(contenders[0], other)
        if apart:
            raise ConfigError(
                f"compare: {contenders[0].name} and {other.name} are not like with like: "
                f"{'; '.join(apart)}; make them equal, or compare the means with --unpaired"
            )


def settings_that_differ(reference: Contender, other: Contender) -> dict[str, str]:
    """Return the other fields that differ: what the comparison is about."""
    shared = reference.fields.keys() & other.fields.keys()
    return {
        field: f"{_show(reference.fields[field])} → {_show(other.fields[field])}"
        for field in sorted(shared)
        if reference.fields[field] != other.fields[field] and not field.startswith("record.")
    }


def _show(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    return json.dumps(value, ensure_ascii=False)
