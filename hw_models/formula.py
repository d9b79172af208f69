"""An effect of one's own, written in a configuration file: the text is what runs.

[hardware.pieces.fatigue]
kind = "formula"
site = "rate"
becomes = "s*(1 - depth*tired)"
constants = { depth = 0.4, tau = 2.0 }
memory = { tired = { update = "tired + (abs(s) - tired)*(1 - exp(-dt/tau))" } }
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import torch
from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema

from hw_models.formula_text import check_names, check_text
from hw_models.numbers import Finite
from hw_models.piece import Fields, Piece
from pcsim.errors import ConfigError
from pcsim.substrate import Draw, Effect, Memory, Site
from pcsim.substrate.effect import SYMBOLS, TRAINS
from pcsim.substrate.expression import Expression, Value


def _draw(given: object) -> object:
    """Return the table that a law alone stands for: `g = "normal"` is one draw per element."""
    return {"law": given} if isinstance(given, str) else given


class _LawAlone:
    """In the JSON schema: a law in place of a table of a draw."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        laws = list(get_args(Draw.model_fields["law"].annotation))
        return {"anyOf": [handler(schema), {"type": "string", "enum": laws}]}


class Formula(Piece):
    """An effect of one's own: s ← becomes, with constants, draws, noise and memory.

    Texts have + − * / **, int(a > b) (1 or 0), exp, log, sqrt, tanh, floor, ceil, abs, sign and
    clip(value, low, high). `dt` is the time since the effect last acted, `t` the age of the chip,
    both in seconds: what happens in time should be written with dt, so that a shorter time step
    changes nothing.
    """

    kind: Literal["formula"] = "formula"
    EXAMPLE: ClassVar[Fields] = {
        "site": "rate",
        "becomes": "s*(1 - depth*tired)",
        "constants": {"depth": 0.4, "tau": 2.0},
        "memory": {"tired": {"update": "tired + (abs(s) - tired)*(1 - exp(-dt/tau))"}},
    }
    site: Site
    """Which signal it changes."""
    becomes: str
    """The new signal, from the signal s, the other symbols of the site (x at `velocity`; at `write`
    w, tau_w and `down`, what the samples of a batch ask for downwards; sums over a line at
    `product` and `feedback`), dt, t, and all names below."""
    constants: Mapping[str, Finite] = {}
    """Numbers by name."""
    draws: Mapping[str, Annotated[Draw, BeforeValidator(_draw), _LawAlone()]] = {}
    """Fixed patterns, drawn once per chip: a law (normal, uniform, bernoulli), or a table with
    `law`, `per` (element, row, column, layer, chip) and `probability` (of a bernoulli draw)."""
    parameters: Mapping[str, str] = {}
    """Values of each device, computed once from constants, draws and the parameters before."""
    noise: Mapping[str, Literal["normal", "uniform"]] = {}
    """Redrawn in every time step: standard normal, or uniform in (0, 1). White noise of a density σ
    per √Hz is σ*xi/sqrt(dt) at `velocity`."""
    memory: Mapping[str, Memory] = {}
    """Variables of each element: `update` gives the next value from the one before, once per time
    step and before `becomes` uses it; `start` (0) may use start_xi (normal) and start_u."""
    about: Annotated[str, Field(max_length=200)] = ""
    """What it is, for `pcsim hardware show`."""
    optional: bool = False
    """Whether a circuit that has no such site may leave it out (else it refuses)."""

    @property
    def requests(self) -> Literal["adds", "gathers", "changes"]:
        """What it does to requests to write: one that passes them on only looks."""
        return "adds" if self.becomes.strip() == "s" else "changes"

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if self.site in TRAINS:
            raise ValueError(
                f"site {self.site!r} is that of pulse trains: use a piece of kind pulse_train with "
                f'lines = "shared"'
            )
        of_site = SYMBOLS.get(self.site, ())
        fixed = [*self.constants, *self.draws, *self.parameters]
        check_names((*fixed, *self.noise, *self.memory), of_site)
        known = {*self.constants, *self.draws}
        for name, text in self.parameters.items():
            check_text(f"parameters.{name}", text, known, "before it (constants and draws are)")
            known.add(name)
        for name, memory in self.memory.items():
            where = f"memory.{name}.start"
            check_text(where, memory.start, known | {"dt", "start_xi", "start_u"}, "at the start")
        known |= {"s", "dt", "t", *of_site, *self.noise, *self.memory}
        at_site = f"at site {self.site!r}"
        for name, memory in self.memory.items():
            check_text(f"memory.{name}.update", memory.update, known, at_site)
        check_text("becomes", self.becomes, known, at_site)
        for name, draw in self.draws.items():
            if draw.law != "bernoulli" and draw.probability != 1:
                raise ValueError(
                    f"draws.{name}.probability: belongs to the law bernoulli, not {draw.law}"
                )
        self._refuse_unused()
        self._try_out()
        try:
            self.effects("formula")
        except ConfigError as error:
            raise ValueError(str(error).rpartition("formula: ")[2]) from None
        return self

    def _refuse_unused(self) -> None:
        texts = [self.becomes, *self.parameters.values()]
        texts += [text for m in self.memory.values() for text in (m.start, m.update)]
        used = frozenset[str]().union(*(Expression(text.strip()).names for text in texts))
        declared = (*self.constants, *self.draws, *self.parameters, *self.noise, *self.memory)
        if idle := [name for name in declared if name not in used]:
            raise ValueError(f"{', '.join(idle)} is declared and never used; leave it out")

    def _try_out(self) -> None:
        """Refuse what cannot be computed, or is never finite at usual signals."""
        usual = torch.tensor([-1.3, -0.1, 0.1, 0.7, 1.9])
        half = torch.full_like(usual, 0.5)
        values: dict[str, Value] = dict(self.constants) | dict.fromkeys(self.draws, half)
        symbols = ("t", *SYMBOLS.get(self.site, ()), *self.noise, *self.memory)
        now: dict[str, Value] = {"s": usual, **dict.fromkeys(symbols, half)}
        now |= {"start_xi": half, "start_u": half}
        where = ""
        try:
            for name, text in self.parameters.items():
                where = f"parameters.{name}"
                values[name] = Expression(text.strip()).bind(values)({})
            for name, memory in self.memory.items():
                for part, text in (("start", memory.start), ("update", memory.update)):
                    where = f"memory.{name}.{part}"
                    Expression(text.strip()).bind(values | {"dt": 0.1})(now)
            where = "becomes"
            result = Expression(self.becomes.strip()).bind(values | {"dt": 0.1})(now)
        except (ArithmeticError, ValueError, TypeError, RuntimeError) as error:
            raise ValueError(
                f"{where}: cannot be computed with these constants ({error})"
            ) from None
        if not bool(torch.isfinite(torch.as_tensor(result)).any()):
            raise ValueError("becomes: is finite at no usual signal; look for a division by zero")

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the effect as it was written."""
        return (
            Effect(
                name=name,
                site=self.site,
                becomes=self.becomes.strip(),
                constants=self.constants,
                draws=self.draws,
                parameters={n: text.strip() for n, text in self.parameters.items()},
                noise=self.noise,
                memory={
                    n: Memory(start=m.start.strip(), update=m.update.strip())
                    for n, m in self.memory.items()
                },
                about=self.about or "a formula of one's own",
                optional=self.optional,
            ),
        )
