"""Sweeps: any field of a configuration on any number of axes, interruptible at any moment.

`axes` and `points` describe, `fuse` divides the points into runs, `execute` computes one run,
`schedule` computes many (here, in `processes`, or on a `cluster`), `folder` keeps the results,
`merge` puts them on named axes, `outcome` says what became of them, and `engine` holds it all
together. `functions` sweeps over Python functions. `docs/sweep.md` is the manual.
"""

from pcsim.sweep.engine import StoreWarning, load, sweep
from pcsim.sweep.functions import collect
from pcsim.sweep.points import Sweep, make_sweep, read_sweep

__all__ = ["StoreWarning", "Sweep", "collect", "load", "make_sweep", "read_sweep", "sweep"]
