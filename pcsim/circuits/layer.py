"""Where a layer stands in the chain, as far as its equations depend on it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Layer:
    """One layer of value neurons."""

    f: str | None = "tanh"
    """Nonlinearity on the way to the layer below; None where there is none (the datum)."""
    g: str = "identity"
    """Nonlinearity of the prediction it receives (the convention `post`)."""
    predicted_by: Literal["above", "prior", "nothing"] = "above"
    """What its error is measured from; `nothing` is a flat prior."""
    clamped: Literal["never", "switched", "always"] = "never"
    """`switched`: a variable `free` (1 or 0, per unit) says whether x moves."""
    bias: bool = True
    precision: bool = False
    """Whether errors are divided by a variance `var` per unit."""
    learned_variance: bool = False
    """Whether ln var is a state `log_var` that learns."""
    categorical: bool = False
    """Whether the energy is categorical: predictions are logits."""
    output: bool = False
    """Whether nothing is below it."""
    sends_feedback: bool = False
    """Whether the layer above is free, and so hears this one's errors."""
    keeps_feedback: bool = False
    """Whether feedback weights onto the layer above learn although nothing hears them."""
    interneurons: bool = False
    """dendritic, sacramento: whether units of the layer above have interneurons that predict this
    one; they stand beside its units, one each."""
    own_tau_w: bool = False
    """Whether every weight and bias has a time constant of its own."""
    own: frozenset[str] = frozenset()
    """Other constants that every unit has a value of its own of, such as `tau_err` or `g_B`."""
    sites: frozenset[str] = frozenset()
    """Where hardware changes a signal, see `pcsim.substrate`."""
    line_sums: tuple[str, ...] = ()
    """Row sums that effects on predictions need, by their names in `AGGREGATES`."""
    back_sums: tuple[str, ...] = ()
    """The same for effects on feedback."""

    @property
    def shares_rates(self) -> bool:
        """Whether its rates are a softmax: each depends on all units."""
        return self.f == "softmax"

    @property
    def bias_outside(self) -> bool:
        """Whether b is added to the sum of synapses where it is used, not by hardware."""
        return self.bias and "product" not in self.sites

    @property
    def has_feedback(self) -> bool:
        """Whether there are feedback weights to the layer above."""
        return self.sends_feedback or self.keeps_feedback
