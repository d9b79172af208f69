"""Every field of every description is documented, and takes what it says; quantities are exact."""

from __future__ import annotations

import re
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel

from hw_models import PIECES
from hw_models.description import make_piece
from pcsim.config import Config, parse
from pcsim.errors import ConfigError
from pcsim.fields.allowed import allowed, unit_of
from pcsim.quantity import SYMBOLS, Unit, shown
from pcsim.sweep.axes import SweepTable


def models_of(root: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return a model and all models that its fields may hold."""
    known: dict[str, type[BaseModel]] = {}

    def visit(annotation: object) -> None:
        is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        if is_model and annotation.__name__ not in known:
            known[annotation.__name__] = annotation
            for field in annotation.model_fields.values():
                visit(field.annotation)
        for inner in get_args(annotation):
            visit(inner)

    visit(root)
    return known


def is_tag(field) -> bool:
    """Whether a field only names its model: a literal of one value."""
    return len(get_args(field.annotation)) == 1 and isinstance(field.default, str)


ROOTS = [*PIECES.values(), Config, SweepTable]
FIELDS = {
    f"{model.__module__}.{name}.{field}": info
    for root in ROOTS
    for name, model in models_of(root).items()
    for field, info in model.model_fields.items()
    if not is_tag(info)
}


def test_the_walk_sees_every_kind_and_section():
    assert len(PIECES) >= 41
    seen = {key.split(".")[-2] for key in FIELDS}
    assert {"Conductances", "EnergyConfig", "Mlp", "Transformer", "Convergence"} <= seen
    assert len(FIELDS) > 280


@pytest.mark.parametrize("key", FIELDS)
def test_every_field_has_a_description(key):
    words = FIELDS[key].description
    assert words
    assert len(words) > 8


@pytest.mark.parametrize("kind", PIECES)
def test_the_schema_of_a_kind_is_complete(kind):
    schema = PIECES[kind].model_json_schema()
    assert schema["description"]
    assert schema["required"][0] == "kind"
    for name, part in schema["properties"].items():
        assert name == "kind" or part.get("description"), name


@pytest.mark.parametrize("kind", PIECES)
def test_the_example_of_a_kind_is_that_kind(kind):
    piece = make_piece("mine", {"kind": kind, **PIECES[kind].EXAMPLE}, None)
    assert piece.kind == kind
    assert piece.effects("mine")


BAD = [object(), "zzz", [[]], -1e300, "5 mmHg", {"no": "such"}]


@pytest.mark.parametrize("kind", PIECES)
def test_a_wrong_value_of_any_field_is_named_with_what_is_allowed(kind):
    """The sentence holds the field, the value, and every name or limit that is allowed."""
    cls = PIECES[kind]
    for name, field in cls.model_fields.items():
        if name == "kind":
            continue
        refused = 0
        for value in BAD:
            with_it = {"kind": kind, **cls.EXAMPLE, name: value}
            try:
                make_piece("mine", with_it, None)
            except ConfigError as error:
                sentence = str(error)
            else:
                continue
            refused += 1
            assert re.search(rf"hardware\.pieces\.mine: (.*; )?{name}\b", sentence), sentence
            if isinstance(value, str) and field.annotation is str:
                continue  # a formula: it says which name is not known
            if value == [[]] and get_origin(field.annotation) is tuple:
                continue  # its item is at fault
            if not isinstance(value, dict):
                assert f"got {value!r}" in sentence, sentence
            choices = [v for v in _literals(field.annotation) if isinstance(v, str)]
            assert all(repr(choice) in sentence for choice in choices), sentence
            if not choices and not isinstance(value, dict):
                assert allowed(field) in sentence or " between " in sentence, sentence
        assert refused >= 3, name


def _literals(annotation: object) -> list[object]:
    arguments = get_args(annotation)
    if get_origin(annotation) is not None and all(isinstance(a, str) for a in arguments):
        return list(arguments)
    return [v for a in arguments for v in _literals(a)] if not _models(annotation) else []


def _models(annotation: object) -> bool:
    return any(isinstance(a, type) and issubclass(a, BaseModel) for a in get_args(annotation))


@pytest.mark.parametrize(
    ("unit", "text", "number"),
    [
        ("s", "20 us", 20e-6),
        ("s", "20us", 20e-6),
        ("s", "20 µs", 20e-6),
        ("s", "20 \u03bcs", 20e-6),
        ("s", "0.1 ms", 0.1e-3),
        ("s", "250 ns", 250e-9),
        ("s", "1.5e3 s", 1500.0),
        ("s", "2 min", 120.0),
        ("s", "1 h", 3600.0),
        ("s", "1 d", 86400.0),
        ("V", "5 mV", 5e-3),
        ("F", "20 fF", 20e-15),
        ("K", "300 K", 300.0),
        ("fraction", "1 %", 0.01),
        ("fraction", "1%", 0.01),
        ("fraction", "0.3 %", 0.003),
        ("fraction", "7 ‰", 0.007),
        ("fraction", "-12 ppm", -12e-6),
    ],
)
def test_a_quantity_is_the_number_to_the_last_bit(unit, text, number):
    assert Unit(unit).read(text) == number


def test_numbers_pass_and_are_shown_again():
    assert Unit("s").read(3) == 3
    for unit, text in (("s", "20 us"), ("s", "2 s"), ("fraction", "1 %"), ("V", "5 mV")):
        number = Unit(unit).read(text)
        assert shown(number, Unit(unit)) == text
    assert shown(0.0, Unit("s")) == "0 s"


@pytest.mark.parametrize("unit", SYMBOLS)
def test_a_unit_of_another_dimension_is_refused(unit):
    for other, symbols in SYMBOLS.items():
        for symbol in symbols:
            if other != unit:
                assert symbol not in SYMBOLS[unit]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "leak", "tau": "5 mV"}, "tau: the unit must be one of fs, ps"),
        ({"kind": "leak", "tau": "20"}, "tau: a text must be a number with a unit, got '20'"),
        ({"kind": "leak", "tau": "1 %"}, "not %, got '1 %'"),
        ({"kind": "leak", "tau": "0 s"}, "tau: must be greater than 0, got 0.0"),
        ({"kind": "rails", "limit": "5 mV"}, "limit: the unit must be a unit that has a symbol"),
        (
            {"kind": "read_noise", "sigma": "1 %", "where": "weight"},
            "sigma: a text with a unit needs relative = true, got '1 %'",
        ),
        (
            {"kind": "retention", "lifetime": "1 h", "per": "update"},
            "lifetime: a text with a unit needs per = \"second\", got '1 h'",
        ),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(fields, words):
    with pytest.raises(ConfigError) as caught:
        make_piece("mine", fields, None)
    assert words in str(caught.value)


def test_all_errors_come_at_once():
    fields = {"kind": "read_noise", "sigma": "1 %", "where": "wight", "t_sample": "5 mV", "x": 1}
    with pytest.raises(ConfigError) as caught:
        make_piece("mine", fields, None)
    for name in ("sigma:", "where:", "t_sample:", "x:"):
        assert name in str(caught.value)


def test_a_text_with_a_unit_is_the_number_everywhere():
    base = {"network": {"sizes": [4, 3, 2]}, "run": {"backend": "continuous"}}
    given = parse({**base, "circuit": {"tau_x": "20 ms"}, "solver": {"dt": "100 us"}})
    plain = parse({**base, "circuit": {"tau_x": 0.02}, "solver": {"dt": 1e-4}})
    assert given == plain
    pieces = {"n": {"kind": "mismatch", "of": "tau_x", "sigma": "5 %"}}
    numbers = {"n": {"kind": "mismatch", "of": "tau_x", "sigma": 0.05}}
    one, other = (
        parse({**base, "hardware": {"pieces": p}}).hardware.substrate() for p in (pieces, numbers)
    )
    assert one == other


def test_every_symbol_is_in_the_schema():
    pattern = PIECES["leak"].model_json_schema()["properties"]["tau"]["anyOf"][1]["pattern"]
    for symbol in SYMBOLS["s"]:
        assert re.fullmatch(pattern, f"2.5 {symbol}")
    assert not re.fullmatch(pattern, "2.5 V")
    assert not re.fullmatch(pattern, "2.5")
    assert unit_of(PIECES["leak"].model_fields["tau"]) == Unit("s")
