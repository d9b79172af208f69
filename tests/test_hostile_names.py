"""Names that look like formulas, markup or HTML are shown as they are written, everywhere."""

import io
import json
import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console
from rich.table import Table

import pcsim
from pcsim import config as configuration
from pcsim import plots, store
from pcsim.cli import main
from pcsim.compare.figure import comparison_figure
from pcsim.report.drawing import Drawing
from pcsim.report.origin import Listing
from pcsim.report.page import Section, page
from pcsim.report.view import View
from pcsim.report.write import FIGURES
from pcsim.rows import Rows
from pcsim.status import Status
from pcsim.store import Result, Variable
from pcsim.terminal import console, progress, terminal

FORMULA = r"a$\frac{b$"
MARKUP = "[/x][bold]:warning:"
HTML = "<script>alert(1)</script>&amp;\"'"


# ---------------------------------------------------------------- figures


def formulas(figure):
    """Return the texts of a figure that matplotlib takes for formulas, but for its own numbers."""
    figure.savefig(io.BytesIO(), format="png")
    return [
        text.get_text()
        for text in figure.findobj(Text)
        if "frac" in text.get_text() and text._preprocess_math(text.get_text())[1]
    ]


def shown(figure):
    return " ".join(text.get_text() for text in figure.findobj(Text)).replace(r"\$", "$")


def swept():
    """Return a sweep whose axes and labels are called like formulas."""
    rng = np.random.default_rng(0)
    axes = (f"hardware.{FORMULA}.sigma", f"hardware.{FORMULA}.bits", "kind")
    shape, chips, times = (2, 2, 2), 3, 8
    dims = tuple(re.sub(r"[^\w.]", "_", axis) for axis in axes)
    accuracy = rng.uniform(size=(*shape, chips))
    energy = rng.uniform(1, 2, size=(*shape, chips, times, 2))
    variables = {
        "accuracy": Variable((*dims, "seed"), accuracy),
        "verdict.margin": Variable((*dims, "seed"), accuracy - 0.5),
        "energy": Variable((*dims, "seed", "time", "node"), energy),
    }
    labels = {
        dims[0]: np.array([0.1, 0.2]),
        dims[1]: np.array([4, 6]),
        dims[2]: np.array([FORMULA, "plain"]),
    }
    attrs = {"kind": "sweep", "axes": json.dumps([{"dim": dim} for dim in dims])}
    return View(FORMULA, "x.h5", Result(variables, labels, attrs))


def test_labels_of_a_sweep_are_no_formulas():
    drawings = [drawing for draw in FIGURES for drawing in draw(swept())]
    assert len(drawings) >= 4
    for drawing in drawings:
        assert formulas(drawing.figure) == [], drawing.name
    together = " ".join(shown(drawing.figure) for drawing in drawings)
    assert FORMULA in together  # the control: they are there


def test_every_kind_of_axis_name_is_no_formula(monkeypatch):
    """Axis names in a file cannot hold `$`, but those of other programs' results may."""
    for module in ("along_axes", "phase_diagram"):
        of = import_module(f"pcsim.report.{module}")
        monkeypatch.setattr(of, "field_name", lambda axis: FORMULA)
    for draw in FIGURES:
        for drawing in draw(swept()):
            assert formulas(drawing.figure) == [], drawing.name


def test_a_formula_would_be_noticed():
    """The control: without `plain`, the test above sees a formula or an error."""
    figure = Figure()
    figure.suptitle("$\\frac{1}{2}$")
    assert formulas(figure) == ["$\\frac{1}{2}$"]
    assert plots.plain("1 $") == r"1 \$"


def chips(seed=0):
    rng = np.random.default_rng(seed)
    variables = {
        "energy": Variable(("seed", "time", "node"), rng.uniform(1, 2, (2, 9, 2))),
        "accuracy": Variable(("seed",), rng.uniform(size=2)),
        "train_energy": Variable(("seed", "epoch"), rng.uniform(1, 2, (2, 3))),
        "test_accuracy": Variable(("seed", "epoch"), rng.uniform(size=(2, 3))),
    }
    return Result(variables)


def test_titles_of_runs_are_no_formulas(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure) or path)
    plots.save(plots.chip_run(chips(), FORMULA), tmp_path / "a.png")
    plots.save(plots.training_curves({FORMULA: chips()}, FORMULA), tmp_path / "b.png")
    assert len(drawn) == 2
    for figure in drawn:
        assert formulas(figure) == []
        assert FORMULA in shown(figure)


def test_names_of_compared_runs_are_no_formulas():
    small = {
        "network": {"sizes": [64, 3, 10]},
        "learning": {"batch": 10, "epochs": 2},
        "data": {"limit": 20, "limit_test": 10},
        "run": {"seeds": [0, 1]},
    }
    result = pcsim.run(configuration.parse(small))
    figure = comparison_figure(pcsim.compare({FORMULA: result, f"{FORMULA}2": result}))
    assert formulas(figure) == []
    assert FORMULA in shown(figure)


# ---------------------------------------------------------------- terminal


def printed(thing):
    console = terminal(file=io.StringIO(), width=200)
    console.print(thing)
    return console.file.getvalue()


def test_markup_is_text():
    table = Table(title=MARKUP, caption=MARKUP)
    table.add_column(MARKUP)
    table.add_row(MARKUP)
    assert printed(table).count(MARKUP) == 4
    assert printed(MARKUP) == MARKUP + "\n"


def test_tables_are_text_on_any_console():
    rows = Rows(MARKUP, (MARKUP, MARKUP), ((MARKUP, MARKUP),), MARKUP)
    console = Console(file=io.StringIO(), width=200, emoji=False)
    console.print(rows.rich())
    assert console.file.getvalue().count(MARKUP) == 6


def test_progress_shows_names_as_they_are(capsys):
    with progress(MARKUP) as report:
        report(Status(1, 2, MARKUP, MARKUP))
    assert "[/x]" in capsys.readouterr().out
    assert not console._markup


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command line in a folder whose files have hostile names."""
    (tmp_path / "[").mkdir()  # a folder, so that `[/x]` is the beginning of a path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")

    def of(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return of


DEVICE = '[pieces.noise]\nkind = "white_noise"\nsigma = 0.01\n'
CONFIG = """
[network]
sizes = [64, 4, 10]
[learning]
batch = 10
epochs = 1
[data]
limit = 20
limit_test = 10
validation = 3
[run]
backend = "continuous"
seeds = [0, 1, 2]
[hardware]
preset = "[/x] $d$_$e.toml"
"""


def test_whole_commands_survive_hostile_file_names(call):
    name = "[/x] $a$_$b"
    Path("[/x] $d$_$e.toml").write_text(DEVICE)
    Path(f"{name}.toml").write_text(CONFIG)
    for arguments in (
        ("run", f"{name}.toml", "-o", f"{name}.h5"),
        ("check", f"{name}.toml", "-o", f"{name}_k.h5", "--no-twins"),
        ("report", f"{name}.h5", "-o", f"{name}.html", "--figures", name),
        ("compare", f"{name}.h5", f"{name}_k.h5", "--at", "chip=0", "-o", f"{name}_c.h5"),
    ):
        code, out, err = call(*arguments)
        assert code in (0, 3, 4), (arguments, err)
        assert "[/x]" in out, arguments
    code, _, err = call("run", f"{name}_none.toml")
    assert code == 2
    assert f"{name}_none.toml: there is no such file" in err
    assert call("[/x]")[0] == 2


# ---------------------------------------------------------------- the page


class Elements(HTMLParser):
    """Which elements a page has, and the text outside of styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.values = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [str(value) for _, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def everything(text):
    """Return a page in which this text stands at every place that takes one."""
    rows = Rows(text, (text, text), ((text, text),), text)
    section = Section(
        text,
        text,
        text,
        drawings=[Drawing("name", text, text, Figure())],
        tables=[rows],
        listings=[Listing(text, text)],
        provenance=rows,
        contents=rows,
        commands=[text],
    )
    return page(text, text, [section, section], text)


def test_every_place_of_the_page_is_escaped():
    hostile, tame = Elements(everything(HTML)), Elements(everything("harmless"))
    assert hostile.tags.count("script") == 1  # the page's own
    assert hostile.tags == tame.tags
    plain = sum(words.lower().count("harmless") for words in tame.words)
    assert plain >= 2 * (2 + 1 + 2 + 3 * 6 + 2 + 1)
    found = "".join(hostile.words)
    # A title begins with a capital, so its first letter may differ: count what follows it.
    assert found.count(HTML[1:]) == plain
    assert any(HTML in value for value in hostile.values)  # the alternative text of a figure


def test_names_of_a_store_are_escaped(tmp_path):
    result = Result({"x": Variable((), np.array(1.0), {"long_name": HTML})}, {}, {"note": HTML})
    store.save(result, tmp_path / "a.h5")
    text = pcsim.report(tmp_path / "a.h5", title=HTML).read_text()
    assert HTML not in text
    assert Elements(text).tags.count("script") == 1  # the page's own
    assert HTML in "".join(Elements(text).words)
