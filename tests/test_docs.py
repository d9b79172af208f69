"""Pages that speak of the code say what is there."""

import ast
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pcsim import run, store
from pcsim.circuit import Algebraic, Dendritic, Equilibrium, ErrorUnits
from pcsim.circuits import Layer, layer_equations, synapse_equations
from pcsim.config import parse
from pcsim.errors import ConfigError
from pcsim.fields.config_pages import section_page

ROOT = Path(__file__).parents[1]
THEORY = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
NUMBERS = r"\d+(?:(?:–|, | and )\d+)*"


def cited(text: str) -> set[int]:
    """Return the laws that a text cites: 'Law 1', 'Laws 2–4', 'laws 8, 9 and 11'."""
    laws: set[int] = set()
    for numbers in re.findall(rf"\b[Ll]aws? ({NUMBERS})", text):
        for part in re.split(r", | and ", numbers):
            first, _, last = part.partition("–")
            laws |= set(range(int(first), int(last or first) + 1))
    return laws


def laws(text: str) -> dict[int, str]:
    """Return the text of each law of a page."""
    parts = re.split(r"^### Law (\d+): ", text, flags=re.MULTILINE)[1:]
    return {int(n): body for n, body in zip(parts[::2], parts[1::2], strict=True)}


def named_tests(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_law_that_a_test_cites_is_on_the_page():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path != Path(__file__):
            missing = cited(path.read_text(encoding="utf-8")) - set(laws(THEORY))
            assert not missing, f"{path.name} cites laws that docs/theory.md lacks: {missing}"


def test_laws_are_numbered_through():
    numbers = [int(n) for n in re.findall(r"^### Law (\d+): ", THEORY, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert cited(THEORY) <= set(numbers)


@pytest.mark.parametrize("number", laws(THEORY))
def test_every_law_names_tests_that_are_there(number):
    named = named_tests(laws(THEORY)[number])
    assert named, f"law {number} names no test"
    for path, function in named:
        assert function in functions(path), f"law {number}: {path} has no {function}"


def test_control_what_is_cited_and_named_is_seen():
    text = "Laws 2–4 and law 9; laws 8, 9 and 11. Lawless 77."
    assert cited(text) == {2, 3, 4, 8, 9, 11}
    assert any(cited(p.read_text(encoding="utf-8")) for p in (ROOT / "tests/laws").glob("*.py"))
    assert named_tests("`tests/laws/a.py::test_b`") == [("tests/laws/a.py", "test_b")]
    assert "test_no_such_test" not in functions("tests/test_docs.py")


# -- examples --------------------------------------------------------------------------------------

EXTENDING = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
EXAMPLES = dict(
    re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", EXTENDING, flags=re.MULTILINE | re.DOTALL)
)


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("section", EXAMPLES)
def test_examples_of_extending_run(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(EXAMPLES[section]), "every section has an example"
    for block in blocks(EXAMPLES[section]):
        exec(compile(block, f"extending.md, {section}", "exec"), {"__name__": "example"})


def test_every_part_has_an_example():
    parts = ("device", "nonlinearity", "layer", "circuit", "engine", "experiment")
    assert {title.split()[-1] for title in EXAMPLES} == set(parts)


@pytest.mark.parametrize("page", ["architecture.md", "extending.md", "theory.md", "symbols.md"])
def test_files_and_modules_that_a_page_names_are_there(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:pcsim|hw_models|tests|experiments)/[a-z0-9_/.]*)`", text)
    links = re.findall(r"\]\((\w+\.md)\)", text)
    modules = re.findall(r"`(pcsim(?:\.[a-z_]+)+)`", text)
    assert paths or links
    for path in paths:
        assert (ROOT / path).exists(), path
    for link in links:
        assert (ROOT / "docs" / link).exists(), link
    for name in modules:
        assert _is_there(name), name


def _is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    module, _, last = name.rpartition(".")
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return hasattr(import_module(module), last)


# -- symbols ---------------------------------------------------------------------------------------

SYMBOLS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/symbols.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "what |" not in line
]


def column(number: int) -> list[str]:
    return sorted({name for row in SYMBOLS for name in row[number]})


@pytest.mark.parametrize("path", column(2))
def test_symbols_of_configurations_are_fields(path):
    assert any(path.rpartition(".")[2] in line for line in section_page(path))


def test_control_a_field_that_is_not_there_is_noticed():
    with pytest.raises(ConfigError, match="no field"):
        list(section_page("circuit.tau_nothing"))


def test_symbols_of_equations_stand_in_them():
    circuits = (
        Algebraic(sigma_x=0.1, transport="kolen_pollack"),
        Algebraic(look_soma=0.1),
        ErrorUnits(tau_err=0.1),
        Dendritic(tau_inter=0.1, tau_apical=0.1),
        Equilibrium(),
    )
    text = ""
    for circuit in circuits:
        interneurons = circuit.kind == "dendritic"
        layer = Layer(f="tanh", sends_feedback=True, interneurons=interneurons)
        text += layer_equations(circuit, layer) + synapse_equations(circuit, layer)
    words = set(re.findall(r"[A-Za-z_]\w*", text)) | {"t"}  # Brian2's own clock
    words |= {word.removesuffix(end) for word in words for end in ("_post", "_pre")}
    words |= {word.removeprefix("d") for word in words}
    assert set(column(3)) <= words, set(column(3)) - words


def test_symbols_of_results_are_in_their_files(tmp_path):
    fields: dict[str, Any] = {
        "network": {"sizes": [64, 4, 10]},
        "data": {"name": "digits", "limit": 4, "limit_test": 4},
        "learning": {"batch": 1, "epochs": 1},
        "run": {"backend": "continuous"},
        "circuit": {"kind": "dendritic", "tau_inter": 0.1},
        "record": {"trajectories": True},
    }
    run(parse(fields), tmp_path / "a.h5")
    names: set[str] = set()
    for path in tmp_path.glob("*.h5"):
        result = store.load(path)
        names |= {name.rstrip("0123456789") for name in {*result.variables, *result.coords}}
    assert not set(column(4)) - names
