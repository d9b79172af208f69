"""Device files: a configuration holds what a file held when it was read, by content."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import pcsim
from hw_models import describe, fields_of, known_presets, made_of
from pcsim import config as configuration
from pcsim import store
from pcsim.check import check
from pcsim.compare import compare
from pcsim.errors import ConfigError, StoreError
from pcsim.hardware import Device, HardwareConfig
from pcsim.report.toml_text import toml_text
from pcsim.run import run
from pcsim.sweep import engine, load, make_sweep

DEVICE = """
name = "mine"
[pieces.noise]
kind = "white_noise"
sigma = {sigma}
[pieces.weights]
kind = "quantized_weights"
bits = 6
range = 1.5
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Be in a folder with a device file."""
    monkeypatch.chdir(tmp_path)
    write(0.05)
    return tmp_path


def write(sigma):
    Path("mine.toml").write_text(DEVICE.format(sigma=sigma))


def raw(**sections):
    base = {
        "network": {"sizes": [64, 4, 10]},
        "learning": {"batch": 10, "epochs": 1},
        "schedule": {"T": 2},
        "data": {"limit": 20, "limit_test": 10},
        "run": {"backend": "continuous"},
        "hardware": {"preset": "mine.toml", "chips": 2},
    }
    for name, fields in sections.items():
        base[name] = {**base.get(name, {}), **fields}
    return base


def setting(**sections):
    return configuration.parse(raw(**sections))


def sigma_of(config):
    return config.hardware.device.pieces["noise"]["sigma"]


@pytest.mark.parametrize("name", [name for name in known_presets() if name != "ideal"])
def test_the_content_of_a_preset_is_the_preset(name):
    one = HardwareConfig(preset=name)
    again = HardwareConfig.model_validate_json(one.model_dump_json())
    assert again == one
    listed = tomllib.loads(toml_text(json.loads(one.model_dump_json())))
    assert HardwareConfig.model_validate(listed).substrate() == one.substrate()
    assert one.substrate() == describe(name, {}).substrate()
    assert made_of(name, fields_of(describe(name, {}))).substrate() == one.substrate()


def test_a_file_is_read_once(folder):
    before = setting()
    write(0.5)
    after = setting()
    assert (sigma_of(before), sigma_of(after)) == (0.05, 0.5)
    assert before != after
    assert before.to_json() != after.to_json()
    assert configuration.from_json(before.to_json()) == before
    assert before.hardware.substrate() != after.hardware.substrate()
    assert configuration.changed(before, {"hardware": {"chips": 3}}).hardware.device == (
        before.hardware.device
    )
    write(0.05)
    assert setting() == before  # by content, not by time


def test_a_result_is_read_where_the_file_is_not(folder, tmp_path_factory, monkeypatch):
    run(setting(), folder / "a.h5")
    run(setting(run={"seeds": [1]}), folder / "b.h5")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    result = store.load(folder / "a.h5")
    again = configuration.from_json(str(result.attrs["config"]))
    np.testing.assert_array_equal(run(again)["parameters"], result["parameters"])
    compare([folder / "a.h5", folder / "b.h5"], unpaired=True, at={"chip": 0})
    page = pcsim.report(folder / "a.h5", "a.html").read_text()
    assert "sigma = 0.05" in page


def test_a_checkpoint_belongs_to_the_content(folder, monkeypatch):
    slow = setting(run={"backend": "discrete"}, learning={"epochs": 3}, hardware={"lenient": True})

    def stop(status):
        raise KeyboardInterrupt

    with pytest.raises(pcsim.errors.InterruptedRunError):
        run(slow, folder / "a.h5", report=stop)
    write(0.5)
    edited = configuration.parse(
        raw(run={"backend": "discrete"}, learning={"epochs": 3}, hardware={"lenient": True})
    )
    with pytest.raises(StoreError, match="belongs to another configuration"):
        run(edited, folder / "a.h5")
    run(slow, folder / "a.h5")  # the control


def swept():
    return {
        **raw(data={"limit": 20, "limit_test": 10}),
        "sweep": {"axes": {"learning.alpha": [0.01, 0.02], "schedule.T": [1, 2]}, "fuse": 1},
    }


def test_a_file_edited_in_mid_sweep_changes_nothing(folder, monkeypatch):
    whole = pcsim.sweep(swept(), folder / "whole")
    calls = []
    original = engine.execute

    def edit(job):
        calls.append(job)
        write(0.3)
        return original(job)

    monkeypatch.setattr(engine, "execute", edit)
    edited = pcsim.sweep(swept(), folder / "edited")
    assert len(calls) == 4
    np.testing.assert_array_equal(edited["energy"], whole["energy"])
    monkeypatch.undo()
    os.chdir(folder)
    words = r"was started with hardware\.device\.pieces\.noise\.sigma = 0\.05, not 0\.3"
    with pytest.raises(StoreError, match=words):
        pcsim.sweep(swept(), folder / "edited")
    Path("mine.toml").unlink()
    np.testing.assert_array_equal(load(folder / "edited")["energy"], whole["energy"])
    kept = json.loads(str(edited.attrs["devices"]))
    assert kept["mine.toml"]["pieces"]["noise"]["sigma"] == 0.05


def test_presets_on_an_axis_are_read_each_once(folder, monkeypatch):
    reads = []
    original = Device.of
    monkeypatch.setattr(Device, "of", lambda preset: reads.append(preset) or original(preset))
    base = configuration.parse(raw()).model_dump(mode="json", exclude_unset=True)
    reads.clear()
    axes = {"hardware.preset": ["mine.toml", "ecram_li"], "schedule.T": [1, 2, 3]}
    made = make_sweep({**base, "sweep": {"axes": axes}})
    assert reads == ["mine.toml", "ecram_li"]
    assert {p.config.hardware.device.name for p in made.points} == {"mine", "ecram_li"}


def test_the_ideal_row_of_a_check_has_no_device(folder):
    found = check(setting(), twins=False)
    rows = [configuration.from_json(str(r.attrs["config"])) for r in found.runs.values()]
    assert [row.hardware.device is None for row in rows] == [False, True, True]


def test_contents_that_do_not_fit_are_refused(folder):
    data = json.loads(setting().to_json())
    data["hardware"]["device"]["pieces"]["noise"]["sigma"] = 0.2
    with pytest.raises(ConfigError, match=r"hardware\.device.* not those of its sha256"):
        configuration.parse(data)
    data = json.loads(setting(hardware={"preset": "ecram_li"}).to_json())
    data["hardware"]["preset"] = "pcm"
    with pytest.raises(ConfigError, match="is what 'ecram_li' held, not 'pcm'; leave it out"):
        configuration.parse(data)
