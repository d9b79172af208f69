"""Write the cells of a run as Verilog-A, with the parameters of one instance of each."""

from __future__ import annotations

from pathlib import Path

from pcsim.config import Config
from pcsim.errors import UnsupportedError
from pcsim.runner.chip_run import ChipRun
from pcsim.spice.elements import GM
from pcsim.spice.engine import Spice
from pcsim.spice.folder.export import refuse_full
from pcsim.spice.verilog import modules, name_of

FILE = "cells.va"


def export(config: Config, out: Path) -> list[str]:
    """Write the folder, and return the names of the modules."""
    refuse_full(out)
    if config.spice.macro:
        raise UnsupportedError(
            "spice verilog-a: spice.macro: modules have ideal transconductors, which a simulator "
            "replaces by cells of its own; leave it out"
        )
    engine = ChipRun(config).engine
    assert isinstance(engine, Spice)
    netlist = engine.netlist()
    cells = list(netlist.cells.values())
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_text(modules(cells, netlist.gm), encoding="utf-8")
    rows = [
        f"| `{cell.name}` | {cell.about} | {', '.join(map(name_of, cell.pins))} | "
        f"{', '.join(map(name_of, cell.params)) or '–'} |"
        for cell in cells
    ]
    text = README.format(kind=config.circuit.kind, rows="\n".join(rows), gm=GM)
    (out / "README.md").write_text(text, encoding="utf-8")
    return [cell.name for cell in cells]


README = """\
# Cells of the circuit `{kind}` in Verilog-A

| module | what | pins | parameters, of each instance |
|---|---|---|---|
{rows}

1 V is 1 unit of the network. `c_X` is the capacitor of the state `X`, gm times its time constant,
`X_start` its voltage at the start, `gm` = {gm:g} S in all modules. A layer needs a `neuron` and an
`error` for each unit, an array a `synapse` and a `learning` for each weight; pins of the same name
in cells of one unit (`x`, `err`, `mu`, …) are one node, `NAME_post` and `NAME_pre` of a synapse are
the nodes of the unit it ends on and of that it comes from.
"""
