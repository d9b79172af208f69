"""What this installation is, and whether its engines and devices agree: behind `pcsim doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from pcsim import __version__
from pcsim import config as configuration
from pcsim.errors import ConfigError, PcsimError, UnsupportedError
from pcsim.run import run

PACKAGES = {
    "numpy": "",
    "scipy": "",
    "torch": "",
    "sympy": "",
    "h5py": "",
    "matplotlib": "",
    "pydantic": "",
    "typer": "",
    "brian2": "brian",
    "xarray": "xarray",
    "pandas": "pandas",
    "pyarrow": "logs",
    "tensorboard": "logs",
    "distributed": "sweep",
    "sentencepiece": "language",
    "kornia": "vision",
}
"""Packages, and the extra that installs each (none: always installed)."""
EXACT, SINGLE = 1e-9, 1e-4
"""How far parameters may differ, of the largest: in double precision, and in single."""
CHIPS: dict[str, Any] = {
    "chips": 2,
    "pieces": {"noise": {"kind": "read_noise", "where": "weight", "sigma": 0.02}},
}
SMALL: dict[str, Any] = {
    "network": {"sizes": [64, 12, 10]},
    "data": {"name": "digits", "limit": 80},
    "learning": {"batch": 10, "epochs": 1, "alpha": 0.01},
    "schedule": {"gamma": 0.2, "T": 8},
}


@dataclass(frozen=True)
class Comparison:
    """One test: two ways to the same weights."""

    name: str
    difference: float | None
    """Of the final weights, of the largest of them; none: not tested."""
    limit: float
    seconds: float
    reason: str = ""
    """Why it was not tested."""

    @property
    def differs(self) -> bool:
        """Whether both ways were taken, and did not lead to the same place."""
        return self.difference is not None and not self.difference <= self.limit

    @property
    def words(self) -> str:
        """Return agrees, differs, or why there is no answer."""
        if self.difference is None:
            return f"not tested: {self.reason}"
        return f"{'DIFFERS' if self.differs else 'agrees'} ({self.difference:.1e})"


def facts() -> list[tuple[str, str, str]]:
    """Return (section, name, what was found)."""
    rows = [("pcsim", "version", __version__), ("pcsim", "python", platform.python_version())]
    rows.append(("pcsim", "platform", platform.platform()))
    for name, extra in PACKAGES.items():
        rows.append(("packages", name, _version(name, extra)))
    return [*rows, *_devices(), *_tools(), *_places()]


def _version(name: str, extra: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"missing; pip install 'pcsim[{extra}]'" if extra else "missing"


def _devices() -> Iterator[tuple[str, str, str]]:
    import torch

    yield "devices", "cores", str(os.cpu_count() or "unknown")
    yield "devices", "torch threads", str(torch.get_num_threads())
    yield "devices", "OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "not set")
    if not torch.cuda.is_available():
        built = "torch is built without it" if torch.version.cuda is None else "no device found"
        yield "devices", "cuda", f"none ({built})"
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        yield "devices", f"cuda:{index}", f"{about.name}, {about.total_memory / 1e9:.0f} GB"
    yield "devices", "mps", "available" if torch.backends.mps.is_available() else "none"


def _tools() -> Iterator[tuple[str, str, str]]:
    from pcsim.native.compiler import COMPILERS
    from pcsim.spice import ngspice

    asked = os.environ.get("CC")
    paths = [shutil.which(name) for name in ((asked,) if asked else COMPILERS)]
    compiler = next((path for path in paths if path), None)
    yield "tools", "C compiler", compiler or "none: run.engine = 'native' is not there"
    try:
        path = ngspice.program()
        yield "tools", "ngspice", f"{ngspice.version(path)} ({path})"
    except PcsimError as error:
        yield "tools", "ngspice", str(error)


def _places() -> Iterator[tuple[str, str, str]]:
    from pcsim.datasets.locate import cache_root, copies, data_root
    from pcsim.datasets.registry import entry, names

    try:
        root = str(data_root() or "not set")
    except PcsimError as error:
        yield "data", "PCSIM_DATA", str(error)
        return
    yield "data", "PCSIM_DATA", root
    cache = cache_root()
    yield "data", "cache", f"{cache} ({_size(cache)})"
    for name in names():
        files = entry(name).files
        there = sum(bool(copies(file)) for file in files)
        yield "data", name, "here" if there == len(files) else f"{there} of {len(files)} files"


def _size(folder: Path) -> str:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return f"{total / 1e6:.0f} MB"


def self_test(device: str = "cpu") -> Iterator[Comparison]:
    """Compare engines with each other, and a device with the CPU, on the digits."""
    torch_engine = {"backend": "continuous", "engine": "torch"}
    yield _compared("discrete iPC = Euler steps", {"backend": "discrete"}, torch_engine)
    native = {"backend": "continuous", "engine": "native"}
    yield _compared("compiled C = torch, noisy chips", torch_engine, native, hardware=CHIPS)
    one = {"data": {"name": "digits", "limit": 6}, "learning": SMALL["learning"] | {"batch": 1}}
    yield _compared("Brian2 = torch", torch_engine, {"backend": "brian"}, **one)
    if device == "cpu":
        reason = "no other device was asked for (--device cuda)"
        yield Comparison("device = CPU", None, EXACT, 0, reason)
        return
    for dtype, limit in (("float64", EXACT), ("float32", SINGLE)):
        for name, backend in (("discrete", "discrete"), ("continuous", "continuous")):
            here: dict[str, Any] = {"backend": backend, "dtype": dtype}
            here |= {"engine": "torch"} if backend == "continuous" else {}
            more = {"hardware": CHIPS} if backend == "continuous" else {}
            title = f"{device} = CPU, {name}, {dtype}"
            yield _compared(title, here, here | {"device": device}, limit, **more)


def _compared(
    name: str, one: dict[str, Any], other: dict[str, Any], limit: float = EXACT, **more: Any
) -> Comparison:
    start = time.perf_counter()
    try:
        first, second = (_weights(settings, more) for settings in (one, other))
    except (UnsupportedError, ConfigError) as reason:
        return Comparison(name, None, limit, time.perf_counter() - start, str(reason))
    with np.errstate(invalid="ignore"):
        difference = float(np.abs(first - second).max() / np.abs(first).max())
    return Comparison(name, difference, limit, time.perf_counter() - start)


def _weights(settings: dict[str, Any], more: dict[str, Any]) -> np.ndarray:
    data = SMALL | more | {"run": {"dtype": "float64"} | settings}
    return np.asarray(run(configuration.parse(data, "self-test"))["parameters"], dtype=float)
