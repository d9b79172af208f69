"""A circuit has the fields of its kind and no others; one table says whose a field is."""

import itertools
import json
from pathlib import Path

import pytest

from pcsim import config as configuration
from pcsim.circuit import (
    BELONGS,
    KINDS,
    Algebraic,
    Circuit,
    Conductances,
    Dendritic,
    Equilibrium,
    ErrorUnits,
    Sacramento,
    Spiking,
)
from pcsim.errors import ConfigError
from pcsim.meaning import LeftOutWarning

NEEDED = {
    "error_units": {"tau_err": 0.2},
    "sacramento": {"conductances": {"g_som": 0.5}},
    "spiking": {"tau_err": 0.2, "tau_s": 0.3},
}
VALUES = {"conductances": {"g_som": 0.4}, "transport": "random", "inter_learned": False}
VALUES |= {"self_predicting": False, "plastic": "always"}


def description(kind, **fields):
    network = {"sizes": [64, 5, 10], "bias": kind != "sacramento"}
    circuit = {"kind": kind} | NEEDED.get(kind, {}) | fields
    return {"network": network, "run": {"backend": "continuous"}, "circuit": circuit}


@pytest.mark.parametrize(("kind", "field"), [*itertools.product(KINDS, BELONGS)])
def test_a_field_of_another_circuit_is_an_unknown_name(kind, field):
    value = VALUES.get(field, 0.3)
    if kind in BELONGS[field]:
        lag = {field.replace("look_", "tau_"): 0.3} if field.startswith("look_") else {}
        lag = {} if field == "look_soma" else lag
        config = configuration.parse(description(kind, **{**lag, field: value}))
        assert type(config.circuit) is KINDS[kind]
        assert config.circuit.model_dump()[field] != ""
        return
    with pytest.raises(ConfigError) as error:
        configuration.parse(description(kind, **{field: value}))
    owners = " or ".join(repr(owner) for owner in BELONGS[field])
    words = f"circuit.{field}: unknown name here; it belongs to circuit.kind {owners}"
    assert words in str(error.value)
    with pytest.raises(ConfigError):
        KINDS[kind](**NEEDED.get(kind, {}), **{field: value})


def test_circuits_by_name_and_by_class_are_the_same():
    assert Circuit() == Algebraic()
    assert Circuit(kind="error_units", tau_err=0.1) == ErrorUnits(tau_err=0.1)
    assert Circuit(kind="equilibrium", beta=0.3) == Equilibrium(beta=0.3)
    assert Circuit(kind="dendritic", tau_inter=0.2) == Dendritic(tau_inter=0.2)
    assert Circuit(kind="spiking", tau_err=0.1, tau_s=0) == Spiking(tau_err=0.1, tau_s=0)
    nudged = Conductances(g_som=0.5)
    assert Circuit(kind="sacramento", conductances=nudged) == Sacramento(conductances=nudged)
    with pytest.raises(ConfigError, match="must be one of algebraic, dendritic, equilibrium, err"):
        Circuit(kind="dendrites")


def test_what_a_circuit_has_not_reads_as_none_of_it():
    assert Dendritic().tau_err == 0
    assert Sacramento(conductances=Conductances(g_som=0.1)).transport == "shared"
    with pytest.raises(AttributeError):
        _ = Algebraic().conductances


def test_a_change_of_kind_leaves_the_old_fields_out_and_says_so():
    data = description("error_units", tau_err=0.3)
    with pytest.warns(LeftOutWarning, match=r"circuit\.tau_err .* \(needs circuit\.kind 'error_un"):
        config = configuration.with_changes(data, {"circuit.kind": "dendritic"}, "here.toml")
    assert config.circuit == Dendritic()
    with pytest.raises(ConfigError, match=r"circuit\.look_err: unknown name here"):
        configuration.with_changes(
            description("algebraic"), {"circuit.kind": "dendritic", "circuit.look_err": "1"}, ""
        )


OLD = json.loads((Path(__file__).parent / "stored_configurations_0_1.json").read_text())
"""What results of version 0.1 contain: a circuit had the fields of all kinds, and defaults."""
NEWER = {("data", "sha256"), ("data", "shuffled"), ("run", "engine"), ("grid", "trials")}
"""Fields that 0.1 did not have."""
SET_BEFORE = {
    "algebraic": {"look_soma": 0.3},
    "error_units": {"tau_err": 0.2, "delay_fb": 1.0},
    "dendritic": {"tau_inter": 0.1, "transport": "random"},
    "sacramento": {"eta_down": 0.1, "conductances": Conductances(g_som=0.5)},
}


@pytest.mark.parametrize("name", OLD)
def test_stored_configurations_of_before_are_read(name):
    config = configuration.from_json(json.dumps(OLD[name]))
    if name in KINDS:
        assert config.circuit == KINDS[name](**SET_BEFORE[name])
    again = json.loads(config.to_json())
    for section, fields in again.items():
        if section == "spice":  # an engine of later versions
            continue
        for field, value in fields.items():
            new = (section, field) in NEWER
            if (section, field) == ("hardware", "device") and value:
                assert value.pop("chip") is None  # devices alone: there were no whole chips
            assert new or OLD[name][section][field] == value, (section, field)


def test_files_of_before_are_read_or_told_what_to_change():
    """A field of another circuit could be set to its default up to 0.1."""
    with pytest.raises(ConfigError, match=r"circuit\.delay_err: unknown name here; it belongs to"):
        configuration.parse(description("dendritic", delay_err=0.0))
