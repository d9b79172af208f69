"""The examples of the README and of the Python page run as they stand, and chips learn."""

import re
from pathlib import Path

import numpy as np

from pcsim import config as configuration
from pcsim import simulate
from pcsim.run import run
from pcsim.simulate import read

ROOT = Path(__file__).parent.parent
README, PYTHON = ROOT / "README.md", ROOT / "docs/python.md"


def blocks(language: str, page: Path = README) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_it_fits_a_screen():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 45
    assert max(len(line) for line in lines) <= 130


def test_the_ten_line_example(capsys):
    code = blocks("python")[0]
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len([line for line in code.splitlines() if line.strip()]) <= 13
    found = names["answer"]
    assert (found.verdict.accuracy > 0.8).all()
    assert found.passed
    assert "iPC trains on ecram_li" in capsys.readouterr().out


def test_own_data_network_and_chip_by_call_and_by_file(tmp_path, capsys):
    """The example with own arrays, network and hardware: its file gives the same numbers."""
    code = blocks("python", PYTHON)[-1]
    names: dict[str, object] = {}
    exec(compile(code, "docs/python.md", "exec"), names)
    recording = names["recording"]
    assert "4 chips: " in capsys.readouterr().out
    np.savez(tmp_path / "my.npz", x=names["x"], y=names["y"])
    file = tmp_path / "own.toml"
    file.write_text(blocks("toml", PYTHON)[0])
    stored = run(configuration.load(file))
    again = simulate(**read(file))
    assert recording.variables.keys() == stored.variables.keys() == again.variables.keys()
    for name in stored.variables:
        np.testing.assert_array_equal(recording[name], stored[name])
        np.testing.assert_array_equal(again[name], stored[name])
    one, other = recording.config, configuration.from_json(str(stored.attrs["config"]))
    assert one.data.sha256 == other.data.sha256
    assert one.network == other.network
    assert one.model_copy(update={"data": other.data, "hardware": other.hardware}) == other
