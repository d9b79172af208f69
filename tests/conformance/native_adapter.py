"""The engine `native`: the same calls as the reference, its steps compiled."""

from adapter import Adapter, Gap
from continuous_adapter import run
from plan_gaps import PLAN_GAPS

from pcsim.native.engine import Native

GAPS = (
    *PLAN_GAPS,
    Gap.of("circuit dendritic", "tau_w per weight", reason="tau_w per weight: not available"),
    Gap.of("circuit equilibrium", "tau_w per weight", reason="tau_w per weight: not available"),
    Gap.of("circuit sacramento", "tau_x per unit", reason="tau_x per unit: not available"),
)
NATIVE = Adapter("native", lambda case: run(case, Native), GAPS)
