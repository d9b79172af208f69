"""The generated pages of the documentation say all that the models have; links lead somewhere."""

import re
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

import pcsim
from hw_models.pieces import PIECES
from pcsim.config import Config
from pcsim.sweep.axes import SweepTable

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
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


def test_every_public_name_is_documented(site):
    for name in pcsim.__all__:
        assert (getattr(pcsim, name).__doc__ or "").strip(), name
        assert f"::: {pcsim._MODULES[name]}.{name}\n" in site["reference/api.md"]


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

    named = pages.leaves(settings["nav"])
    assert len(named) == len(set(named))
    written = {p.name for p in DOCS.glob("*.md")}
    kinds = {p for p in site if p.startswith("reference/hardware/")}
    assert set(pages.leaves(pages.with_all_pages(settings["nav"]))) == written | set(site) - kinds
    assert settings["strict"] is True
    short = [{"Start": "index.md"}]
    assert pages.with_all_pages(short)[-1]["More"] == sorted(written - {"index.md"})


def test_the_readme_fits_a_screen_or_two():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


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
