"""A first look at an HDF5 file without a checksum, by a process that may hang or crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pcsim.errors import StoreError

SECONDS = 20.0
"""Time to open a file, and …"""
BYTES_PER_SECOND = 20e6
"""… how fast a sound one is read at least."""
_READ_ALL = """
import sys, h5py
def read(name, item):
    list(item.attrs.items())
    if isinstance(item, h5py.Dataset):
        item[()]
with h5py.File(sys.argv[1], "r") as file:
    list(file.attrs.items())
    file.visititems(read)
"""


def probe(path: Path) -> None:
    """Refuse a file that HDF5 does not survive; what it merely complains of is left to the reader.

    Damage can make HDF5 go in circles or end its process. So a file that cannot be compared with
    a checksum is read by another process first, within a time limit.
    """
    limit = SECONDS + path.stat().st_size / BYTES_PER_SECOND
    command = [sys.executable, "-I", "-c", _READ_ALL, str(path)]
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        reason = f"HDF5 does not come to an end with it in {limit:.0f} s"
    else:
        if done.returncode >= 0:
            return
        reason = "HDF5 crashes when it reads it"
    raise StoreError(
        f"{path}: is damaged or cut short ({reason}); restore a copy or run again"
    ) from None
