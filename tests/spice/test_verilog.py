"""Modules of Verilog-A give what torch's gradients of the energy give."""

import re

import numpy as np
import pytest
import torch

from pcsim.circuit import Circuit
from pcsim.errors import UnsupportedError
from pcsim.native.formula import evaluate, names
from pcsim.spice import ngspice
from pcsim.spice.elements import GM
from pcsim.spice.engine import Spice
from pcsim.spice.folder.verilog import export
from pcsim.spice.verilog import RESERVED, module, modules, name_of, output
from tests.spice.test_export import settings
from tests.spice.test_spice_engine import CIRCUITS, made, made_on

pytestmark = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())
CELLS = ("neuron1", "error1", "synapse0", "learning0")


def compiled(cell, folder):
    """Return the functions of a module by the names of what they give, of voltages by pin."""
    verilogae = pytest.importorskip("verilogae", reason="verilogae is not installed")
    path = folder / f"{cell.name}.va"
    path.write_text(modules([cell], GM))
    model = verilogae.load(str(path))

    def call(name, volts, **params):
        function = model.functions[name]
        wanted = {branch: volts[branch.removeprefix("br_")] for branch in function.voltages}
        given = {"gm": GM} | params
        known = {name: value for name, value in given.items() if name in function.parameters}
        return np.asarray(function.eval(voltages=wanted, temperature=300.0, **known))

    return call


def test_currents_are_gradients_of_the_energy(tmp_path):
    """E = ½|x0 − W0 tanh(x1)|² + ½|x1 − W1 x2|²: neuron and learning cell give −gm dE."""
    cells = made(Spice, Circuit(tau_w=20.0), dt=0.1).netlist().cells
    call = {name: compiled(cells[name], tmp_path) for name in cells}
    random = np.random.default_rng(0)
    x0, x1, x2 = (torch.tensor(random.normal(size=n), requires_grad=True) for n in (2, 4, 3))
    w0 = torch.tensor(random.normal(size=(2, 4)), requires_grad=True)
    w1 = torch.tensor(random.normal(size=(4, 3)), requires_grad=True)
    energy = ((x0 - w0 @ x1.tanh()) ** 2).sum() / 2 + ((x1 - w1 @ x2) ** 2).sum() / 2
    energy.backward()

    def of(tensor):
        return tensor.detach().numpy()

    rates = call["neuron1"]("value_r", {"x": of(x1)})
    slopes = call["neuron1"]("value_slope", {"r": rates})

    def sums(cell, weights, pre):
        volts = {"w": of(weights), "r_pre": np.broadcast_to(pre, weights.shape)}
        flat = {name: value.flatten() for name, value in volts.items()}
        return call[cell]("current_mu_post", flat).reshape(weights.shape).sum(1) / GM

    def errors(cell, x, mu):
        return call[cell]("value_err", {"x": of(x), "mu": mu, "b": np.zeros(len(mu))})

    err0 = errors("error0", x0, sums("synapse0", w0, rates))
    err1 = errors("error1", x1, sums("synapse1", w1, of(x2)))
    tall = np.repeat(err0[:, None], 4, 1).flatten()
    back = call["synapse0"]("current_fb_pre", {"w": of(w0).flatten(), "err_post": tall})
    feedback = back.reshape(2, 4).sum(0) / GM
    soma = call["neuron1"]("current_x", {"slope": slopes, "fb": feedback, "err": err1})
    np.testing.assert_allclose(soma, -GM * of(x1.grad), rtol=1e-12)
    taught = {"err_post": tall, "r_pre": np.tile(rates, 2)}
    moved = call["learning0"]("current_w", taught).reshape(2, 4)
    np.testing.assert_allclose(moved, -GM * of(w0.grad), rtol=1e-12)


@pytest.mark.parametrize("name", [*CIRCUITS, "hardware"])
def test_every_cell_compiles_to_its_expressions(name, tmp_path):
    """All circuits and effects: VerilogAE gives the values that the expressions have."""
    if name == "hardware":
        engine = made_on(Spice, Circuit(kind="dendritic", tau_w=20.0), 0.1)
    else:
        engine = made(Spice, Circuit(**{"tau_w": 20.0, **CIRCUITS[name]}), dt=0.1)
    random = np.random.default_rng(1)
    count = 0
    for cell in engine.netlist().cells.values():
        call = compiled(cell, tmp_path)
        for element in cell.elements:
            if element.kind not in ("current", "value"):
                continue
            symbols = names(element.node)
            values = {s: float(random.uniform(0.2, 1.5)) for s in symbols}
            volts = {name_of(s[2:-1]): np.array([v]) for s, v in values.items() if s[0] == "v"}
            params = {name_of(s[1:-1]): v for s, v in values.items() if s[0] == "{"}
            if not volts:
                continue
            found = call(output(element), volts, **params)
            scale = GM if element.kind == "current" else 1.0
            assert float(found.ravel()[0]) == pytest.approx(
                scale * evaluate(element.node, values), rel=1e-9
            )
            count += 1
    assert count >= 5


def test_modules_declare_what_they_use():
    """Every node and parameter of an expression is declared, and no word is reserved."""
    engine = made_on(Spice, Circuit(kind="dendritic", tau_w=20.0), 0.1)
    for cell in engine.netlist().cells.values():
        text = module(cell, GM)
        pins = re.search(r"electrical (.*);", text)[1].split(", ")
        assert set(re.findall(r"V\((\w+)\)", text)) <= set(pins)
        declared = set(re.findall(r"parameter real (\w+)", text))
        assert not (declared | set(pins)) & RESERVED
        assert "{" not in text
        assert "gm" in declared
    assert name_of("from") == "from_"


def test_currents_flow_into_their_nodes():
    """I(n) leaves the node: a source into it is negative, the conductance of a sum is not."""
    cell = made(Spice, Circuit(tau_w=20.0), dt=0.1).netlist().cells["neuron1"]
    text = module(cell, GM)
    assert "I(x) <+ -current_x;" in text
    assert "I(fb) <+ gm*V(fb);" in text
    assert "V(r) <+ value_r;" in text
    assert "else I(x) <+ c_x*ddt(V(x));" in text


def test_a_folder_has_modules_and_says_what_they_are(tmp_path):
    names_of_cells = export(settings(), tmp_path / "va")
    text = (tmp_path / "va" / "cells.va").read_text()
    assert set(CELLS) <= set(names_of_cells)
    assert all(f"module {name}(" in text for name in names_of_cells)
    assert "`learning0`" in (tmp_path / "va" / "README.md").read_text()
    with pytest.raises(UnsupportedError, match=r"spice.macro: modules have ideal"):
        export(settings(spice={"macro": {"offset": 0.1}}), tmp_path / "other")
