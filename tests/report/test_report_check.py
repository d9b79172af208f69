"""The page of a check opens with the answer, shows every row at its place, can be made again."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import report_stores
from matplotlib.figure import Figure
from test_report_page import Outline, outline

import pcsim
from pcsim import config, store
from pcsim.check import DIGITS, physical
from pcsim.report import answer
from pcsim.report.view import View
from pcsim.rows import Rows
from pcsim.store import Result, Variable


def text_of(page: Path) -> str:
    return outline(page).text


@pytest.mark.parametrize(
    ("accuracy", "ideal", "outcome"),
    [
        (0.88, 0.9, "trains"),
        (0.8, 0.9, "trains with loss"),
        (0.1, 0.9, "fails"),
        (0.1, 0.1, "no verdict"),
    ],
)
def test_the_answer_comes_first(
    tmp_path: Path, accuracy: float, ideal: float, outcome: str
) -> None:
    found = report_stores.checked(accuracy, ideal)
    page = pcsim.report(report_stores.write_check(tmp_path, accuracy=accuracy, ideal=ideal))
    html = page.read_text(encoding="utf-8")
    assert f"<title>check: {outcome}</title>" in html
    body = html[html.index("<main>") :]
    first = body.index('<p class="outcome">')
    assert body[first:].startswith(f'<p class="outcome">{outcome}</p>')
    # Nothing but a heading for screen readers stands before it.
    assert re.sub(r"<[^>]+>|\s", "", body[:first]) == "check"
    words = text_of(page)
    assert found.sentence() in words
    assert found.criterion.words in words
    assert "Idealised" not in words
    assert "stability margin" not in words, "a step of Euler is no margin of a chip"
    assert "settling" not in words


def test_idealisations_are_in_the_banner(tmp_path: Path) -> None:
    found = report_stores.checked(0.88, learning={"batch": 8})
    store.save(found.result(), tmp_path / "check.h5")
    words = text_of(pcsim.report(tmp_path / "check.h5"))
    assert re.search(r"Idealised\s*8 samples side by side, sharing weights", words)


def test_every_row_has_its_points_and_the_limit(tmp_path: Path) -> None:
    html = pcsim.report(report_stores.write_check(tmp_path)).read_text(encoding="utf-8")
    rows = re.findall(r"<tr data-group=.*?</tr>", html)
    assert [len(re.findall("<circle", row)) for row in rows] == [96, 3, 96, 3]
    assert 'cx="88.00%"' in rows[0]
    assert all('class="limit" x1="85.00%" x2="85.00%"' in row for row in rows)
    assert [">+2.0<" in rows[0], ">+1.0<" in rows[1], ">+46.0<" in rows[2], ">+0.0<" in rows[3]]
    assert "(without noise)" in rows[2]
    assert ["← reference" in row for row in rows] == [False, False, False, True]


def test_the_chip_has_its_numbers_with_units(tmp_path: Path) -> None:
    mismatch = {"kind": "mismatch", "of": "tau_x", "sigma": 0.2, "law": "normal"}
    found = report_stores.checked(
        0.88, hardware={"preset": "ecram_li", "pieces": {"slow": mismatch}}
    )
    numbers = {f"{row[0]}.{row[1]}": row[2] for row in found.numbers()["chip_numbers"]}
    assert numbers["slow (mismatch).sigma"] == "20 %"
    assert numbers["device (linear_device).dw_min"] == "0.002 device units"
    assert "device (linear_device).write_noise" not in numbers, (
        "what is at its default says nothing"
    )
    store.save(found.result(), tmp_path / "check.h5")
    words = text_of(pcsim.report(tmp_path / "check.h5"))
    assert words.count("device (linear_device)") == 1, "a piece is named once"
    assert "1.1724 device units" in words
    assert found.numbers()["chip"]
    assert "; ".join(found.numbers()["chip"]) in words, "what is on chip and what is not"


def test_what_is_no_answer_is_folded(tmp_path: Path) -> None:
    page = pcsim.report(report_stores.write_check(tmp_path))
    html = page.read_text(encoding="utf-8")
    titles = re.findall(r"<details>\n<summary>(.*?)</summary>", html)
    assert titles == ["Curves and energies", "Configuration", "Provenance and contents"]
    assert html.index("How to reproduce") < html.index("<details>")
    assert not re.search(r"<img", html[: html.index("<details>")])
    outside = re.sub(r"<details>.*?</details>", "", html, flags=re.DOTALL)
    assert "[network]" not in outside
    found = Outline()
    found.feed(outside)
    assert "http" not in outside


def test_the_figure_is_titled_by_the_outcome(tmp_path: Path) -> None:
    view = View("check", "check.h5", store.load(report_stores.write_check(tmp_path)))
    (drawing,) = answer.row_drawing(view)
    figure: Figure = drawing.figure
    assert figure.get_suptitle() == "a chip with noise: trains"
    axes = figure.axes[0]
    limit = [line for line in axes.lines if str(line.get_label()).startswith("limit")]
    assert list(limit[0].get_xdata()) == pytest.approx([85, 85])
    assert [tick.get_text() for tick in axes.get_yticklabels()][-1] == "automatic iPC, this chip"


def test_a_stored_table_of_another_command_is_shown_behind_the_rows(tmp_path: Path) -> None:
    """A new kind of answer is an attribute with a table."""
    made = report_stores.checked(0.88).result()
    table = Rows(
        "Margins of <noise>", ("number", "factor"), (("noise.sigma", "3.2"),), "by bisection"
    )
    assert Rows.from_json(json.loads(table.to_json())) == table
    made.attrs["margins"] = table.to_json()
    store.save(made, tmp_path / "check.h5")
    words = text_of(pcsim.report(tmp_path / "check.h5"))
    order = ("The chip", "All rows", "Margins of <noise>", "reproduce")
    places = [words.index(title) for title in order]
    assert places == sorted(places)
    assert words.count("noise.sigma") == 1, "it is not among the provenance too"


def test_a_store_of_margins_opens_with_its_sentence(tmp_path: Path) -> None:
    loss = Variable(("trial", "seed"), np.zeros((2, 3)))
    attrs = {"margins": "noise.sigma may grow 3.2 times", "answer": "{}"}
    store.save(Result({"loss": loss}, {}, attrs), tmp_path / "margins.h5")
    words = text_of(pcsim.report(tmp_path / "margins.h5"))
    assert words.count("noise.sigma may grow 3.2 times") == 1


def test_several_checks_have_their_outcomes_in_the_contents(tmp_path: Path) -> None:
    stores = [
        report_stores.write_check(tmp_path, "good.h5"),
        report_stores.write_check(tmp_path, "bad.h5", accuracy=0.1),
    ]
    html = pcsim.report(stores, tmp_path / "both.html").read_text(encoding="utf-8")
    contents = html[: html.index("</nav>")]
    assert re.findall(r'<span class="badge .*?">(.*?)</span>', contents) == ["trains", "fails"]
    assert "Side by side" not in html


def test_the_page_says_how_to_make_the_check_again(tmp_path: Path) -> None:
    """The configuration on the page and the command give the same check, number for number."""
    pieces = {"noise": {"kind": "white_noise", "sigma": 0.01}}
    tiny = {
        "network": {"sizes": [64, 8, 10]},
        "schedule": {"T": 10, "gamma": 0.5},
        "data": {"name": "digits", "limit": 60, "limit_test": 100},
        "run": {"backend": "continuous"},
        "hardware": {"chips": 2, "pieces": pieces},
    }
    first = pcsim.check(config.parse(tiny), twins=False)
    store.save(first.result(), tmp_path / "check.h5")
    words = text_of(pcsim.report(tmp_path / "check.h5"))
    assert "pcsim check check.toml --tolerance 5 --yield 90 --no-twins" in words
    assert "--no-search" not in words
    assert "Cost: an estimate" in words
    assert "ISAAC" in words, "entries have their sources"
    (text,) = re.findall(r"(\[network\].*?)Provenance and contents", words, re.DOTALL)
    again = pcsim.check(config.parse(tomllib.loads(text)), twins=False)
    assert again.numbers() == first.numbers()
    assert again.config == physical(config.parse(tiny)) != physical(config.parse(DIGITS))
