"""No test can stall the suite: the limit of pyproject.toml ends it, also inside a loop in C."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMITS = ("timeout", "faulthandler_timeout")


@pytest.mark.parametrize("stall", ["import time; time.sleep(1000)", "sum(range(10**15))"])
def test_a_stalled_test_is_ended(tmp_path, stall):
    """With the settings of this repository, but a second instead of minutes."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    ours = {n: v for n, v in settings.items() if n.startswith(("timeout", "faulthandler"))}
    assert all(0 < ours[limit] <= 600 for limit in LIMITS)
    ours |= {limit: 1 + number for number, limit in enumerate(LIMITS)}
    (tmp_path / "test_stalled.py").write_text(f"def test_stalled():\n    {stall}\n")
    options = [part for name, value in ours.items() for part in ("-o", f"{name}={value}")]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Timeout" in done.stdout + done.stderr
    assert "test_stalled.py" in done.stdout + done.stderr
