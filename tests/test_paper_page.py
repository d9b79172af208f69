"""The page of the paper's claims: each row has a verdict; what is open says what it would take."""

import csv
import re
import sys
from pathlib import Path

import language_world as world
import pytest

from pcsim.experiments.common.image_training import Budget, Search, Task
from pcsim.experiments.common.language import text as language_text
from pcsim.experiments.common.language.setting import Search as LanguageSearch
from pcsim.experiments.paper_hours import study as hours

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import manifest  # noqa: E402

sys.path.remove(str(ROOT / "docs"))

PAGE = (ROOT / "docs/paper.md").read_text(encoding="utf-8")
HEAD = ("claim", "verdict", "the number that says so", "scale", "command")
CLAIMS = [row for table in manifest.tables(PAGE) if table.head == HEAD for row in table.rows]
VERDICTS = ("**holds**", "**does not hold**", "not decided here", "cannot be decided below a GPU")


def problems(row):
    """Return what is missing in a row of the page."""
    claim, verdict, number, scale, command = row
    found = [] if verdict.startswith(VERDICTS) else [f"{claim}: no verdict"]
    if verdict.startswith(VERDICTS[2:]) and not re.search(r"\d[\d.]* CPU-hours", number):
        found.append(f"{claim}: open, and no hours")
    if not manifest.numbers(number) and "as claimed" not in number:
        found.append(f"{claim}: no number")
    if scale not in ("`small`", "`decide`", "–"):
        found.append(f"{claim}: no scale")
    return found + ([] if re.fullmatch(r"`(pcsim|make) [^`]+`", command) else [f"{claim}: command"])


def test_every_claim_has_a_verdict_and_what_is_open_its_hours():
    assert len(CLAIMS) > 35
    assert [problem for row in CLAIMS for problem in problems(row)] == []


def test_control_a_row_without_hours_or_verdict_is_found():
    good = ("iPC > BP", "not decided here", "0.1 points; 9.4 CPU-hours", "`small`", "`pcsim x`")
    assert problems(good) == []
    for k, wrong in enumerate(("", "open", "0.1 points; long", "small", "pcsim x")):
        if wrong:
            assert len(problems((*good[:k], wrong, *good[k + 1 :]))) == 1


def test_every_command_of_the_page_has_its_scale():
    for row in CLAIMS:
        study = re.search(r"pcsim experiment (\w+)(?: --scale (\w+))?", row[4])
        if study:
            text = (ROOT / "experiments" / study[1] / "study.py").read_text(encoding="utf-8")
            assert f'"{study[2] or "small"}"' in text
            assert row[3] == f"`{study[2] or 'small'}`"


# the hours


BUDGET = Budget(
    limit=1100,
    validation=100,
    epochs=3,
    seeds=(0, 1),
    alphas=(1e-4, 3e-4, 1e-3),
    gammas=(0.1, 0.5, 1.0),
    batch=16,
    T=4,
    search=Search(limit=300, validation=100, epochs=2),
)


def test_hours_are_seconds_times_all_that_is_trained():
    task = Task("digits", {"kind": "cnn", "channels": (4,), "dense": (8,)})
    rows = list(hours.pictures({}, "toy", "all", task, ("BP", "iPC"), BUDGET, times=2))
    assert [(row.rule, row.stage, row.runs) for row in rows] == [
        ("BP", "search", 2 * (3 + 2)),
        ("BP", "seeds", 2),
        ("iPC", "search", 2 * (3 + 2 + 2)),  # γ is searched, too
        ("iPC", "seeds", 2),
    ]
    search, seeds = rows[2:]
    assert min(search.seconds, seeds.seconds) > 0
    assert seeds.hours == pytest.approx(seeds.seconds * 1000 * 3 * 2 / 3600)
    assert (seeds.samples, seeds.epochs, seeds.seeds) == (1000, 3, 2)
    assert (search.samples, search.epochs, search.seeds) == (200, 2, 1)


def test_the_table_is_written_and_says_its_command(tmp_path, monkeypatch, capsys):
    row = hours.Row("toy", "all", "iPC", "seeds", 32, 3, 0.0361, 1000, 2, 50)
    monkeypatch.setattr(hours, "rows", lambda known: iter([row]))
    hours.main(tmp_path)
    assert "paper_hours.csv" in capsys.readouterr().out
    first, *lines = (tmp_path / "paper_hours.csv").read_text().splitlines()
    assert first == "# pcsim experiment paper_hours"
    (line,) = csv.DictReader(lines)
    assert (line["hours"], line["ms_per_sample"]) == ("1.00", "36.10")
    # A time of the table is taken over, under its own key alone.
    known = hours.known_times(tmp_path / "paper_hours.csv")
    key = ("toy", "all", "iPC", "seeds", 32, 3)
    assert hours.time_of(known, key, lambda: 1.0) == pytest.approx(0.0361)
    assert hours.time_of(known, (*key[:-1], 4), lambda: 1.0) == 1.0
    assert hours.known_times(tmp_path / "none.csv") == {}


def test_runs_of_a_language_model_are_counted_one_by_one(monkeypatch):
    monkeypatch.setattr(language_text, "load", world.loaded)
    language_text.windows.cache_clear()
    one = LanguageSearch(windows=32)
    setting = world.setting("masked", rates=(0.002, 0.005, 0.01), search=one)
    rows = list(hours.language({}, "toy", setting))
    windows = len(setting.train_windows())
    language_text.windows.cache_clear()
    assert [row.rule for row in rows] == ["BP", "BP", "PC", "PC", "iPC", "iPC"]
    assert all(row.seconds > 0 for row in rows)
    assert [(row.runs, row.samples) for row in rows[:4]] == [
        (3 + 2, 32), (2, windows), (3 + 2 + 2, 32), (2, windows)
    ]  # fmt: skip
