"""Effects of hardware in Brian2's language: text in, text out, nothing is executed here.

The effects of one site become a block of statements that runs once per time step, as
`pcsim.substrate.transform` defines it: every effect updates its memory from the values before, then
changes the signal, which the next one sees.

    s = fired                                          the signal as it arrives
    new_link_held = …                                  memory, from the values before
    link_held = new_link_held
    s1 = link_held                                     the signal behind the first effect
    r = adc_lsb*clip(floor(s1/adc_lsb + 0.5), -adc_m, adc_m)    … and behind the last
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from pcsim.substrate import Chips, Effect, Site
from pcsim.substrate.counter import Law
from pcsim.substrate.effect import SITES
from pcsim.substrate.expression import Expression, Value, in_parts

CLOCK = {"dt": "(dt/second)", "t": "(t/second + t_before)"}
"""The simulated time of an effect is a number of seconds."""
BEFORE = "t_before : 1 (shared, constant)  # age of the chips when Brian2's clock was 0, seconds"
ARRAYS = {"": "", "feedback": "_back", "inter": "_inter"}
"""How variables of separate arrays are told apart."""
BRIAN_DRAWS = {"normal": "randn()", "uniform": "rand()"}


@dataclass(frozen=True)
class Place:
    """Where one site acts: on which signal, giving which variable, when."""

    site: Site
    layer: int
    """The index by which draws and noise of this place are told apart, as in the kernels."""
    signal: str
    result: str
    order: int
    when: str = "groups"
    symbols: Mapping[str, str] = field(default_factory=dict)
    """What the other symbols of the site are called here."""
    array: str = ""
    gate: str = ""
    """A variable that is 1 where the site is in use; memory stands still elsewhere."""

    def __post_init__(self) -> None:
        if self.site not in SITES:  # nothing would ever act there
            raise ValueError(f"Place.site: {self.site!r} is not in the table of sites")

    @property
    def key(self) -> str:
        """The name of this place in noise, memory and checkpoints."""
        return f"{self.site}{self.layer}{self.array}"


@dataclass(frozen=True)
class Noise:
    """A variable that is redrawn in every step; `key` names its stream of numbers."""

    variable: str
    key: str
    law: Law


@dataclass(frozen=True, eq=False)
class Block:
    """All effects at one place."""

    place: Place
    shape: tuple[int, ...]
    """(unit,) or (post, pre) of one chip."""
    code: str
    lines: tuple[str, ...]
    """Declarations of draws, noise and memory."""
    constants: dict[str, float]
    drawn: dict[str, Tensor]
    """What differs between devices or chips; fits (chip, 1, unit) or (chip, post, pre)."""
    noise: tuple[Noise, ...]
    memory: dict[str, str]
    """Variables by the names that memory has in a checkpoint."""
    slots: int = 1
    """How many slots the train of a sample has, where lines send pulses."""
    alike: frozenset[str] = frozenset()
    """Of what is drawn, what has no spread: one number for every device of every chip."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Noise and memory, which change in every step."""
        return (*(n.variable for n in self.noise), *self.memory.values())

    @property
    def brian_noise(self) -> str:
        """The statements by which Brian2 draws the noise by itself."""
        return "\n".join(f"{n.variable} = {BRIAN_DRAWS[n.law]}" for n in self.noise)

    def signal_shape(self, chips: int) -> tuple[int, ...]:
        """Return the shape of the signal of a population."""
        return (chips, *(self.shape if len(self.shape) == 2 else (1, *self.shape)))


def block(place: Place, chips: Chips, shape: tuple[int, ...]) -> Block:
    """Write the effects of a site as statements, with constants and draws of these chips."""
    code, lines, noise = [], [], []
    constants: dict[str, float] = {}
    drawn: dict[str, Tensor] = {}
    memory: dict[str, str] = {}
    alike: set[str] = set()
    effects, signal = chips.substrate.at(place.site), "s"
    prefixes = identifiers(chips.substrate.effects)
    code.append(f"s = {place.signal}")
    waits = f"since_{place.key}" if place.gate and any(e.uses("dt") for e in effects) else ""
    if waits:  # the time since the last application grows while the place is not in use
        code.append(f"{waits} = {waits} + {CLOCK['dt']}")
        lines.append(f"{waits} : 1")
        memory[f"since.{place.key}"] = waits
    for number, effect in enumerate(effects, start=1):
        fixed = chips.shared(effect, place.layer, shape, place.array)
        fixed = {name: value for name, value in fixed.items() if effect.uses(name)}
        own = _names(effect, prefixes[effect.name], place, fixed)
        names = own | ({"dt": waits} if waits else {})
        for name, value in fixed.items():
            if isinstance(value, Tensor):
                drawn[names[name]] = value
                alike |= {names[name]} if _alike(effect, chips, value) else set()
                lines.append(f"{names[name]} : 1 (constant)")
            else:
                constants[names[name]] = float(value)
        lines += [f"{names[name]} : 1" for name in (*effect.noise, *effect.memory)]
        lines += [BEFORE] if effect.uses("t") else []
        for name, law in effect.noise.items():
            noise.append(Noise(names[name], f"{effect.name}.{name}.{place.key}", law))
        memory |= {f"{effect.name}.{name}.{place.key}": names[name] for name in effect.memory}
        behind = place.result if number == len(effects) else f"s{number}"
        code += _statements(effect, names | {"s": signal}, behind, place.gate)
        signal = behind
    if waits:
        code.append(f"{waits} = (1 - {place.gate})*{waits}")
    return Block(
        place,
        shape,
        "\n".join(code),
        tuple(lines),
        constants,
        drawn,
        tuple(noise),
        memory,
        max((effect.slots for effect in effects), default=1),
        frozenset(alike),
    )


def _alike(effect: Effect, chips: Chips, value: Tensor) -> bool:
    """Whether devices have one value by what an effect is, not by the chance of these chips."""
    by_chance = chips.lists or any(draw.law == "bernoulli" for draw in effect.draws.values())
    return not by_chance and value[0].numel() > 1 and bool((value == value.flatten()[0]).all())


def identifiers(effects: Sequence[Effect]) -> dict[str, str]:
    """Return the prefix of each effect's variables, such that no two effects share a variable.

    It is the name with "_" for what an identifier may not contain; where variables would meet
    ("a-b" and "a_b", or x.y_z and x_y.z), the later effect gets a number behind its name.
    """
    prefixes: dict[str, str] = {}
    taken: set[str] = set()
    for effect in effects:
        base = re.sub(r"[^0-9A-Za-z_]", "_", effect.name).lstrip("_")
        base = base if base[:1].isalpha() else f"p{base}"
        candidates = (base, *(f"{base}_{number}" for number in range(2, len(effects) + 2)))
        prefix = next(c for c in candidates if not taken & _variables(effect, c))
        prefixes[effect.name] = prefix
        taken |= _variables(effect, prefix)
    return prefixes


def _variables(effect: Effect, prefix: str) -> set[str]:
    """Return all variables that an effect may have, in every array."""
    fixed = (*effect.constants, *effect.draws, *effect.parameters)
    own = [(name, "") for name in (*fixed, *effect.noise)]
    own += [(name, new) for name in effect.memory for new in ("", "new_")]
    return {f"{new}{prefix}{array}_{name}" for name, new in own for array in ARRAYS.values()}


def _names(effect: Effect, prefix: str, place: Place, fixed: Mapping[str, Value]) -> dict[str, str]:
    """Return what the symbols of an effect are called: its own ones begin with its prefix."""
    own = {
        name: f"{prefix}{ARRAYS[place.array]}_{name}"
        for name in (*fixed, *effect.noise, *effect.memory)
    }
    return CLOCK | dict(place.symbols) | own


def _statements(effect: Effect, names: Mapping[str, str], behind: str, gate: str) -> Sequence[str]:
    code: list[str] = []
    for name, memory in effect.memory.items():
        held = names[name]
        parts, value = in_parts(Expression(memory.update).renamed(names), f"part_{held}_")
        if gate:
            value = f"{gate}*({value}) + (1 - {gate})*{held}"
        code += [*parts, f"new_{held} = {value}"]
    code += [f"{names[name]} = new_{names[name]}" for name in effect.memory]
    parts, value = in_parts(Expression(effect.becomes).renamed(names), f"part_{behind}_")
    return [*code, *parts, f"{behind} = {value}"]
