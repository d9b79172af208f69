"""Deployed networks: programming, waiting and compensation against closed forms."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import norm

import pcsim
from pcsim import config as configuration
from pcsim import store
from pcsim.cli import app
from pcsim.deploy import DIGITS, Plan, deploy
from pcsim.deploy.arrays import DeployedArrays
from pcsim.errors import ConfigError, PcsimError
from pcsim.hardware import HardwareConfig, make_chips
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.quantity import duration
from pcsim.runner.readout import Readout
from pcsim.runner.replicas import Replicas
from pcsim.substrate import Seeded

SIZE = 120
NETWORK = Network.mlp([SIZE, SIZE])
SMALL = {
    "network": {"sizes": [64, 8, 10]},
    "data": {"name": "digits", "limit": 200, "limit_test": 100},
    "learning": {"batch": 8, "epochs": 1, "alpha": 0.005},
    "run": {"backend": "discrete"},
}


def arrays(pieces, value=0.5, chips=1, network=NETWORK, preset="ideal", **plan):
    """Return arrays, what programming came to, and what was wanted, all weights of one value."""
    hardware = HardwareConfig(preset=preset, pieces=pieces, chips=chips)
    config = configuration.parse({"network": {"sizes": [SIZE, SIZE]}, "data": {"name": "digits"}})
    replicas = Replicas.of(config.model_copy(update={"hardware": hardware}))
    noise = Seeded(0, replicas.identities)
    made = DeployedArrays(network, hardware, replicas, noise, Plan(**plan))
    flat = torch.full((chips, network.parameter_count), float(value), dtype=torch.float64)
    wanted = Parameters(network, flat)
    return made, made.program(wanted), wanted


def read(made):
    """Return all weights as the array presents them, flat."""
    return made.array.read(made.layers[0]).flatten().numpy()


@pytest.mark.parametrize("g", [0.05, 0.4, 0.9])
def test_one_write_leaves_the_error_of_the_published_polynomial(g):
    """σ(g) of the device that is on, and the half of σ(0) that the other cannot hide."""
    made, found, _ = arrays(
        {"drift": {"read_noise": 0.0}}, value=g, preset="pcm_programmed", program="open-loop"
    )
    on = (0.26348 + 1.9650 * g - 1.1731 * g**2) / 25
    off = 0.26348 / 25
    rest = off**2 * (0.5 - 1 / (2 * np.pi))
    seen = read(made)
    assert seen.std() == pytest.approx(np.sqrt(on**2 + rest), rel=0.02)
    assert seen.mean() == pytest.approx(g - off / np.sqrt(2 * np.pi), abs=4 * on / SIZE)
    assert found.error[0, 0] == pytest.approx(np.sqrt(np.mean((seen - g) ** 2)), rel=1e-9)
    assert found.attempts[0, 0] == 1


@pytest.mark.parametrize("period", [1e-7, 1.0])
def test_waiting_follows_the_published_law_of_drift(period):
    """(t′/t0)^−ν with ν normal from device to device, at full conductance 0.049 ± 0.008."""
    made, _, _ = arrays(
        {"drift": {"kind": "pcm_drift", "read_noise": 0.0, "t_sample": period}},
        value=1.0,
        program="none",
    )
    assert made.chips.clock.dt == period
    for t in (0.0, 1.0, 1e4, 1e6):
        log = np.log((t + 20) / 20)
        left = made.wait(t)[0, 0]
        assert left == pytest.approx(np.exp(-0.049 * log + (0.008 * log) ** 2 / 2), abs=1.5e-3)
    assert 0.55 < left < 0.62
    before = read(made).sum()
    made.compensate(np.array([[left]]))
    assert read(made).sum() == pytest.approx(SIZE**2, rel=1e-9)
    assert read(made).sum() > 1.5 * before, "control"


def test_times_count_from_programming_and_not_from_the_last_read():
    direct, _, _ = arrays({"drift": {"kind": "pcm_drift"}}, program="none")
    often, _, _ = arrays({"drift": {"kind": "pcm_drift"}}, program="none")
    for t in (1.0, 60.0, 3600.0):
        often.wait(t)
    np.testing.assert_allclose(often.wait(86400.0), direct.wait(86400.0), rtol=1e-12)


def test_what_is_stored_is_lost_by_retention():
    made, _, _ = arrays({"loss": {"kind": "retention", "lifetime": 100.0}}, program="none")
    assert made.wait(50.0)[0, 0] == pytest.approx(np.exp(-0.5), rel=1e-9)
    assert made.wait(200.0)[0, 0] == pytest.approx(np.exp(-2), rel=1e-9)
    per_update = {"loss": {"kind": "retention", "lifetime": 100.0, "per": "update"}}
    still, _, _ = arrays(per_update, program="none")
    assert still.wait(1e6)[0, 0] == 1, "nothing is updated"


@pytest.mark.parametrize("attempts", [1, 2, 50])
def test_verified_devices_have_a_truncated_error(attempts):
    sigma, tolerance = 0.05, 0.04
    error = {"kind": "programming_error", "coefficients": [sigma], "devices": "single"}
    made, found, _ = arrays(
        {"error": error}, program="write-verify", tolerance=tolerance, attempts=attempts
    )
    a = tolerance / sigma
    inside = 2 * norm.cdf(a) - 1
    left = (1 - inside) ** attempts
    moment = 2 * a * norm.pdf(a)
    within, beyond = 1 - moment / inside, 1 + moment / (1 - inside)
    expected = sigma * np.sqrt((1 - left) * within + left * beyond)
    assert (read(made) - 0.5).std() == pytest.approx(expected, rel=0.02)
    assert found.missed[0, 0] == pytest.approx(left, abs=4 * np.sqrt(left / SIZE**2) + 1e-12)
    assert found.attempts[0, 0] == pytest.approx((1 - left) / inside, rel=0.02)
    assert found.error[0, 0] == pytest.approx(expected, rel=0.02)


def test_verifying_does_not_help_against_what_comes_after():
    """Control: an error that the read does not see at programming is not taken away."""
    pieces = {
        "error": {"kind": "programming_error", "coefficients": [0.05], "devices": "single"},
        "drift": {"kind": "conductance_drift", "nu": 0.05, "nu_spread": 0.02, "t0": 1.0},
    }
    made, found, _ = arrays(pieces, program="write-verify", tolerance=0.005, attempts=200)
    assert found.error[0, 0] < 0.005
    made.wait(1e6)
    assert read(made).std() > 0.05


def test_pulses_lead_to_the_law_of_the_device():
    """One train: rounding dw²/6 where the rest is uniform, and σ_c² dw |w| of the cycles."""
    dw, cycle = 0.01, 0.3
    device = {"kind": "constant_device", "dw_min": dw, "cycle_noise": cycle}
    hardware = HardwareConfig(pieces={"device": device})
    config = configuration.parse({"network": {"sizes": [SIZE, SIZE]}, "data": {"name": "digits"}})
    replicas = Replicas.of(config.model_copy(update={"hardware": hardware}))
    wanted = torch.rand(1, NETWORK.parameter_count, dtype=torch.float64) * 0.8 + 0.1
    made = {}
    for program in ("open-loop", "write-verify"):
        plan = Plan(program=program, tolerance=0.006, attempts=100)
        one = DeployedArrays(NETWORK, hardware, replicas, Seeded(1), plan)
        made[program] = one.program(Parameters(NETWORK, wanted)), one
    found, one = made["open-loop"]
    w = Parameters(NETWORK, wanted).of[one.layers[0]]["w"].flatten().numpy()
    expected = np.sqrt(dw**2 / 6 + cycle**2 * dw * w.mean())
    assert found.error[0, 0] == pytest.approx(expected, rel=0.03)
    verified, other = made["write-verify"]
    assert verified.missed[0, 0] == 0
    assert np.abs(read(other) - w).max() <= 0.006
    assert verified.attempts[0, 0] > 1.5


def test_what_computes_updates_does_not_stand_between_host_and_devices():
    plain = HardwareConfig(preset="reram_sb_chip").deployed()
    matched = HardwareConfig(preset="reram_sb_matched_chip").deployed()
    assert [e.name for e in plain.pulses] == [e.name for e in matched.pulses]
    assert (plain.full, matched.full) == (0.75, pytest.approx(0.225))
    assert plain.t_write == 400e-9


@pytest.mark.parametrize("name", ["reram_sb_chip", "ecram_li_chip", "brainscales2_on_chip"])
def test_clocked_devices_are_written_at_their_clock(name):
    """Steps of the run are shorter than a write: the request must arrive, and once."""
    faster = {"fast": {"kind": "read_noise", "where": "output", "sigma": 0.0, "t_sample": 3e-8}}
    made, found, _ = arrays(faster, value=0.3, preset=name, program="open-loop")
    assert made.chips.clock.dt == 3e-8
    seen = read(made)
    assert abs(seen.mean() - 0.3) < 0.08
    assert found.attempts[0, 0] == 1


def test_weights_above_full_conductance_are_clipped_unless_the_range_is_matched():
    error = {"error": {"kind": "programming_error", "coefficients": [0.02], "devices": "single"}}
    clipped, found, _ = arrays(error, value=1.5)
    assert found.clipped[0, 0] == 1
    assert read(clipped).mean() == pytest.approx(1.0, abs=0.002)
    for value in (1.5, 0.01):
        matched, found, _ = arrays(error, value=value, range="matched")
        assert found.clipped[0, 0] == 0
        assert read(matched).mean() == pytest.approx(value, rel=0.002)
        assert read(matched).std() == pytest.approx(0.02 * value, rel=0.02)


def test_one_write_gives_the_chips_of_the_preset():
    """Scores are those of a read-out through the preset's own chips, number by number."""
    network = Network.mlp([20, 12, 5])
    config = configuration.parse(
        {
            "network": {"sizes": [20, 12, 5]},
            "data": {"name": "digits"},
            "hardware": {"preset": "pcm_joshi", "chips": 3},
        }
    )
    replicas = Replicas.of(config)
    flat = torch.randn(3, network.parameter_count, dtype=torch.float64).clamp(-1, 1)
    wanted, noise = Parameters(network, flat), Seeded(0, replicas.identities)
    made = DeployedArrays(network, config.hardware, replicas, noise, Plan())
    made.program(wanted)
    x = torch.rand(7, 20, dtype=torch.float64)
    chips = make_chips(config, replicas, 0.1, torch.float64, "cpu")
    expected = Readout(network, chips).scores(wanted, x)
    torch.testing.assert_close(made.readout.scores(made.params, x), expected, rtol=1e-12, atol=0)
    ideal = Readout(network, None).scores(wanted, x)
    assert not torch.allclose(expected, ideal, rtol=1e-3), "control"


def test_a_programmed_array_of_resistive_memory_loses_what_was_reported():
    """93 % as trained; 78 % (61–86) once programmed, and 92 % with a matched range."""
    trained = pcsim.run(configuration.parse(DIGITS))
    plain = deploy(trained, "rram_wan", chips=12)
    assert 0.91 < float(plain["trained_accuracy"].mean()) < 0.95
    low, median, high = np.quantile(plain["accuracy"][..., 0, 0], (0.05, 0.5, 0.95))
    assert 0.55 < low < 0.72
    assert 0.70 < median < 0.86
    assert 0.80 < high < 0.91
    matched = deploy(trained, "rram_wan", chips=12, range="matched")
    assert np.median(matched["accuracy"]) > median + 0.08


def test_a_deployment_is_stored_drawn_and_reported(tmp_path):
    trained = pcsim.run(configuration.parse(SMALL), tmp_path / "ideal.h5")
    found = pcsim.deploy(trained, "pcm_programmed", chips=4, wait=["1 h", "30 d"])
    assert found["accuracy"].shape == (1, 4, 3, 2)
    assert found["wait"].tolist() == [0, 3600, 2592000]
    np.testing.assert_array_equal(found["accuracy"][:, :, 0, 0], found["accuracy"][:, :, 0, 1])
    again = deploy(tmp_path / "ideal.h5", "pcm_programmed", chips=4, wait=[3600, 2592000])
    np.testing.assert_array_equal(found["accuracy"], again["accuracy"])
    assert "1 seeds × 4 chips" in found.sentence()
    assert "after 30 d" in found.sentence()
    out = tmp_path / "deployed.h5"
    store.save(found, out)
    page = pcsim.report(out).read_text("utf-8")
    for words in ("Accuracy of the deployed network", "writes per device", "30 d", "compensated"):
        assert words in page
    left = found["left"]
    assert (np.diff(left, axis=2) < 0).all(), "arrays only lose"
    assert len(found.plot().axes) == 1
    assert "<table" in found._repr_html_()


def test_weights_that_were_learnt_on_chips_stay_on_them(tmp_path):
    hardware = {"preset": "pcm_joshi", "chips": 3}
    trained = pcsim.run(configuration.parse(SMALL | {"hardware": hardware}), tmp_path / "chip.h5")
    kept = deploy(trained, train="chip", program="none")
    np.testing.assert_allclose(kept["accuracy"][..., 0, 0], trained["accuracy"], atol=0.011)
    anew = deploy(trained, train="chip", program="open-loop")
    assert not np.array_equal(anew["accuracy"], kept["accuracy"])
    for words, fields in (
        ("learnt on chips", {}),
        ("weights of 3 chips", {"train": "chip", "chips": 5}),
        ("in the chips that learnt them", {"train": "chip", "program": "none", "hardware": "pcm"}),
    ):
        with pytest.raises(ConfigError, match=words):
            deploy(trained, **fields)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("an ideal chip holds", {}),
        ("photonic has no error of programming", {"hardware": "photonic"}),
        ("nothing of rram_wan changes with time", {"hardware": "rram_wan", "wait": [1.0]}),
        ("wait must rise", {"hardware": "pcm_programmed", "wait": [2.0, 1.0]}),
        ("wait.1: ", {"hardware": "pcm_programmed", "wait": ["soon"]}),
        ("a way to program", {"hardware": "rram_wan", "program": "none", "range": "matched"}),
        ("program: must be", {"hardware": "rram_wan", "program": "twice"}),
    ],
)
def test_what_has_no_meaning_is_refused(words, fields):
    with pytest.raises(PcsimError, match=words):
        deploy(configuration.parse(SMALL), **fields)


def test_other_inputs_are_refused():
    grid = SMALL | {"learning": {"batch": 8}, "grid": {"alpha": [0.1, 0.2]}}
    with pytest.raises(ConfigError, match=r"grid\.alpha"):
        deploy(configuration.parse(grid), "rram_wan")
    both = {
        "device": {"kind": "constant_device", "dw_min": 0.1},
        "error": {"kind": "programming_error", "coefficients": [0.1]},
    }
    mixed = configuration.parse(SMALL | {"hardware": {"pieces": both}})
    with pytest.raises(PcsimError, match="leave one of them out"):
        deploy(mixed)
    moving = {
        "noise": {"kind": "read_noise", "where": "weight", "sigma": 0.1, "before": "error"},
        "error": {"kind": "programming_error", "coefficients": [0.1]},
    }
    with pytest.raises(PcsimError, match="put it behind"):
        deploy(configuration.parse(SMALL | {"hardware": {"pieces": moving}}))


def test_the_command_stores_and_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = [
        f"--set={name}" for name in ("data.limit=200", "learning.epochs=1", "run.seeds=[0]")
    ]
    app(
        ["deploy", "--hardware", "pcm_programmed", "--chips", "2", "--wait", "1h,1d", "--json",
         "--out", "d.h5", *settings],
        standalone_mode=False,
    )  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert np.array(told["accuracy"]).shape == (1, 2, 3, 2)
    assert store.load(tmp_path / "d.h5").attrs["kind"] == "deploy"
    assert (tmp_path / "d.png").exists()


def test_durations_are_said_as_a_person_says_them():
    times = (0.0, 1e-6, 1.0, 90.0, 3600.0, 86400.0 * 30)
    assert [duration(t) for t in times] == ["0 s", "1 us", "1 s", "1.5 min", "1 h", "30 d"]
