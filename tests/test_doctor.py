"""`pcsim doctor` tells what is there, and sees engines that do not agree."""

import json

import numpy as np
import pytest

from pcsim import doctor
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.experiments.speed import device as speed
from tests.command_line import exit_code


def test_it_tells_versions_devices_tools_and_data(monkeypatch, capsys):
    assert exit_code(["doctor", "--no-test", "--json"], monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["packages"]["numpy"] == np.__version__
    assert {"cores", "torch threads", "cuda"} <= told["devices"].keys()
    assert {"C compiler", "ngspice"} <= told["tools"].keys()
    assert told["data"]["digits"] == "here"
    assert told["self_test"] == []


def test_a_missing_package_is_named_with_its_extra():
    assert doctor._version("no-such-package", "brian") == "missing; pip install 'pcsim[brian]'"


def test_discrete_and_continuous_weights_agree():
    first = next(doctor.self_test())
    assert first.difference is not None
    assert first.difference <= 1e-12
    assert first.words.startswith("agrees")


@pytest.mark.slow
def test_the_whole_self_test(monkeypatch, capsys):
    assert exit_code(["doctor"], monkeypatch) == 0
    out = capsys.readouterr().out
    assert "DIFFERS" not in out
    assert out.count("agrees") >= 1


@pytest.mark.parametrize("error", [1e-6, np.nan])
def test_weights_that_differ_end_with_exit_code_1(error, monkeypatch, capsys):
    real = doctor._weights

    def wrong(settings, more):
        if settings.get("backend") == "brian" or settings.get("engine") == "native":
            raise UnsupportedError("left out here")
        return real(settings, more) + error * (settings["backend"] == "discrete")

    monkeypatch.setattr(doctor, "_weights", wrong)
    assert exit_code(["doctor"], monkeypatch) == 1
    found = capsys.readouterr()
    assert "not the same numbers" in found.err
    assert "not tested: left out here" in " ".join(found.out.split()).replace(" │ ", " ")


def test_a_device_that_is_not_there_is_refused(monkeypatch, capsys):
    assert exit_code(["doctor", "--device", "warp"], monkeypatch) == 2
    assert exit_code(["experiment", "speed", "--device", "warp"], monkeypatch) == 2
    assert exit_code(["experiment", "stability", "--device", "cpu"], monkeypatch) == 2
    assert "leave --device out" in capsys.readouterr().err


def test_a_device_is_compared_with_the_cpu_in_both_precisions(monkeypatch):
    """The test of a device, walked with weights that know where they were computed."""
    asked = []

    def weights(settings, more):
        asked.append((settings.get("device", "cpu"), settings.get("dtype")))
        return np.ones(3) + (1e-6 if settings.get("device") == "cuda" else 0)

    monkeypatch.setattr(doctor, "_weights", weights)
    found = [one for one in doctor.self_test("cuda") if one.name.startswith("cuda")]
    assert [one.differs for one in found] == [True, True, False, False]
    assert ("cuda", "float64") in asked


def test_speed_of_a_device(monkeypatch):
    case = {
        "network": {"sizes": [64, 4, 10]},
        "data": {"limit": 40},
        "learning": {"batch": 10, "epochs": 1},
        "run": {"backend": "discrete"},
    }
    result = speed.measure("cpu", {"tiny": case}, repeats=1)
    assert (result["cpu"] > 0).all()
    assert (result["device"] > 0).all()
    assert speed.table(result).row_count == 1
    with pytest.raises(ConfigError):
        speed.measure("warp", {}, 1)
