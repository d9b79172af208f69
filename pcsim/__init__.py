"""pcsim: does always-on predictive coding learn on your chip?"""

from pcsim.check import check
from pcsim.compare import compare
from pcsim.config import Config, Schedule
from pcsim.energies import Categorical, Gaussian
from pcsim.network import Network
from pcsim.report import report
from pcsim.run import run
from pcsim.sweep import sweep

__all__ = [
    "Categorical",
    "Config",
    "Gaussian",
    "Network",
    "Schedule",
    "check",
    "compare",
    "report",
    "run",
    "sweep",
]
__version__ = "0.1.0"
