"""What docs/sweep.md shows is what pcsim takes, and the names it lists are those in the file."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from sweep_world import small

from pcsim.sweep import make_sweep, read_sweep, sweep
from pcsim.sweep.axes import SweepTable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_the_example_is_a_sweep():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    described = make_sweep(tomllib.loads(text))
    assert described.shape == (3, 7, 3, 3)
    *_, pc, bp = (p for p in described.points if p.cell in ((1, 6, 2, 2), (2, 6, 2, 2)))
    assert pc.config.schedule.gamma == 0.1
    assert sorted(bp.unused) == ["schedule.T", "schedule.gamma"]


def test_all_settings_and_variables_are_listed(tmp_path):
    for name, field in SweepTable.model_fields.items():
        assert f"`{name}`" in PAGE
        if name not in ("axes", "leave_out"):
            shown = f'`"{field.default}"`' if isinstance(field.default, str) else field.default
            assert f"`{name}` | {shown} |" in PAGE
    merged = sweep(small(), tmp_path / "s")
    own = {"accuracy", "test_accuracy", "train_energy"}
    for name in [*(set(merged.variables) - own), *merged.attrs]:
        told = "version_*" if name.startswith("version_") else name
        assert f"`{told}" in PAGE, name


def test_the_example_file_is_a_sweep():
    described = read_sweep(ROOT / "experiments" / "configs" / "digits_sweep.toml")
    assert len(described.points) == 63


def test_the_sweep_over_a_function_runs(tmp_path):
    (text,) = (t for t in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "collect" in t)
    (tmp_path / "powers.py").write_text(text)
    call = [sys.executable, "powers.py"]
    for _ in range(2):  # the second time the cells are there
        done = subprocess.run(
            call,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "[ 1  3  9 27 81]\n"
        kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "powers.cells").iterdir()}
        assert len(kept) == 2
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
