"""Outputs: nothing is replaced or removed but what pcsim made, and one process writes each."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import pcsim
from pcsim import config as configuration
from pcsim import plots, store
from pcsim.cli import main
from pcsim.errors import StoreError
from pcsim.experiments.common import keeping
from pcsim.run import run
from pcsim.runner import checkpoint
from pcsim.store import Result, Variable, files
from pcsim.store.lock import held, lock_path
from pcsim.store.parts import Parts

CONFIG = """
[network]
sizes = [64, 4, 10]
[learning]
batch = 10
epochs = 1
[data]
limit = 20
limit_test = 10
[run]
backend = "continuous"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Be in a folder with a configuration, and a file that must survive."""
    (tmp_path / "a.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(folder, monkeypatch, capsys):
    """Run a command line; return its exit code and what it says on stderr."""

    def of(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, capsys.readouterr().err

    return of


def small(**sections):
    base = configuration.read(Path("a.toml"))
    for name, fields in sections.items():
        base[name] = {**base.get(name, {}), **fields}
    return configuration.pruned(base, "small")[0]


def one(value=1.0, **attrs):
    return Result({"x": Variable((), np.array(value))}, {}, attrs)


def never(*_, **__):
    raise AssertionError("work was started")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "a.toml", "-o", "x.png"], "x.png: must end in .h5"),
        (["run", "a.toml", "-o", "a.toml", "--overwrite"], "a.toml: must end in .h5"),
        (["check", "a.toml", "-o", "x.png"], "x.png: must end in .h5"),
        (["compare", "a.toml", "a.toml", "-o", "x.png"], "x.png: must end in .h5"),
        (["compare", "a.toml", "b.h5", "-o", "a.h5"], "would be the result of a.toml as well"),
        (["hardware", "fit", "curve.csv", "-o", "x.h5"], "x.h5: must end in .toml"),
        (["report", "r.h5", "-o", "r.h5"], "r.h5: must end in .html or .htm"),
        (["report", "r.h5", "-o", "mine.html"], "mine.html: .* not made by pcsim"),
        (["experiment", "speed", "-o", "a.toml"], "a.toml: is a file; give a folder"),
        (["run", "a.toml", "-o", "mine.h5"], "mine.png: .* not made by pcsim"),
        (["run", "a.toml", "-o", "mine.h5", "--overwrite"], "mine.png: .* not made by pcsim"),
        (["check", "a.toml", "-o", "mine.h5"], "mine.png: .* not made by pcsim"),
        (["compare", "a.toml", "r.h5", "-o", "mine.h5"], "mine.png: .* not made by pcsim"),
        (["run", "a.toml", "-o", "null.h5", "--overwrite"], "null.h5: is a device or pipe"),
        (["demo", "-o", "."], ".: is there already and not empty"),
    ],
)
def test_an_output_that_would_destroy_is_refused_before_any_work(
    call, folder, monkeypatch, arguments, words
):
    store.save(one(), folder / "r.h5")
    for name in ("mine.html", "mine.png", "curve.csv"):
        (folder / name).write_text("precious")
    (folder / "null.h5").symlink_to("/dev/null")
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    for module, name in (("run", "_execute"), ("check.rows", "run"), ("report.write", "views")):
        monkeypatch.setattr(import_module(f"pcsim.{module}"), name, never)
    code, err = call(*arguments)
    assert code == 2, err
    assert len(err.splitlines()) == 1
    assert re.search(words, err), err
    assert before == {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    assert (folder / "null.h5").is_symlink()


def test_demo_never_touches_a_folder_with_files(call, folder):
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.tex").write_text("years")
    code, err = call("demo", "-o", "thesis")
    assert code == 2
    assert "thesis: is there already and not empty; give a new folder with --out" in err
    assert (folder / "thesis" / "chapter.tex").read_text() == "years"


def test_only_regular_files_are_replaced(tmp_path):
    pipe = tmp_path / "pipe.h5"
    os.mkfifo(pipe)
    for path in (Path("/dev/null"), pipe):
        with pytest.raises(StoreError, match="is a device or pipe"):
            store.save(one(), path, overwrite=True)
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "a.h5"
    link.symlink_to(tmp_path / "disk" / "a.h5")
    store.save(one(1.0), link)
    store.save(one(2.0), link, overwrite=True)
    assert link.is_symlink()
    assert store.load(tmp_path / "disk" / "a.h5")["x"] == 2.0


def test_a_figure_replaces_a_figure_of_pcsim_only(tmp_path):
    path = tmp_path / "a.png"
    plots.save(Figure(), path)
    first = path.read_bytes()
    plots.save(Figure(figsize=(2, 2)), path)
    assert path.read_bytes() != first
    path.write_bytes(b"\x89PNG holiday")
    with pytest.raises(StoreError, match=r"a\.png: is there already and was not made by pcsim"):
        plots.save(Figure(), path)
    assert path.read_bytes() == b"\x89PNG holiday"


def test_figures_of_a_report_replace_their_own_only(folder):
    run(small(), folder / "a.h5")
    pcsim.report("a.h5", figures="figures")
    drawn = {p.name for p in (folder / "figures").iterdir()}
    assert drawn
    (folder / "figures" / sorted(drawn)[0]).write_text("precious")
    kept = {p.name: p.read_bytes() for p in (folder / "figures").iterdir()}
    with pytest.raises(StoreError, match="was not made by pcsim"):
        pcsim.report("a.h5", "b.html", figures="figures")
    assert kept == {p.name: p.read_bytes() for p in (folder / "figures").iterdir()}
    assert not (folder / "b.html").exists()
    (folder / "figures" / sorted(drawn)[0]).unlink()
    pcsim.report("a.h5", figures="figures")  # the control: page and figures may be made again
    assert {p.name for p in (folder / "figures").iterdir()} == drawn


# ---------------------------------------------------------------- one writer per output

HOLD = """
import fcntl, os, sys, time
with open(sys.argv[1], "wb") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(b"pcsim process %d" % os.getpid())
    file.flush()
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def another(tmp_path):
    """Another process that writes `a.h5`."""
    command = [sys.executable, "-c", HOLD, str(lock_path(tmp_path / "a.h5"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_two_processes_do_not_write_one_output(folder, another, monkeypatch):
    words = rf"a\.h5: process {another.pid} is writing it; wait for its end, or give another name"
    with monkeypatch.context() as patch:
        patch.setattr(import_module("pcsim.run"), "_execute", never)
        with pytest.raises(StoreError, match=words):
            run(small(), folder / "a.h5")
        (folder / "b.h5").symlink_to(folder / "a.h5")
        with pytest.raises(StoreError, match=f"process {another.pid} is writing"):
            run(small(), folder / "b.h5", overwrite=True)  # another name of the same file
    with pytest.raises(StoreError, match=f"process {another.pid} is writing"):
        pcsim.compare([one(), one()], out=folder / "a.h5")
    another.kill()  # a dead process holds nothing
    another.wait()
    assert lock_path(folder / "a.h5").exists()
    run(small(), folder / "a.h5")
    assert store.load(folder / "a.h5")
    assert not lock_path(folder / "a.h5").exists()


def test_a_lock_ends_with_its_block(tmp_path):
    path = tmp_path / "new" / "a.h5"
    with (
        held(path),
        pytest.raises(StoreError, match=f"process {os.getpid()} is writing"),
        held(path),
    ):
        pass
    with pytest.raises(ZeroDivisionError), held(path):
        raise ZeroDivisionError
    with held(path):
        assert [p.name for p in path.parent.iterdir()] == [".a.h5.lock"]
    assert not list(path.parent.iterdir())
    lock_path(path).write_text("a shopping list")
    with pytest.raises(StoreError, match="is in the way and no lock of pcsim"), held(path):
        pass
    assert lock_path(path).read_text() == "a shopping list"


# ---------------------------------------------------------------- what killed runs leave behind


def killed_while_saving(path):
    """Leave behind what a process leaves that is killed while it saves a file."""
    process = subprocess.Popen(["true"])
    process.wait()
    with files.temporary_for(path) as name:
        mine = f"-{os.getpid()}-"
        assert mine in name.name
        path.with_name(name.name.replace(mine, f"-{process.pid}-")).write_bytes(b"half")


def test_leftovers_of_the_dead_are_removed_when_the_output_is_written(tmp_path):
    path, other = tmp_path / "a.h5", tmp_path / "b.h5"
    killed_while_saving(path)
    killed_while_saving(other)
    with files.temporary_for(path) as alive:
        alive.write_bytes(b"of a process that lives")
        assert len(list(tmp_path.iterdir())) == 3
        store.save(one(), path)
        assert alive.exists()
        assert len(list(tmp_path.iterdir())) == 3  # the result, the living, that of the other
    store.save(one(), other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_a_run_tidies_up_what_its_killed_checkpoint_left(folder):
    kept = checkpoint.path_for(folder / "a.h5")
    killed_while_saving(kept)
    run(small(), folder / "a.h5")
    assert sorted(p.name for p in folder.iterdir()) == ["a.h5", "a.toml"]


# ---------------------------------------------------------------- trajectories


def test_trajectories_of_another_run_are_not_shown(folder):
    record = {"trajectories": True}
    run(small(record=record), folder / "a.h5")
    assert "Trajectories of" in pcsim.report("a.h5").read_text()  # the control
    run(small(network={"sizes": [64, 7, 10]}), folder / "a.h5", overwrite=True)
    with pytest.warns(UserWarning, match=r"a\.trajectories\.h5: is left out, for it was recorded"):
        page = pcsim.report("a.h5").read_text()
    assert "Trajectories of" not in page


def test_trajectories_replace_none_of_another_run(folder):
    recorded = small(record={"trajectories": True})
    run(small(record={"trajectories": True}, network={"sizes": [64, 7, 10]}), folder / "a.h5")
    kept = (folder / "a.trajectories.h5").read_bytes()
    (folder / "a.h5").unlink()
    with pytest.raises(StoreError, match=r"trajectories\.h5: is there already, and not of this"):
        run(recorded, folder / "a.h5")
    assert (folder / "a.trajectories.h5").read_bytes() == kept
    run(recorded, folder / "a.h5", overwrite=True)
    (folder / "a.h5").unlink()
    run(recorded, folder / "a.h5")  # the control: its own may be made again
    (folder / "b.trajectories.h5").write_text("precious")
    with pytest.raises(StoreError, match=r"b\.trajectories\.h5: is there already"):
        run(recorded, folder / "b.h5", overwrite=True)
    assert (folder / "b.trajectories.h5").read_text() == "precious"


def test_a_file_that_is_no_checkpoint_survives(folder):
    (folder / "a.h5.checkpoint").write_text("precious")
    settings = small(run={"automatic": True}, learning={"batch": 0}, convergence={"max_steps": 3})
    with suppress(StoreError):  # it may be in the way
        run(settings, folder / "a.h5")
    assert (folder / "a.h5.checkpoint").read_text() == "precious"


# ---------------------------------------------------------------- studies


def test_a_study_replaces_its_own_result_only(tmp_path):
    path = tmp_path / "speed.h5"
    keeping.keep(one(1.0), path, "speed")
    keeping.keep(one(2.0), path, "speed")  # the control
    assert store.load(path)["x"] == 2.0
    for foreign in (one(3.0), one(3.0, study="stability")):
        store.save(foreign, path, overwrite=True)
        with pytest.raises(StoreError, match="was not made by the study speed"):
            keeping.claim(path, "speed")
        assert store.load(path)["x"] == 3.0
    path.unlink()
    path.with_suffix(".png").write_bytes(b"holiday")
    with pytest.raises(StoreError, match=r"speed\.png: .* was not made by pcsim"):
        keeping.claim(path, "speed")


def test_cells_are_forgotten_and_nothing_else(tmp_path):
    folder = tmp_path / "study.cells"
    part = Parts(folder).path("a", "setting")
    store.save(one(), part)
    store.save(one(), part.with_name(f"{part.name}.checkpoint"))
    (folder / "notes.txt").write_text("mine")
    (folder / "other.h5").write_text("mine")
    Parts(folder).forget()
    assert sorted(p.name for p in folder.iterdir()) == ["notes.txt", "other.h5"]
    Parts(tmp_path / "nothing").forget()
