"""The offset study: resumes, finds that offsets hurt, and draws the boundary of the closed form."""

import numpy as np
import pytest

from pcsim import store
from pcsim.experiments.offset import study

TINY = study.Scale(60, (1e-4, 1.0), (4.0, 40.0), (3e-3,), 1, (64, 8, 10))


def test_a_tiny_study(tmp_path, monkeypatch):
    monkeypatch.setitem(study.SCALES, "small", TINY)
    study.main(tmp_path, "small")
    result = store.load(tmp_path / "offset.h5")
    accuracy = result["accuracy"]
    assert accuracy.shape == (1, 2, 2)
    assert accuracy[0, 1, 0] > accuracy[0, 1, 1], "a large offset costs accuracy"
    assert (tmp_path / "offset.png").stat().st_size > 5000
    first, second = result["boundary"][0]
    assert first > second, "longer presentations integrate more"

    def measure_again(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(study, "measured", measure_again)
    study.main(tmp_path, "small")
    np.testing.assert_array_equal(store.load(tmp_path / "offset.h5")["accuracy"], accuracy)


def test_the_boundary_knows_only_how_long_learning_acts():
    """n·T/τ_w is all that counts: ten times T is as good as ten times α."""
    longer = study.boundary(TINY, 40.0, 1e-4)
    assert longer == pytest.approx(study.boundary(TINY, 4.0, 1e-3), rel=1e-9)
    early = [study.boundary(TINY, present, 1e-7) for present in (4.0, 40.0)]
    assert early[0] == pytest.approx(10 * early[1], rel=0.05), "as 1/T while nothing has settled"
