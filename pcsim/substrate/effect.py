"""An effect: one elementwise change of a signal at one site, with its draws, noise and memory.

    s ← becomes(s, other symbols of the site, constants, draws, noise, memory, dt, t)

Non-idealities of every kind are lowered to effects; a backend knows effects and no devices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.frozen import Frozen
from pcsim.substrate.expression import Expression, unknown

AGGREGATES: dict[str, str] = {
    "power": "v**2",
    "weighted_power": "abs(w)*v**2",
    "squared_power": "w**2*v**2",
    "load": "abs(w)",
    "current": "abs(w)*abs(v)",
    "tapered": "w*v*(1 - (1 - position)**2)",
    "peak": "abs(v)",
}
"""Sums over a row (v the signal that enters, w the weights as read, position j/n of the column,
j = 1 … n): what the noise and the losses of a whole row add up to. `peak` is the largest of its
terms instead of their sum."""
DOWN = "down"
"""At `write`: what the samples of a batch ask for downwards, Σ_q max(−s_q, 0); upwards it is
s + down. Opposing requests do not cancel in it, as they do not on a chip."""
LARGEST = "peak"
"""The one aggregate that is a maximum."""


@dataclass(frozen=True)
class Row:
    """One place on a chip at which hardware may act on a signal."""

    about: str
    fabricated: bool = False
    """Evaluated once, when a chip is made."""
    weights: bool = False
    """The signal is an array of weights; at all other sites it is units."""
    once: bool = False
    """Nobody asks for it twice in one time step; the others have shown a feed-forward pass."""
    common: bool = False
    """Every network on an array has it, with or without dynamics."""
    symbols: tuple[str, ...] = ()
    """Symbols besides s, dt and t: the state x, the stored weight w, and the time constant of
    plasticity tau_w (dt/α of a discrete rule), with which s = e·r·dt/τ_w, summed over samples; the
    rate dt/τ_w of a write of pulse trains."""


SITES: dict[str, Row] = {
    "tau_x": Row("time constant of a soma, set once per chip", fabricated=True),
    "tau_err": Row("time constant of an error unit, set once per chip", fabricated=True),
    "tau_apical": Row("time constant of an apical dendrite, set once per chip", fabricated=True),
    "tau_inter": Row("time constant of an interneuron, set once per chip", fabricated=True),
    "tau_w": Row(
        "time constant of plasticity, set once per chip and synapse",
        fabricated=True,
        weights=True,
    ),
    "g_basal": Row("conductance of the basal compartment, set once per chip", fabricated=True),
    "g_apical": Row("conductance of the apical compartment, set once per chip", fabricated=True),
    "input": Row("a clamped input as the chip receives it", common=True),
    "membrane": Row("the potential x as the transfer function and its slope see it", common=True),
    "rate": Row("r = f(x) as it is sent into the array and to plasticity", common=True),
    "weight": Row(
        "a stored weight as the array presents it, in both directions",
        weights=True,
        common=True,
    ),
    "product": Row("the result W r + b of the array", common=True, symbols=tuple(AGGREGATES)),
    "error": Row("the error as soma, feedback and plasticity see it", once=True, common=True),
    "feedback": Row(
        "the result Wᵀ δ of the array read backwards",
        common=True,
        symbols=tuple(AGGREGATES),
    ),
    "velocity": Row("dx/dt of a soma", once=True, symbols=("x",)),
    "row_pulses": Row(
        "the error at an output line as the pulses that plasticity sees, slot by slot",
        once=True,
        common=True,
        symbols=("rate",),
    ),
    "column_pulses": Row(
        "the rate at an input line as the pulses that plasticity sees, slot by slot",
        once=True,
        common=True,
        symbols=("rate",),
    ),
    "write": Row(
        "the change of a stored weight that plasticity asks for in one step",
        weights=True,
        once=True,
        common=True,
        symbols=("w", "tau_w", DOWN),
    ),
    "output": Row("the read-out of the last layer", common=True),
}
"""The one table of sites."""
if TYPE_CHECKING:
    Site = str
else:
    Site = Literal[tuple(SITES)]
TRAINS: tuple[Site, Site] = ("row_pulses", "column_pulses")
"""Sites of the pulse trains by which rows and columns meet: what a device is asked for is the sum,
over samples and slots, of a row's pulse times a column's."""
ABOUT: dict[str, str] = {name: row.about for name, row in SITES.items()}
FABRICATED: tuple[Site, ...] = tuple(name for name, row in SITES.items() if row.fabricated)
WEIGHT_SITES: tuple[Site, ...] = tuple(name for name, row in SITES.items() if row.weights)
ONCE: tuple[Site, ...] = tuple(name for name, row in SITES.items() if row.once)
COMMON_SITES = frozenset(name for name, row in SITES.items() if row.common)
SYMBOLS: dict[str, tuple[str, ...]] = {n: row.symbols for n, row in SITES.items() if row.symbols}


class Draw(Frozen):
    """A fixed pattern: drawn once per chip, the same chip in any population."""

    law: Literal["normal", "uniform", "bernoulli"] = "normal"
    """Standard normal, uniform in [0, 1), or 1 with `probability` and else 0."""
    per: Literal["chip", "element", "row", "column", "layer"] = "element"
    """One per chip, per unit or weight, per row (output line), per column (input line), or per
    layer. Rows and columns exist at weight sites only."""
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Chance of a 1 in a bernoulli draw."""


class Memory(Frozen):
    """A variable that belongs to an element and is updated once per step, before it is used.

    `start` may use `start_xi` (standard normal) and `start_u` (uniform), drawn once.
    """

    start: str = "0"
    """Value at the start, once per element."""
    update: str
    """Next value, from the one before."""


class Effect(Frozen):
    """One change of one signal."""

    name: str
    """Prefix of its variables; unique within a substrate."""
    site: Site
    becomes: str
    """The new signal. Symbols: s, those of the site, constants, draws, noise, memory, dt, t."""
    constants: Mapping[str, float] = {}
    draws: Mapping[str, Draw] = {}
    parameters: Mapping[str, str] = {}
    """Values of each device, computed once from constants, draws and the parameters before."""
    noise: Mapping[str, Literal["normal", "uniform"]] = {}
    """Redrawn for every element in every time step."""
    memory: Mapping[str, Memory] = {}
    slots: Annotated[int, Field(ge=1)] = 1
    """How many slots the train of a sample has, at the sites of pulse trains."""
    drawn_as: str = ""
    """The effect whose draws it shares, where both belong to the same devices; else its own."""
    about: str = ""
    """What it means, with units and references."""
    optional: bool = False
    """Whether a circuit without this site may leave it out; else it must refuse."""
    programming: bool = False
    """Whether its draws belong to one programming of the weights, and another draws them anew."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        known = {
            "s",
            "dt",
            "t",
            *SYMBOLS.get(self.site, ()),
            *self.constants,
            *self.draws,
            *self.parameters,
            *self.noise,
            *self.memory,
        }
        fixed = {*self.constants, *self.draws}
        for name, text in self.parameters.items():
            if missing := unknown(text, fixed):
                raise ValueError(
                    f"{self.name}.{name}: {', '.join(missing)} is neither constant nor drawn before"
                )
            fixed.add(name)
        for name, memory in self.memory.items():
            if missing := unknown(memory.start, fixed | {"dt", "start_xi", "start_u"}):
                raise ValueError(
                    f"{self.name}.{name}: {', '.join(missing)} is not known when memory starts"
                )
        texts = {"becomes": self.becomes} | {k: m.update for k, m in self.memory.items()}
        for where, text in texts.items():
            if missing := unknown(text, known):
                raise ValueError(
                    f"{self.name}.{where}: {', '.join(missing)} not known at site {self.site!r}"
                )
        if self.site in TRAINS and (self.memory or self.draws):
            raise ValueError(
                f"{self.name}: site {self.site!r} is that of single pulses: no memory, no draws"
            )
        if self.fabricated and (self.noise or self.memory):
            raise ValueError(f"{self.name}: site {self.site!r} is set once and takes no noise")
        lines = any(draw.per in ("row", "column") for draw in self.draws.values())
        if lines and self.site not in WEIGHT_SITES:
            raise ValueError(f"{self.name}: rows and columns exist at {', '.join(WEIGHT_SITES)}")
        return self

    @property
    def fabricated(self) -> bool:
        """Whether it is evaluated once per chip."""
        return self.site in FABRICATED

    @property
    def structure(self) -> tuple[object, ...]:
        """All but the values of the constants and probabilities: what must agree to be stacked."""
        draws = tuple((n, d.law, d.per) for n, d in self.draws.items())
        memory = tuple((n, m.start, m.update) for n, m in self.memory.items())
        texts = (self.becomes, *self.parameters.items(), *self.noise.items())
        return (
            self.name,
            self.site,
            tuple(self.constants),
            draws,
            memory,
            *texts,
            self.drawn_as,
            self.slots,
        )

    def uses(self, symbol: str) -> bool:
        """Whether a symbol occurs."""
        return symbol in _symbols((self.becomes, *(m.update for m in self.memory.values())))


@lru_cache(maxsize=1024)
def _symbols(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the symbols of some expressions; asked for in every time step, read once."""
    return frozenset().union(*(Expression(text).names for text in texts))


class Substrate(Frozen):
    """Effects in the order in which they act; none is ideal hardware."""

    effects: Annotated[tuple[Effect, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _unique(self) -> Self:
        names = [effect.name for effect in self.effects]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"effects need different names; {', '.join(twice)} occurs twice")
        return self

    @cached_property
    def sites(self) -> frozenset[str]:
        """Sites at which something happens."""
        return frozenset(effect.site for effect in self.effects)

    def require(self, available: Collection[str], who: str) -> None:
        """Refuse, by name, an effect at a site that `who` does not have."""
        for effect in self.effects:
            if effect.site not in available and not effect.optional:
                raise UnsupportedError(
                    f"hardware {effect.name!r}: {who} has no site {effect.site!r} "
                    f"({ABOUT[effect.site]}); leave it out, or mark a mismatch optional"
                )

    def only(self, available: Collection[str]) -> Substrate:
        """Return the effects at these sites alone."""
        return Substrate(effects=tuple(e for e in self.effects if e.site in available))

    def at(self, site: Site) -> tuple[Effect, ...]:
        """Return the effects of one site in order."""
        return tuple(effect for effect in self.effects if effect.site == site)


def stacked(
    substrates: Sequence[Substrate],
) -> tuple[Substrate, dict[tuple[str, str], list[float]]]:
    """Join substrates that differ in constants alone: one structure, and lists of values.

    Returns the first substrate, and for every (effect, constant) that differs its values.
    """
    first = substrates[0]
    for other in substrates[1:]:
        if [e.structure for e in other.effects] != [e.structure for e in first.effects]:
            raise ConfigError(
                "hardware: these substrates differ in more than numbers, so they cannot be "
                "simulated side by side"
            )
    lists: dict[tuple[str, str], list[float]] = {}
    for position, effect in enumerate(first.effects):
        for name in effect.constants:
            values = [s.effects[position].constants[name] for s in substrates]
            if len(set(values)) > 1:
                lists[effect.name, name] = values
        for name, draw in effect.draws.items():
            values = [s.effects[position].draws[name].probability for s in substrates]
            if len(set(values)) > 1:
                lists[effect.name, name] = values
            assert draw.law == effect.draws[name].law
    return first, lists
