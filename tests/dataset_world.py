"""A registry, a data folder, a cache and a network that belong to one test."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest

from pcsim.datasets import registry

FACTS = {"title": "t", "licence": "l", "citation": "c", "homepage": "h", "classes": 10}
IDX_CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx_bytes(array: np.ndarray) -> bytes:
    kind = array.dtype.newbyteorder(">")
    head = bytes([0, 0, IDX_CODES[array.dtype.str[1:]], array.ndim])
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + sizes + array.astype(kind).tobytes(), mtime=0)


def tar_bytes(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def md5(content: bytes) -> str:
    return "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()


class World:
    """A registry, a data folder, a cache and a network of the test's own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data, self.cache = folder / "data", folder / "cache"
        self.data.mkdir()
        self.served: dict[str, bytes] = {}  # url -> content; nothing else can be reached
        self.asked: list[str] = []
        self.entries: dict[str, registry.Entry] = {}
        monkeypatch.setenv("PCSIM_DATA", str(self.data))
        monkeypatch.setattr(pooch, "os_cache", lambda project: self.cache)
        monkeypatch.setattr(pooch, "HTTPDownloader", self._downloader)
        monkeypatch.setattr(registry, "registry", lambda: self.entries)

    def _downloader(self, **_: Any) -> Callable[..., None]:
        def fetch(url: str, output_file: str, *_: Any, **__: Any) -> None:
            self.asked.append(url)
            content = self.served.get(url, b"half")
            Path(output_file).write_bytes(content)
            if url not in self.served:
                raise ConnectionError("no network")

        return fetch

    def add(self, name: str, **table: Any) -> None:
        self.entries[name] = registry.Entry(name=name, **{**FACTS, "kind": "images", **table})

    def put(self, path: str, content: bytes) -> Path:
        target = self.data / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return target

    def left_over(self) -> list[str]:
        return [p.name for p in self.cache.rglob("*") if p.is_file() and p.suffix != ".json"]


def add_mini(world: World) -> dict[str, bytes]:
    """Add an idx data set called 'mini', complete in the data folder; return the files by role."""
    rng = np.random.default_rng(0)
    content = {}
    for split, n in (("train", 20), ("test", 10)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        content[f"x_{split}"] = idx_bytes(images)
        content[f"y_{split}"] = idx_bytes((np.arange(n) % 10).astype(np.uint8))
    files = [
        {"path": f"m/{r}.gz", "role": r, "checksum": md5(c), "size": len(c), "urls": [f"u://{r}"]}
        for r, c in content.items()
    ]
    world.add("mini", format="idx", shape=(1, 28, 28), files=files)
    for role, raw in content.items():
        world.put(f"m/{role}.gz", raw)
    return content
