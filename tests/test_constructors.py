"""Descriptions are made by typed constructors: completed by editors, refused in one sentence."""

import inspect

import pytest
from pydantic import BaseModel

import hw_models
import pcsim
from hw_models import ArrayReadNoise, Converter, Hardware, describe, preset
from hw_models.pieces import PIECES
from pcsim import Criterion, Dendritic, Learner, Network, Record, Solver, Stream
from pcsim.errors import ConfigError

MODELS = {
    name: value
    for package in (pcsim, hw_models)
    for name in package.__all__
    if isinstance(value := getattr(package, name), type) and issubclass(value, BaseModel)
}
WRONG = [
    (lambda: Dendritic(tau_x=-1), "Dendritic: tau_x: must be greater than 0, got -1"),
    (lambda: Dendritic(tau_y=1), "Dendritic: tau_y: unknown name; did you mean 'tau_x'"),
    (lambda: Record(every=-1), "Record: every: must be"),
    (lambda: Solver(name="leapfrog"), "Solver: name: must be .*'euler'.*got 'leapfrog'"),
    (lambda: Criterion(tolerance=3), "Criterion: tolerance: must be less than 1, got 3"),
    (lambda: Learner(alpha=-1), "Learner: alpha: must be"),
    (lambda: Stream.of("digits", batchs=2), "Stream: batchs: unknown name; did you mean 'batch'"),
    (lambda: ArrayReadNoise(sigma="5 mV"), "ArrayReadNoise: sigma: the unit .* got '5 mV'"),
    (lambda: Converter(where="nowhere", bits=8), "Converter: where: must be .*'product'"),
    (lambda: Hardware(piece={}), "Hardware: piece: unknown name; did you mean 'pieces'"),
]


@pytest.mark.parametrize("name", MODELS)
def test_an_editor_knows_every_argument(name):
    """The signature has the fields by name: nothing has to be looked up in a nested table."""
    model = MODELS[name]
    shown = inspect.signature(model).parameters
    assert set(shown) == set(model.model_fields)
    for field in shown.values():
        assert field.kind is field.KEYWORD_ONLY
    bare = [n for n, field in model.model_fields.items() if not field.description]
    assert set(bare) <= {"kind"}, f"say in {name} what these are: {bare}"


def test_every_kind_is_a_class_of_hw_models():
    assert {piece.__name__ for piece in PIECES.values()} <= set(hw_models.__all__)
    for piece in PIECES.values():
        assert getattr(hw_models, piece.__name__) is piece


def test_a_chip_of_constructors_is_that_of_tables():
    typed = describe(
        "ecram_li",
        {"adc": Converter(where="product", bits=8), "noise": ArrayReadNoise(sigma="1 %")},
    )
    tables = {
        "adc": {"kind": "converter", "where": "product", "bits": 8},
        "noise": {"kind": "array_read_noise", "sigma": "1 %"},
    }
    assert typed == describe("ecram_li", tables)
    assert typed != preset("ecram_li")
    assert Hardware(pieces={"noise": ArrayReadNoise(sigma=0.01)}).pieces["noise"].sigma == 0.01
    assert describe(typed, {"adc": {"bits": 4}}).pieces["adc"].bits == 4


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_argument_is_one_sentence(call, sentence):
    with pytest.raises(ConfigError, match=sentence) as refused:
        call()
    assert "pydantic" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_wrong_arguments_are_named_at_once():
    with pytest.raises(ConfigError, match=r"tau_x: .*; tau_w: "):
        Dendritic(tau_x=-1, tau_w="soon")


def test_prompts_show_what_was_chosen():
    assert repr(Dendritic()) == "Dendritic()"
    assert repr(Dendritic(tau_inter=0.1)) == "Dendritic(tau_inter=0.1)"
    assert repr(Converter(where="product", bits=8)) == "Converter(where='product', bits=8)"
    assert repr(Network.mlp([64, 32, 10])) == "<Network 64-32-10: Dense; 2410 parameters>"
    assert repr(preset("ecram_li")).startswith("<Hardware ecram_li: device (")
    for name in hw_models.known_presets():
        assert len(repr(preset(name))) < 600
