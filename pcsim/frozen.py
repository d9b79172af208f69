"""What all descriptions share: immutable pydantic models, strict about names, and number ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pcsim.errors import FieldError
from pcsim.quantity import Unit

SMALLEST, LARGEST = 1e-30, 1e30
"""What single precision can hold, with room for products of a few numbers."""


def _in_range(value: float) -> float:
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise ValueError(f"must lie between {SMALLEST:g} and {LARGEST:g}")
    return value


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_in_range)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_in_range)]
Whole = Annotated[int, Field(ge=0, lt=2**31)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
Seconds = Annotated[Positive, Unit("s")]
Duration = Annotated[NotNegative, Unit("s")]
"""Seconds, 0 included."""


if TYPE_CHECKING:  # a subclass would hide from editors and mypy what arguments there are
    from pydantic._internal._model_construction import ModelMetaclass as _Sentences
else:

    class _Sentences(type(BaseModel)):
        """A constructor refuses as a file does: one sentence that names each field at fault."""

        def __call__(cls, *args, **fields):
            try:
                return super().__call__(*args, **fields)
            except ValidationError as error:
                from pcsim.fields.explain import explanations

                problems = "; ".join(explanations(error, cls))
                raise FieldError(f"{cls.__name__}: {problems}") from None


class Frozen(BaseModel, metaclass=_Sentences):
    """Immutable, strict about names and types: neither "32" nor true is a number.

    The text behind a field is its description, in the JSON schema too.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Show what was chosen: fields that have their default are left out."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if field.is_required() or value != field.get_default(call_default_factory=True):
                yield name, value


def dotted(data: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested sections as dotted names."""
    names: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            names |= dotted(value, f"{above}{name}.")
        else:
            names[f"{above}{name}"] = value
    return names


AS_STORED = {"as_stored": True}
"""Validation context of a complete description: defaults stand there too, also where unused."""
