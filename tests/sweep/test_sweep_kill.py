"""`kill -9` of the process and of a worker: the sweep goes on and ends with the same numbers."""

import os
import signal
import subprocess
import sys
import time

import pytest
from sweep_world import assert_same_numbers, small, unfused

from pcsim.errors import InterruptedRunError, UnsupportedError
from pcsim.sweep import distribute, execute, load, make_sweep, sweep
from pcsim.sweep.execute import job
from pcsim.sweep.fuse import plan

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
    """Two worker processes of a real LocalCluster; one is killed in the middle of its run."""
    distributed = pytest.importorskip("distributed")
    killed = []

    def report(status):
        if killed or not status.done:
            return
        client = distributed.Client.current()
        at_work = [worker for worker, tasks in client.processing().items() if tasks]
        assert len(client.nthreads()) == 2  # `scheduler_info` may be out of date
        if at_work:
            pids = client.run(os.getpid, workers=at_work[:1])
            assert os.getpid() not in pids.values()
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    slow = small(learning={"epochs": 30})  # so that the others are at work when one is finished
    merged = sweep(slow, tmp_path / "s", workers=2, report=report)
    assert len(killed) == 1
    undisturbed = sweep(slow, tmp_path / "calm")
    assert_same_numbers(merged, undisturbed)
    assert_same_numbers(load(tmp_path / "s"), undisturbed)


def test_any_running_scheduler_takes_the_jobs(tmp_path, undisturbed):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with distributed.LocalCluster(**options, dashboard_address=distribute.LOCAL_PORT) as cluster:
        there = {"cluster": cluster.scheduler_address, "insecure": True}
        merged = sweep(small(), tmp_path / "s", **there)
        assert_same_numbers(merged, undisturbed)
        again = sweep(small(), tmp_path / "s", **there)
        assert_same_numbers(again, undisturbed)


def test_a_scheduler_that_does_not_answer_is_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(distribute, "CONNECT_SECONDS", 0.2)
    with pytest.raises(UnsupportedError, match="no dask scheduler that answers"):
        sweep(small(), tmp_path / "s", cluster="tcp://127.0.0.1:9", insecure=True)


def test_dask_that_is_not_installed_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"need dask: pip install 'pcsim\[sweep\]'"):
        sweep(small(), tmp_path / "s", workers=1)


class Future:
    """A future of dask that ends in an error."""

    def __init__(self, error):
        self.error = error

    def result(self):
        raise self.error


def test_ends_of_a_job_that_dask_reports():
    distributed = pytest.importorskip("distributed")
    described = make_sweep(small())
    run = plan(described)[0]
    text = job(described, run, range(12))
    deadly = Future(distributed.KilledWorker("execute", None, 3))
    found = distribute._outcome(distributed, deadly, text)
    assert [finished.points for finished in found] == [(k,) for k in run.points]
    assert "each worker that took it died" in str(found[0].result.attrs["failure"])
    with pytest.raises(InterruptedRunError, match="scheduler has gone"):
        distribute._outcome(distributed, Future(distributed.CancelledError("gone")), text)
    with pytest.raises(UnsupportedError, match="is the same pcsim installed there"):
        distribute._outcome(distributed, Future(ModuleNotFoundError("pcsim")), text)


def test_files_from_afar_are_those_made_here():
    described = make_sweep(small())
    text = job(described, plan(described)[0], range(12))
    ((points, content),) = execute.execute_afar(text)
    assert points == plan(described)[0].points
    assert content[:4] == b"\x89HDF"
