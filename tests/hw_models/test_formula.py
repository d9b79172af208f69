"""`kind = "formula"`: what it accepts is what our own kinds are made of; all else is a sentence."""

import re
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from kinds import EXAMPLES, fields_of

from hw_models import describe
from hw_models.description import make_piece
from hw_models.formula_text import LONGEST
from hw_models.preset_file import load, text
from hw_models.printed import pages
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.run import run
from pcsim.substrate import Chips, Effect, Seeded, Substrate
from pcsim.substrate.expression import Expression

DOCS = Path(__file__).parents[2] / "docs" / "devices.md"
EXAMPLE = next(
    block
    for block in re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    if 'kind = "formula"' in block
)


def formula(**fields):
    return {"kind": "formula", "site": "error", "becomes": "s", **fields}


def written_out(effect: Effect) -> dict[str, object]:
    """Return an effect of ours as somebody would type it, without what it does not use."""
    texts = [effect.becomes]
    texts += [t for m in effect.memory.values() for t in (m.start, m.update)]
    used = frozenset().union(*(Expression(t).names for t in texts))
    for name, parameter in reversed(effect.parameters.items()):
        used |= Expression(parameter).names if name in used else frozenset()
    tables = {
        "constants": dict(effect.constants),
        "draws": {n: d.model_dump() for n, d in effect.draws.items()},
        "parameters": dict(effect.parameters),
        "noise": dict(effect.noise),
        "memory": {n: m.model_dump() for n, m in effect.memory.items()},
    }
    kept = {k: {n: v for n, v in t.items() if n in used} for k, t in tables.items()}
    return {"kind": "formula", "site": effect.site, "becomes": effect.becomes, **kept}


def ours() -> dict[str, Effect]:
    effects = [
        e for kind in EXAMPLES for e in make_piece(kind, fields_of(kind), None).effects(kind)
    ]
    return {e.name: e for e in effects if e.name != "formula"}


def fits(effect: Effect) -> bool:
    texts = (effect.becomes, *(m.update for m in effect.memory.values()))
    return max(map(len, texts)) <= LONGEST


@pytest.mark.parametrize("name", [n for n, e in ours().items() if fits(e)])
def test_effects_of_ours_can_be_typed_as_formulas(name):
    effect = ours()[name]
    (made,) = make_piece(name, written_out(effect), None).effects(name)
    assert made.becomes == effect.becomes
    assert made.memory == {n: m for n, m in effect.memory.items() if n in made.memory}
    if effect.fabricated or any(effect.uses(n) for n in ("power", "tapered", "weighted_power")):
        return
    seen = [_applied(each) for each in (made, effect)]
    assert torch.equal(*seen)


def _applied(effect: Effect) -> torch.Tensor:
    chips = Chips(Substrate(effects=(effect,)), [0], seed=0, dt=0.1, noise=Seeded(0))
    made = chips.transform(effect.site, 0, (3, 4))
    s = torch.linspace(-1, 1, 12).view(1, 3, 4)
    more = {"x": s, "w": s.flip(1), "tau_w": 1.0} | dict.fromkeys(made.aggregates, s)
    for _ in range(2):
        seen = made(0.01 * s, **more)
        chips.advance()
    return seen


def test_most_of_our_effects_fit():
    assert sum(map(fits, ours().values())) > 0.8 * len(ours())


REFUSED = [
    ({"site": "soma"}, r"site: must be 'tau_x'.*'output', got 'soma'"),
    (
        {"becomes": "s + foo"},
        r"becomes: foo is not known at site 'error'; use a text of dt, s, t, got 's \+ foo'$",
    ),
    ({"becomes": "s*w"}, r"becomes: w is not known at site 'error'"),
    ({"becomes": "s +"}, r"becomes: .*not an expression.*, got 's \+'"),
    ({"becomes": "s.real"}, r"Attribute is not allowed; use \+ - \* /"),
    ({"becomes": "s[0]"}, r"Subscript is not allowed"),
    ({"becomes": "(lambda: s)()"}, r"unknown function"),
    ({"becomes": "eval(s)"}, r"unknown function; known are exp"),
    ({"becomes": "__import__('os')"}, r"is not a number|unknown function"),
    ({"becomes": "__import__"}, r"__import__ is not known"),
    ({"becomes": "[s for s in s]"}, r"is not allowed"),
    ({"becomes": "'s'*3"}, r"is not a number"),
    ({"becomes": "s > 0"}, r"must be one comparison inside int"),
    ({"becomes": "int(0 < s < 1)"}, r"must be one comparison inside int"),
    ({"becomes": "int(s)"}, r"int takes a comparison"),
    ({"becomes": "exp(s, 2)"}, r"exp takes 1 argument, got 2"),
    ({"becomes": "clip(s, 1)"}, r"clip takes 3 arguments, got 2"),
    ({"becomes": "s + 1e31"}, r"1e\+31 is beyond 1e\+30"),
    ({"becomes": "s + 1e999"}, r"is beyond 1e\+30"),
    ({"becomes": "s*9**9**9**9"}, r"is a power of numbers; write its value"),
    ({"becomes": "s*abs(9)**abs(9)**abs(999999)"}, r"is a power of numbers"),
    ({"becomes": "s*(1/0)"}, r"becomes: cannot be computed with these constants"),
    ({"becomes": "s/(1 - 1)"}, r"becomes: is finite at no usual signal"),
    ({"becomes": "s*exp(a)", "constants": {"a": 1e4}}, r"becomes: cannot be computed"),
    ({"becomes": "s + " * 300 + "s"}, r"has 1201 characters; at most 1000"),
    ({"becomes": "-" * 40 + "s"}, r"nested too deeply; at most 30 levels"),
    ({"becomes": "(" * 300 + "s" + ")" * 300}, r"is not an expression|nested too deeply"),
    ({"becomes": "-" * 990 + "s"}, r"nested too deeply"),
    ({"becomes": "s\n+ 1"}, r"one line of plain ASCII"),
    ({"becomes": "s\x00"}, r"one line of plain ASCII"),
    ({"becomes": "s*ａ", "constants": {"a": 1.0}}, r"one line of plain ASCII"),
    ({"constants": {"dt": 1.0}}, r"'dt' means something already"),
    ({"constants": {"exp": 1.0}}, r"'exp' means something already"),
    ({"constants": {"w": 1.0}, "site": "write"}, r"'w' means something already"),
    ({"constants": {"_a": 1.0}}, r"'_a' cannot be a name; use a letter"),
    ({"constants": {"lambda": 1.0}}, r"'lambda' cannot be a name"),
    ({"constants": {"a b": 1.0}}, r"'a b' cannot be a name"),
    ({"constants": {"": 1.0}}, r"'' cannot be a name"),
    ({"constants": {"a": 1.0}}, r"a is declared and never used; leave it out"),
    ({"becomes": "s*a", "constants": {"a": 1.0}, "draws": {"a": "normal"}}, r"declared twice"),
    ({"becomes": "s*a", "constants": {"a": float("nan")}}, r"constants\.a: .*finite"),
    ({"becomes": "s*a", "constants": {"a": 1e300}}, r"constants\.a: .*less than or equal"),
    ({"becomes": "s*a", "constants": {"a": "1"}}, r"constants\.a: .*number"),
    ({"becomes": "s*g", "draws": {"g": "cauchy"}}, r"draws\.g\.law: .*'normal', 'uniform'"),
    (
        {"becomes": "s*g", "draws": {"g": {"per": "row"}}},
        r"rows and columns exist at .*\bweight, write",
    ),
    (
        {"becomes": "s*g", "draws": {"g": {"law": "normal", "probability": 0.5}}},
        r"probability: belongs to the law bernoulli, not normal",
    ),
    ({"becomes": "s*p", "parameters": {"p": "s"}}, r"parameters\.p: s is not known before it"),
    ({"becomes": "s*p", "parameters": {"p": "q", "q": "1"}}, r"parameters\.p: q is not known"),
    ({"becomes": "m", "memory": {"m": {"start": "s", "update": "m"}}}, r"m\.start: s is not known"),
    ({"becomes": "m", "memory": {"m": {"update": "k"}}}, r"memory\.m\.update: k is not known"),
    ({"becomes": "m", "memory": {"m": {}}}, r"memory\.m\.update: is missing"),
    ({"becomes": "s*n", "noise": {"n": "pink"}}, r"noise\.n: .*'normal' or 'uniform'"),
    (
        {"site": "tau_x", "becomes": "s*(1 + n)", "noise": {"n": "normal"}},
        r"site 'tau_x' is set once and takes no noise",
    ),
    ({"formula": "s"}, r"known here: kind, .*site, becomes"),
    ({"becomes": 3}, r"becomes: .*string"),
]


@pytest.mark.parametrize(("fields", "sentence"), REFUSED)
def test_mistakes_are_one_sentence(fields, sentence):
    began = time.perf_counter()
    with pytest.raises(ConfigError, match=r"^hardware\.pieces\.mine: ") as caught:
        describe("ideal", {"mine": formula(**fields)}).substrate()
    assert re.search(sentence, str(caught.value), re.DOTALL), str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - began < 1


def test_sixty_five_names_are_too_many():
    constants = {f"a{k}": 1.0 for k in range(65)}
    with pytest.raises(ConfigError, match="65 names are declared; at most 64"):
        describe("ideal", {"mine": formula(becomes=f"s + {' + '.join(constants)}",
                                           constants=constants)})  # fmt: skip


def test_the_example_of_the_documentation(tmp_path):
    """It is shown as it runs, comes back from a file, trains, and matters."""
    path = tmp_path / "tired.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    hardware = load(path)
    shown = "\n".join(pages(hardware))
    assert "s ← s*(1 - depth*tired) + hiss*xi" in shown
    assert "memory tired ← tired + (abs(s) - tired)*(1 - exp(-dt/pace)); starts at 0" in shown
    assert "pace = tau*exp(spread*g)" in shown
    assert "rates fall with use and recover" in shown
    copy = tmp_path / "copy.toml"
    copy.write_text(text(hardware), encoding="utf-8")
    assert load(copy).pieces == hardware.pieces

    def trained(hardware):
        config = {
            "network": {"sizes": [64, 16, 10]},
            "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
            "learning": {"alpha": 2e-3, "batch": 100, "epochs": 3},
            "data": {"limit": 600},
            "hardware": hardware,
        }
        return run(Config.model_validate(config))["test_accuracy"].reshape(-1)

    ideal, tired = trained({}), trained({"preset": str(path)})
    pieces = tomllib.loads(EXAMPLE)["pieces"]
    np.testing.assert_array_equal(tired, trained({"pieces": pieces}))
    assert tired[-1] > 0.3
    assert (tired != ideal).any()


def test_numbers_of_a_formula_can_be_changed():
    changed = describe("ideal", tomllib.loads(EXAMPLE)["pieces"])
    changed = describe(changed, {"fatigue": {"constants": {"depth": 0.5}}})
    (effect,) = changed.substrate().effects
    assert effect.constants == {"depth": 0.5, "hiss": 0.01, "tau": 2.0, "spread": 0.3}


def test_memory_that_starts_from_nothing_known_is_refused_in_every_effect():
    with pytest.raises(ValueError, match="foo is not known when memory starts"):
        Effect(name="a", site="rate", becomes="m", memory={"m": {"start": "foo", "update": "m"}})
