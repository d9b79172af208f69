"""`kill -9` of the process and of a worker: the sweep goes on and ends with the same numbers."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children

import pytest
from sweep_world import assert_same_numbers, small, unfused

from pcsim.errors import InterruptedRunError, UnsupportedError
from pcsim.sweep import cluster, collect, execute, load, make_sweep, schedule, sweep
from pcsim.sweep.execute import job
from pcsim.sweep.fuse import plan
from pcsim.sweep.processes import ATTEMPTS, Died

# A child that computes the sweep of `sweep_world`, and kills itself at a moment of its own choice.
CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from sweep_world import {which} as describe
import pcsim
from pcsim.store import files, sealed

def die():
    os.kill(os.getpid(), signal.SIGKILL)

calls = []
def at(original):
    def wrapped(*arguments):
        calls.append(1)
        if len(calls) == 3 and {moment!r} == "half written":
            with open(arguments[0], "xb") as file:
                file.write(bytes(arguments[1])[:1000])
            die()
        done = original(*arguments)
        if len(calls) == 3 and {moment!r} == "not renamed":
            die()
        return done
    return wrapped

if {moment!r} != "from outside":
    files.write_new = at(files.write_new)
pcsim.sweep(describe(), {out!r})
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return sweep(small(), tmp_path_factory.mktemp("sweep") / "s")


def child(out, moment, which="small"):
    tests = os.path.dirname(__file__)
    code = CHILD.format(tests=tests, moment=moment, out=str(out), which=which)
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.parametrize("moment", ["half written", "not renamed"])
def test_killed_while_storing(tmp_path, undisturbed, moment):
    out = tmp_path / "s"
    assert child(out, moment).wait(120) == -signal.SIGKILL
    assert len(list((out / "runs").glob("*.h5"))) == 2
    assert len(list((out / "runs").glob(".*.tmp"))) == 1
    assert (load(out)["status"] == "missing").sum() == 6  # what there is can be read
    assert_same_numbers(sweep(small(), out), undisturbed)
    assert not list((out / "runs").glob(".*.tmp"))


def test_killed_from_outside_at_any_moment(tmp_path):
    out = tmp_path / "s"
    undisturbed = sweep(unfused(), tmp_path / "calm")
    process = child(out, "from outside", "unfused")
    give_up = time.monotonic() + 120
    while len(list((out / "runs").glob("*.h5"))) < 3 and time.monotonic() < give_up:
        time.sleep(0.002)
    process.kill()
    assert process.wait(120) == -signal.SIGKILL
    done = sorted((out / "runs").glob("*.h5"))
    assert 3 <= len(done) < 12
    kept = {path: path.stat().st_mtime_ns for path in done}
    assert_same_numbers(sweep(unfused(), out), undisturbed)
    assert all(path.stat().st_mtime_ns == kept[path] for path in done)


def test_a_killed_worker_loses_nothing(tmp_path):
    """Two worker processes; one is killed in the middle of its run."""
    killed = []

    def report(status):
        if killed or not status.done:
            return
        workers = active_children()
        assert len(workers) == 2
        workers[0].kill()
        killed.append(workers[0])

    slow = small(learning={"epochs": 30})  # so that the others are at work when one is finished
    merged = sweep(slow, tmp_path / "s", workers=2, report=report)
    assert len(killed) == 1
    assert not active_children()
    undisturbed = sweep(slow, tmp_path / "calm")
    assert_same_numbers(merged, undisturbed)
    assert_same_numbers(load(tmp_path / "s"), undisturbed)


def deadly(folder):
    """Kill the process that runs it, and leave a sign of it."""
    (folder / f"died {os.getpid()}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_on_which_every_worker_dies_is_given_up_and_the_others_are_not(tmp_path):
    jobs = {"deadly": partial(deadly, tmp_path), "harmless": os.getpid}
    found = dict(schedule.outcomes(jobs, schedule.Place(workers=1)))
    assert found["deadly"] == Died()
    assert found["harmless"] != os.getpid()
    assert len(list(tmp_path.glob("died *"))) == ATTEMPTS
    with pytest.raises(UnsupportedError, match="deadly: each worker that took it died"):
        collect({"deadly": jobs["deadly"]}, tmp_path / "cells", "s", workers=1)


def test_a_run_on_which_every_worker_dies_is_recorded_as_failed(tmp_path, monkeypatch):
    def outcomes(jobs, place):
        (first, _), *others = jobs.items()
        yield first, Died()
        yield from ((key, job()) for key, job in others)

    monkeypatch.setattr(schedule, "outcomes", outcomes)
    found = sweep(small(), tmp_path / "s")
    lost = found["status"] == "failed"
    assert lost.sum() == len(plan(make_sweep(small()))[0].points)
    assert set(found["reason"][lost]) == {Died().reason}


def broken(number):
    raise ValueError(f"number {number}")


def test_an_error_in_a_worker_is_raised_here_with_its_traceback():
    jobs = {"a": partial(broken, 7)}
    with pytest.raises(ValueError, match="number 7") as caught:
        dict(schedule.outcomes(jobs, schedule.Place(workers=1)))
    assert "in broken" in caught.value.__notes__[0]
    unsendable = {"a": partial(eval, "lambda: 0")}
    with pytest.raises(Exception, match="lambda"):  # which kind depends on the Python
        dict(schedule.outcomes(unsendable, schedule.Place(workers=1)))
    assert not active_children()


def test_any_running_scheduler_takes_the_jobs(tmp_path, undisturbed):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as running:
        there = {"cluster": running.scheduler_address, "insecure": True}
        merged = sweep(small(), tmp_path / "s", **there)
        assert_same_numbers(merged, undisturbed)
        again = sweep(small(), tmp_path / "s", **there)
        assert_same_numbers(again, undisturbed)


def test_a_scheduler_that_does_not_answer_is_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(UnsupportedError, match="no dask scheduler that answers"):
        sweep(small(), tmp_path / "s", cluster="tcp://127.0.0.1:9", insecure=True)


def test_dask_that_is_not_installed_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"needs dask: pip install 'pcsim\[sweep\]'"):
        sweep(small(), tmp_path / "s", cluster="tls://h:1")


class Future:
    """A future of dask that ends in an error."""

    def __init__(self, error):
        self.error = error

    def result(self):
        raise self.error


def test_ends_of_a_job_that_dask_reports():
    distributed = pytest.importorskip("distributed")
    deadly = Future(distributed.KilledWorker("execute", None, 3))
    assert cluster._outcome(distributed, deadly) == Died()
    with pytest.raises(InterruptedRunError, match="scheduler has gone"):
        cluster._outcome(distributed, Future(distributed.CancelledError("gone")))
    with pytest.raises(UnsupportedError, match="is the same pcsim installed there"):
        cluster._outcome(distributed, Future(ModuleNotFoundError("pcsim")))


def test_files_from_afar_are_those_made_here():
    described = make_sweep(small())
    text = job(described, plan(described)[0], range(12))
    (finished,) = execute.execute_afar(text)
    assert finished.points == plan(described)[0].points
    assert finished.content[:4] == b"\x89HDF"
    assert finished.result is None
