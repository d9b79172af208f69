"""Cells of a netlist as modules of Verilog-A, from the same elements and expressions.

    capacitor   I(x) <+ c·ddt(V(x))         current     I(x) <+ −gm·expression
    value       V(r) <+ expression          sum         I(mu) <+ gm·V(mu)

Voltages are units of the network about ground, as in the netlist. What a cell gives is a variable
`current_NODE` or `value_NODE` with the attribute `retrieve`, by which VerilogAE evaluates it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pcsim.native.formula import names
from pcsim.spice.elements import Cell, Element
from pcsim.spice.text import in_verilog

HEAD = '`include "disciplines.vams"\n'
RESERVED = frozenset(
    """
    above abs absdelay absdelta abstol access acos acosh ac_stim aliasparam always analog
    analysis and asin asinh assert assign atan atan2 atanh automatic begin branch buf case
    casex casez ceil cell config connect connectmodule connectrules continuous cos cosh cross
    ddt ddt_nature ddx deassign default define defparam disable discipline discrete domain
    driver_update edge else end endcase endconfig endconnectrules enddiscipline endfunction
    endgenerate endmodule endnature endparamset endprimitive endspecify endtable endtask event
    exclude exp final_step flicker_noise floor flow for force forever fork from function
    generate genvar ground highz0 highz1 hypot idt idt_nature idtmod if ifnone incdir include
    inf initial initial_step inout input instance integer join laplace_nd laplace_np
    laplace_zd laplace_zp large last_crossing liblist library limexp ln localparam log
    macromodule max medium merged min module nand nature negedge net_resolution nmos
    noise_table noise_table_log nor noshowcancelled not notif0 notif1 or output parameter
    paramset pmos posedge potential pow primitive pull0 pull1 pulldown pullup rcmos real
    realtime reg release repeat resolveto rnmos rpmos rtran rtranif0 rtranif1 scalared sin
    sinh slew small specify specparam split sqrt string strong0 strong1 supply0 supply1 table
    tan tanh task time timer tran tranif0 tranif1 transition tri tri0 tri1 triand trior trireg
    units unsigned use uwire vectored wait wand weak0 weak1 while white_noise wire wor wreal
    xnor xor zi_nd zi_np zi_zd zi_zp
    """.split()  # noqa: SIM905
)
"""Keywords of Verilog-AMS."""


def name_of(symbol: str) -> str:
    """Return an identifier that is no word of the language."""
    return f"{symbol}_" if symbol in RESERVED else symbol


def module(cell: Cell, gm: float, before: float = 0.0) -> str:
    """Return one cell; `gm` and the age of the chip are defaults of its parameters."""
    used = {n[1:-1] for element in cell.elements for n in names(element.node) if n[0] == "{"}
    nodes = ", ".join(map(name_of, cell.pins))
    inner = sorted({element.name for element in cell.elements} - set(cell.pins))
    given = {"gm": gm} | ({"t_before": before} if "t_before" in used else {})
    given |= dict.fromkeys(cell.params, 0.0)
    given |= {name: 1.0 for name in cell.params if name.startswith("c_")}
    wires = [*map(name_of, cell.pins), *map(name_of, inner)]
    lines = [f"// {cell.about}", f"module {cell.name}({nodes});", f"  inout {nodes};"]
    lines.append(f"  electrical {', '.join(wires)};")
    lines += [f"  parameter real {name_of(name)} = {value!r};" for name, value in given.items()]
    shown = [e for e in cell.elements if e.kind in ("current", "value")]
    lines += [f"  (* retrieve *) real {output(element)};" for element in shown]
    lines += [
        "  analog begin",
        *(f"    {line}" for e in cell.elements for line in _contribution(e)),
    ]
    return "\n".join((*lines, "  end", "endmodule", ""))


def modules(cells: Iterable[Cell], gm: float, before: float = 0.0) -> str:
    """Return a file of cells."""
    return "\n".join((HEAD, *(module(cell, gm, before) for cell in cells)))


def output(element: Element) -> str:
    """Return the variable that holds what an element gives."""
    return f"{element.kind}_{element.name}"


def _contribution(element: Element) -> list[str]:
    name = name_of(element.name)
    text = in_verilog(element.node, _symbol)
    if element.kind == "current":
        return [f"{output(element)} = gm*{text};", f"I({name}) <+ -{output(element)};"]
    if element.kind == "value":
        return [f"{output(element)} = {text};", f"V({name}) <+ {output(element)};"]
    if element.kind == "sum":
        return [f"I({name}) <+ gm*V({name});"]
    start, capacitance = f"{element.name}_start", f"c_{element.name}"
    return [
        f'if (analysis("ic")) V({name}) <+ {start};',
        f"else I({name}) <+ {capacitance}*ddt(V({name}));",
    ]


def _symbol(symbol: str) -> str:
    if symbol == "time":
        return "$abstime"
    if symbol.startswith("v("):
        return f"V({name_of(symbol[2:-1])})"
    return name_of(symbol.strip("{}"))
