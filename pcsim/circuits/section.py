"""The section [circuit] of a configuration: what all circuits have. Frozen data, no tensors.

Each circuit adds its own fields in the file of its equations. Times are in seconds of simulated
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pcsim.errors import ConfigError
from pcsim.frozen import Duration, Frozen, NotNegative, Seconds

Transport = Literal["shared", "random", "sign", "kolen_pollack"]
ABSENT: dict[str, Any] = {
    "transport": "shared",
    **dict.fromkeys(("delay_err", "delay_fb", "tau_err", "tau_apical", "tau_inter", "tau_s"), 0.0),
    **dict.fromkeys(("look_err", "look_inter", "look_apical", "look_soma"), 0.0),
    "inhibition": 1.0,
}
"""What a circuit without such a field has of it: nothing (and its predictions cancel exactly)."""


class Conductances(Frozen):
    """Conductances of soma and compartments, in units of each other (only ratios matter).

    G = g_lk + g_B + g_A sets the somatic time constant τ_x = C/G; attenuations are a_B = g_B/G,
    a_A = g_A/G, a_D = g_D/(g_lk + g_D); λ = g_som/(g_lk + g_D + g_som) nudges the interneurons.
    The output layer has no apical compartment: its G is g_lk + g_B.
    """

    g_lk: NotNegative = 0.0
    """Leak of somas and interneurons, to rest at 0."""
    g_B: Annotated[float, Field(gt=0)] = 1.0  # noqa: N815
    """Basal dendrite to soma."""
    g_A: Annotated[float, Field(gt=0)] = 1.0  # noqa: N815
    """Apical dendrite to soma."""
    g_D: Annotated[float, Field(gt=0)] = 1.0  # noqa: N815
    """Dendrite to soma of the interneurons."""
    g_som: NotNegative = 0.0
    """Nudging of interneurons by the layer below; of Sacramento's output by the target."""

    @property
    def nudging(self) -> float:
        """λ of the interneurons."""
        return self.g_som / (self.g_lk + self.g_D + self.g_som)


class Circuit(Frozen):
    """How predictions, errors and weights evolve together: what all circuits have.

    Each kind of circuit is a class with its own fields. `Circuit(kind="dendritic", …)` is
    `Dendritic(…)`. What a circuit has no field for it has none of: the delays, lags and look-aheads
    of another one read as 0.
    """

    kind: str
    """Which circuit this is."""
    tau_x: Seconds = 1.0
    """Time constant of the somas."""
    tau_w: Seconds | None = None
    """Time constant of the weights: τ_w dθ/dt = Σ ξ f(x)ᵀ − λθ; none: dt/learning.alpha."""
    weight_decay: NotNegative = 0.0
    """λ of the weights (not of biases); 0: learning.weight_decay."""
    feedback_gain: Annotated[float, Field(gt=0)] = 1.0
    """Scale of initial feedback weights that are drawn, relative to the initial weights."""
    sigma_x: NotNegative = 0.0
    """White noise on the somas, dx = … + sigma_x dW, per √second."""

    INTERNEURONS_LIKE_SOMAS: ClassVar[bool] = False
    """Whether interneurons without a time constant have the somas' capacity."""

    if TYPE_CHECKING:  # the fields of a kind are those of its class

        def __init__(self, **fields: Any) -> None: ...

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """Return a circuit of the kind that is asked for, algebraic if none is."""
        if cls is not Circuit:
            return super().__new__(cls)
        from pcsim.circuits.kinds import KINDS

        kind = fields.get("kind", "algebraic")
        if kind not in KINDS:
            raise ConfigError(f"circuit.kind: must be one of {', '.join(KINDS)}, got {kind!r}")
        return super().__new__(KINDS[kind])  # type: ignore[return-value]

    def __getattr__(self, name: str) -> Any:
        """Return the "none of it" of a field that other circuits have."""
        if name in ABSENT:
            return ABSENT[name]
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def weight_time(self) -> float:
        """Return tau_w, which an executed circuit must have."""
        if self.tau_w is None:
            raise ConfigError("circuit.tau_w: must be given (in seconds) to run this circuit")
        return self.tau_w

    @model_validator(mode="after")
    def _look_ahead_of_a_lag(self) -> Self:
        for name in type(self).model_fields:
            lag = name.replace("look_", "tau_")
            if lag in type(self).model_fields and getattr(self, name) and not getattr(self, lag):
                raise ValueError(f"circuit.{name} looks ahead of a lag: set circuit.{lag} > 0")
        return self


class Transported(Circuit):
    """Circuits that may have feedback weights apart from the forward ones."""

    transport: Transport = "shared"
    """Feedback weights: the forward array itself; fixed random; the forward signs; Kolen–Pollack,
    which follows the forward update with the same decay."""


class Delayed(Transported):
    """Circuits whose errors may arrive late."""

    delay_err: Duration = 0.0
    """Pure delay of errors in all their uses (a whole number of time steps)."""
    delay_fb: Duration = 0.0
    """Pure delay of the feedback branch only."""
