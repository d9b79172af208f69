"""Finished parts of a result, kept in a folder beside it until the whole is stored."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pcsim import __version__
from pcsim.store.columns import is_result
from pcsim.store.files import remove_leftovers

_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.h5(\.checkpoint)?")


class Parts:
    """A folder of results under names that tell the part, its setting and the version of pcsim.

    So a part is taken up by its content: another setting has another file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, setting: str) -> Path:
        """Return the file of a part; `setting` changes whenever the numbers would."""
        content = f"{__version__} {name} {setting}"
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return self.folder / f"{slug}-{sha256(content.encode()).hexdigest()[:16]}.h5"

    def forget(self) -> None:
        """Remove all parts once the result is safe, and the folder if it is empty."""
        for path in self.folder.glob("*"):
            if _NAME.fullmatch(path.name) and is_result(path):
                path.unlink()
                remove_leftovers(path)
                remove_leftovers(path.with_name(f"{path.name}.checkpoint"))
        with suppress(OSError):  # there is no folder, or somebody else keeps something in it
            self.folder.rmdir()
