"""One configuration in, one result out: the call behind `pcsim run`."""

from __future__ import annotations

from pathlib import Path

from pcsim import checkpoint, store
from pcsim.automatic import Automatic, Watch
from pcsim.config import Config
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.results import training_result
from pcsim.store import Result
from pcsim.training import Report, Training


def run(
    config: Config,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    report: Report | None = None,
    watch: Watch | None = None,
) -> Result:
    """Train as the configuration says; with `out`, store the result there.

    Main arguments:
        config: see `pcsim.config`.
        out: HDF5 file. While training in epochs a checkpoint lies beside it; when the run is
            interrupted, the same call goes on from there.

    Rarely used:
        overwrite: replace an existing result.
        report, watch: called after each epoch, and now and then in an automatic run.
    """
    if out and out.exists() and not overwrite:
        raise StoreError(f"{out}: there is a result already; give another name, or --overwrite")
    if config.run.automatic:
        automatic = Automatic(config)
        automatic.run(watch)
        result = automatic.result()
    else:
        training = Training(config)
        try:
            training.run(report, out)
        except KeyboardInterrupt:
            raise InterruptedRunError(_keep(training, out)) from None
        result = training_result(training)
    if out:
        store.save(result, out, overwrite=overwrite)
        checkpoint.path_for(out).unlink(missing_ok=True)
    return result


def _keep(training: Training, out: Path | None) -> str:
    """Save what an interrupted training has reached, and say how to go on."""
    done, total = training.progress.epoch, training.config.learning.epochs
    if not out or not done:
        return f"after {done} of {total} epochs; nothing was stored"
    done = training.save(out)
    path = checkpoint.path_for(out)
    return f"after {done} of {total} epochs; the same command goes on from {path}"
