"""`pcsim experiment NAME`: run one of the studies in `experiments/`.

A study is a folder there with a module `study`, which has

    main(out)                      measure, print, and write into the folder `out`

or, if it has a table `SCALES` (scale name → setting) with the scale `small` at least,

    main(out, scale)

It may have `figures(out)`, which makes tables and figures again from stored results: those in
`out`, else those that are kept beside the study. Nothing else lists it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import pcsim.experiments
from pcsim.errors import ConfigError, StoreError

DEFAULT_SCALE = "small"


def names() -> list[str]:
    """Return the names of the studies that exist, sorted."""
    (folder,) = pcsim.experiments.__path__
    return sorted(path.parent.name for path in Path(folder).glob("*/study.py"))


def experiment(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(names())}.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("out"),
    scale: Annotated[
        str | None,
        typer.Option(
            help="small (the default): minutes on 2 cores; decide: hours; paper: the published "
            "setting. Only for studies that have scales."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Measure this device against the CPU: cuda. Only for speed."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Some rows alone: compiled, discrete, continuous, brian, memory. Only for speed."
        ),
    ] = None,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures",
            help="Make tables and figures again, from results in --out or kept beside the study.",
        ),
    ] = False,
) -> None:
    """Run a study: prints its table, writes its result and figure."""
    from pcsim.store.lock import held

    if name not in names():
        raise ConfigError(f"experiment: there is no {name!r}; choose one of {', '.join(names())}")
    if out.exists() and not out.is_dir():
        raise StoreError(f"--out {out}: is a file; give a folder")
    study = import_module(f"pcsim.experiments.{name}.study")
    if figures:
        if scale or device or part:
            raise ConfigError("--figures: takes every stored result; only --out goes with it")
        if not hasattr(study, "figures"):
            raise ConfigError(f"--figures: {name!r} keeps no result to draw again; run it")
        study.figures(out)
        return
    scales = getattr(study, "SCALES", None)
    if scales is None and scale is not None:
        raise ConfigError(f"--scale {scale}: {name!r} has no scales; leave --scale out")
    by_device = getattr(study, "on_device", None)
    if device is not None and by_device is None:
        raise ConfigError(f"--device {device}: {name!r} runs on the CPU; leave --device out")
    parts = getattr(study, "PARTS", {})
    if part is not None and (part not in parts or device is not None):
        known = f"choose one of {', '.join(parts)}" if parts else f"{name!r} has none; leave it out"
        raise ConfigError(f"--part {part}: {known if device is None else 'not with --device'}")
    if device is not None and by_device is not None:
        with held(out / f"{name}_device"):
            by_device(out, device)
        return
    if part is not None:
        with held(out / f"{name}_{part}"):
            study.main(out, part)
        return
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
