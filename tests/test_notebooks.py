"""Notebooks (scripts with cells, as Jupytext, VS Code and Spyder open them) run to their end."""

import re
from functools import partial
from pathlib import Path

import matplotlib
import pytest

from pcsim.spice import ngspice

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def cells(path: Path) -> list[str]:
    """Return the code of every cell that is not text."""
    parts = re.split(r"^# %%(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [
        body for head, body in zip(parts[::2], parts[1::2], strict=True) if "markdown" not in head
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch, request):
    if "brian" in path.stem:
        prefs = pytest.importorskip("brian2").prefs
        request.addfinalizer(partial(setattr, prefs.codegen, "target", prefs.codegen.target))
    if "netlist" in path.stem and (reason := ngspice.missing()):
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with matplotlib.rc_context({"backend": "agg"}):
        for code in cells(path):
            exec(compile(code, str(path), "exec"), names)
    assert "figure" in names


def test_there_are_notebooks_with_text_and_cells():
    assert len(NOTEBOOKS) >= 5
    for path in NOTEBOOKS:
        assert path.read_text(encoding="utf-8").startswith("# %% [markdown]\n# # ")
        assert len(cells(path)) >= 2
