"""`pcsim compare` and `pcsim report` as a user types them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pcsim import store
from pcsim.cli import main

CONFIG = """
[network]
sizes = [64, 8, 10]
[schedule]
rule = "{rule}"
[learning]
batch = 100
epochs = 2
[data]
limit = 300
[run]
seeds = [0, 1, 2]
dtype = "float64"
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Be in a folder with two configurations, and run command lines in this process."""
    for rule in ("bp", "zil"):
        (tmp_path / f"{rule}.toml").write_text(CONFIG.format(rule=rule))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["/usr/bin/pcsim", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def test_from_configurations_to_a_report(call: Call, tmp_path: Path) -> None:
    code, out, err = call("compare", "bp.toml", "zil.toml", "--name", "BP", "--name", "Z-IL")
    assert (code, err) == (0, "")
    assert "+0.000 … +0.000" in out
    found = store.load(Path("out/compare.h5"))
    assert found["run"].tolist() == ["BP", "Z-IL"]
    assert (found["gap"] == 0).all()
    assert Path("out/compare.png").stat().st_size > 10_000
    made = Path("out/bp.h5").stat().st_mtime_ns
    code, _, err = call("compare", "bp.toml", "zil.toml")
    assert code == 2
    assert "--overwrite" in err
    code, _, _ = call("compare", "bp.toml", "zil.toml", "--overwrite")
    assert code == 0
    assert Path("out/bp.h5").stat().st_mtime_ns == made  # the runs were kept
    code, out, err = call("report", "out/compare.h5", "--figures", "figures")
    assert (code, err) == (0, "")
    assert "report in out/compare.html" in out
    assert {p.name for p in Path("figures").iterdir()} == {"comparison.svg", "comparison.pdf"}


def test_errors_are_one_sentence(call: Call, tmp_path: Path) -> None:
    other = CONFIG.format(rule="zil").replace("[64, 8, 10]", "[64, 9, 10]")
    (tmp_path / "zil.toml").write_text(other)
    code, _, err = call("compare", "bp.toml", "zil.toml", "--out", "versus.h5")
    assert code == 2
    assert "network.sizes: [64, 8, 10] in bp, [64, 9, 10] in zil" in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("versus.h5").exists()
    code, out, _ = call("compare", "bp.toml", "zil.toml", "--out", "versus.h5", "--unpaired")
    assert code == 0
    assert "unpaired (Welch)" in out
    (tmp_path / "bp.toml").write_text(CONFIG.format(rule="pc"))
    code, _, err = call("compare", "bp.toml", "zil.toml", "--out", "other.h5")
    assert code == 2
    assert "bp.h5: was made by another configuration than bp.toml" in err
    for arguments, words in (
        (("report", "gone.h5"), "there is no such file"),
        (("compare", "versus.h5", "bp.h5"), "holds no configuration"),
        (("compare", "bp.h5"), "at least two runs"),
        (("compare", "bp.h5", "zil.h5", "--name", "one"), "1 names for 2 runs"),
        (("compare", "bp.h5", "zil.h5", "--at", "alpha=x"), "must be a number"),
        (("compare", "bp.h5", "gone.h5"), "there is no such file"),
        (("compare", "bp.h5", "zil.h5", "--confidence", "95"), "between 0 and 1, got 95"),
    ):
        code, _, err = call(*arguments)
        assert code == 2, arguments
        assert words in err
