"""Memory that this process may still take: the least that machine, container and limits leave."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch


def available_memory(device: str = "cpu") -> float | None:
    """Return bytes, or None where nobody says."""
    if torch.device(device).type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    bounds = [_of_machine(), _of_limits(), *_of_groups()]
    known = [bound for bound in bounds if bound is not None]
    return max(0.0, min(known)) if known else None


def _of_machine() -> float | None:
    text = _text(Path("/proc/meminfo"))
    if match := re.search(r"MemAvailable:\s+(\d+) kB", text):
        return 1024.0 * int(match[1])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_limits() -> float | None:
    """Return what `ulimit -v` leaves of addresses."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    used = re.search(r"VmSize:\s+(\d+) kB", _text(Path("/proc/self/status")))
    return float(limit - (1024 * int(used[1]) if used else 0))


def _of_groups(
    root: Path = Path("/sys/fs/cgroup"), me: Path = Path("/proc/self/cgroup")
) -> list[float]:
    """Return what each control group above this process leaves (versions 1 and 2)."""
    limits = []
    for line in _text(me).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "memory" if controllers else root
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if controllers
            else ("memory.max", "memory.current")
        )
        folder = base / path.lstrip("/")
        for group in (folder, *folder.parents):
            limit, used = (_number(group / name) for name in names)
            if limit is not None and used is not None and limit < 1 << 60:
                cache = re.search(
                    r"^(?:total_)?inactive_file (\d+)", _text(group / "memory.stat"), re.M
                )
                limits.append(float(limit - used + (int(cache[1]) if cache else 0)))
            if group == base:
                break
    return limits


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
