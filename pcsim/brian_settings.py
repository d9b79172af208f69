"""How Brian2 executes a run (`run.backend = "brian"`). Frozen data, no Brian2."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from pcsim.frozen import Frozen

Target = Literal["numpy", "cython", "standalone"]


class BrianSettings(Frozen):
    """The section `[brian]`: where the code runs, and how dense layers are multiplied."""

    target: Target = "numpy"
    """numpy starts at once; cython compiles each object, once; standalone builds a C++ program."""
    folder: str = ""
    """standalone: where it is built; empty: a temporary folder, removed at the end."""
    fused: bool | None = None
    """standalone: one pass over the weights for predictions, feedback and learning; not given: on,
    where the circuit is made of products. Off: Brian2's own synapses."""
    products: bool | None = None
    """numpy, cython: matrix products instead of synapses; not given: on, where the same holds."""

    @model_validator(mode="after")
    def _only_where_meant(self) -> BrianSettings:
        if self.products and self.target == "standalone":
            raise ValueError(
                "brian.products: a network operation is Python, which the C++ program of target "
                "'standalone' would leave out without a word; use brian.fused there"
            )
        if self.fused and self.target != "standalone":
            raise ValueError(
                f"brian.fused: is C++ for target 'standalone'; use brian.products with target "
                f"{self.target!r}"
            )
        if self.folder and self.target != "standalone":
            raise ValueError("brian.folder: only target 'standalone' builds a program in a folder")
        return self

    @property
    def dense(self) -> bool | None:
        """Whether layers are multiplied as whole arrays, on this target; None: where possible."""
        return self.fused if self.target == "standalone" else self.products
