"""The chip language on the command line: kinds, new, check, config, schemas, and their page."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from schema_check import breaches

from hw_models import PIECES, known_presets
from hw_models.chip_words import left_ideal
from hw_models.description import Hardware, make_piece
from hw_models.kind_pages import example, kind_page
from hw_models.preset_file import examine, load, text
from hw_models.schema import FILE, LINE, hardware_schema
from pcsim.cli import main
from pcsim.fields.allowed import allowed
from pcsim.fields.config_pages import section_page, sections
from pcsim.fields.config_schema import config_schema

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "chip_language.md").read_text(encoding="utf-8")


@pytest.fixture
def pcsim(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["pcsim", *shlex.split(line)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return int(done.value.code or 0), shown.out, shown.err

    return command


def words(lines) -> str:
    return " ".join(" ".join(lines).split())


def test_kinds_lists_every_kind(pcsim):
    code, out, _ = pcsim("hardware kinds")
    assert code == 0
    assert all(kind in out for kind in PIECES)


@pytest.mark.parametrize("kind", PIECES)
def test_the_page_of_a_kind_is_complete(kind):
    lines = list(kind_page(kind))
    page = words(lines)
    for name, field in PIECES[kind].model_fields.items():
        assert re.search(rf"^  {name}( |$)", "\n".join(lines), re.M), name
        if name != "kind":
            assert " ".join(field.description.split()) in page
            assert "device" in name or allowed(field) in page
    toml = "\n".join(lines).partition("Example\n")[2].partition("\n\n")[0]
    (fields,) = tomllib.loads(toml)["pieces"].values()
    assert make_piece("example", fields, None) == example(kind)
    effects = example(kind).effects("example")
    assert sum(line.startswith("    s ← ") for line in lines) == len(effects)
    for effect in effects:
        assert f"s ← {effect.becomes}" in page.replace("  ", " ")


def test_an_unknown_kind_is_refused_with_a_hint(pcsim):
    code, _, err = pcsim("hardware kinds reed_noise")
    assert code == 2
    assert "did you mean 'read_noise'" in err


@pytest.mark.parametrize("name", sections())
def test_the_page_of_a_section_is_complete(name):
    lines = "\n".join(section_page(name))
    for model in sections()[name]:
        for field, info in model.model_fields.items():
            assert re.search(rf"^  {field}( |$)", lines, re.M), field
            assert " ".join((info.description or "").split()) in words(lines.splitlines())


def test_config_on_the_command_line(pcsim):
    code, out, _ = pcsim("config")
    assert code == 0
    assert all(f"[{name}]" in out for name in sections())
    assert "kind = 'error_units'" in pcsim("config circuit.tau_err")[1]
    assert "did you mean 'circuit'" in pcsim("config circiut")[2]
    assert "did you mean 'tau_x'" in pcsim("config circuit.tau_xx")[2]
    assert pcsim("config --schema circuit")[0] == 2


FIVE = "--bits 6 --read-noise 1% --adc 8 --mismatch 5% --retention 1h"


def test_five_specifications_become_a_chip_at_once(pcsim, tmp_path):
    assert pcsim(f"hardware new chip.toml {FIVE}")[0] == 0
    content = (tmp_path / "chip.toml").read_text(encoding="utf-8")
    assert content.splitlines()[0] == LINE
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8")) == hardware_schema()
    pieces = load(tmp_path / "chip.toml").pieces
    assert pieces["weights"].bits == 6
    assert pieces["read_noise"].sigma == 0.01
    assert pieces["adc"].bits == pieces["adc_back"].bits == 8
    assert pieces["mismatch_tau_x"].sigma == pieces["mismatch_weight"].sigma == 0.05
    assert pieces["retention"].lifetime == 3600
    code, out, _ = pcsim("hardware check chip.toml")
    assert code == 0
    assert "hidden exact accumulator" in out
    assert "biases are ideal" in out
    assert "kept for ever" not in out
    assert pcsim(f"hardware new chip.toml {FIVE}")[0] == 2  # nothing is replaced unasked


def test_a_preset_with_changes(pcsim, tmp_path):
    line = "hardware new mine.toml --preset ecram_li --stuck 1% --set device.t_write=2s --name it"
    assert pcsim(line)[0] == 0
    chip = load(tmp_path / "mine.toml")
    assert chip.name == "it"
    assert chip.pieces["device"].t_write == 2
    assert chip.pieces["device"].dw_min == known_presets()["ecram_li"].pieces["device"].dw_min
    assert chip.pieces["stuck"].fraction == 0.01
    assert pcsim("hardware new other.toml --preset brainscales2 --bits 4")[0] == 0
    assert load(tmp_path / "other.toml").pieces["weights"].bits == 4


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("hardware new a.toml", "would be ideal"),
        ("hardware new a.toml --bits 1", "bits: must be greater than or equal to 2, got 1"),
        ("hardware new a.toml --mismatch 5mV", "got '5mV'"),
        ("hardware new a.toml --retention 5%", "not %, got '5%'"),
        ("hardware new a.toml --preset nothing", "there is no preset 'nothing'"),
        ("hardware new a.toml --bits 4 --set weights=3", "piece.field=value"),
        ("hardware new a.toml --set adc.bits=3", "kind is missing"),
        ("hardware new a.toml --stuck 1% --no-accumulator", "goes with --bits"),
        ("hardware new a.toml --preset pcm --fit c.csv", "not with both"),
        ("hardware new a.json --bits 4", ".toml"),
    ],
)
def test_what_new_refuses(pcsim, tmp_path, line, sentence):
    code, _, err = pcsim(line)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [n for n, h in known_presets().items() if h.pieces])
def test_a_written_preset_is_the_preset_and_follows_the_schema(name, tmp_path):
    written = text(known_presets()[name])
    path = tmp_path / "p.toml"
    path.write_text(written, encoding="utf-8")
    assert load(path) == known_presets()[name]
    assert breaches(tomllib.loads(written), SCHEMA) == []


SCHEMA = hardware_schema()
CONFIG_SCHEMA = config_schema()


@pytest.mark.parametrize("kind", PIECES)
def test_an_example_follows_the_schema_and_a_wrong_one_does_not(kind):
    fields = {"kind": kind, **PIECES[kind].EXAMPLE}
    assert breaches({"pieces": {"x": fields}}, SCHEMA) == []
    assert breaches({"pieces": {"x": {**fields, "unknown": 1}}}, SCHEMA)
    assert breaches({"pieces": {"x": {**fields, "kind": "nothing"}}}, SCHEMA)
    for name, field in PIECES[kind].model_fields.items():
        if name not in ("kind", "before", "after") and field.annotation is not str:
            assert breaches({"pieces": {"x": {**fields, name: "5 mmHg"}}}, SCHEMA), name


def test_a_law_alone_stands_for_a_draw_in_the_schema():
    formula = {"kind": "formula", "site": "rate", "becomes": "s*(1 + 0.1*g)"}
    for draw, good in (("normal", True), ({"law": "normal"}, True), ("gaussian", False)):
        broken = breaches({"pieces": {"x": {**formula, "draws": {"g": draw}}}}, SCHEMA)
        assert (broken == []) is good


@pytest.mark.parametrize("path", sorted((ROOT / "experiments" / "configs").glob("*.toml")), ids=str)
def test_configurations_follow_their_schema(path):
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    assert breaches(data, CONFIG_SCHEMA) == []
    data["network"] = {"sizes": [4, "x"]}
    assert breaches(data, CONFIG_SCHEMA)


def test_pieces_of_a_configuration_follow_its_schema():
    base = {"network": {"sizes": [4, 3, 2]}}
    for pieces, good in (
        ({"a": {"kind": "leak", "tau": "2 s"}}, True),
        ({"a": {"sigma": 0.1}}, True),
        ({"a": {"kind": "leak", "tau": "2 V"}}, False),
    ):
        broken = breaches({**base, "hardware": {"pieces": pieces}}, CONFIG_SCHEMA)
        assert (broken == []) is good


BROKEN = """
colour = 3
about = 7
[pieces.weights]
kind = "quantized_weights"
bits = 64
range = "5 mV"
[pieces.noise]
kind = "reed_noise"
[pieces.adc]
kind = "converter"
where = "produkt"
bits = 8
t_sample = -1.0
"""


def test_check_tells_all_errors_at_once(pcsim, tmp_path):
    (tmp_path / "bad.toml").write_text(BROKEN)
    code, out, err = pcsim("hardware check bad.toml")
    assert code == 2
    assert out == ""
    err = " ".join(err.split())
    for sentence in (
        "unknown key colour",
        "about must be a text, got 7",
        "pieces.weights: bits: must be less than or equal to 32, got 64 (allowed: a whole number "
        "from 2 to 32)",
        "range: the unit must be a unit that has a symbol, not mV, got '5 mV'",
        "pieces.noise: there is no kind 'reed_noise'; did you mean 'read_noise'?",
        "pieces.adc: t_sample: must be greater than 0, got -1.0",
        "where: must be 'input', 'rate', 'error', 'product', 'feedback' or 'output', got 'produkt'",
        "bad.toml: 7 errors",
    ):
        assert sentence in err, sentence
    (tmp_path / "empty.toml").write_text("")
    assert "1 error," in pcsim("hardware check empty.toml")[2]


def test_every_wrong_table_is_named(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("[pieces]\na = 4\nb = 'c'\n")
    hardware, problems = examine(path)
    assert hardware is None
    assert [("pieces.a" in p, "got 4" in p) for p in problems] == [(True, True), (False, False)]


@pytest.mark.parametrize(
    ("sentence", "piece"),
    [
        ("writes are exact", {"kind": "linear_device", "dw_min": 0.01}),
        ("kept for ever", {"kind": "retention", "lifetime": 3.0}),
        ("reads have no noise", {"kind": "array_read_noise", "sigma": 0.1}),
        ("alike: nothing differs", {"kind": "mismatch", "of": "tau_x", "sigma": 0.1}),
        ("exact in both directions", {"kind": "converter", "where": "product", "bits": 8}),
        ("product e·r", {"kind": "learning_multiplier"}),
        ("wires and drivers", {"kind": "ir_drop", "ratio": 1e-5}),
        ("no limits", {"kind": "rails", "limit": 3.0}),
    ],
)
def test_what_was_left_ideal_is_told_until_it_is_described(sentence, piece):
    other = make_piece("a", {"kind": "leak", "tau": 3.0}, None)
    before = Hardware(pieces={"a": other})
    after = Hardware(pieces={"a": other, "b": make_piece("b", piece, None)})
    assert any(sentence in line for line in left_ideal(before))
    assert not any(sentence in line for line in left_ideal(after))


def test_hidden_accumulators_one_sided_converters_and_clocks_are_told():
    def told(**fields: object) -> str:
        return "\n".join(left_ideal(Hardware(pieces={"a": make_piece("a", fields, None)})))

    assert "hidden exact accumulator" in told(kind="quantized_weights", bits=4)
    written = told(kind="quantized_weights", bits=4, accumulator=False)
    assert "accumulator" not in written
    assert "a: writes in every time step" in written
    assert "time step" not in told(
        kind="quantized_weights", bits=4, accumulator=False, t_write="1 s"
    )
    assert "sums at feedback are exact" in told(kind="converter", where="product", bits=8)
    noise = {"kind": "read_noise", "where": "weight", "sigma": 0.1}
    assert "one draw" in told(**noise)
    assert "one draw" not in told(**noise, batch="independent")


def test_every_preset_can_be_checked(pcsim):
    for name in known_presets():
        assert pcsim(f"hardware check {name}")[0] == 0


def test_the_commands_of_the_page_run(pcsim):
    lines = re.findall(r"^    pcsim (.*)$", PAGE, re.M)
    assert len(lines) == 9
    for line in lines:
        command, _, _ = line.partition(" > ")
        code, out, _ = pcsim(command)
        assert code == 0, line
        if "schema" in line:
            assert json.loads(out)["$schema"]


def test_the_page_lists_the_options_and_symbols(pcsim):
    from pcsim.quantity import SYMBOLS

    help_text = pcsim("hardware new --help")[1]
    for option in re.findall(r"`(--[a-z-]+)", PAGE):
        assert option in help_text or option == "--schema", option
    micro = {"µ", "μ"}
    for symbols in SYMBOLS.values():
        for symbol in symbols:
            assert symbol in PAGE or symbol[0] in micro, symbol
