"""C source → shared library: compiled by the system's compiler, cached by what went into it.

The name of a cached library is a hash of the source, the compiler's version, the flags and the
processor's features, so that nothing stale is ever loaded. Nothing is compiled at import.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pooch

FLAGS = (
    "-std=c11",
    "-O3",
    "-march=native",
    "-ffp-contract=off",  # a·b + c rounds twice, everywhere alike: vector and scalar code agree
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-fPIC",
    "-shared",
)
SHORT = 2000
"""Time steps of a run below which a compilation takes longer than it saves."""
PROBE = "int pcsim_probe;\n"
"""The code of least length: whether there is a compiler."""
COMPILERS = ("cc", "gcc", "clang")
SECONDS = 300.0
"""A compiler that takes longer is given up; on a busy machine two seconds become a minute."""


class CacheWarning(UserWarning):
    """Compiled code cannot be kept."""


@dataclass(frozen=True)
class Library:
    """A loaded library, or the reason why there is none."""

    code: ctypes.CDLL | None
    reason: str = ""


@cache
def library(source: str) -> Library:
    """Return the library of a C source, compiled now if it never was."""
    compiler = _compiler()
    if compiler is None:
        return Library(None, f"no C compiler found (tried $CC, {', '.join(COMPILERS)})")
    try:
        version = _run([compiler, "--version"])
        parts = (source, compiler, version, " ".join(_flags()), _processor())
        name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32] + ".so"
        path = _folder() / name
        if not path.exists():
            _compile(compiler, source, path)
        return Library(ctypes.CDLL(str(path)))
    except (OSError, subprocess.SubprocessError) as error:
        return Library(None, f"{compiler}: {_sentence(error)}")


def _flags() -> list[str]:
    """Return all flags: those of `$PCSIM_CFLAGS` behind our own, such as sanitizers."""
    return [*FLAGS, *os.environ.get("PCSIM_CFLAGS", "").split()]


def _compiler() -> str | None:
    asked = os.environ.get("CC")
    found = (shutil.which(name) for name in ((asked,) if asked else COMPILERS))
    return next((path for path in found if path), None)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    return done.stdout


def _sentence(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr).strip().splitlines()
        return f"failed ({lines[0] if lines else f'exit code {error.returncode}'})"
    return str(error)


def _processor() -> str:
    """Return what `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    keys = ("model name", "flags", "Features", "CPU part")
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(keys)))


def _folder() -> Path:
    """Return a folder that belongs to this user alone: code is loaded from it."""
    folder = Path(pooch.os_cache("pcsim")) / "native"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK) and _private(folder):
            return folder
    except OSError:
        pass
    return _temporary_folder(folder)


def _private(folder: Path) -> bool:
    about = folder.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
    return mine and not about.st_mode & others


@cache
def _temporary_folder(instead_of: Path) -> Path:
    """Return a folder for this process, where the cache cannot be written."""
    warnings.warn(
        f"engine native: {instead_of} cannot be written, or others can write there: code is "
        f"compiled again in every process",
        CacheWarning,
        stacklevel=2,
    )
    folder = tempfile.mkdtemp(prefix="pcsim-native-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _compile(compiler: str, source: str, path: Path) -> None:
    """Compile beside the target and rename: another process sees all of it or nothing."""
    handle, partial = tempfile.mkstemp(suffix=".partial", dir=path.parent)
    os.close(handle)
    text = Path(partial + ".c")
    try:
        text.write_text(source, encoding="utf-8")
        _run([compiler, *_flags(), str(text), "-o", partial, "-lm"])
        os.replace(partial, path)
    finally:
        text.unlink(missing_ok=True)
        Path(partial).unlink(missing_ok=True)
