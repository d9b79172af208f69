"""The rows of a check on disk: each is kept when it is finished, and taken up by its content."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from pcsim import checkpoint, store
from pcsim.config import Config
from pcsim.run import run
from pcsim.store import Result
from pcsim.store.files import remove_leftovers

_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.h5(\.checkpoint)?")


def rows_folder(result: Path) -> Path:
    """Return where the rows of a check are, beside its result, until that is stored."""
    return result.with_name(result.name + ".rows")


class KeptRows:
    """A folder of finished rows, under names that tell row, configuration and version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, setting: Config) -> Path:
        """Return the file of a row; another configuration has another one."""
        content = f"{metadata.version('pcsim')} {setting.to_json()}"
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return self.folder / f"{slug}-{sha256(content.encode()).hexdigest()[:16]}.h5"

    def run(self, name: str, setting: Config) -> Result:
        """Return a row that is there already, or run it; interrupted, it goes on by itself."""
        path = self.path(name, setting)
        return store.load(path) if path.exists() else run(setting, path)

    def forget(self) -> None:
        """Remove all rows, once the result of the check is safe, and the folder if it is empty."""
        for path in self.folder.glob("*"):
            if _NAME.fullmatch(path.name) and store.is_result(path):
                path.unlink()
                remove_leftovers(path)
                remove_leftovers(checkpoint.path_for(path))
        with suppress(OSError):  # there is no folder, or somebody else keeps something in it
            self.folder.rmdir()
