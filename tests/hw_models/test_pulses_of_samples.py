"""A batch writes the pulses of its samples, by themselves or by trains of rows and columns."""

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import Hardware, describe
from hw_models.counted import with_counters
from hw_models.plasticity import ConstantDevice, LinearDevice, PowerDevice
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_multiplier import LearningMultiplier
from hw_models.plasticity_rules import PulseTrain, UpdateAccumulator
from hw_models.plasticity_wear import Endurance
from pcsim import config, run
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Algebraic, Dendritic, ErrorUnits
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.hardware import make_chips
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.samples import Trains
from pcsim.native.engine import Native
from pcsim.network import Network
from pcsim.runner.replicas import Replicas
from pcsim.runner.training import Training
from pcsim.substrate import Chips, Effect, Seeded, Substrate

F64 = torch.float64
SPREAD = {"dw_spread": 0.3, "imbalance_spread": 0.1, "w_max_spread": 0.1}
SOFT = LinearDevice(dw_min=0.02, **SPREAD)
TRAINS = PulseTrain(dw=0.01, slots=5, lines="shared")


def chips_of(effects, count=1, **more):
    ids = range(count)
    options = {"seed": 2, "dt": 0.1, "noise": Seeded(3, ids), "dtype": F64} | more
    return Chips(Substrate(effects=tuple(effects)), list(ids), **options)


def written(piece, up, down, count=1, w=0.1, steps=1):
    """Return the change by a batch whose samples ask for `up` in all, and for `down`."""
    chips = chips_of(piece.by_samples("p"))
    write, stored = chips.transform("write", 0, (1, count)), torch.full((1, 1, count), w, dtype=F64)
    for _ in range(steps):
        asked = {"w": stored, "tau_w": 1.0, "down": torch.full_like(stored, down)}
        stored = stored + write(torch.full_like(stored, up - down), **asked)
        chips.advance()
    return stored - w


@pytest.mark.parametrize("law", [SOFT, PowerDevice(dw_min=0.02, gamma_up=0.5, gamma_down=1.7)])
def test_what_goes_up_and_what_goes_down_are_written_one_after_the_other(law):
    """n pulses up and m down are n up pulses and then m down pulses of the same devices."""
    found = written(law, 9 * law.quantum, 7 * law.quantum, count=50)
    devices = Devices(law, count=50, w=0.1, seed=2)
    # The same chip: draws are those of the effect `p`.
    devices.chips.substrate = Substrate(effects=law.effects("p"))
    devices._write = devices.chips.transform("write", 0, (1, 50))
    devices.write(9 * law.quantum)
    devices.write(-7 * law.quantum)
    np.testing.assert_allclose(found, devices.w - 0.1, atol=1e-12)
    summed = written(law, 2 * law.quantum, 0.0, count=50)
    assert float((found - summed).abs().max()) > law.quantum / 5, "control: the sum differs"


def test_requests_are_whole_pulses_with_the_right_mean():
    device = ConstantDevice(dw_min=0.01, w_max=1e3, w_min=-1e3)
    found = written(device, 0.0033, 0.0061, count=100_000).flatten()
    assert float(found.mean()) == pytest.approx(0.0033 - 0.0061, abs=4 * 0.01 / 300)
    # up is 0 or 1 pulse, and so is down: variances add, where a sum would have that of 0.0028
    variance = 1e-4 * (0.33 * 0.67 + 0.61 * 0.39)
    assert float(found.var()) == pytest.approx(variance, rel=0.02)


def test_noise_is_that_of_all_pulses():
    device = ConstantDevice(dw_min=0.01, w_max=1e3, w_min=-1e3, cycle_noise=0.5)
    found = written(device, 0.09, 0.07, count=40_000)
    assert float(found.std()) == pytest.approx(0.01 * 0.5 * np.sqrt(16), rel=0.02)


@pytest.mark.parametrize("drive", ["pulsed", "continuous"])
def test_requests_add_up_until_the_next_write(drive):
    """Ten steps of a clock of ten steps are one write of all that was asked for in them."""
    device = LinearDevice(dw_min=0.02, drive=drive)
    later = device.model_copy(update={"t_write": 1.0})
    found = written(later, 0.04 * 0.9, 0.02 * 0.7, steps=10)
    expected = written(device, 0.4 * 0.9, 0.2 * 0.7)
    np.testing.assert_allclose(found, expected, atol=0.02 if drive == "pulsed" else 1e-9)
    assert float(found.abs()) > 0.05


def test_both_devices_of_a_pair_are_raised():
    device = PowerDevice(dw_min=0.01, w_min=0.0, gamma_up=1.0)
    pair = DevicePair(device=device)
    chips = chips_of(pair.by_samples("p"))
    write, w = chips.transform("write", 0, (1, 1)), torch.zeros(1, 1, 1, dtype=F64)
    change = write(torch.full_like(w, 0.02), w=w, tau_w=1.0, down=torch.full_like(w, 0.03))
    memory = {k.split(".")[1]: float(v) for k, v in write.memory().items() if "applied" not in k}
    assert memory["g_plus"] == pytest.approx(1 - 0.99**5, rel=1e-4)
    assert memory["g_minus"] == pytest.approx(1 - 0.99**3, rel=1e-4)
    assert float(change) == pytest.approx(0.99**3 - 0.99**5, rel=1e-4)


def test_a_fast_array_takes_both_as_well():
    fast = FastArray(device=LinearDevice(dw_min=0.02), rate=0.5, every=1)
    chips = chips_of(fast.by_samples("p"))
    write, w = chips.transform("write", 0, (1, 1)), torch.zeros(1, 1, 1, dtype=F64)
    change = write(torch.full_like(w, 0.02), w=w, tau_w=1.0, down=torch.full_like(w, 0.06))
    risen = 1 - 0.98**4
    assert float(change) == pytest.approx(0.5 * (-1 + (1 + risen) * 0.98**3), rel=1e-4)


# ---- who asks for what: rules and engines


NETWORK = {"network": {"sizes": [5, 4, 3]}, "data": {"name": "digits"}}


def changed(rule, samples, effect, x, y):
    """Return what one batch changes in all weights, with an effect at `write`."""
    from pcsim.backends.array_backprop import ArrayBackprop
    from pcsim.backends.discrete import Discrete
    from pcsim.config import Schedule
    from pcsim.kernels.optim import Optimizer, OptimizerSpec

    network = Network.mlp([5, 4, 3], "tanh")
    flat = torch.as_tensor(np.random.default_rng(0).normal(0, 0.4, (1, network.parameter_count)))
    params = Parameters(network, flat.clone())
    optimizer = Optimizer(OptimizerSpec(), params, 0.05, 0.1, in_place=False)
    chips = chips_of([effect], dt=1.0)
    if rule == "bp":
        engine = ArrayBackprop(network, params, optimizer, chips, steps=1)
    else:
        schedule = Schedule(rule=rule, T=3 if rule == "pc" else 2, gamma=0.1)
        engine = Discrete(network, params, schedule, optimizer, chips=chips)
    engine.batch([y[:, samples], None, x[:, samples]])
    return torch.cat([(v["w"] - b["w"]).flatten() for v, b in zip(
        params.of, params.views(flat), strict=True) if "w" in v])  # fmt: skip


@pytest.mark.parametrize("rule", ["bp", "pc"])
def test_rules_ask_for_what_their_samples_ask_for_alone(rule):
    """Oracle: every sample as a batch of its own. (Weight decay is asked for once per batch.)"""
    rng = np.random.default_rng(1)
    x, y = (torch.as_tensor(rng.normal(size=(1, 6, n))) for n in (5, 3))
    falls = Effect(name="falls", site="write", becomes="0 - down")
    plain = Effect(name="plain", site="write", becomes="s")
    alone = torch.stack([changed(rule, slice(q, q + 1), plain, x, y) for q in range(6)])
    network = Network.mlp([5, 4, 3], "tanh")
    flat = torch.as_tensor(np.random.default_rng(0).normal(0, 0.4, (1, network.parameter_count)))
    weights = torch.cat([v["w"].flatten() for v in Parameters(network, flat).of if "w" in v])
    decay = -0.05 * 0.1 * weights
    expected = (alone - decay).clamp(max=0).sum(0) + decay.clamp(max=0)
    found = changed(rule, slice(None), falls, x, y)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    both = changed(rule, slice(None), plain, x, y)
    assert float((found - both.clamp(max=0)).abs().max()) > 1e-3, "control: samples oppose"


CIRCUITS = {
    "algebraic": Algebraic(tau_w=5.0, weight_decay=0.01),
    "learned feedback": Algebraic(tau_w=5.0, transport="kolen_pollack"),
    "error_units": ErrorUnits(tau_w=5.0, tau_err=0.3),
    "dendritic": Dendritic(tau_w=5.0, inter_learned=True),
}
HELD = {
    "each": {"device": SOFT.model_copy(update={"cycle_noise": 0.2})},
    "trains": {"trains": TRAINS, "device": LinearDevice(dw_min=0.01)},
    "trains alone": {"trains": TRAINS},
}


def after(engine, circuit, samples, pieces, steps=60):
    network, ids = Network.mlp([5, 7, 3], "tanh"), [3, 8]
    rng = np.random.default_rng(7)
    flat = torch.as_tensor(rng.normal(0, 0.4, (2, network.parameter_count)))
    substrate = Hardware(pieces=pieces).substrate(side_by_side=samples > 1)
    noise = Seeded(4, ids)
    chips = Chips(substrate, ids, seed=2, dt=0.1, noise=noise, dtype=F64)
    params = Parameters(network, flat)
    made = engine(network, params, circuit, dt=0.1, seeds=ids, chips=chips)
    rng = np.random.default_rng(samples)
    data = [torch.as_tensor(rng.normal(size=(2, samples, n.units))) for n in network.nodes]
    made.load([data[0], None, data[2]])
    made.advance(steps)
    states = made.flow.states() | {f"w{k}": w for k, w in enumerate(made.flow.stored())}
    return {name: value.clone() for name, value in states.items()}


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", CIRCUITS)
def test_engines_write_the_same_pulses(name, held, samples):
    circuit, pieces = CIRCUITS[name], HELD[held]
    if name == "learned feedback":
        pieces = {k: p for k, p in pieces.items() if k == "trains"}  # the plan has no such writes
        if not pieces:
            pytest.skip("devices of feedback onto a clamped input have no equations")
    theirs = after(Continuous, circuit, samples, pieces)
    ours = after(Native, circuit, samples, pieces)
    for key, expected in theirs.items():
        if name == "learned feedback" and key == "w1":
            continue  # feedback has no biases, which torch moves all the same
        np.testing.assert_allclose(ours[key], expected, atol=1e-10, err_msg=key)
    apart = after(Continuous, circuit, samples, {})
    assert float((apart["w0"] - theirs["w0"]).abs().max()) > 1e-3, "control: pulses matter"


# ---- trains of rows and columns


def test_trains_have_the_joint_law_of_their_lines():
    """Mean, variances, covariances of devices that share a row or a column; none of the others."""
    many, rate, slots, dw = 60_000, 0.02, 5, 0.01
    chips = chips_of(TRAINS.effects("p"), count=1)
    trains = Trains(chips, 0, (2, 3), "")
    d, r = torch.tensor([0.8, -0.5], dtype=F64), torch.tensor([0.9, 0.4, -0.7], dtype=F64)
    post, pre = trains(d.expand(1, many, 2), r.expand(1, many, 3), rate)
    pulses = torch.einsum("qki,qkj->qij", post.view(many, slots, 2), pre.view(many, slots, 3))
    n = (pulses / dw).flatten(1).numpy()
    p, q = (np.abs(v.numpy()) * np.sqrt(rate / (dw * slots)) for v in (d, r))
    signs = np.sign(np.outer(d, r)).ravel()
    np.testing.assert_allclose(n.mean(0) * dw, rate * np.outer(d, r).ravel(), rtol=0.02)
    joint = np.zeros((6, 6))
    for a, b in np.ndindex(6, 6):
        (i, j), (k, m) = divmod(a, 3), divmod(b, 3)
        both = (p[i] if i == k else p[i] * p[k]) * (q[j] if j == m else q[j] * q[m])
        joint[a, b] = slots * (both - p[i] * p[k] * q[j] * q[m])
    found = np.cov(n.T)
    np.testing.assert_allclose(found, joint * np.outer(signs, signs), atol=5 * 2 / np.sqrt(many))
    assert abs(joint[0, 1]) > 0.1 < abs(joint[0, 3]), "control: devices of a line go together"
    assert joint[0, 4] == pytest.approx(0)


def test_trains_that_would_send_more_than_one_pulse_per_slot_are_clipped():
    chips = chips_of(PulseTrain(dw=0.01, slots=2, lines="shared").effects("p"))
    post, pre = Trains(chips, 0, (1, 1), "")(*torch.full((2, 1, 1, 1), 3.0, dtype=F64), 0.5)
    assert float(torch.bmm(post.mT, pre)) == pytest.approx(2 * 0.01)


def test_trains_average_to_the_gradient_in_every_rule():
    """Continuous time, many chips: the mean change is that of the ideal circuit."""
    network, many = Network.mlp([3, 2], "identity"), 4000
    flat = torch.full((1, network.parameter_count), 0.2, dtype=F64)
    data = [torch.tensor([[[1.0, -1.0]] * 2]), torch.tensor([[[0.8, -0.5, 0.1], [-0.2, 0.6, 1.0]]])]
    changes = []
    for pieces, count in (({"t": TRAINS}, many), ({}, 1)):
        substrate, ids = Hardware(pieces=pieces).substrate(side_by_side=True), range(count)
        chips = Chips(substrate, list(ids), seed=2, dt=0.1, noise=Seeded(4, ids), dtype=F64)
        params = Parameters(network, flat.repeat(count, 1))
        made = Continuous(network, params, Algebraic(tau_w=5.0), dt=0.1, chips=chips, seeds=[0])
        made.load([each.to(F64).expand(1, -1, -1) for each in data])
        made.advance(1)
        changes.append((made.flow.theta().of[0]["w"] - 0.2).mean(0))
    np.testing.assert_allclose(changes[0], changes[1], atol=5 * 0.01 * 2 / np.sqrt(many))
    assert float(changes[1].abs().max()) > 0.01


# ---- what is refused, and what is as it was


def test_one_sample_at_a_time_is_as_it_was():
    chip = describe("reram_sb", {})
    assert chip.substrate() != chip.substrate(side_by_side=True)
    for batch, several in ((1, False), (8, True), (0, True)):
        settings = config.parse(
            {
                **NETWORK,
                "learning": {"batch": batch},
                "hardware": {"preset": "reram_sb"},
                "run": {"backend": "continuous"},
            }
        )
        chips = make_chips(settings, Replicas.of(settings), 0.1, F64, "cpu")
        assert chips.substrate == chip.substrate(side_by_side=several)


def test_behind_an_accumulator_a_batch_asks_for_one_thing():
    pieces = {"accumulator": UpdateAccumulator(threshold=0.02), "device": SOFT}
    chip = Hardware(pieces=pieces)
    assert chip.substrate(side_by_side=True) == chip.substrate()
    added = {"multiplier": LearningMultiplier(offset=0.01), "device": SOFT}
    assert Hardware(pieces=added).substrate(side_by_side=True) != Hardware(pieces=added).substrate()


def test_what_cannot_be_said_of_single_samples_is_refused():
    worn = Hardware(pieces={"worn": Endurance(pulses=1e3, dw=0.02), "device": SOFT})
    with pytest.raises(ConfigError, match="worn in front of it knows nothing of"):
        worn.substrate(side_by_side=True)
    summed = SOFT.model_copy(update={"samples": "sum"})
    both = Hardware(pieces={**worn.pieces, "device": summed})
    assert both.substrate(side_by_side=True) == worn.substrate()
    with pytest.raises(ValueError, match="leave t_write out"):
        PulseTrain(dw=0.01, lines="shared", t_write=1.0)


def test_a_batch_sends_more_pulses_than_its_sum():
    """Samples of a batch oppose each other: counted in one training of BP on digits.

    Eight independent normal requests of mean zero would send √8 times as many as their sum.
    """
    counts = {}
    for samples in ("each", "sum"):
        device = LinearDevice(dw_min=0.005, w_max=1e3, w_min=-1e3, samples=samples)
        chip = with_counters(Hardware(pieces={"device": device}), side_by_side=True)
        hardware = {"pieces": {n: p.model_dump(mode="json") for n, p in chip.pieces.items()}}
        settings = config.parse(
            {
                "network": {"sizes": [64, 32, 10]},
                "data": {"name": "digits", "limit": 400, "limit_test": 8},
                "schedule": {"rule": "bp", "T": 8},
                "learning": {"alpha": 0.01, "batch": 8, "epochs": 1},
                "hardware": hardware,
            }
        )
        training = Training(settings)
        training.run(lambda *_: None)
        held = training.chips.state().items()
        counts[samples] = sum(float(v.sum()) for k, v in held if ".pulses." in k)
    assert 1.7 < counts["each"] / counts["sum"] < np.sqrt(8), counts


def small(**sections):
    base = {
        **NETWORK,
        "network": {"sizes": [64, 4, 10]},
        "data": {"name": "digits", "limit": 8, "limit_test": 8},
        "learning": {"batch": 4, "epochs": 1} | sections.pop("learning", {}),
    }
    return config.parse(base | sections)


def test_optimisers_that_average_and_engines_without_trains_are_refused():
    device = {"device": SOFT.model_dump(mode="json")}
    shared = {"trains": TRAINS.model_dump(mode="json")}
    with pytest.raises(UnsupportedError, match="no sample writes pulses of its own"):
        run(small(hardware={"pieces": device}, learning={"optimizer": "adam"}))
    brian = {"backend": "brian"}
    one = {"batch": 1}
    with pytest.raises(UnsupportedError, match="devices of a row or column share"):
        run(small(hardware={"pieces": shared}, learning=one, run=brian))
    slow = {"slow": {"kind": "mismatch", "of": "tau_w", "sigma": 0.1}}
    continuous = {"backend": "continuous", "engine": "torch"}
    with pytest.raises(UnsupportedError, match="differ in tau_w"):
        run(small(hardware={"pieces": {**shared, **slow}}, learning=one, run=continuous))
