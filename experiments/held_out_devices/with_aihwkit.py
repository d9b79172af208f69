"""Step responses of aihwkit's training devices, measured there: writes `steps.csv`.

aihwkit is no dependency of pcsim. In an environment of its own,

    pip install aihwkit==1.1.0 torch==2.10.0 && python with_aihwkit.py steps.csv

pulses each device from weight zero, 200 times up and then 200 times down, one pulse per update, and
writes the mean of the stored weight over 20 000 devices, its standard error and the spread between
devices. The devices are those of 200 tiles: a tile draws all its cycle-to-cycle noise from a list
of 32 768 normal numbers that is made once (`rng.cpp`), whose mean is not zero but 1/√32768 of a
deviation. All devices of a tile share that drift (2 % of a step of `ReRamSB`, whose noise is 3.75
steps), however many they are; errors are therefore taken between tiles. The stored file has
`cmos_capacitor` from two such runs, 400 tiles: in the first alone it was 3.6 errors from ours, and
the two differed by 2.5.
"""

from __future__ import annotations

import csv
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

PULSES = 200
MARKS = (1, 5, 20, 50, 200)
"""Pulses behind which weights are noted, on either way."""
TILES, ROWS = 200, 100
DEVICES = {
    "pcm": "PCMPresetUnitCell",
    "reram_es": "ReRamESPresetDevice",
    "reram_sb": "ReRamSBPresetDevice",
    "reram_om": "ReRamArrayOMPresetDevice",
    "reram_hfo2": "ReRamArrayHfO2PresetDevice",
    "ecram_li": "EcRamPresetDevice",
    "ecram_mo": "EcRamMOPresetDevice",
    "cmos_capacitor": "CapacitorPresetDevice",
    "idealized": "IdealizedPresetDevice",
    "gokmen_vlasov": "GokmenVlasovPresetDevice",
}


def one_tile(device: str) -> list[Any]:
    """Return the stored weights (device,) of one tile at each mark."""
    presets = import_module("aihwkit.simulator.presets")
    configs = import_module("aihwkit.simulator.configs")
    tiles = import_module("aihwkit.simulator.tiles.analog")
    kind = configs.UnitCellRPUConfig if device.endswith("UnitCell") else configs.SingleRPUConfig
    settings = kind(device=getattr(presets, device)())
    settings.update.desired_bl = 1  # one pulse per update
    settings.update.update_management = settings.update.update_bl_management = False
    tile = tiles.AnalogTile(ROWS, 1, settings)
    tile.set_learning_rate(1)
    tile.set_weights(torch.zeros(ROWS, 1))
    noted = []
    for sign in (1, -1):
        for pulse in range(1, PULSES + 1):
            tile.update(-torch.ones(1, 1), sign * torch.ones(1, ROWS))
            if pulse in MARKS:
                hidden = tile.get_hidden_parameters().get("persistent_weights")
                stored = tile.get_weights()[0] if hidden is None else hidden
                noted.append(stored.numpy().ravel().astype(float))
    return noted


def main(target: Path) -> None:
    """Measure all devices."""
    rows = []
    for preset, device in DEVICES.items():
        found = np.array([one_tile(device) for _ in range(TILES)])  # tile, mark, device
        mean = found.mean((0, 2))
        error = found.mean(2).std(0, ddof=1) / np.sqrt(TILES)
        spread = found.transpose(1, 0, 2).reshape(2 * len(MARKS), -1).std(1, ddof=1)
        marks = [(way, pulse) for way in ("up", "down") for pulse in MARKS]
        for (way, pulse), *values in zip(marks, mean, error, spread, strict=True):
            rows.append((preset, device, way, pulse, *(f"{v:.6g}" for v in values)))
        print(preset, flush=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("preset", "device", "way", "pulse", "mean", "error", "spread"))
        lines.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
