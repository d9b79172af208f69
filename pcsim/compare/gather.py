"""From what the user gave (files, configurations, results) to contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pcsim import config as configuration
from pcsim import store
from pcsim.compare.contender import Contender
from pcsim.compare.external import PLAIN, from_hdf5, from_log
from pcsim.compare.logs import Reading, is_log
from pcsim.compare.stored import from_result
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.run import run
from pcsim.status import Report
from pcsim.store import Result

Source = Path | str | Config | Result


def gather(
    runs: Sequence[Source] | Mapping[str, Source],
    at: Mapping[str, float],
    out: Path | None,
    report: Report | None,
    reading: Reading = PLAIN,
) -> list[Contender]:
    """Return the contenders in the order given; names are those of the files unless given.

    With `out`, the file of the comparison, configurations keep their results in its folder.
    """
    if isinstance(runs, Mapping):
        named = list(runs.items())
    else:
        named = list(zip(names(runs), runs, strict=True))
    if len(named) < 2:
        raise ConfigError(f"compare: needs at least two runs, got {len(named)}")
    folder = out.parent if out else None
    for _, source in named:
        if out and isinstance(source, Path | str) and _kept_in(Path(source), out.parent) == out:
            raise ConfigError(
                f"{out}: would be the result of {source} as well as the comparison; "
                "choose another name with --out"
            )
    return [_contender(name, source, at, folder, report, reading) for name, source in named]


def _kept_in(source: Path, folder: Path) -> Path:
    """Return where the result of a configuration is kept; any other file is its own result."""
    return folder / f"{source.stem}.h5" if source.suffix == ".toml" else source


def names(runs: Sequence[Source]) -> list[str]:
    """Return a name for each run, all different."""
    names: list[str] = []
    for run_number, source in enumerate(runs, 1):
        if isinstance(source, Path | str):
            name = Path(source).stem
            if name in names:
                name = f"{Path(source).parent.name}/{name}"
        else:
            name = f"run {run_number}"
        while name in names:
            name = f"{name} ({run_number})"
        names.append(name)
    return names


def _contender(
    name: str,
    source: Source,
    at: Mapping[str, float],
    folder: Path | None,
    report: Report | None,
    reading: Reading,
) -> Contender:
    if isinstance(source, Result):
        return from_result(name, name, source, at)
    if isinstance(source, Config):
        return from_result(name, name, run(source, report=report), at)
    path = Path(source)
    if path.suffix == ".toml":
        return from_result(name, str(path), _run_or_reuse(path, folder, report), at)
    if is_log(path):
        return from_log(name, path, reading)
    if path.is_file() and not store.is_result(path):
        return from_hdf5(name, path)
    return from_result(name, str(path), store.load(path), at)


def _run_or_reuse(path: Path, folder: Path | None, report: Report | None) -> Result:
    """Run a configuration; with a folder, keep the result there, and use it the next time."""
    config = configuration.load(path)
    if folder is None:
        return run(config, report=report)
    out = _kept_in(path, folder)
    if out.exists():
        result = store.load(out)
        if result.attrs.get("config") == config.to_json():
            return result
        raise ConfigError(
            f"{out}: was made by another configuration than {path}; "
            f"move it away, or choose another folder with --out"
        )
    return run(config, out, report=report)
