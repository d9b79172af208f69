"""What every non-ideality has: a kind, fields with units, and the effects it lowers to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from hw_models.order import Place
from pcsim.fields.allowed import unit_of
from pcsim.frozen import Frozen
from pcsim.quantity import Misplaced
from pcsim.substrate import Effect

Fields = Mapping[str, Any]
Neighbour = Annotated[str, Field(min_length=1)] | None


class Piece(Frozen):
    """One non-ideality as a person describes it.

    Every field's documentation states its unit, what it is relative to, and whether it is a
    device-to-device spread (drawn once), cycle-to-cycle (at each write), per read (in each time
    step), or a density per √Hz.
    """

    kind: str
    EXAMPLE: ClassVar[Fields]
    """Fields of an example, as a file would have them (without the kind)."""
    PLACE: ClassVar[Place] = "device"
    """Where it stands on the way of a signal, which is the order in which pieces act."""
    before: Neighbour = None
    """Name of another piece directly before which it acts, in place of its usual place."""
    after: Neighbour = None
    """Name of another piece directly behind which it acts, in place of its usual place."""

    @model_validator(mode="before")
    @classmethod
    def _units_where_they_hold(cls, data: Any) -> Any:
        """Mark a text with a unit where another field says that the number has none."""
        if not isinstance(data, Mapping):
            return data
        given = {name: field.default for name, field in cls.model_fields.items()} | dict(data)
        units = {name: unit_of(field) for name, field in cls.model_fields.items()}
        wrong = {
            name: Misplaced(data[name])
            for name, unit in units.items()
            if unit and unit.misplaced(data.get(name), given)
        }
        return {**data, **wrong} if wrong else data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the example; `kind` tells pieces apart, so that it must be there."""
        made = handler.resolve_ref_schema(handler(schema))
        made["required"] = ["kind", *(n for n in made.get("required", []) if n != "kind")]
        made["examples"] = [{"kind": cls.model_fields["kind"].default, **cls.EXAMPLE}]
        return made

    REQUESTS: ClassVar[Literal["adds", "gathers", "changes"]] = "changes"
    """What it does to requests to write, for devices behind it that are written by every sample of
    a batch: it adds one of its own, adds all up to a single one, or changes each."""

    @model_validator(mode="after")
    def _one_neighbour(self) -> Self:
        if self.before and self.after:
            raise ValueError(
                f"before = {self.before!r} and after = {self.after!r}: give one of them"
            )
        return self

    @property
    def beside(self) -> str | None:
        """The piece beside which it was asked to act."""
        return self.before or self.after

    @abstractmethod
    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return what it does; effect names begin with `name`."""

    def by_samples(self, name: str) -> tuple[Effect, ...]:
        """Return what it does where the samples of a batch are shown side by side."""
        return self.effects(name)

    @property
    def requests(self) -> Literal["adds", "gathers", "changes"]:
        """What this piece does to requests to write."""
        return self.REQUESTS

    @property
    def each_sample(self) -> bool:
        """Whether samples side by side write one by one."""
        return False
