"""The registry of data sets: typed, read-only, from `data/registry.toml`.

The table says what a data set is, who may use it, and which bytes are the published ones. Nothing
here touches the network or the user's files.
"""

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pcsim.errors import DataError


def _inside_root(path: str) -> str:
    """Reject a path that could leave the data root."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or not pure.parts:
        raise ValueError(f"'{path}' is not a plain path below the data root")
    return path


RelativePath = Annotated[str, AfterValidator(_inside_root)]
Checksum = Annotated[
    str, Field(pattern=r"^(md5:[0-9a-f]{32}|sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64})$")
]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataFile(_Table):
    """One published file."""

    path: RelativePath
    role: str
    urls: tuple[str, ...] = ()
    checksum: Checksum | None = None
    size: int | None = None
    archive: RelativePath | None = None
    embedded: bool = False


class StandIn(_Table):
    """A local file or folder that may replace the published one, only if the user says so."""

    path: RelativePath
    role: str


class Entry(_Table):
    """One data set."""

    name: str
    title: str
    kind: Literal["images", "text"]
    format: Literal["digits_csv", "idx", "cifar_bin", "svhn_mat", "tiny_imagenet", "text"]
    licence: str
    citation: str
    homepage: str
    files: tuple[DataFile, ...]
    classes: int = 0
    shape: tuple[int, ...] = ()
    parts: Mapping[str, str] = Field(default_factory=dict)
    stand_ins: tuple[StandIn, ...] = ()

    def with_role(self, role: str) -> list[DataFile]:
        """Return the files the loader uses for `role`, in the order of the registry."""
        return [file for file in self.files if file.role == role]

    def archive_of(self, file: DataFile) -> DataFile | None:
        """Return the archive that holds `file`, if it comes in one."""
        return next((other for other in self.files if other.path == file.archive), None)

    def wanted(self) -> list[DataFile]:
        """Return the files of a complete copy; an archive that only carries others is none."""
        carriers = {file.archive for file in self.files}
        return [file for file in self.files if file.path not in carriers]


def embedded_folder() -> Path:
    """Return the folder of the data that come with pcsim (installed wheel, or source tree)."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "data", package.parent / "data"):
        if (folder / "registry.toml").is_file():
            return folder
    raise DataError(
        f"the table of data sets 'registry.toml' was found neither in '{package / 'data'}' nor in "
        f"'{package.parent / 'data'}'; install pcsim again."
    )


def read_registry(path: Path) -> dict[str, Entry]:
    """Read and check a registry file."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: Entry(name=name, **table) for name, table in tables.items()}
    except (OSError, ValueError, TypeError) as error:
        reason = str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else str(error)
        raise DataError(
            f"the table of data sets '{path}' cannot be used: {reason}; install pcsim again."
        ) from error


@cache
def registry() -> Mapping[str, Entry]:
    """Return all data sets by name."""
    return read_registry(embedded_folder() / "registry.toml")


def names() -> list[str]:
    """Return the names of the data sets, in the order of the registry."""
    return list(registry())


def entry(name: str) -> Entry:
    """Return the data set called `name`, or say which names there are."""
    known = registry()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower().replace("-", "_"), list(known), n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    raise DataError(f"there is no data set '{name}'{hint}; the names are {', '.join(known)}.")
