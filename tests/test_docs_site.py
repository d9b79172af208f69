"""The generated pages of the documentation say all that the models have; links lead somewhere."""

import inspect
import re
import sys
from html import escape
from pathlib import Path

import pytest
from pydantic import BaseModel

import hw_models
import pcsim
from hw_models.pieces import PIECES
from pcsim.config import Config
from pcsim.sweep.axes import SweepTable

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.py")}
sys.path.insert(0, str(DOCS))
import api_page  # noqa: E402
import index_page  # noqa: E402
import pages  # noqa: E402

sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    pytest.importorskip("brian2")
    return pages.generated()


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the models of an annotation; written here anew, so that a field cannot be missed."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [m for inner in getattr(annotation, "__args__", ()) for m in models_in(inner)]


def paths(model: type[BaseModel], prefix: str) -> set[str]:
    found = set()
    for name, field in model.model_fields.items():
        found.add(f"{prefix}{name}")
        inner = set(models_in(field.annotation))
        if len(inner) == 1:
            found |= paths(inner.pop(), f"{prefix}{name}.")
    return found


def rows(page: str) -> set[str]:
    """Return the names that begin a row of a table."""
    return set(re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE))


def test_every_field_of_a_configuration_is_on_the_page(site):
    wanted = paths(SweepTable, "sweep.")
    for section, field in Config.model_fields.items():
        for model in models_in(field.annotation):
            wanted |= paths(model, f"{section}.")
    assert len(wanted) > 90
    assert rows(site["reference/configuration.md"]) == wanted


def test_every_kind_of_hardware_has_a_page_with_all_its_fields(site):
    made = {p.removeprefix("reference/hardware/")[:-3] for p in site if "/hardware/" in p}
    assert made == set(PIECES)
    assert len(made) >= 43
    for kind, model in PIECES.items():
        page = site[f"reference/hardware/{kind}.md"]
        assert rows(page) == paths(model, ""), kind
        assert f'kind = "{kind}"' in page
        assert "s ←" in page or "←" in page or "=" in page.split("## Equations")[1], kind
        assert f"[{kind}](hardware/{kind}.md)" in site["reference/hardware.md"]


def entries(page: str) -> dict[str, str]:
    """Return what stands below each heading of the second level."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_public_name_is_documented_with_all_its_arguments(site):
    """Every name, and of each: what it is, every argument or field, every method."""
    told = entries(site["reference/api.md"])
    public = {name: value for _, _, names in pages.public() for name, value in names.items()}
    assert set(pcsim.__all__) <= public.keys() == told.keys()
    assert set(hw_models.__all__) <= public.keys() | {p.__name__ for p in PIECES.values()}
    for name, value in public.items():
        entry = told[name]
        if not callable(value):
            assert len(entry.strip()) > 10, name
            continue
        sentence = (value.__doc__ or "").strip().split("\n")[0]
        assert sentence, f"{name} says nothing of itself"
        assert escape(sentence, quote=False) in entry, name
        if isinstance(value, type) and issubclass(value, BaseModel):
            assert name == "Config" or rows(entry) >= paths(value, ""), name
        elif not (isinstance(value, type) and issubclass(value, BaseException)):
            for argument in inspect.signature(value).parameters:
                assert re.search(rf"[(\s*]{argument}[:,)]", entry), f"{name}: {argument}"
        for method, member in api_page.methods(value) if isinstance(value, type) else ():
            assert f"### {name}.{method}\n" in entry
            assert (member.__doc__ or "").strip(), f"{name}.{method} says nothing of itself"


def test_the_index_leads_to_every_word_of_the_reference(site):
    page = site["reference/terms.md"]
    words = re.findall(r"^- `([^`]+)`: \[", page, flags=re.MULTILINE)
    assert len(words) == len(set(words)) > 400
    assert set(words) >= {*PIECES, *pcsim.__all__, "pcsim hardware kinds", "--read-noise"}
    for model in (Config, *PIECES.values()):
        for path in paths(model, ""):
            name = path.rpartition(".")[2]
            assert name == "kind" or name in words or (model is Config and "." not in path), path
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8")
    for terms in re.findall(r"^\*\*([^*]+)\*\*:", glossary, flags=re.MULTILINE):
        assert set(terms.split(", ")) <= set(words)
    anchors = {
        name: {index_page.slug(heading) for heading in entries(text)}
        for name, text in site.items()
        if name.startswith("reference/")
    }
    for target in re.findall(r"\]\(([^)]+)\)", page):
        name, _, anchor = target.partition("#")
        if anchor:
            assert anchor in anchors[f"reference/{name}"], target


def test_every_verb_is_on_the_page(site):
    from pcsim.cli import app

    verbs = {command.name for command in app.registered_commands}
    assert {"run", "check", "doctor"} <= verbs
    for verb in verbs:
        assert f"## pcsim {verb}\n" in site["reference/commands.md"]
    assert "## pcsim hardware kinds\n" in site["reference/commands.md"]
    assert "`--hardware" in site["reference/commands.md"]


def test_the_support_matrix_is_the_list_of_gaps(site):
    page = site["reference/support.md"]
    head, *body = [line for line in page.splitlines() if line.startswith("| ")]
    engines = [cell.strip() for cell in head.strip("|").split("|")][1:]
    known = pages.gaps()
    assert engines == list(known)
    told = {}
    for line in body:
        feature, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        told[feature] = dict(zip(engines, cells, strict=True))
    for engine, listed in known.items():
        for gap in listed:
            feature = " + ".join(sorted(gap.features))
            assert told[feature][engine] == ("refused" if gap.refused else "other")
    assert any("yes" in row.values() for row in told.values())


def links(text: str) -> list[str]:
    """Return the targets of links and pictures, outside code."""
    plain = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return [t for t in re.findall(r"\]\(([^)\s]+)\)", plain) if not t.startswith(("http", "#"))]


def test_every_link_leads_to_a_page(site):
    there = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*") if p.is_file()} | set(site)
    there |= NOTEBOOKS
    texts = {str(p.relative_to(DOCS)): p.read_text(encoding="utf-8") for p in DOCS.glob("*.md")}
    seen = 0
    for page, text in (texts | site).items():
        for target in links(text):
            path = (ROOT / page).parent / target.partition("#")[0]
            named = str(path.resolve().relative_to(ROOT.resolve()))
            assert named in there, f"{page}: {target}"
            seen += 1
    assert seen > 100
    for target in links((ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target.partition("#")[0]).exists(), target


def test_control_a_link_is_seen():
    assert links("see [a](b.md#c) and ![p](figures/d.png), not `[e](f.md)` or [g](https://h)") == [
        "b.md#c",
        "figures/d.png",
    ]


def test_every_page_is_in_the_navigation(site):
    yaml = pytest.importorskip("yaml")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    leaves = pages.leaves(settings["nav"])
    named = set(leaves)
    assert len(leaves) == len(named)
    written = {p.name for p in DOCS.glob("*.md")}
    kinds = {p for p in site if p.startswith("reference/hardware/")}
    wanted = written | NOTEBOOKS | set(site) - kinds
    assert set(pages.leaves(pages.with_all_pages(settings["nav"]))) == wanted
    assert written <= named, f"put these into mkdocs.yml: {written - named}"
    assert settings["strict"] is True
    short = [{"Start": "index.md"}]
    assert pages.with_all_pages(short)[-1]["More"] == sorted(written - {"index.md"})


@pytest.mark.slow
def test_the_first_verdict_runs():
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "first_verdict.md").read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, object] = {}
    exec(compile(code, "docs/first_verdict.md", "exec"), names)
    assert names["figure"].axes


def test_the_commands_of_the_first_verdict_have_the_options_they_use():
    import typer

    from pcsim.cli import app

    root = typer.main.get_command(app)
    text = (DOCS / "first_verdict.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    pcsim (.*?)(?:\s{2,}#.*)?$", text, flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        verb, words = root, command.split()
        while hasattr(verb, "commands") and not words[0].startswith("--"):
            verb = verb.commands[words.pop(0)]
        known = {o for p in verb.params for o in (*p.opts, *p.secondary_opts)}
        assert {w for w in words if w.startswith("--")} <= known, command
