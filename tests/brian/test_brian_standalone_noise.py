"""Noise and hardware in C++ standalone: number by number those of torch and of the numpy target."""

import gc

import numpy as np
import pytest
import torch
import trajectories as tr
from test_brian_hardware import NETWORK, SITES, UNITS, substrate_at
from test_brian_hardware_run import FIXED, NOISY, setting

from pcsim import run
from pcsim.backends.brian import BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.errors import InterruptedRunError
from pcsim.kernels.parameters import Parameters
from pcsim.runner import checkpoint
from pcsim.runner.chip_run import ChipRun
from pcsim.substrate import Chips, Seeded

pytestmark = pytest.mark.slow
LIMIT = 1e-12
CIRCUIT = Circuit(tau_w=5.0, sigma_x=0.05, **UNITS)


def population(target, folder=None, seed=5):
    """Return two chips with effects at every site, and white noise on their somas."""
    noise = Seeded(seed)
    substrate = substrate_at(*SITES)
    chips = Chips(substrate, (0, 1), seed=7, dt=tr.DT, noise=noise, dtype=torch.float64)
    params = tr.parameters(NETWORK, 2)
    options = {"dt": tr.DT, "chips": chips}
    if target != "torch":
        options |= {"noise": noise, "target": target, "folder": folder}
        return BrianBackend(NETWORK, params, CIRCUIT, **options)

    def draw(state, like):
        return noise.draw(f"soma.{state}", "normal", like, made.steps)

    own = Parameters(NETWORK, params.flat.clone())
    options |= {"fast": False, "solver_name": "maruyama", "draw": draw}
    made = Continuous(NETWORK, own, CIRCUIT, **options)
    return made


def shown(engine, parts=4):
    """Return all states and weights at the ends of presentations: forward passes, carried states,
    a label let go and clamped again."""
    rows = []
    for part in range(parts):
        data = tr.clamps(NETWORK, "supervised", 2, part)
        engine.load([None, *data[1:]])
        if part in (0, 2):
            engine.feedforward()
        engine.advance(50)
        engine.load(data)
        engine.advance(90)
        states = {name: state.clone() for name, state in engine.flow.states().items()}
        rows.append(states | {"weights": engine.flow.theta().flat.clone()})
    return rows


def apart(one, other):
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def test_every_site_with_noise_for_hundreds_of_steps(tmp_path):
    """Fixed patterns, noise, memory, age and row sums, and white noise on somas: 560 steps."""
    ours, exact = population("standalone", tmp_path), population("torch")
    expected, found = shown(exact), shown(ours)
    assert ours.steps == exact.steps == 560
    for ends in (found, shown(population("numpy"))):
        assert max(map(apart, ends, expected)) <= LIMIT

    # The generator in the program, bit by bit: the numbers of the step that was taken last.
    layer, chips = ours.parts.layers[1], ours.parts.on_chip.chips
    like = torch.zeros(2, 1, 4, dtype=torch.float64)
    for name, source, law in (
        ("white", "soma.x1", "normal"),
        ("at_rate_xi", "at_rate.xi.rate1", "normal"),
        ("at_velocity_u", "at_velocity.u.velocity1", "uniform"),
    ):
        numbers = chips.noise.draw(source, law, like, ours.steps - 1)
        assert np.array_equal(numbers.flatten().numpy(), getattr(layer, name)[:]), name

    other = shown(population("torch", seed=6), parts=1)
    assert apart(found[0], other[0]) > 1e-3, "control: another seed"


DEVICE = {
    "kind": "linear_device",
    "dw_min": 0.01,
    "dw_spread": 0.2,
    "cycle_noise": 0.3,
    "w_max": 1.3,
    "w_min": -1.3,
}


def test_a_run_on_devices_and_its_interruption(tmp_path, monkeypatch):
    """`pcsim run`: pulses, converters, noise of arrays and somas, a settling; torch's numbers."""
    pieces = {name: piece for name, piece in FIXED.items() if name != "memory"} | NOISY
    sections = {
        "circuit": {"sigma_x": 0.05},
        "solver": {"name": "maruyama", "noise_seed": 3},
        "stream": {"t_settle": 0.2},
    }
    program = {"target": "standalone", "folder": str(tmp_path / "program")}
    pieces |= {"device": DEVICE}
    one = setting(pieces, brian=program, **sections)
    whole, theirs = run(one), run(setting(pieces, "continuous", **sections))
    for name in ("parameters", "energy", "accuracy"):
        assert float(np.abs(whole[name] - theirs[name]).max()) <= LIMIT, name
    assert np.ptp(whole["parameters"], axis=-2).max() > 1e-3, "control: the chips differ"

    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    present = ChipRun.present

    def fails(self, clamps):
        yield from present(self, clamps)
        if self.engine.steps >= 5 * 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ChipRun, "present", fails)
    gc.collect()  # or Brian2 would count the objects of the first run, and name these otherwise
    with pytest.raises(InterruptedRunError):
        run(one, out=tmp_path / "a.h5")
    monkeypatch.setattr(ChipRun, "present", present)
    gc.collect()
    resumed = run(one, out=tmp_path / "a.h5")
    assert float(np.abs(resumed["parameters"] - whole["parameters"]).max()) <= LIMIT
