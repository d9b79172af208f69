"""What docs/sweep.md shows is what pcsim takes, and the names it lists are those in the file."""

import re
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
