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
from pcsim.runner.results import chip_result, training_result
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
    if config.run.backend in ("continuous", "brian"):
        result = _run_chips(config, out, report)
    elif config.run.automatic:
        result = _run_automatic(config, out, report)
    else:
        result = _run_training(config, out, report)
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


def _run_training(config: Config, out: Path | None, report: Report | None) -> Result:
    training = Training(config)
    try:
        training.run(report, out)
    except KeyboardInterrupt as stop:
        raise InterruptedRunError(_keep(training, out), exit_code(stop)) from None
    return training_result(training)


def _run_automatic(config: Config, out: Path | None, report: Report | None) -> Result:
    automatic = Automatic(config)
    try:
        automatic.run(report, out)
    except KeyboardInterrupt as stop:
        kept = "nothing was stored"
        if out and automatic.save():
            kept = f"the same command goes on from {checkpoint.path_for(out)}"
        done = len(automatic.energies)
        raise InterruptedRunError(f"after {done} steps; {kept}", exit_code(stop)) from None
    return automatic.result()


def _run_chips(config: Config, out: Path | None, report: Report | None) -> Result:
    chips = ChipRun(config)
    try:
        chips.run(report, out)
        return _result_of(chips)
    except KeyboardInterrupt as stop:
        path = checkpoint.path_for(out) if out else None
        again = f"the same command goes on from {path}" if path and path.exists() else ""
        raise InterruptedRunError(
            f"after {chips.engine.time:.4g} s of simulated time; {again or 'nothing was stored'}",
            exit_code(stop),
        ) from None


def _result_of(chips: ChipRun) -> Result:
    """Return what a run has come to; interrupted meanwhile, it can be asked again."""
    try:
        return chip_result(chips)
    except KeyboardInterrupt:
        chips.save()
        raise


def _keep(training: Training, out: Path | None) -> str:
    """Save what an interrupted training has reached, and say how to go on."""
    total = training.config.learning.epochs
    done = training.save(out) if out else None
    if not out or done is None:
        return f"after {training.progress.epoch} of {total} epochs; nothing was stored"
    path = checkpoint.path_for(out)
    return f"after {done} of {total} epochs; the same command goes on from {path}"
