"""One configuration in, one result out: the call behind `pcsim run`."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

from pcsim import store
from pcsim.config import Config
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.interruption import exit_code
from pcsim.recording import Recording
from pcsim.runner import checkpoint
from pcsim.runner.automatic import Automatic
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.recorder import trajectories_of
from pcsim.runner.resumable import Resumable
from pcsim.runner.training import Training
from pcsim.status import Report
from pcsim.store import Result
from pcsim.store.files import check_suffix, remove_leftovers
from pcsim.store.files import check_target as check_file
from pcsim.store.lock import held


def run(
    config: Config,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    report: Report | None = None,
) -> Recording:
    """Train as the configuration says; with `out`, store the result there.

    Main arguments:
        config: see `pcsim.config`.
        out: HDF5 file. While training a checkpoint lies beside it; when the run is interrupted,
            the same call goes on from there.

    Rarely used:
        overwrite: replace an existing result.
        report: called now and then with a `Status`.
    """
    if out:
        check_target(out, overwrite)
    with held(out) if out else nullcontext():
        return Recording.of(_run_alone(config, out, overwrite, report))


def _run_alone(config: Config, out: Path | None, overwrite: bool, report: Report | None) -> Result:
    """Run, being the only process that writes `out`."""
    if out:
        check_target(out, overwrite)  # the process before this one may have finished it
        if config.record.trajectories and config.run.backend != "discrete":
            _check_trajectories(trajectories_of(out), config, overwrite)
    result = _execute(job_of(config), out, report)
    if out:
        store.save(result, out, overwrite=overwrite)
        if store.is_result(checkpoint.path_for(out)):
            checkpoint.path_for(out).unlink()
        remove_leftovers(checkpoint.path_for(out))
    return result


def check_target(out: Path, overwrite: bool) -> None:
    """Find out before hours of work that the result could not be written."""
    check_suffix(out, ".h5")
    check_file(out, overwrite=True)
    if out.exists() and not overwrite:
        raise StoreError(f"{out}: there is a result already; give another name, or --overwrite")
    folder = next(p for p in out.absolute().parents if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise StoreError(f"{out}: cannot be written, because {folder} is not a writable folder")


def _check_trajectories(path: Path, config: Config, overwrite: bool) -> None:
    """Refuse to replace a recording of another run, or what is no recording of ours at all."""
    check_file(path, overwrite=True)
    if not path.exists():
        return
    own = store.is_result(path)
    if not own or not (overwrite or store.attributes(path).get("config") == config.to_json()):
        raise StoreError(
            f"{path}: is there already, and not of this run; move it away"
            + (", or --overwrite" if own else "")
        )


def job_of(config: Config) -> Resumable:
    """Return the run that a configuration describes."""
    if config.run.backend != "discrete":
        return ChipRun(config)
    return Automatic(config) if config.run.automatic else Training(config)


def _execute(job: Resumable, out: Path | None, report: Report | None) -> Result:
    try:
        job.run(report, out)
        return job.result()
    except KeyboardInterrupt as stop:
        reached, path = job.interrupted(), checkpoint.path_for(out) if out else None
        kept = "nothing was stored"
        if path and path.exists():
            kept = f"the same command goes on from {path}"
        raise InterruptedRunError(f"after {reached}; {kept}", exit_code(stop)) from None
