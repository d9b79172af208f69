"""What an installed wheel holds: the studies under `pcsim`, and no package `experiments`."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pcsim.cli.experiment import names

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a wheel of this tree."""
    built = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(built)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """Return a folder that holds what a wheel of this tree installs."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return site


@pytest.fixture(scope="module")
def pcsim(wheel, tmp_path_factory):
    """Return a call of the command that pip installs into an empty environment.

    Dependencies are those of the environment that runs the tests, found behind its own packages.
    """
    home, outside = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("outside")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "zz_dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def call(line: str) -> subprocess.CompletedProcess[str]:
        command = [str(home / "bin" / "pcsim"), *line.split()]
        return subprocess.run(
            command, cwd=outside, env=env, capture_output=True, text=True, check=False
        )

    call.packages, call.outside = packages, outside
    return call


@pytest.fixture
def folder(tmp_path):
    """Return a working folder with an `experiments` of the user's own, which must not be loaded."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise RuntimeError('not mine')")
    return tmp_path


def python(program: str, path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, which Python searches first, with the packages of a path."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


EXPERIMENT = (
    "import sys; from pcsim.cli import main; sys.argv = ['pcsim', 'experiment', {!r}]; main()"
)

GREETING = """
from ..common.claims import judged

def main(out):
    (out / "greeting.txt").write_text(judged(True))
"""


def test_a_wheel_installs_two_packages_and_all_studies(site):
    packages = {path.name for path in site.iterdir() if path.suffix != ".dist-info"}
    assert packages == {"pcsim", "hw_models"}
    held = {path.parent.name for path in (site / "pcsim" / "experiments").glob("*/study.py")}
    assert held == set(names())
    assert not list(site.rglob("*.pyc"))


FIVE = "--bits 6 --read-noise 1% --adc 8 --mismatch 5% --retention 1h"
SMALL = "--set network.sizes=[64,6,10] --set data.limit=40 --set data.limit_test=40"


@pytest.mark.slow
def test_from_an_installation_to_the_verdict_of_five_specifications(pcsim):
    """The path of a chip designer: nothing is edited, and nothing is refused on the way."""
    done = pcsim(f"hardware new chip.toml {FIVE}")
    assert done.returncode == 0, done.stderr
    done = pcsim("hardware check chip.toml")
    assert done.returncode == 0, done.stderr
    told = done.stdout
    assert all(words in told for words in ("6-bit weights", "8-bit converter", "3600 s", "5 %"))
    short = f"{SMALL} --chips 2 --present 4 --no-twins --no-search --quiet"
    done = pcsim(f"check --hardware chip.toml {short}")
    assert done.returncode in (0, 3, 4), done.stderr
    assert "on chip" in done.stdout
    assert (pcsim.outside / "out" / "check_chip.h5").exists()


@pytest.mark.slow
def test_an_installation_stands_alone(pcsim):
    """What runs is what was installed, and it has the studies and the data."""
    code = "import pcsim, hw_models; print(pcsim.__file__, hw_models.__file__)"
    python = pcsim.packages.parents[2] / "bin" / "python"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), "-c", code], cwd=pcsim.outside, env=env, capture_output=True, text=True
    )
    assert all(Path(path).is_relative_to(pcsim.packages) for path in done.stdout.split())
    assert "presets" in pcsim("experiment nothing").stderr
    assert pcsim("data verify digits").returncode == 0


def test_a_folder_is_a_study(site, folder):
    """Nothing lists the studies: one more folder is one more study."""
    added = site / "pcsim" / "experiments" / "greeting"
    added.mkdir()
    (added / "study.py").write_text(GREETING)
    done = python(EXPERIMENT.format("greeting"), site, folder)
    shutil.rmtree(added)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "greeting.txt").read_text() == "holds"
    refused = python(EXPERIMENT.format("greeting"), site, folder)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: experiment: there is no 'greeting'; choose one of ")


@pytest.mark.parametrize("installed", [True, False], ids=["wheel", "checkout"])
def test_studies_load_beside_a_folder_experiments_of_the_user(installed, site, folder):
    path = site if installed else ROOT
    program = (
        "from importlib import import_module\n"
        "from pcsim.cli.experiment import names\n"
        "for name in names():\n"
        "    study = import_module(f'pcsim.experiments.{name}.study')\n"
        "    assert callable(study.main), name\n"
        "    print(study.__file__)\n"
    )
    done = python(program, path, folder)
    assert done.returncode == 0, done.stderr
    assert all(Path(line).is_relative_to(path) for line in done.stdout.splitlines())
