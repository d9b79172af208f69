"""Every number of every preset against the oracle; what the oracle does not name is a default."""

from collections.abc import Mapping

import pytest
from preset_oracle import DRIFT, EMERGING, MICROSIEMENS, SUBSTRATES, TRAINING

from hw_models import PIECES, known_presets
from hw_models.presets import CHIPS as WHOLE
from hw_models.presets import FLASH, PROGRAMMED
from hw_models.presets import SUBSTRATES as CHIPS
from hw_models.presets import TRAINING as DEVICES


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        found |= flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return found


def programmed() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name, (full, sigma, of) in MICROSIEMENS.items():
        power = [0 if of == "fraction" else k for k in range(len(sigma))]
        relative = tuple(c * full**p / full for c, p in zip(sigma, power, strict=True))
        found[name] = {
            "programming.kind": "programming_error",
            "programming.coefficients": relative,
        }
        if name in DRIFT:
            found[name] |= {"drift.kind": "pcm_drift", "drift.t0": DRIFT[name]}
            found[name] |= {"drift.t_read": 250e-9}
    return found


ORACLE = TRAINING | SUBSTRATES | EMERGING | programmed()


def numbers_of(name: str) -> dict[str, object]:
    """Return all fields of a preset."""
    return flat({k: piece.model_dump() for k, piece in known_presets()[name].pieces.items()})


def expected_of(name: str, found: Mapping[str, object]) -> dict[str, object]:
    """Return what the oracle names, and the defaults of the kinds for all else."""
    expected = dict(ORACLE[name])
    for path in found:
        if path in expected:
            continue
        holder, field = path.rsplit(".", 1)
        kind = expected.get(f"{holder}.kind", "device_pair")
        expected[path] = kind if field == "kind" else PIECES[kind].model_fields[field].default
    return expected


def test_the_oracle_has_every_preset():
    assert set(ORACLE) == set(known_presets()) - {"ideal"} - {one.name for one in (*WHOLE, *FLASH)}
    assert len(ORACLE) == len(DEVICES) + len(PROGRAMMED) + len(CHIPS) + len(EMERGING)


@pytest.mark.parametrize("name", ORACLE)
def test_every_number_of_a_preset(name):
    found = numbers_of(name)
    expected = expected_of(name, found)
    assert set(found) == set(expected)
    for path, value in expected.items():
        near = pytest.approx(value, rel=1e-12) if isinstance(value, float | tuple) else value
        assert found[path] == near, path


@pytest.mark.parametrize("name", ORACLE)
def test_one_changed_number_is_seen(name):
    """Control: each number in turn eight times as large, and each word another."""
    found = numbers_of(name)
    expected = expected_of(name, found)
    for path in ORACLE[name]:
        value = found[path]
        if isinstance(value, float) and value:
            assert 8 * value != pytest.approx(expected[path], rel=1e-12), path
