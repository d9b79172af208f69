"""The circuit: how errors are carried, with which time constants. Frozen data, no tensors.

Times are in seconds of simulated time. See `pcsim.continuous` for the equations that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pcsim.errors import ConfigError
from pcsim.frozen import Duration, Frozen, NotNegative, Positive, Seconds

Transport = Literal["shared", "random", "sign", "kolen_pollack"]


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

    if TYPE_CHECKING:  # the fields of a kind are those of its class

        def __init__(self, **fields: Any) -> None: ...

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """Return a circuit of the kind that is asked for, algebraic if none is."""
        if cls is not Circuit:
            return super().__new__(cls)
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


class _Transported(Circuit):
    """Circuits that may have feedback weights apart from the forward ones."""

    transport: Transport = "shared"
    """Feedback weights: the forward array itself; fixed random; the forward signs; Kolen–Pollack,
    which follows the forward update with the same decay."""


class _Delayed(_Transported):
    """Circuits whose errors may arrive late."""

    delay_err: Duration = 0.0
    """Pure delay of errors in all their uses (a whole number of time steps)."""
    delay_fb: Duration = 0.0
    """Pure delay of the feedback branch only."""


class Algebraic(_Delayed):
    """Errors are exact at every instant: algebra of the states, with no time of their own."""

    kind: Literal["algebraic"] = "algebraic"
    look_soma: Duration = 0.0
    """Look-ahead time of the somas, x̆ = x + τ̂ dx/dt (latent equilibrium when τ̂ = tau_x)."""

    @model_validator(mode="after")
    def _no_delays_ahead(self) -> Self:
        if self.look_soma and (self.delay_err or self.delay_fb):
            raise ValueError("circuit.look_soma cannot be combined with delays")
        return self


class ErrorUnits(_Delayed):
    """Errors have a unit of their own, with a time constant."""

    kind: Literal["error_units"] = "error_units"
    tau_err: Seconds
    """Time constant of the error units, seen by soma, feedback and weights alike."""
    look_err: Duration = 0.0
    """Look-ahead time of the errors, ê = e + τ̂ de/dt; τ̂ = tau_err restores ideal."""


class Dendritic(_Transported):
    """Soma, basal and apical dendrite, and interneurons that cancel what is predicted."""

    kind: Literal["dendritic"] = "dendritic"
    conductances: Conductances = Conductances()
    """Conductances between compartments."""
    tau_apical: Duration = 0.0
    """Low-pass of the apical branch only; 0 is quasi-static."""
    tau_inter: Duration = 0.0
    """Time constant of the interneurons; 0 is quasi-static."""
    inter_learned: bool = True
    """Interneurons have weights of their own (else they read the forward array)."""
    inter_rate: NotNegative = 1.0
    """Their plasticity relative to the rate that keeps them exact."""
    inhibition: NotNegative = 1.0
    """Gain κ of the inhibitory apical synapses, W_P = −κ W_F; 1 cancels exactly."""
    look_inter: Duration = 0.0
    """Look-ahead time of the interneurons."""
    look_apical: Duration = 0.0
    """Look-ahead time of the apical potential."""


class Sacramento(Circuit):
    """The dendritic microcircuit of Sacramento et al. 2018, with top-down weights of its own."""

    kind: Literal["sacramento"] = "sacramento"
    conductances: Conductances
    """Conductances between compartments; g_som must be positive."""
    tau_inter: Duration = 0.0
    """Time constant of the interneurons; 0 is quasi-static."""
    eta_inter: NotNegative = 1.0
    """Rate of W^IP relative to 1/tau_w."""
    eta_apical: NotNegative = 0.0
    """Rate of W^PI relative to 1/tau_w."""
    eta_down: NotNegative = 0.0
    """Rate of the top-down weights relative to 1/tau_w (0: fixed)."""
    self_predicting: bool = True
    """Start in the self-predicting state (apical potentials vanish without target)."""

    @model_validator(mode="after")
    def _nudged(self) -> Self:
        if not self.conductances.g_som:
            raise ValueError("circuit.conductances.g_som must be positive for sacramento")
        return self


class Spiking(Circuit):
    """Error units whose rates and errors are sent as events, back through the forward weights."""

    kind: Literal["spiking"] = "spiking"
    tau_err: Seconds
    """Time constant of the errors, seen by soma, feedback and weights alike."""
    tau_s: Duration
    """Time in which senders and receivers forget what was sent; 0: never (pure sigma-delta)."""
    q: Positive = 0.1
    """Step of the rates f(x), in their own units: one somatic event sends q k."""
    qe: Positive = 0.05
    """Step of the errors, in units of x: one apical event sends qe k."""


KINDS: dict[str, type[Circuit]] = {
    "algebraic": Algebraic,
    "error_units": ErrorUnits,
    "dendritic": Dendritic,
    "sacramento": Sacramento,
    "spiking": Spiking,
}
ABSENT: dict[str, Any] = {
    "transport": "shared",
    **dict.fromkeys(("delay_err", "delay_fb", "tau_err", "tau_apical", "tau_inter", "tau_s"), 0.0),
    **dict.fromkeys(("look_err", "look_inter", "look_apical", "look_soma"), 0.0),
    "inhibition": 1.0,
}
"""What a circuit without such a field has of it: nothing (and its predictions cancel exactly)."""
BELONGS: dict[str, tuple[str, ...]] = {
    name: tuple(kind for kind, other in KINDS.items() if name in other.model_fields)
    for circuit in KINDS.values()
    for name in circuit.model_fields
    if not all(name in other.model_fields for other in KINDS.values())
}
"""Which circuits have a field; the others are in all of them."""


def _kind(section: Any) -> str:
    """Return the tag of a section; what is no text has none, and is shown in the refusal."""
    get = section.get if isinstance(section, Mapping) else partial(getattr, section)
    kind = get("kind", "algebraic")
    return kind if isinstance(kind, str) else repr(kind)


def foreign(section: Any) -> tuple[str, ...]:
    """Return the fields of a section [circuit] that belong to circuits of another kind."""
    kind = _kind(section)
    if not isinstance(section, Mapping) or kind not in KINDS:
        return ()
    return tuple(name for name in section if name in BELONGS and kind not in BELONGS[name])


CircuitConfig = Annotated[
    Annotated[Algebraic, Tag("algebraic")]
    | Annotated[ErrorUnits, Tag("error_units")]
    | Annotated[Dendritic, Tag("dendritic")]
    | Annotated[Sacramento, Tag("sacramento")]
    | Annotated[Spiking, Tag("spiking")],
    Discriminator(_kind),
]
"""The section [circuit]: its field `kind` says which circuit, "algebraic" if it is left out."""
