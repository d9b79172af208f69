"""What a target cannot do, by name and reason."""

from __future__ import annotations

from pathlib import Path

from pcsim.circuits.page import no
from pcsim.circuits.plan import Plan
from pcsim.errors import ConfigError, UnsupportedError


def refuse_target(
    plan: Plan, kind: str, target: str, dense: bool, samples: int, folder: str | Path | None
) -> None:
    """Refuse what this target cannot do with a population; `kind` is that of its circuit."""
    if plan.senders and target == "standalone":
        raise no(
            f"circuit.kind {kind!r} with brian.target 'standalone'",
            "the program is called again and again, and no test says that events survive it; "
            "use target 'numpy' or 'cython'",
        )
    if samples > 1 and not dense:
        raise UnsupportedError(
            f"backend brian: learning.batch {samples}: a synapse has one weight and sees one "
            f"sample at a time (batch 1); matrix products (brian.products, brian.fused) share "
            f"weights"
        )
    if samples > 1 and target == "standalone":
        raise UnsupportedError(
            f"backend brian: learning.batch {samples}: the standalone program sees one sample "
            f"at a time; targets 'numpy' and 'cython' share weights by matrix products"
        )
    if folder is not None and target != "standalone":
        raise ConfigError("brian.folder: only target 'standalone' builds a program in a folder")
