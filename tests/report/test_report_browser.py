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
