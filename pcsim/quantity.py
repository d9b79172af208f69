"""Quantities as a person writes them: "1 %", "20 us", "5 mV"; the one place that reads them.

    NUMBER [space] UNIT        the value of "20 us" is the number that 20e-6 is, to the last bit

A field that takes units says so by an annotation, `Unit("s")`. In a file its value is then a plain
number (in that unit), or a text with a unit of the same dimension. A text without a unit is
refused, and so is a unit that does not fit. Units of the network (a weight, a signal) have no
symbol: such fields take plain numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

PREFIXES = {
    "f": -15,
    "p": -12,
    "n": -9,
    "u": -6,
    "µ": -6,
    "μ": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
}
"""Powers of ten; u and both code points of µ are micro."""
_NUMBER = r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([^\d\s.+-]\S*)\s*")


def _prefixed(symbol: str, prefixes: str = "") -> dict[str, Decimal]:
    powers = {p: n for p, n in PREFIXES.items() if not p or p in prefixes}
    return {f"{prefix}{symbol}": Decimal(1).scaleb(power) for prefix, power in powers.items()}


SYMBOLS: dict[str, dict[str, Decimal]] = {
    "s": _prefixed("s", "fpnuµμmk") | {"min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)},
    "V": _prefixed("V", "npuµμmk"),
    "F": _prefixed("F", "fpnuµμm"),
    "K": _prefixed("K", "m"),
    "fraction": {"%": Decimal("0.01"), "‰": Decimal("0.001"), "ppm": Decimal("1e-6")},
}
"""What may stand behind a number, by the unit of a field, with its factor."""
WORDS = {
    "s": ("seconds", "20 us"),
    "V": ("volts", "5 mV"),
    "F": ("farads", "20 fF"),
    "K": ("kelvins", "300 K"),
    "fraction": ("a fraction", "1 %"),
}
"""The unit in words, and an example with a symbol."""


@dataclass(frozen=True)
class Misplaced:
    """A text with a unit, in a field whose unit is another one there."""

    text: str

    def __repr__(self) -> str:
        return repr(self.text)


@dataclass(frozen=True)
class Unit:
    """The unit of a field: one of `SYMBOLS`, or words such as "network units" (numbers only).

    With `when`, a field and a value, the unit is this one only where that field has that value;
    elsewhere it is `otherwise`, in words, and a text is refused.
    """

    name: str
    when: tuple[str, Any] | None = None
    otherwise: str = ""

    @property
    def symbols(self) -> dict[str, Decimal]:
        """Symbols that may stand behind a number, with their factors."""
        return SYMBOLS.get(self.name, {})

    @property
    def condition(self) -> str:
        """Where this unit holds, as a file would say it; nothing if it always does."""
        if self.when is None:
            return ""
        field, value = self.when
        return f"{field} = " + (f'"{value}"' if isinstance(value, str) else str(value).lower())

    @property
    def words(self) -> str:
        """The unit as part of a sentence."""
        name = WORDS[self.name][0] if self.name in WORDS else self.name
        return f"{self.otherwise}, or {name} with {self.condition}" if self.when else name

    @property
    def example(self) -> str:
        """A quantity with a symbol, or nothing where only numbers are allowed."""
        return f'"{WORDS[self.name][1]}"' if self.name in WORDS else ""

    def read(self, value: Any) -> Any:
        """Return a text as the number it means; other values as they are."""
        if isinstance(value, Misplaced):
            problem = f"a text with a unit needs {self.condition}"
            raise PydanticCustomError("quantity", "{problem}", {"problem": problem})
        if not isinstance(value, str):
            return value
        match = _QUANTITY.fullmatch(value)
        if match is None:
            problem = "a text must be a number with a unit"
            raise PydanticCustomError("quantity", "{problem}", {"problem": problem})
        number, symbol = match.groups()
        if symbol not in self.symbols:
            known = ", ".join(self.symbols)
            problem = f"one of {known}" if known else "a unit that has a symbol"
            raise PydanticCustomError(
                "quantity", "{problem}", {"problem": f"the unit must be {problem}, not {symbol}"}
            )
        return float(Decimal(number) * self.symbols[symbol])

    def misplaced(self, value: Any, others: Mapping[str, Any]) -> bool:
        """Whether a value has a symbol although the field it depends on says otherwise."""
        if self.when is None or not isinstance(value, str):
            return False
        field, needed = self.when
        return bool(others.get(field) != needed)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Read texts before the field is validated as a number."""
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return a number, or a text of the right form."""
        number = handler(schema)
        if not self.symbols:
            return number
        symbols = "|".join(re.escape(symbol) for symbol in self.symbols)
        pattern = rf"^\s*{_NUMBER}\s*(?:{symbols})\s*$"
        return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


def shown(value: float, unit: Unit | None) -> str:
    """Return a number with a prefix that suits it: 0.01 as "1 %", 2e-5 as "20 us"."""
    name = unit.name if unit else ""
    if name == "fraction":
        return f"{100 * value:g} %"
    if name not in SYMBOLS:
        return f"{value:g}"
    for prefix, power in sorted(PREFIXES.items(), key=lambda item: -item[1]):
        symbol = f"{prefix}{name}"
        if symbol in SYMBOLS[name] and prefix not in ("µ", "μ", "k") and abs(value) >= 10.0**power:
            return f"{value / 10.0**power:g} {symbol}"
    return f"{value:g} {name}"


def duration(seconds: float) -> str:
    """Return a time as a person says it: 3600 as "1 h"."""
    for symbol in ("d", "h", "min"):
        count = seconds / float(SYMBOLS["s"][symbol])
        if count >= 1:
            return f"{count:.3g} {symbol}"
    return shown(seconds, Unit("s"))
