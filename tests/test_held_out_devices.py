"""Figures of another simulator, kept as data, beside ours."""

import numpy as np
import pytest

from pcsim.experiments.held_out_devices import study


def test_the_figures_are_those_that_were_published():
    figures = {row.device: row.accuracy for row in study.published()}
    assert figures == pytest.approx(
        {
            "EcRam": 0.901,
            "EcRamMO": 0.907,
            "Capacitor": 0.879,
            "GokmenVlasov": 0.910,
            "Idealized": 0.913,
            "ReRamES": 0.163,
            "ReRamSB": 0.130,
            "ReRamArrayOM": 0.099,
            "ReRamArrayHfO2": 0.099,
            "PCM": 0.101,
        }
    )


@pytest.mark.parametrize("preset", ["reram_sb", "ecram_li", "gokmen_vlasov"])
def test_ours_agree(preset):
    """With write noise that is never redrawn, reram_sb would come to 80 % and more."""
    figure = next(row.accuracy for row in study.published() if row.preset == preset)
    found = study.accuracies(preset, chips=8)
    assert study.agrees(figure, found), (figure, found)
    assert not study.agrees(figure, found + 0.3), "control"


def test_agreement_has_limits():
    chips = np.linspace(0.5, 0.6, 101)
    assert study.agrees(0.46, chips)
    assert study.agrees(0.64, chips)
    assert not study.agrees(0.44, chips)
    assert not study.agrees(0.66, chips)
