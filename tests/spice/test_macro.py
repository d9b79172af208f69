"""Transconductors with limits: closed forms of the cell, and of the network made of them."""

import re
from dataclasses import replace
from math import exp, pi, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from pcsim import Network
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.config import parse
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.spice import macro as macro_cells
from pcsim.spice import ngspice
from pcsim.spice.deck import deck
from pcsim.spice.elements import NoiseSource
from pcsim.spice.engine import Spice, refuse_law
from pcsim.spice_settings import Macro
from pcsim.substrate import Chips, Effect, Seeded, Substrate
from tests.spice.test_spice_engine import NETWORK, apart, made, shown

pytestmark = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())
CIRCUIT = Circuit(tau_w=20.0)
JOINED = 0.97
"""Variance behind a low-pass of ten steps, of numbers that are joined by lines, over white."""


def bench(macro: Macro, *lines: str, dt: float = 0.1) -> ngspice.Plot:
    """Run the cells of a macro-model in a netlist of a few lines."""
    text = ["* bench", f".param gm={macro.gm!r}", *macro_cells.cells(macro, dt), *lines, ".end", ""]
    with TemporaryDirectory() as folder:
        return ngspice.run("\n".join(text), Path(folder)).plot


def test_without_limits_it_is_the_ideal_netlist():
    ideal = shown(made(Spice, CIRCUIT, dt=0.1, reltol=1e-5))
    assert max(apart(shown(made(Spice, CIRCUIT, dt=0.1, reltol=1e-5, macro=Macro())), ideal)) < 1e-4
    small = Macro(gm=1e-9)
    assert max(apart(shown(made(Spice, CIRCUIT, dt=0.1, reltol=1e-5, macro=small)), ideal)) < 1e-4


def test_a_transconductor_has_gain_offset_and_output_resistance():
    """Open circuit: V = gm·r_out·(V_in + os)."""
    macro = Macro(gm=2e-6, output_resistance=3e6)
    end = ["V1 a 0 0", "X1 a out transconductor os=0.01", ".dc V1 -0.5 0.5 0.25"]
    plot = bench(macro, *end)
    expected = 2e-6 * 3e6 * (np.linspace(-0.5, 0.5, 5) + 0.01)
    np.testing.assert_allclose(plot["v(out)"], expected, rtol=1e-6)


def test_its_bandwidth_is_where_the_gain_falls_by_a_root_of_two():
    macro = Macro(bandwidth=100.0)
    ac = ["V1 a 0 AC 1", "X1 a out transconductor", "R1 out 0 1meg", ".ac lin 3 50 150"]
    gain = abs(bench(macro, *ac)["v(out)"])
    np.testing.assert_allclose(gain, 1 / np.sqrt(1 + (np.array([50, 100, 150]) / 100) ** 2), 1e-6)


def test_a_driver_has_one_limit_for_both_signs():
    """I = gm·clip(V_in, ±most) into a conductance gm."""
    swept = ["V1 a 0 0", "X1 a out driver most=0.3", "R1 out 0 1meg", ".dc V1 -0.5 0.5 0.25"]
    found = bench(Macro(slew_rate=1.0), *swept)["v(out)"]
    np.testing.assert_allclose(found, [-0.3, -0.25, 0, 0.25, 0.3], atol=1e-9)


def test_somas_slew_at_the_limit():
    """dx/dt = slew_rate until the rest is small; the same as hardware that clips velocities."""
    limit = Effect(name="slow", site="velocity", becomes="clip(s, -0.4, 0.4)")
    substrate, noise = Substrate(effects=(limit,)), Seeded(0, [0])
    hardware = Chips(substrate, [0], seed=0, dt=0.1, noise=noise, dtype=torch.float64)
    options = {"dt": 0.1, "reltol": 1e-5}
    clipped = shown(made(Spice, CIRCUIT, chips=1, **options))
    params_on = made_with(hardware, **options)
    expected = shown(params_on)
    found = shown(made(Spice, CIRCUIT, macro=Macro(slew_rate=0.4), **options))
    assert max(apart(found, expected)) < 1e-3
    assert max(apart(clipped, expected)) > 0.01


def made_with(hardware, **options):
    params = initial_parameters(NETWORK, seeds=range(1), dtype=torch.float64)
    return Spice(NETWORK, params, CIRCUIT, chips=hardware, **options)


def test_weights_leak_with_their_lifetime():
    """Nothing to learn: w(t) = w(0) e^{-t/lifetime}; without a leak they stay."""
    network = Network.mlp([3, 4, 2], "tanh")
    weights, biases = {}, {}
    for lifetime in (0.0, 5.0):
        engine = made(
            Spice, Circuit(tau_w=1e9), network, dt=0.1, reltol=1e-6, macro=Macro(lifetime=lifetime)
        )
        before = torch.cat([array.clone() for array in engine.flow.weights], 1)
        bias = [views["b"].clone() for views in engine.params.of[:2]]
        weights[lifetime] = shown(engine, network, count=1)[1] / before
        later = [views["b"] for views in engine.params.of[:2]]
        biases[lifetime] = torch.cat([a / b for a, b in zip(later, bias, strict=True)], 1)
    for ratio in (weights, biases):
        assert float((ratio[0.0] - 1).abs().max()) < 1e-5
        assert float((ratio[5.0] - exp(-3 / 5)).abs().max()) < 1e-5


def test_output_resistance_loads_sums():
    """A sum of n currents has r_out n times in parallel: gain 1/(1 + n/(gm·r_out))."""
    network, ratio = Network.mlp([3, 4, 2], "tanh"), 50.0
    macro = Macro(output_resistance=ratio / 1e-6)
    engine = made(Spice, Circuit(tau_w=1e9), network, dt=0.1, reltol=1e-6, macro=macro)
    engine.load([torch.zeros(1, 1, 2).double(), None, torch.ones(1, 1, 3).double()])
    engine.feedforward()
    item = engine.bench([[torch.zeros(1, 1, 2).double(), None, torch.ones(1, 1, 3).double()]], 10)
    text = deck(item, 1e-6).replace(".save ", ".save v(mu1_0) v(r2_0) v(r2_1) v(r2_2) ")
    with TemporaryDirectory() as folder:
        last = ngspice.run(text, Path(folder)).plot.last
    plain = sum(last[f"v(w1_0_{j})"] * last[f"v(r2_{j})"] for j in range(3))
    assert last["v(mu1_0)"] == pytest.approx(plain / (1 + 3 / ratio), rel=1e-3)


def test_offsets_are_those_of_the_chip():
    """Their spread is the number asked for; a chip keeps its own in any population."""
    network = Network.mlp([8, 30, 8], "tanh")
    macro = Macro(offset=0.02)
    engine = made(Spice, CIRCUIT, network, chips=2, dt=0.1, macro=macro)
    first, second = ("\n".join(engine._netlist(k, [False] * 8).instances(_Zero())) for k in (0, 1))
    drawn = [float(v) for v in re.findall(r"os_\w+=(\S+)", first)]
    assert len(drawn) > 500
    assert np.std(drawn) == pytest.approx(0.02, rel=0.1)
    assert abs(np.mean(drawn)) < 0.004
    assert first != second
    alone = made(Spice, CIRCUIT, network, dt=0.1, macro=macro)
    assert "\n".join(alone._netlist(0, [False] * 8).instances(_Zero())) == first


class _Zero(dict):
    def __missing__(self, key):
        return 0.0


def test_a_leaky_node_has_the_noise_kt_over_c():
    """Mean square of the voltage over many nodes, in units; zero without temperature."""
    gm, unit, tau = 1e-9, 0.05, 1.0
    capacitance, count = gm * tau, 150
    macro = Macro(gm=gm, unit=unit, temperature=300.0)
    nodes = [
        line
        for k in range(count)
        for line in (f"Xn{k} n{k} thermal", f"R{k} n{k} 0 1g", f"C{k} n{k} 0 1n ic=0")
    ]
    plot = bench(macro, *nodes, ".options method=gear", ".tran 0.05 40 5 0.05 uic", dt=0.1)
    found = np.mean([np.mean(plot[f"v(n{k})"] ** 2) for k in range(count)])
    expected = macro_cells.BOLTZMANN * 300 / capacitance / unit**2
    # 150 nodes for 35 tau: 3 %.
    assert found == pytest.approx(JOINED * expected, rel=0.15)


def test_trnoise_has_the_variance_of_the_circuits_noise():
    """An Ornstein-Uhlenbeck soma: σ²τ/2; two runs differ."""
    network, circuit = Network.mlp([1, 100, 1], "tanh"), Circuit(tau_w=1e9, sigma_x=0.2)
    ends = []
    for _ in range(2):
        noise = Seeded(0, range(1))
        engine = made(Spice, circuit, network, dt=0.1, noise=noise, trnoise=True, reltol=1e-3)
        engine.params.flat.zero_()
        zero = torch.zeros(1, 1, 1).double()
        engine.load([zero, None, zero])
        for state in engine.flow.moving().values():
            state.zero_()
        item = engine.bench([[zero, None, zero]], 200)
        item = replace(item, span=replace(item.span, show=3.0))
        with TemporaryDirectory() as folder:
            plot = ngspice.run(deck(item, 1e-3), Path(folder)).plot
        even = np.arange(3.0, 20.0, 0.1)
        waves = [np.interp(even, plot["time"], plot[f"v(x1_{k})"]) for k in range(100)]
        ends.append(waves[0][-1])
        assert np.mean(np.square(waves)) == pytest.approx(JOINED * 0.2**2 / 2, rel=0.2)
    assert ends[0] != ends[1]


def test_noise_of_another_law_is_no_trnoise():
    with pytest.raises(UnsupportedError, match=r"trnoise.*'hiss' is uniform"):
        refuse_law(NoiseSource(1, "hiss_xi", "hiss.xi.rate1", "uniform"))


@pytest.mark.parametrize(
    ("macro", "said"),
    [
        ({"unit": 0.05}, "unit: .*temperature"),
        ({"seed": 3}, "seed: .*offset"),
        ({"gm": 0.0}, "gm"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(macro, said):
    given = {"run": {"backend": "continuous", "engine": "spice"}, "learning": {"batch": 1}}
    given |= {"network": {"sizes": [64, 3, 10]}, "data": {"name": "digits"}}
    with pytest.raises(ConfigError, match=said):
        parse(given | {"spice": {"macro": macro}})


def test_rk4_is_far_from_a_poor_macro():
    """Negative control: bandwidth, offsets and resistance are felt."""
    exact = shown(made(Continuous, CIRCUIT, dt=0.01, solver_name="rk4", fast=False))
    for macro in (
        Macro(bandwidth=1 / (2 * pi * 0.5)),
        Macro(offset=0.1),
        Macro(output_resistance=sqrt(1e15)),
    ):
        assert max(apart(shown(made(Spice, CIRCUIT, dt=0.1, macro=macro)), exact)) > 0.01
