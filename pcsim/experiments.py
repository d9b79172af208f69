"""The studies, in a checkout: the folder `experiments/` beside this package.

A wheel holds that folder itself in the place of this file, so that the studies have one name,
`pcsim.experiments`, wherever pcsim comes from. A top-level package `experiments` would collide with
the folder that many users have.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "experiments")]
"""Where Python looks for the modules of this package."""
