"""pcsim: does always-on predictive coding learn on your chip?

`import pcsim` is quick: torch, matplotlib and the rest are loaded with the first name that needs
them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcsim.check import Criterion, check
    from pcsim.circuit import (
        Algebraic,
        Dendritic,
        Equilibrium,
        ErrorUnits,
        Sacramento,
        Spiking,
    )
    from pcsim.compare import compare
    from pcsim.config import Config, Schedule
    from pcsim.deploy import deploy
    from pcsim.energies import Categorical, Gaussian
    from pcsim.network import Network
    from pcsim.recording import Recording
    from pcsim.report import report
    from pcsim.run import run
    from pcsim.simulate import Learner, Stream, config_of, read, simulate
    from pcsim.stream import Record, Solver
    from pcsim.sweep import sweep
    from pcsim.variants import margins, remedies, specs

__all__ = [
    "Algebraic",
    "Categorical",
    "Config",
    "Criterion",
    "Dendritic",
    "Equilibrium",
    "ErrorUnits",
    "Gaussian",
    "Learner",
    "Network",
    "Record",
    "Recording",
    "Sacramento",
    "Schedule",
    "Solver",
    "Spiking",
    "Stream",
    "check",
    "compare",
    "config_of",
    "deploy",
    "margins",
    "read",
    "remedies",
    "report",
    "run",
    "simulate",
    "specs",
    "sweep",
]
__version__ = "0.2.0"
_MODULES = {
    "Algebraic": "pcsim.circuit",
    "Categorical": "pcsim.energies",
    "Config": "pcsim.config",
    "Criterion": "pcsim.check.criterion",
    "Dendritic": "pcsim.circuit",
    "Equilibrium": "pcsim.circuit",
    "ErrorUnits": "pcsim.circuit",
    "Gaussian": "pcsim.energies",
    "Learner": "pcsim.simulate",
    "Network": "pcsim.network",
    "Record": "pcsim.stream",
    "Recording": "pcsim.recording",
    "Sacramento": "pcsim.circuit",
    "Schedule": "pcsim.config",
    "Solver": "pcsim.stream",
    "Spiking": "pcsim.circuit",
    "Stream": "pcsim.simulate",
    "check": "pcsim.check",
    "compare": "pcsim.compare",
    "config_of": "pcsim.simulate",
    "deploy": "pcsim.deploy",
    "margins": "pcsim.variants",
    "read": "pcsim.simulate",
    "remedies": "pcsim.variants",
    "report": "pcsim.report",
    "run": "pcsim.run",
    "simulate": "pcsim.simulate",
    "specs": "pcsim.variants",
    "sweep": "pcsim.sweep",
}
"""The module of each public name, imported when the name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pcsim' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """Keeps a public function when its module of the same name is imported.

    `pcsim.check` is a function, and `import pcsim.check` would put the module in its place.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
