"""The page stands alone, says what is in the store, and the store stays as it was."""

from __future__ import annotations

import hashlib
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import report_stores

import pcsim
from pcsim import config, store
from pcsim.errors import StoreError
from pcsim.report.toml_text import toml_text
from pcsim.store import Result, Variable

VOID = {"meta", "link", "img", "input"}


class Outline(HTMLParser):
    """Checks that tags close in order; collects text, images and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.alts: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.addresses += [given[name] or "" for name in ("src", "href") if name in given]
        if tag == "img":
            self.alts.append(given.get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(path: Path) -> Outline:
    parser = Outline()
    parser.feed(path.read_text(encoding="utf-8"))
    assert parser.open == []
    return parser


def settings(rule: str = "ipc") -> config.Config:
    return config.parse(
        {
            "network": {"sizes": [64, 8, 10]},
            "schedule": {"rule": rule},
            "learning": {"batch": 100, "epochs": 2},
            "data": {"limit": 300},
            "run": {"seeds": [3, 4]},
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "out"
    for rule in ("ipc", "bp"):
        pcsim.run(settings(rule), folder / f"{rule}.h5")
    return folder


def test_a_sweep(tmp_path: Path) -> None:
    path = report_stores.write_sweep(tmp_path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    page = pcsim.report(path, figures=tmp_path / "figures")
    assert page == tmp_path / "study.html"
    found = outline(page)
    assert len(found.alts) == 5
    assert all(found.alts)
    assert all(a.startswith(("data:", "#")) for a in found.addresses)  # it stands alone
    assert "http" not in re.sub(r'"data:[^"]*"', "", page.read_text(encoding="utf-8"))
    assert "60 points: 58 done, 1 failed, 1 missing" in found.text
    assert "hardware.bits: <8> & more" in found.text  # escaped, and so read as it was
    mean = 100 * report_stores.sweep_result()["accuracy"][0, 1, 2].mean()
    assert f"{mean:.2f}" in found.text
    assert '"hardware.bits" = [2, 4, 6, 8]' in found.text
    assert "git checkout 0123abcd  # the source had further changes" in found.text
    names = {p.name for p in (tmp_path / "figures").iterdir()}
    expected = {"phase_diagram", "accuracy_along_axes", "energy", "margins", "chip_spread"}
    assert names == {f"{name}.{kind}" for name in expected for kind in ("svg", "pdf")}
    assert (tmp_path / "figures" / "energy.pdf").read_bytes().startswith(b"%PDF")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert {p.name for p in tmp_path.iterdir()} == {"study.h5", "study.html", "figures"}


def test_runs_side_by_side(folder: Path, tmp_path: Path) -> None:
    paths = [folder / "bp.h5", folder / "ipc.h5"]
    found = outline(pcsim.report(paths, tmp_path / "both.html", title="Two <rules>"))
    assert found.text.count("Side by side") == 2  # in the contents and as heading
    compared = pcsim.compare(paths)
    assert f"{100 * compared['gap_mean'][1]:+.3f}" in found.text
    assert "Two <rules>" in found.text
    assert "schedule.rule" in found.text


def test_the_printed_configuration_makes_the_same_run(folder: Path, tmp_path: Path) -> None:
    found = outline(pcsim.report(folder / "ipc.h5", tmp_path / "one.html"))
    (text,) = re.findall(r"(\[network\].*?)How to reproduce", found.text, re.DOTALL)
    assert config.parse(tomllib.loads(text)) == settings("ipc")
    assert "pcsim run ipc.toml" in found.text
    again = pcsim.report(folder / "ipc.h5", tmp_path / "two.html")
    # The same store gives the same bytes.
    assert again.read_bytes() == (tmp_path / "one.html").read_bytes()


def test_toml_of_awkward_names_and_values() -> None:
    data = {
        "top": 1,
        "sweep": {
            "axes": {"learning.alpha": {"log": [1e-4, 0.1, 4]}, "a b": [True, 'x"\n=#']},
            "paired": [{"schedule.T": [4, 8]}, {"run.dtype": ["float32"]}],
        },
        "empty": {},
        "none": None,
    }
    back = tomllib.loads(toml_text(data))
    assert back == {k: v for k, v in data.items() if v is not None}


@pytest.mark.parametrize("page", ["compare.md", "report.md"])
def test_the_examples_of_the_documentation(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, page, "exec"), {})


def test_a_folder_of_results_and_a_stored_comparison(folder: Path, tmp_path: Path) -> None:
    pcsim.compare([folder / "bp.h5", folder / "ipc.h5"], out=tmp_path / "versus.h5")
    found = outline(pcsim.report(tmp_path / "versus.h5"))
    assert "Test accuracy, paired by seed" in found.text
    assert len(found.alts) == 1
    both = outline(pcsim.report(folder, tmp_path / "folder.html"))
    assert "pcsim report of 2 stores." in both.text


def test_stores_that_lack_almost_everything(tmp_path: Path) -> None:
    odd = Result({"voltage": Variable(("node",), np.arange(3.0), {"units": "V"})})
    store.save(odd, tmp_path / "odd.h5")
    found = outline(pcsim.report(tmp_path / "odd.h5"))
    assert found.alts == []
    assert "voltage" in found.text
    assert "node 3" in found.text


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        pcsim.report(tmp_path / "gone.h5")
    with pytest.raises(StoreError, match="holds no results"):
        pcsim.report(tmp_path)
    with pytest.raises(StoreError, match="at least one store"):
        pcsim.report([])
    (tmp_path / "file").write_text("")
    store.save(Result({"x": Variable((), np.array(1.0))}), tmp_path / "x.h5")
    with pytest.raises(StoreError, match="could not be written"):
        pcsim.report(tmp_path / "x.h5", tmp_path / "file" / "report.html")
