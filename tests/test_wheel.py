"""What an installed wheel holds: the studies under `pcsim`, and no package `experiments`."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pcsim.cli.experiment import names

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder that holds what a wheel of this tree installs."""
    built, site = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(built)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    return site


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
