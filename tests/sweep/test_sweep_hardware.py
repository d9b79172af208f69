"""Hardware in sweeps: numbers of the chip are fused, and give what separate runs give."""

import numpy as np
import pytest

from pcsim.config import parse
from pcsim.run import run

BASE = {
    "network": {"sizes": [64, 6, 10]},
    "schedule": {"T": 3, "gamma": 0.2},
    "learning": {"alpha": 0.002, "batch": 8, "epochs": 1},
    "data": {"name": "digits", "limit": 64},
    "run": {"seeds": [0, 1], "dtype": "float64"},
    "hardware": {
        "chips": 2,
        "pieces": {
            "noise": {"kind": "white_noise", "sigma": 0.1},
            "weights": {"kind": "quantized_weights", "bits": 4},
            "stuck": {"kind": "stuck_weights", "fraction": 0.1},
            "slow": {"kind": "mismatch", "of": "tau_x", "sigma": 0.2},
        },
    },
}
VALUES = {"noise.sigma": [0.0, 0.3], "weights.bits": [3, 6], "stuck.fraction": [0.0, 0.5]}


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
def test_a_grid_of_hardware_numbers_is_separate_runs(backend):
    settings = BASE | {"run": BASE["run"] | {"backend": backend}}
    together = run(parse(settings | {"grid": {"hardware": VALUES}}))
    assert together.variables["parameters"].dims[:5] == (*VALUES, "seed", "chip")
    for cell in np.ndindex(2, 2, 2):
        pieces = {k: dict(v) for k, v in BASE["hardware"]["pieces"].items()}
        for (path, values), k in zip(VALUES.items(), cell, strict=True):
            name, field = path.split(".")
            pieces[name][field] = values[k]
        alone = run(parse(settings | {"hardware": BASE["hardware"] | {"pieces": pieces}}))
        np.testing.assert_allclose(
            together["parameters"][cell], alone["parameters"], rtol=0, atol=1e-12
        )
    # Negative control: the cells differ from each other.
    assert np.abs(together["parameters"][0, 0, 0] - together["parameters"][1, 1, 1]).max() > 1e-3


def test_a_sweep_fuses_them(tmp_path):
    from pcsim.sweep import sweep

    table = {"axes": {f"hardware.pieces.{name}": values for name, values in VALUES.items()}}
    result = sweep(BASE | {"sweep": table}, tmp_path / "store")
    accuracy = result.variables["accuracy"]
    assert accuracy.values.shape == (2, 2, 2, 2, 2)
    assert len(list((tmp_path / "store").rglob("*.h5"))) == 2  # one run, and the merged file
