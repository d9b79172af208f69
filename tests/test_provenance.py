"""Provenance: right in a git tree, silent about foreign ones, and never raising."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import metadata

import numpy as np
import pytest

import pcsim
from pcsim import provenance as module
from pcsim.provenance import provenance
from pcsim.store import Result, Variable, load, save


@pytest.fixture(autouse=True)
def _ask_git_anew():
    for remembered in (module._own_commit, module._version):
        remembered.cache_clear()
    yield
    for remembered in (module._own_commit, module._version):
        remembered.cache_clear()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def tree(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_keys_and_values():
    found = provenance()
    assert all(isinstance(value, str) and value for value in found.values())
    assert found["version_numpy"] == np.__version__
    assert found["version_pcsim"] == pcsim.__version__
    assert found["version_python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"version_pcsim", "version_torch", "version_scipy", "version_h5py"} <= set(found)
    assert {"commit", "command_line", "platform", "cpu_count"} <= set(found)
    age = datetime.now(UTC) - datetime.fromisoformat(found["time_utc"])
    assert timedelta(seconds=-2) < age < timedelta(minutes=1)


def test_packages_that_are_not_installed(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.metadata, "version", missing)
    found = provenance()
    assert found["version_torch"] == "unknown"
    assert found["version_pcsim"] == pcsim.__version__  # known without being installed
    assert "version_brian2" not in found


def test_no_heavy_imports():
    code = (
        "import sys, pcsim; before = set(sys.modules);"
        "from pcsim.provenance import provenance; provenance();"
        "new = set(sys.modules) - before;"
        "sys.exit(bool(new & {'torch', 'brian2', 'h5py', 'scipy'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_git
def test_commit_of_a_clean_and_of_a_changed_tree(tree):
    source, commit = tree / "package" / "module.py", git(tree, "rev-parse", "HEAD")
    assert module._commit(source) == commit
    (tree / "result.h5").write_text("lies about")
    assert module._commit(source) == commit
    (tree / "package" / "new.py").write_text("")
    assert module._commit(source) == commit + "+changes"
    (tree / "package" / "new.py").unlink()
    source.write_text("x = 2\n")
    assert module._commit(source) == commit + "+changes"


@needs_git
def test_installed_copy_inside_a_foreign_repository_has_no_commit(tree):
    installed = tree / "env" / "module.py"
    installed.parent.mkdir()
    installed.write_text("")
    assert module._commit(installed) == "unknown"


@needs_git
def test_git_variables_of_a_hook_do_not_mislead(tree, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    commit = git(tree, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert module._commit(tree / "package" / "module.py") == commit


def test_no_repository(tmp_path):
    (tmp_path / "module.py").write_text("")
    assert module._commit(tmp_path / "module.py") == "unknown"


def test_no_git(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance()["commit"] == "unknown"


def test_git_that_hangs(monkeypatch):
    def hang(*arguments, **options):
        raise subprocess.TimeoutExpired("git", 1)

    monkeypatch.setattr(module.subprocess, "run", hang)
    assert provenance()["commit"] == "unknown"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/home/somebody/bin/pcsim", "run", "a b.toml"], "pcsim run 'a b.toml'"),
        (["/home/somebody/pcsim/__main__.py", "run"], "pcsim run"),
        (["-c"], "-c"),
        ([""], ""),
        ([], ""),
    ],
)
def test_command_line(monkeypatch, argv, expected):
    monkeypatch.setattr(sys, "argv", argv)
    assert provenance()["command_line"] == expected


def test_everything_can_be_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["pcsim", os.fsdecode(b"\xff\xfe.toml"), "ü"])
    found = provenance()
    save(Result({"x": Variable((), np.float64(1))}, attrs=found), tmp_path / "a.h5")
    assert load(tmp_path / "a.h5").attrs == found
