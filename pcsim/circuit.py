"""The circuit: how errors are carried, with which time constants. Frozen data, no tensors.

Times are in seconds of simulated time. See `pcsim.continuous` for the equations that run.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from pcsim.errors import ConfigError
from pcsim.frozen import AS_STORED, Duration, Frozen, NotNegative, Seconds

Kind = Literal["algebraic", "error_units", "dendritic", "sacramento"]
Transport = Literal["shared", "random", "sign", "kolen_pollack"]


BELONGS: dict[str, tuple[Kind, ...]] = {
    "tau_err": ("error_units",),
    "look_err": ("error_units",),
    "delay_err": ("algebraic", "error_units"),
    "delay_fb": ("algebraic", "error_units"),
    "look_soma": ("algebraic",),
    "conductances": ("dendritic", "sacramento"),
    "tau_apical": ("dendritic",),
    "tau_inter": ("dendritic", "sacramento"),
    "inter_learned": ("dendritic",),
    "inter_rate": ("dendritic",),
    "inhibition": ("dendritic",),
    "look_inter": ("dendritic",),
    "look_apical": ("dendritic",),
    "eta_inter": ("sacramento",),
    "eta_apical": ("sacramento",),
    "eta_down": ("sacramento",),
    "self_predicting": ("sacramento",),
}
"""Which circuits have a field; the others are in all of them."""


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
    """How predictions, errors and weights evolve together."""

    kind: Kind = "algebraic"
    """algebraic: errors are exact at every instant; error_units: errors have a unit of their own;
    dendritic: soma, basal, apical, interneurons; sacramento: Sacramento et al. 2018."""
    tau_x: Seconds = 1.0
    """Time constant of the somas."""
    tau_w: Seconds | None = None
    """Time constant of the weights: τ_w dθ/dt = Σ ξ f(x)ᵀ − λθ; none: dt/learning.alpha."""
    weight_decay: NotNegative = 0.0
    """λ of the weights (not of biases); 0: learning.weight_decay."""
    transport: Transport = "shared"
    """Feedback weights: the forward array itself; fixed random; the forward signs; Kolen–Pollack,
    which follows the forward update with the same decay."""
    feedback_gain: Annotated[float, Field(gt=0)] = 1.0
    """Scale of random and Kolen–Pollack initial feedback, relative to the initial weights."""

    tau_err: Duration = 0.0
    """error_units: time constant of the error units, seen by soma, feedback and weights alike."""
    delay_err: Duration = 0.0
    """Pure delay of errors in all their uses (a whole number of time steps)."""
    delay_fb: Duration = 0.0
    """Pure delay of the feedback branch only."""

    conductances: Conductances = Conductances()
    """dendritic, sacramento: conductances between compartments."""
    tau_apical: Duration = 0.0
    """dendritic: low-pass of the apical branch only; 0 is quasi-static."""
    tau_inter: Duration = 0.0
    """dendritic, sacramento: time constant of the interneurons; 0 is quasi-static."""
    inter_learned: bool = True
    """dendritic: interneurons have weights of their own (else they read the forward array)."""
    inter_rate: NotNegative = 1.0
    """dendritic: their plasticity relative to the rate that keeps them exact."""
    inhibition: NotNegative = 1.0
    """dendritic: gain κ of the inhibitory apical synapses, W_P = −κ W_F; 1 cancels exactly."""

    look_err: Duration = 0.0
    """error_units: look-ahead time of the errors, ê = e + τ̂ de/dt; τ̂ = tau_err restores ideal."""
    look_inter: Duration = 0.0
    """dendritic: look-ahead time of the interneurons."""
    look_apical: Duration = 0.0
    """dendritic: look-ahead time of the apical potential."""
    look_soma: Duration = 0.0
    """Look-ahead time of the somas, x̆ = x + τ̂ dx/dt (latent equilibrium when τ̂ = tau_x)."""

    eta_inter: NotNegative = 1.0
    """sacramento: rate of W^IP relative to 1/tau_w."""
    eta_apical: NotNegative = 0.0
    """sacramento: rate of W^PI relative to 1/tau_w."""
    eta_down: NotNegative = 0.0
    """sacramento: rate of the top-down weights relative to 1/tau_w (0: fixed)."""
    self_predicting: bool = True
    """sacramento: start in the self-predicting state (apical potentials vanish without target)."""

    sigma_x: NotNegative = 0.0
    """White noise on the somas, dx = … + sigma_x dW, per √second."""

    @property
    def weight_time(self) -> float:
        """Return tau_w, which an executed circuit must have."""
        if self.tau_w is None:
            raise ConfigError("circuit.tau_w: must be given (in seconds) to run this circuit")
        return self.tau_w

    @model_validator(mode="after")
    def _only_where_meant(self, info: ValidationInfo) -> Self:
        for name, kinds in BELONGS.items():
            if self.kind in kinds or info.context == AS_STORED:
                continue
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"circuit.{name} belongs to the circuit {' or '.join(kinds)}")
        needs = {"look_err": "tau_err", "look_inter": "tau_inter", "look_apical": "tau_apical"}
        for name, other in needs.items():
            if getattr(self, name) and not getattr(self, other):
                raise ValueError(f"circuit.{name} looks ahead of a lag: set circuit.{other} > 0")
        if self.kind == "error_units" and not self.tau_err:
            raise ValueError("circuit.tau_err must be positive for error_units")
        if self.kind == "sacramento" and not self.conductances.g_som:
            raise ValueError("circuit.conductances.g_som must be positive for sacramento")
        if self.kind == "sacramento" and self.transport != "shared":
            raise ValueError("circuit.transport: sacramento has top-down weights of its own")
        if self.look_soma and (self.delay_err or self.delay_fb):
            raise ValueError("circuit.look_soma cannot be combined with delays")
        return self
