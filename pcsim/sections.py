"""The sections of a configuration that speak of learning, data and the run itself. Frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pcsim.datasets import own
from pcsim.engines import ENGINES
from pcsim.errors import DataError
from pcsim.frozen import Count, Frozen, NotNegative, Positive, Whole
from pcsim.network import Mode

BelowOne = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
# TOML has lists, not tuples: only there a conversion is wanted.
AsList = Field(strict=False)
Rule = Literal["bp", "pc", "zil", "ipc"]
Reduction = Literal["sum", "mean"]
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal["auto", *ENGINES]


class Steps(Frozen):
    """When states move, and when weights are written."""

    rule: Rule = "ipc"
    """Learning rule: backpropagation, predictive coding, zero-divergence inference learning, or
    incremental predictive coding (always on)."""
    T: Count = 8
    """Inference steps per batch (Z-IL always uses the depth of the network)."""
    gamma: Positive = 0.5
    """Step size of the states (Z-IL: 1 unless given, which makes it equal to BP)."""
    pc_update_at: Literal["last", "after"] = "last"
    """PC's weight gradient: at the state of the last inference step, or one step later."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """gamma is multiplied by this whenever the energy did not fall; reset at each batch."""
    fast: bool = True
    """Skip products whose result is known (exact to round-off); off: every product of the text."""


class Start(Frozen):
    """What states are at the start of a batch."""

    init: Literal["ff", "carry", "zero", "normal"] = "ff"
    """States at the start of a batch: feed-forward pass, kept, zero, or normal(init_sd)."""
    init_sd: NotNegative = 0.1
    """Standard deviation of states that are drawn at the start of a batch."""


class Schedule(Start, Steps):
    """When states move, when they are reset, and when weights are written."""

    @model_validator(mode="after")
    def _zil_defaults_to_bp(self) -> Self:
        if self.rule == "zil" and "gamma" not in self.model_fields_set:
            self.__dict__["gamma"] = 1.0  # frozen, and not set by anyone: a default of this rule
        return self

    @model_validator(mode="after")
    def _zil_needs_ff(self) -> Self:
        if self.rule == "zil" and self.init != "ff":
            raise ValueError("Z-IL needs init = 'ff': its equality with BP rests on it")
        return self


class Updates(Frozen):
    """How weights move."""

    optimizer: Literal["sgd", "momentum", "adam", "adamw"] = "sgd"
    """How gradients become updates."""
    alpha: NotNegative = 1e-3
    """Learning rate; 0 is a control: everything moves but the weights."""
    weight_decay: NotNegative = 0.0
    """Decay of weights λ: each update subtracts alpha·λ·θ."""
    reduction: Reduction = "sum"
    """Weight gradient over the batch: sum, or mean (alpha then differs by a factor B)."""
    momentum: BelowOne = 0.9
    """Share of the last update that is kept (optimizer momentum)."""
    betas: Annotated[tuple[BelowOne, BelowOne], AsList] = (0.9, 0.999)
    """Decay rates of the two moments (optimizers adam and adamw)."""
    eps: Positive = 1e-8
    """Added to the root of the second moment (optimizers adam and adamw)."""
    decay_bias: bool = False
    """Whether biases decay, too."""
    patience: Whole = 0
    """Stop when no replica's validation accuracy improved for this many epochs; 0: never."""
    anneal: Literal["none", "cosine"] = "none"
    """Learning rate over the epochs: constant, or half a cosine down to zero."""


class Passes(Frozen):
    """How many samples are shown at once, and how often."""

    batch: Whole = 128
    """Samples per batch; 0 is the full training set. An incomplete last batch is left out."""
    epochs: Count = 10
    """Passes through the training set."""


class Learning(Passes, Updates):
    """How weights move, by how many samples at once."""


class DataConfig(Frozen):
    """What to train on."""

    name: str = "digits"
    """Data set (`pcsim data list` shows them), or a file of your own, "my.npz" or "my.csv", beside
    the configuration: see docs/own_data.md."""
    mode: Mode = "supervised"
    """What is clamped in training: input and label (supervised), or the datum alone
    (generative)."""
    limit: Whole = 0
    """Use only the first `limit` training samples; 0 is all."""
    validation: Whole = 0
    """Hold out this many training samples (the last ones) to choose the best epoch."""
    limit_test: Whole = 0
    """Measure on the first `limit_test` test samples only; 0 is all."""
    centre: bool = False
    """Shift and scale inputs by the training set's overall mean and standard deviation."""
    augment: bool = False
    """Mirror and shift training pictures at random, anew in each epoch (needs kornia)."""
    shuffled: bool = False
    """A control: training labels are dealt out anew among the samples, so that nothing can be
    learnt but how common each class is."""
    unverified: bool = False
    """Accept local files whose checksum is not the published one; the result says so."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Filled in by itself: the checksum of the values of own data, so that a result says what made
    it. Given, data with other values are refused."""

    @model_validator(mode="before")
    @classmethod
    def _read_own(cls, data: Any) -> Any:
        """Look at own data once: what is in a file later is another matter."""
        name = data.get("name") if isinstance(data, Mapping) else None
        if not isinstance(name, str) or not name.endswith(own.SUFFIXES) or data.get("sha256"):
            return data
        try:
            return {**data, "sha256": own.checksum_of_file(name)}
        except DataError as error:
            raise ValueError(str(error).removeprefix("data.name: ")) from None

    @model_validator(mode="after")
    def _of_own_data(self) -> Self:
        if self.sha256 and not own.is_own(self.name):
            raise ValueError(f"sha256: belongs to a file of your own, not to {self.name!r}")
        return self


class RunConfig(Frozen):
    """Where and how often."""

    backend: Literal["discrete", "continuous", "brian"] = "discrete"
    """Discrete steps, continuous time, or continuous time on Brian2."""
    engine: EngineName = "auto"
    """Who takes the steps: torch, C code that is compiled from the circuit's equations (see
    docs/native.md), or, in continuous time, ngspice with a netlist of them (see docs/spice.md);
    auto takes the faster of the first two, and the result says which and why."""
    seeds: Annotated[tuple[Seed, ...], AsList] = (0,)
    """One replica each: initial weights and data order."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of the torch engines and of Brian2."""
    device: str = "cpu"
    """Torch device, such as "cpu" or "cuda"."""
    automatic: bool = False
    """Full batch, nothing reset, no control signal; stops by itself (see `Convergence`)."""


class Convergence(Frozen):
    """When an automatic run has converged, per replica.

    The trend of the energy F over the last four windows (or over 8, 16, 32 …), with its error,
    must be less than rtol·|F| + atol·|F(0)| per window, at every test over a quarter of that span;
    F must not lie well above the lowest energy seen, and must not swing with a period. The rate of
    the energy is tested, not its size, so that slow but steady progress goes on. See
    `pcsim.runner.convergence_window` for the whole criterion and how often it errs.
    """

    window: Count = 200
    """Steps in which the energy may change by the tolerance; four of them are seen at least."""
    rtol: Positive = 1e-3
    """Tolerance per window, as part of the present energy."""
    atol: NotNegative = 1e-12
    """Tolerance per window, as part of the initial energy: for energies that fall to zero."""
    max_steps: Count = 100_000
    """A replica that has not stopped by then is judged by its trend: descending, rising, …"""


class Grid(Frozen):
    """Values that become replicas: every combination, times the seeds, trains at once."""

    alpha: Annotated[tuple[NotNegative, ...], AsList] = ()
    """Learning rates, in place of learning.alpha."""
    weight_decay: Annotated[tuple[NotNegative, ...], AsList] = ()
    """Weight decays, in place of learning.weight_decay."""
    gamma: Annotated[tuple[Positive, ...], AsList] = ()
    """Step sizes of the states, in place of schedule.gamma."""
    hardware: Mapping[str, Annotated[tuple[int | float, ...], AsList]] = {}
    """Numbers of the hardware by "piece.field", such as "weights.bits" = [4, 6, 8]."""
    trials: Annotated[tuple[Mapping[str, int | float], ...], AsList] = ()
    """Numbers of the hardware that change together, such as [{"adc.bits" = 6}, {"noise.sigma" =
    0.1}]: one value of the axis `trial` for each table, an empty one changes nothing."""
