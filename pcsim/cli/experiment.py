"""`pcsim experiment NAME`: run one of the studies in `experiments/`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from pcsim.errors import ConfigError, StoreError
from pcsim.store.lock import held

NAMES = (
    "devices",
    "held_out_devices",
    "presets",
    "speed",
    "spiking",
    "stability",
    "streaming",
    "sweep_overhead",
    "generative_efficiency",
    "fullbatch_efficiency",
    "complexity",
    "update_time",
    "cnn_classification",
    "masked_lm",
    "conditional_lm",
    "mlp_classification",
    "hyperparameter_convergence",
    "weight_transport",
    "alexnet",
    "width",
    "robustness",
)
"""The studies that exist: modules `experiments.NAME`.

A module with a table `SCALES` (scale name → setting) has a function `main(out, scale)`; one
without has `main(out)`.
"""
DEFAULT_SCALE = "small"


def experiment(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("out"),
    scale: Annotated[
        str | None,
        typer.Option(
            help="small (the default): minutes on 2 cores; paper: the published setting. "
            "Only for studies that have scales."
        ),
    ] = None,
) -> None:
    """Run a study: prints its table, writes its result and figure."""
    if name not in NAMES:
        raise ConfigError(f"experiment: there is no {name!r}; choose one of {', '.join(NAMES)}")
    study = import_module(f"experiments.{name}")
    scales = getattr(study, "SCALES", None)
    if scales is None and scale is not None:
        raise ConfigError(f"--scale {scale}: {name!r} has no scales; leave --scale out")
    if out.exists() and not out.is_dir():
        raise StoreError(f"--out {out}: is a file; give a folder")
    if scales is None:
        with held(out / name):
            study.main(out)
        return
    chosen = scale or DEFAULT_SCALE
    if chosen not in scales:
        raise ConfigError(
            f"--scale {chosen}: {name!r} has no such scale; choose one of {', '.join(scales)}"
        )
    with held(out / f"{name}_{chosen}"):
        study.main(out, chosen)
