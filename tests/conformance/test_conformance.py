"""One set of cases for all backends: each agrees with the reference, or says why it cannot.

A gap that an adapter lists is tested too: when it begins to work, its test fails.
"""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from adapter import Gap, differences
from brian2 import prefs
from brian_adapter import CYTHON, NUMPY
from cases import CASES
from continuous_adapter import CONTINUOUS
from discrete_adapter import COMPILED, DISCRETE
from native_adapter import NATIVE

from pcsim.circuit import Circuit
from pcsim.errors import ConfigError, UnsupportedError

LIMIT = 1e-12
OTHER = 1e-6
"""Above this, two backends compute different things."""
ADAPTERS = {adapter.name: adapter for adapter in (CONTINUOUS, DISCRETE, COMPILED, NUMPY, NATIVE)}


def _testable(adapter, case):
    """Whether there is a refusal to see, or a reference to agree with or to differ from."""
    refuses = any(gap.refused for gap in adapter.gaps_of(case))
    return refuses or not CONTINUOUS.gaps_of(case)


PAIRS = [
    (adapter.name, case.name)
    for adapter in ADAPTERS.values()
    for case in CASES.values()
    if _testable(adapter, case)
]


@cache
def reference(name):
    """Return the trajectory of the continuous backend, in which something happens."""
    case = CASES[name]
    found = CONTINUOUS.run(case)
    assert case.steps >= 500
    assert max(np.abs(rows).max() for rows in found.values()) < 20, "control: nothing blew up"
    if case.mode != "free":
        assert np.ptp(found["w0"], axis=0).max() > 0.02, "control: weights have moved"
    # Brian2 keeps no separate rows for chips: what is compared must differ between them.
    assert np.ptp(found["x0" if case.mode == "free" else "x1"], axis=1).max() > 1e-3
    return found


def compared(adapter, case):
    return differences(reference(case.name), adapter.run(case), adapter.not_shown(case))


def check(adapter, case):
    """Fail unless the backend agrees with the reference, or has the gaps that are listed for it."""
    gaps = adapter.gaps_of(case)
    refused = [gap.reason for gap in gaps if gap.refused]
    if refused:
        with pytest.raises((UnsupportedError, ConfigError), match=f"(?s){refused[0]}"):
            adapter.run(case)
    elif gaps:
        expected, found = reference(case.name), adapter.run(case)
        shared = sorted(expected.keys() & found.keys())
        apart = differences(*({name: rows[name] for name in shared} for rows in (expected, found)))
        assert max(apart.values()) > OTHER, f"works now: {gaps}"
    elif adapter is CONTINUOUS:
        assert reference(case.name)
    else:
        found = compared(adapter, case)
        assert max(found.values()) <= LIMIT, found


@pytest.mark.parametrize(("adapter", "name"), PAIRS)
def test_agrees_or_says_why_not(adapter, name):
    check(ADAPTERS[adapter], CASES[name])


@pytest.mark.parametrize("refused", [True, False])
def test_a_gap_that_begins_to_work_is_found(refused):
    gap = Gap.of("circuit algebraic", reason="cannot do that", refused=refused)
    adapter, case = replace(DISCRETE, gaps=(gap,)), CASES["linear"]
    with pytest.raises((AssertionError, pytest.fail.Exception), match=r"works now|DID NOT RAISE"):
        check(adapter, case)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_listed_gap_has_a_case_of_its_own(adapter):
    """A gap that no case meets, or that always hides behind another, is not tested."""
    adapter = ADAPTERS[adapter]
    alone = [gaps[0] for case in CASES.values() if len(gaps := adapter.gaps_of(case)) == 1]
    assert [gap.features for gap in adapter.gaps if gap not in alone] == []


def test_the_cases_cover_what_there_is():
    """Every circuit with every mode and transport, by pairs; and every field of a circuit."""
    seen = [case.features for case in CASES.values() if not CONTINUOUS.gaps_of(case)]
    kinds = [f"circuit {kind}" for kind in ("algebraic", "error_units", "dendritic")]
    modes = [f"mode {mode}" for mode in ("supervised", "generative", "free")]
    transports = [f"transport {t}" for t in ("shared", "random", "sign", "kolen_pollack")]
    for first, second in ((kinds, modes), (kinds, transports), (modes, transports)):
        missing = [{a, b} for a in first for b in second if not any({a, b} <= s for s in seen)]
        assert missing == []
    circuits = [case.circuit for case in CASES.values() if not CONTINUOUS.gaps_of(case)]
    usual = Circuit()
    fields = {
        name
        for name in Circuit.model_fields
        if all(getattr(circuit, name) == getattr(usual, name) for circuit in circuits)
    }
    assert fields == {"sigma_x"}, "noise agrees in the mean only: test_conformance_noise.py"


def test_a_change_of_one_part_in_a_billion_is_seen():
    case = CASES["lags supervised random"]
    circuit = case.circuit.model_copy(update={"tau_apical": 0.3 * (1 + 1e-9)})
    found = CONTINUOUS.run(replace(case, circuit=circuit))
    assert max(differences(reference(case.name), found, set()).values()) > LIMIT


@pytest.fixture
def compiled_fast(monkeypatch):
    """Without optimisation, which takes most of a compiler's time and none of the meaning.

    Brian2 finds a library by its text alone: these are kept apart from those that users run.
    """
    monkeypatch.setitem(prefs, "codegen.cpp.extra_compile_args", ["-w", "-O0", "-g0"])
    folder = str(Path.home() / ".cython" / "pcsim_tests")
    monkeypatch.setitem(prefs, "codegen.runtime.cython.cache_dir", folder)


@pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="Cython needs a C++ compiler"
)
@pytest.mark.parametrize("name", ["one map, late", "one map, lags"])
def test_compiled_code(name, compiled_fast):
    """Each of Brian2's objects is compiled, once per machine: few cases, in which much happens."""
    found = compared(CYTHON, CASES[name])
    assert max(found.values()) <= LIMIT, found
