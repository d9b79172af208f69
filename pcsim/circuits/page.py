"""What a circuit consists of, as data: its equations, and the places where hardware acts.

A page is text: differential equations, elementwise expressions and sums over synapses, in the
notation of Brian2. Engines run it, compile it or print it; none of them knows a circuit by name.

    pre  = layer l+1, which predicts         post = layer l, which is predicted
    mu_post, basal_post, inter_in_post       sums over pre   (predictions)
    fb_pre, td_pre, lateral_pre              sums over post  (errors on their way back)

Interneurons that predict layer l stand beside its units, one each, in the same group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from pcsim.circuits.blocks import Place
from pcsim.circuits.layer import Layer
from pcsim.circuits.section import Circuit
from pcsim.circuits.shared import rate_lines
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network

Lines = list[str]
BRIAN = "backend brian"
CLAMPED = "x : 1  # clamped from outside"


@dataclass(frozen=True)
class Ring:
    """A delay line of every unit of a layer."""

    delay: str
    """The field of the circuit that says how long, in seconds."""
    source: str
    target: str


@dataclass(frozen=True)
class Event:
    """A signal that is sent only where receivers are wrong about it, in whole steps.

        k = floor((signal − belief)/step + ½)        if k ≠ 0:  belief += step·k,  total += w·step·k

    What receivers believe, and what has arrived at them, leaks with one and the same time constant.
    """

    name: str
    """What the event is called in a layer; `spike` is Brian2's own word."""
    sender: str
    """The compartment that sends."""
    signal: str
    belief: str
    """What the receivers believe the signal to be; the sender knows."""
    step: str
    """The field of the circuit with the size of a step."""
    total: str
    """The sum of a receiver at which it arrives, through the weight between both."""
    onto: Literal["post", "pre"]
    """Where the receivers are: below the sender (post) or above it (pre)."""

    @property
    def steps(self) -> str:
        """Return the variable k."""
        return f"k_{self.sender}"

    @property
    def line(self) -> str:
        """Return k as an equation."""
        return f"{self.steps} = floor(({self.signal} - {self.belief})/{self.step} + 0.5) : 1"

    @property
    def condition(self) -> str:
        """Return when the event happens."""
        return f"abs({self.steps}) > 0.5"

    @property
    def update(self) -> str:
        """Return what it does to its sender."""
        return f"{self.belief} += {self.step}*{self.steps}"

    @property
    def arrival(self) -> str:
        """Return what it does to a receiver, as a statement of the synapse between them."""
        here = "pre" if self.onto == "post" else "post"
        return f"{self.total}_{self.onto} += w*{self.step}*{self.steps}_{here}"


def silent(circuit: Circuit, layer: Layer) -> list[Event]:
    """Return no event: signals flow all the time."""
    return []


def nowhere(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return no place: hardware does not act here."""
    return []


def never(circuit: Circuit, layer: Layer) -> list[Ring]:
    """Return no delay line."""
    return []


def alone(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return nothing of this kind."""
    return {}


def nothing(circuit: Circuit, params: Parameters, seeds: list[int]) -> dict[str, Tensor]:
    """Return no arrays."""
    return {}


def clamped_source(circuit: Circuit, layer: Layer) -> Lines:
    """Return the equations of an input whose rates are seen all the time."""
    return [CLAMPED, *rate_lines(layer)[:-1]]


def takes_all(network: Network, mode: Mode, who: str) -> None:
    """Refuse nothing."""


def no(field: str, reason: str, who: str = BRIAN) -> UnsupportedError:
    """Return the refusal of one field by an engine."""
    return UnsupportedError(f"{who}: {field}: {reason}")


@dataclass(frozen=True)
class Page:
    """One circuit."""

    fields: type[Circuit]
    """The section [circuit] of this kind."""
    about: str
    layer: Callable[[Circuit, Layer], Lines]
    """Equations of a layer."""
    synapses: Callable[[Circuit, Layer], Lines]
    """Equations of the synapses onto a layer."""
    unit_places: Callable[[Circuit, Layer, int], list[Place]] = nowhere
    """Where hardware acts among the units of a layer, in the order of action."""
    synapse_places: Callable[[Circuit, Layer, int], list[Place]] = nowhere
    """Where hardware acts among the synapses onto a layer."""
    rings: Callable[[Circuit, Layer], list[Ring]] = never
    sums_within: Callable[[Circuit, Layer], dict[str, str]] = alone
    interneurons: bool = False
    """Whether units have interneurons that predict the layer below them."""
    compartments: bool = False
    """Whether potentials reach the soma through conductances: weights are stored as θ/a_B."""
    divided: Mapping[str, str] = field(default_factory=dict)
    """Arrays that start as the network's θ divided by a constant of their layer."""
    drawn: Callable[[Circuit, Parameters, list[int]], dict[str, Tensor]] = nothing
    """Arrays of its own with their first values, in the layout of all parameters."""
    rest: Callable[[Circuit, Layer], dict[str, str]] = alone
    """The feed-forward pass: what the states of a layer are set to; x of all layers first, from
    the top down, then the others in this order."""
    residual: str = "err"
    """What is squared, halved and summed to the energy of a layer."""
    shown: tuple[str, ...] = ()
    """Values that are seen from outside, beside the states that move."""
    softmax: bool = False
    """Whether the rates of a layer may be a softmax of its states."""
    output_fires: bool = False
    """Whether the output layer has rates too; a target pulls it then, and never clamps it."""
    sites: frozenset[str] = frozenset()
    """Sites of its own, besides those that every circuit has."""
    phases: bool = False
    """Whether weights learn from the change between two phases, without a label and with it."""
    lacks: frozenset[str] = frozenset()
    """Sites that others have and this one does not."""
    own_tau_w: bool = False
    """Whether every weight may have a time constant of its own."""
    one_capacity: bool = False
    """Whether the cells of a circuit share one capacity, and so one time constant."""
    source: Callable[[Circuit, Layer], Lines] = clamped_source
    """Equations of an input that is always clamped."""
    events: Callable[[Circuit, Layer], list[Event]] = silent
    """What a layer sends by events."""
    instead: str = ""
    """The circuit to use where hardware acts, if it cannot act on this one."""
    potentials: bool = False
    """Whether units are potentials before f, with errors of unit variance."""
    refuse: Callable[[Network, Mode, str], None] = takes_all
    """Raise where a network or a mode has no equations here; the last argument is who asks."""

    @property
    def kind(self) -> str:
        """What the circuit is called."""
        return str(self.fields.model_fields["kind"].default)
