"""Moves of code are moves: the stored results come out again."""

import json

import numpy as np
import pytest
from golden import CASES, HARDWARE, STORE, summary

STORED = json.loads(STORE.read_text())


def test_every_case_is_stored():
    assert set(STORED) == set(CASES)


@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
@pytest.mark.parametrize("name", CASES)
def test_result_is_the_stored_one(name):
    found, expected = summary(CASES[name]), STORED[name]
    assert set(found) == set(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-8, atol=1e-10, err_msg=key)


def test_cases_differ():
    """Control: no two cases are one and the same, but for those that are equal by law."""

    def equal_by_law(first, second):
        """Euler's rule is discrete iPC, on hardware too; and so are quasi-static dendrites."""
        stems = {name.rpartition("_")[0] for name in (first, second) if name in HARDWARE}
        return {first, second} <= {"algebraic", "ipc", "dendritic"} or (
            {first, second} <= set(HARDWARE) and len(stems) == 1
        )

    names = [name for name in CASES if len(STORED[name]["weights"]) == 2]
    for k, first in enumerate(names):
        for second in names[:k]:
            # Loihi's states are rounded to 24 bits: round-off may fall to either side.
            same = np.allclose(STORED[first]["weights"], STORED[second]["weights"], atol=1e-6)
            assert same == equal_by_law(first, second), (first, second)
