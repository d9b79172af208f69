"""Where a result came from: versions, commit, command line, time and machine type."""

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from pcsim import __version__

UNKNOWN = "unknown"
_REQUIRED = ("numpy", "torch", "scipy", "h5py")
_OPTIONAL = ("brian2", "distributed")
_GIT_SECONDS = 10.0
# Inside a git hook these variables point at the hook's repository instead of ours.
_GIT_REDIRECTS = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"})


def provenance() -> dict[str, str]:
    """Return what is needed to make a result again, as text; never raises.

    Keys: `version_<package>` (of brian2 only if it is installed), `version_python`, `commit`
    (ending in "+changes" if the source differs from it), `command_line`, `time_utc` (ISO 8601),
    `platform`, `cpu_count`. What cannot be found out is "unknown".
    """
    versions = {"pcsim": __version__} | {name: _version(name) for name in _REQUIRED}
    versions |= {name: found for name in _OPTIONAL if (found := _version(name)) != UNKNOWN}
    versions["python"] = platform.python_version()
    return {
        **{f"version_{name}": version for name, version in versions.items()},
        "commit": _own_commit(),
        "command_line": _command_line(),
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "cpu_count": str(os.cpu_count() or UNKNOWN),
    }


@cache
def _version(package: str) -> str:
    # Metadata only: importing torch or brian2 just to ask their version would take seconds.
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return UNKNOWN


@cache
def _own_commit() -> str:
    """Return the commit of what this process runs: asked once, when the source was just loaded."""
    return _commit(Path(__file__).resolve())


def _commit(source: Path) -> str:
    """Return the commit of the tree that holds `source`, "unknown" if git does not track it.

    An installed copy may lie inside somebody else's repository, whose commit says nothing.
    """
    folder = source.parent
    if _git(folder, "ls-files", "--error-unmatch", "--", source.name) is None:
        return UNKNOWN
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    # New files matter when they can be imported; results lying about elsewhere do not.
    added = _git(folder, "ls-files", "--others", "--exclude-standard", "--", ".")
    if not commit or changed is None or added is None:
        return UNKNOWN
    return f"{commit}+changes" if changed or added else commit


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {k: v for k, v in os.environ.items() if k not in _GIT_REDIRECTS}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    return done.stdout.decode("utf-8", "backslashreplace").strip()


def _command_line() -> str:
    """Return the command line, with the program's folder removed."""
    program, *arguments = getattr(sys, "argv", None) or [""]
    path = Path(program)
    # `python -m pcsim` names the package's __main__.py, which alone would say nothing.
    name = path.parent.name if path.name == "__main__.py" else path.name
    text = shlex.join([name, *arguments]) if name or arguments else ""
    # File names need not be valid Unicode, but text in a result file has to be.
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode("utf-8")
