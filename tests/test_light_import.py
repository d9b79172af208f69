"""What is quick stays quick: names, help and version load nothing heavy."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pcsim

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "matplotlib", "brian2", "scipy", "h5py", "numpy", "sympy"}
LOADED = f"import json, sys; print(json.dumps(sorted({HEAVY} & set(sys.modules))))"


def loaded_by(code: str) -> set[str]:
    """Return the heavy modules that a fresh process has loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


COMMAND = """
import sys
from pcsim.cli import main
sys.argv = ["pcsim", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
"""


def test_the_package_loads_nothing_heavy():
    assert loaded_by("import pcsim; dir(pcsim); pcsim.__version__") == set()


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["run", "--help"], ["hardware", "--help"], ["data", "--help"]],
    ids=" ".join,
)
def test_the_command_line_loads_nothing_heavy_before_it_works(arguments):
    assert loaded_by(COMMAND.format(arguments=arguments)) == set()


@pytest.mark.slow
def test_the_guard_sees_what_is_loaded():
    """Control: a name that needs torch loads it, and a description does not."""
    assert "torch" in loaded_by("import pcsim; pcsim.run")
    assert "torch" not in loaded_by("import pcsim; pcsim.Network")


@pytest.mark.slow
def test_every_public_name_is_there_and_listed():
    assert set(pcsim.__all__) == set(pcsim._MODULES)
    assert set(pcsim.__all__) <= set(dir(pcsim))
    for name in pcsim.__all__:
        assert getattr(pcsim, name).__name__ == name
    with pytest.raises(AttributeError, match="'pcsim' has no attribute 'nonsense'"):
        _ = pcsim.nonsense


@pytest.mark.slow
def test_a_module_does_not_hide_the_function_of_its_name():
    code = """
import pcsim
from pcsim.check import DIGITS
import pcsim.run, pcsim.sweep
from pcsim import check, run, sweep
assert callable(check) and callable(run) and callable(sweep)
"""
    loaded_by(code)


def test_python_m_pcsim_is_the_command():
    def output(*arguments: str) -> str:
        command = [sys.executable, "-m", "pcsim", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert output("--version") == f"pcsim {pcsim.__version__}\n"
    assert "Usage: pcsim [OPTIONS] COMMAND" in output("--help")


def test_the_version_is_written_once():
    """The package is built with the version in `pcsim/__init__.py`; the citation follows it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "pcsim/__init__.py"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {pcsim.__version__}" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{pcsim.__version__}]" in changelog
