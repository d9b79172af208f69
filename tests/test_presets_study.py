"""The study of presets: the physical case by default, and the page shows the shipped table."""

from pathlib import Path

import pytest

from pcsim.check.physical import idealisations, physical
from pcsim.experiments.presets import study

PAGE = Path(__file__).parents[1] / "docs" / "presets.md"
TINY = study.Scale(60, 2, "ideal")


def test_the_physical_case_is_the_default_and_the_other_is_said():
    for scale, idealised in (("small", False), ("paper", False), ("idealised", True)):
        setting = physical(study.setting("ecram_li", study.SCALES[scale]))
        assert bool(idealisations(setting)) is idealised
        assert setting.hardware.chips == study.SCALES[scale].chips
    words = " ".join(idealisations(setting))
    assert "8 samples side by side" in words
    assert "states reset to a forward pass" in words
    assert physical(study.setting("photonic", study.SCALES["paper"])).hardware.chips == 1


def test_a_tiny_study(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(study.SCALES, "small", TINY)
    monkeypatch.setattr(study, "known_presets", lambda: ["ideal", "photonic"])
    study.main(tmp_path, "small")
    assert "one at a time, nothing reset" in capsys.readouterr().out
    table = tmp_path / "presets_small.csv"
    assert table.read_text().startswith("# pcsim experiment presets --scale small\npreset,outcome")
    lines = study.shipped(table)
    assert [one["preset"] for one in lines] == ["ideal", "photonic"]
    monkeypatch.setattr(study, "checked", lambda *_: pytest.fail("measured again"))
    study.main(tmp_path, "small")
    assert study.shipped(table) == lines
    shown = study.page_table(lines, {"ideal": "trains, 92.4"})
    assert shown.splitlines()[2].startswith(f"| ideal | {lines[0]['outcome']} |")
    assert "| trains, 92.4 |" in shown


def test_the_page_shows_the_shipped_table():
    """And names every column's old answer where there was one."""
    page = PAGE.read_text(encoding="utf-8")
    assert study.page_table(study.shipped(), study.before()) in page
