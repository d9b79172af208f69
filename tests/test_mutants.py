"""The list of mutants fits the source: each text occurs once, and its tests exist."""

import pytest

from tests.mutation.mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.file}:{m.old[:30]}->{m.new[:20]}")
def test_each_mutant_can_be_applied(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, mutant.old
    assert mutant.old != mutant.new
    assert all((ROOT / name).is_file() for name in mutant.tests)


def test_there_are_enough():
    assert len(MUTANTS) >= 60
    assert len(set(MUTANTS)) == len(MUTANTS)
