"""Results that pcsim 0.1 has stored are read, judged, reported and compared."""

from pathlib import Path

import numpy as np
import pytest

from pcsim import compare, store
from pcsim.compare.stored import from_result
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.recording import Recording
from pcsim.report.summary import headline
from pcsim.report.view import View
from pcsim.report.write import section

STORES = Path(__file__).parent / "stores_0_1"
NAMES = ("training", "automatic", "chips")


def old(name: str) -> Recording:
    recording = Recording.of(store.load(STORES / f"{name}.h5"))
    assert recording.attrs["version_pcsim"] == "0.1.0"
    assert "kind" not in recording.attrs, "control: this is what 0.1 has left out"
    return recording


@pytest.mark.parametrize("name", NAMES)
def test_an_old_store_is_read_and_shown(name):
    view = View(name, name, old(name))
    assert view.kind == name
    assert "Stored result" not in section(view).words
    assert "test accuracy" in headline(view).lower()
    assert old(name).config.network.sizes == (64, 2, 10)
    assert old(name).figures()


def test_old_chips_have_their_verdict():
    assert str(old("chips").verdict()).startswith("2 chips: 2 rising")
    for name in ("training", "automatic"):
        with pytest.raises(UnsupportedError, match=r"of pcsim 0\.1 'outcome'"):
            old(name).verdict()


def test_progress_of_old_runs_follows_from_their_configuration():
    """0.1 did not store how far a run was: 8 samples, batches of 4 in 3 steps of 0.5 s."""
    curve = from_result("old", "old", old("training"), {}).energy_curve
    assert curve is not None
    np.testing.assert_allclose(curve.progress["samples"][0], [8, 16])
    np.testing.assert_allclose(curve.progress["updates"][0], [2, 4])
    np.testing.assert_allclose(curve.progress["simulated_time"][0], [3, 6])
    chips = from_result("old", "old", old("chips"), {}).accuracy_curve
    np.testing.assert_allclose(chips.progress["updates"][0], [24, 48])


def test_old_and_new_are_compared(tmp_path):
    found = compare([STORES / "training.h5", STORES / "automatic.h5"], out=tmp_path / "gap.h5")
    assert (tmp_path / "gap.h5").exists()
    assert found


def test_a_field_that_is_no_more_is_refused_by_name():
    result = old("training")
    text = str(result.attrs["config"]).replace('"schedule":{', '"schedule":{"clock":1,', 1)
    gone = Recording(result.variables, result.coords, {**result.attrs, "config": text})
    with pytest.raises(ConfigError, match=r"schedule\.clock: unknown name"):
        _ = gone.config
