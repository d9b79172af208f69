"""Every page with measured numbers says which command gives them, and agrees with what is kept."""

import re
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pcsim import cli, store

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import manifest  # noqa: E402

sys.path.remove(str(ROOT / "docs"))

MANIFEST = manifest.load()
ENTRIES = MANIFEST["numbers"]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(manifest.DOCS.glob("*.md"))}
VERBS = {
    one.name or one.callback.__name__.replace("_", "-")
    for one in (*cli.app.registered_commands, *cli.app.registered_groups)
}
WITH_TABLES = [entry for entry in ENTRIES if "columns" in entry]
KEPT = sorted(p for end in ("csv", "h5") for p in (ROOT / "experiments").rglob(f"*.{end}"))


def name_of(entry):
    return f"{entry['page']}: {entry['where']}"


def test_every_page_with_measured_tables_is_listed():
    listed = {entry["page"] for entry in ENTRIES} | set(MANIFEST["plain"])
    assert listed <= set(PAGES), "an entry names a page that is not there"
    for name, page in PAGES.items():
        by_study = any((ROOT / "experiments" / s / "study.py").exists() for s in studies(page))
        # A page that names its study is its own entry: see docs/manifest.py.
        if manifest.is_measured(page):
            assert name in listed or by_study, f"docs/manifest.toml says nothing of {name}"
    assert sum(map(manifest.is_measured, PAGES.values())) > 25, "control: numbers are seen"


def studies(page):
    return manifest.studies(page)


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_commands_and_files_of_the_manifest_are_there(entry):
    assert not manifest.command_errors(entry["command"], VERBS)
    assert (ROOT / entry.get("file", "docs")).exists()
    if entry["command"].startswith("pcsim experiment"):
        study = entry["command"].split()[2]
        assert f"pcsim experiment {study}" in re.sub(r"\s+", " ", PAGES[entry["page"]])


def test_control_what_is_not_there_is_told():
    wrong = (
        "pcsim experimnt speed",
        "pcsim experiment no_such_study",
        "pcsim experiment presets --scale huge",
        "pcsim run experiments/configs/no_such.toml",
        "make no_such_target",
        "ls",
    )
    for command in wrong:
        assert len(manifest.command_errors(command, VERBS)) == 1, command
    assert not manifest.command_errors("make demo", VERBS)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_kept_result_says_what_made_it(path):
    assert path.stat().st_size < 300_000, "results in the repository are small"
    if path.relative_to(ROOT).as_posix() in {entry["file"] for entry in MANIFEST["sources"]}:
        return
    if path.suffix == ".h5":
        found = store.attributes(path)
        assert found["study"] == path.relative_to(ROOT).parts[1]
        assert found["setting"], "the setting is inside"
        return
    command = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
    assert not manifest.command_errors(command, VERBS)


@pytest.mark.parametrize("entry", WITH_TABLES, ids=name_of)
def test_tables_say_what_their_files_say(entry):
    assert manifest.checked(entry, PAGES[entry["page"]]) == []


@pytest.mark.parametrize("name", PAGES)
def test_tables_with_the_names_of_a_file_say_what_it_says(name):
    for path, table in manifest.by_rule(PAGES[name]):
        found = manifest.unsupported(table, manifest.rows_of(path))
        assert found == [], f"{name} and {path.name}"


@pytest.mark.parametrize("entry", WITH_TABLES, ids=name_of)
def test_control_a_doctored_number_is_found(entry):
    """One digit of one cell, of each column, is another."""
    page = PAGES[entry["page"]]
    table = manifest.table_with(page, [*entry["key"], *entry["columns"]])
    stored = manifest.rows_of(ROOT / entry["file"])
    for head in entry["columns"]:
        k = table.head.index(head)
        row = next((r for r in table.rows if manifest.numbers(r[k])), None)
        if row is None:
            continue  # a column of words
        cell = re.sub(r"\d(?=\D*$)", lambda m: str((int(m[0]) + 2) % 10), row[k])
        doctored = (*row[:k], cell, *row[k + 1 :])
        rows = tuple(doctored if one is row else one for one in table.rows)
        wrong = manifest.Table(table.head, rows)
        found = manifest.differences(wrong, stored, entry["key"], entry["columns"])
        assert len(found) == 1, f"{head}: {row[k]!r} as {cell!r}"
        assert found[0].startswith(row[0]), found


PAGE = """
`pcsim experiment toy` gives

| chip | loss, % | outcome |
| --- | --- | ---: |
| `a` | **1.3** ± 0.2 | fails |
| b | −0.50 ± 1e-3 | trains |

| chip | loss |
|---|---|
| a | 1.3 |
"""
LINES = "# pcsim experiment toy\nchip,loss,error,outcome\na,1.26,0.2,fails\nb,-0.5,0.001,trains\n"


def test_numbers_of_a_page_are_rounded_numbers_of_its_file(tmp_path):
    file = tmp_path / "experiments/toy/toy.csv"
    file.parent.mkdir(parents=True)
    file.write_text(LINES, encoding="utf-8")
    entry = {
        "file": "experiments/toy/toy.csv",
        "key": {"chip": "chip"},
        "columns": {"loss, %": ["loss", "error"], "outcome": "outcome"},
    }
    assert manifest.checked(entry, PAGE, tmp_path) == []
    ((path, table),) = manifest.by_rule(PAGE, tmp_path)
    assert (path, table.head) == (file, ("chip", "loss"))
    for old, new in (
        ("1.3** ±", "1.2** ±"),  # 1.26 is no 1.2
        ("1.3** ±", "1.27** ±"),
        ("−0.50", "0.50"),
        ("1e-3", "1e-2"),
        ("± 0.2 |", "|"),
        ("fails", "trains"),
        ("| b |", "| c |"),
    ):
        assert len(manifest.checked(entry, PAGE.replace(old, new), tmp_path)) == 1, (old, new)
    with pytest.raises(ValueError, match="0 tables"):
        manifest.checked(entry, PAGE.replace("outcome", "result"), tmp_path)


def test_a_row_that_a_file_does_not_have_shows_dashes():
    """As of a preset that an earlier version did not have; a number there, or a dash for one that
    the file has, is wrong."""
    stored = [{"preset": "a", "median": "92.4"}]

    def wrong(*rows):
        table = manifest.Table(("preset", "before"), rows)
        return manifest.differences(table, stored, {"preset": "preset"}, {"before": "median"})

    assert wrong(("a", "92.4"), ("b", "–")) == []
    assert len(wrong(("a", "92.4"), ("b", "91.0"))) == 1
    assert len(wrong(("a", "–"))) == 1


def test_rows_of_a_table_with_the_names_of_a_file_stand_in_it():
    stored = [{"rule": r, "γ": g, "mean": g} for r in ("PC", "iPC") for g in ("0.12", "1")]

    def told(*rows):
        return manifest.unsupported(manifest.Table(("rule", "mean"), rows), stored)

    assert told(("PC", "0.1"), ("iPC", "1.0")) == []
    assert told(("PC", "0.1"), ("iPC", "0.2")) == ["iPC | 0.2"]
    assert told(("BP", "1")) == ["BP | 1"]


def test_numbers_of_a_cell():
    text = "[0.5](page.md#2) ± 1e-3, 62.7–85.5, −4, `ecram_2` 7 of 8"
    wanted = ["0.5", "1e-3", "62.7", "85.5", "-4", "7", "8"]
    assert manifest.numbers(text) == [Decimal(one) for one in wanted]
    assert manifest.agree(Decimal("0.13"), Decimal("0.125"))
    assert not manifest.agree(Decimal("0.13"), Decimal("0.1249"))
    assert manifest.agree(Decimal("1e3"), Decimal("1200"))
