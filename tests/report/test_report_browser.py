"""The report in a real browser: every image is shown, nothing goes wrong, it fits the window."""

from __future__ import annotations

from pathlib import Path

import browser
import pytest
import report_stores

import pcsim
from pcsim import config

pytestmark = pytest.mark.skipif(
    browser.CHROMIUM is None, reason="no chromium or google-chrome is installed"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    settings = {
        "network": {"sizes": [64, 8, 10]},
        "learning": {"batch": 100, "epochs": 2},
        "data": {"limit": 300},
        "run": {"seeds": [0, 1], "backend": "continuous"},
        "record": {"trajectories": True},
    }
    pcsim.run(config.parse(settings), folder / "chips.h5")
    return pcsim.report([report_stores.write_sweep(folder), folder / "chips.h5"])


@pytest.mark.parametrize("width", [1200, 520])
def test_no_missing_image_and_no_error(page: Path, tmp_path: Path, width: int) -> None:
    seen = browser.look(page, tmp_path, width)
    assert len(seen.images) == page.read_text(encoding="utf-8").count("<img")
    assert len(seen.images) >= 10
    assert all(own > 0 and shown > 200 for own, shown in seen.images), seen.images
    assert not seen.errors
    assert not seen.console
    assert seen.wide <= seen.window, "the page is wider than the window"


CHECKED = """(() => {
  const section = document.querySelector("section");
  const rows = () => [...section.querySelectorAll("table.strips tbody tr")];
  const name = row => row.cells[0].textContent;
  const head = [...section.querySelectorAll("table.strips th")]
    .find(one => one.textContent === "median");
  const before = rows().map(name);
  head.click();
  const up = rows().map(row => row.cells[head.cellIndex].textContent);
  head.click();
  const down = rows().map(row => row.cells[head.cellIndex].textContent);
  const dot = section.querySelector("circle");
  const tip = document.querySelector(".tip");
  const silent = tip.hidden;
  dot.dispatchEvent(new PointerEvent("pointerover", {bubbles: true, clientX: 5, clientY: 5}));
  const told = tip.hidden ? "" : tip.textContent;
  document.body.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  const box = section.querySelector(".choice input[value=BP]");
  box.click();
  const hidden = rows().filter(row => row.hidden).map(name);
  const folded = [...document.querySelectorAll("details")].map(one => one.open);
  dispatchEvent(new Event("beforeprint"));
  const paper = [...document.querySelectorAll("details")].map(one => one.open);
  dispatchEvent(new Event("afterprint"));
  const again = [...document.querySelectorAll("details")].map(one => one.open);
  const line = section.querySelector("tr:not([hidden]) line.limit").getBoundingClientRect();
  const strip = section.querySelector("tr:not([hidden]) td.strip svg").getBoundingClientRect();
  const banner = document.querySelector(".banner").getBoundingClientRect();
  return {before, up, down, silent, told, quiet: tip.hidden, hidden, folded, paper, again,
    limit: (line.left + line.width / 2 - strip.left) / strip.width, top: banner.top};
})()"""


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_of_a_check(tmp_path: Path, width: int) -> None:
    """It opens with the answer; tables sort, points speak, rows hide, and paper unfolds it all."""
    made = pcsim.report(report_stores.write_check(tmp_path))
    seen = browser.look(made, tmp_path, width, CHECKED)
    assert not seen.errors
    assert not seen.console
    assert seen.wide <= seen.window, "the page is wider than the window"
    asked = seen.asked
    assert asked["top"] < 200, "nothing but the title stands above the answer"
    assert asked["before"][0] == "automatic iPC, this chip"
    assert asked["up"] == sorted(asked["up"], key=float) == asked["down"][::-1] != asked["down"]
    assert asked["silent"]
    assert asked["quiet"]
    assert asked["told"].startswith("BP, ideal: 90.0 %, seed 0"), "the best row is on top now"
    assert asked["hidden"] == ["BP, ideal ← reference"]
    assert not any(asked["folded"])
    assert all(asked["paper"])
    assert not any(asked["again"])
    assert asked["limit"] == pytest.approx(0.85, abs=0.01), "the reference minus the tolerance"


def test_the_watch_itself(tmp_path: Path) -> None:
    """A page with everything wrong: each fault is seen."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><html><head></head><body>"
        '<img src="data:image/svg+xml;base64,bm90aGluZw=="><img src="gone.png">'
        '<div style="width: 3000px">wide</div>'
        "<script>console.error('aloud'); nothing.here();</script></body></html>"
    )
    seen = browser.look(bad, tmp_path)
    assert [own for own, _ in seen.images] == [0, 0]
    assert any("nothing is not defined" in error for error in seen.errors)
    assert seen.errors.count("resource IMG") == 2
    assert any("aloud" in line for line in seen.console)
    assert seen.wide > seen.window
