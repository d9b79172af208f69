"""Runs by compiled steps: those of torch, whoever else runs along, however work is divided."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from adapter import differences
from case import DT, Case
from cases import CASES
from continuous_adapter import CONTINUOUS
from native_adapter import NATIVE
from random_runs import configuration

from pcsim import config, run
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Algebraic, Dendritic
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.native import call, compiler
from pcsim.native.engine import Native
from pcsim.network import Network
from pcsim.runner.chip_run import ChipRun
from pcsim.substrate import Chips, Seeded

EVERYTHING = (17, 22, 28, 33, 34, 36, 40, 50, 53, 62, 70, 88, 104, 125)
"""Among them are all circuits, streams, biases, delays and nearly all pieces of hardware."""


def made(number, engine, batch, **fields):
    sections = configuration(number, "continuous")
    sections["run"] |= {"engine": engine, **fields}
    sections["learning"]["batch"] = batch
    return run(config.pruned(sections, "at random")[0])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("number", EVERYTHING)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_whole_runs_are_those_of_torch(number, batch):
    theirs, ours = (made(number, engine, batch) for engine in ("torch", "native"))
    assert ours.variables.keys() == theirs.variables.keys()
    assert (ours.attrs["engine"], theirs.attrs["engine"]) == ("native", "torch")
    # Verdicts follow from what is compared here, by thresholds that round-off may cross.
    for name in [n for n in theirs.variables if not n.startswith("verdict.")]:
        expected = np.nan_to_num(theirs[name].astype(float), posinf=1e300)
        found = np.nan_to_num(ours[name].astype(float), posinf=1e300)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10, err_msg=name)
    assert float(np.abs(theirs["weight_change"]).max()) > 1e-5, "control: weights have moved"


@pytest.mark.parametrize("number", [17, 33, 53, 88])
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_single_precision(number):
    """A hundred steps or fewer, in which nothing amplifies round-off: 2⁻²⁴ each."""
    theirs, ours = (made(number, engine, 2, dtype="float32") for engine in ("torch", "native"))
    for name in ("energy", "weight_change", "parameters"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-4, atol=2e-5, err_msg=name)


NETWORK = Network.mlp([5, 7, 3], "tanh")
READ = {"kind": "read_noise", "where": "weight", "sigma": 0.1}
CYCLES = {"kind": "linear_device", "dw_min": 0.01, "w_max": 1.5, "w_min": -1.5, "cycle_noise": 0.3}


OUTPUTS = {"kind": "read_noise", "where": "output", "sigma": 0.5}


def pieces(**more):
    from hw_models import describe

    return describe("ideal", {**more, "read": READ, "cycles": CYCLES}).substrate()


def population(ids, threads=1, samples=1, circuit=None, engine=Native, **more):
    """Return chips after two presentations, with noise of the circuit, of reads and of writes."""
    circuit = circuit or Algebraic(tau_w=5.0, sigma_x=0.1)
    flat = torch.stack(
        [
            torch.as_tensor(np.random.default_rng(k).normal(0, 0.4, NETWORK.parameter_count))
            for k in ids
        ]
    )
    noise = Seeded(4, ids)
    chips = Chips(pieces(**more), ids, seed=2, dt=DT, noise=noise, dtype=torch.float64)
    own = {"noise": Seeded(9, ids), "threads": threads}
    if engine is Continuous:
        drawn = Seeded(9, ids)
        own = {
            "fast": False,
            "draw": lambda state, like: drawn.draw(f"soma.{state}", "normal", like, built[0].steps),
        }
    built = [
        engine(
            NETWORK,
            Parameters(NETWORK, flat),
            circuit,
            dt=DT,
            solver_name="maruyama",
            seeds=ids,
            chips=chips,
            **own,
        )
    ]
    return built[0], chips


def show(chips, ids, sample, samples, steps):
    rng = [np.random.default_rng([sample, k]) for k in ids]
    data = [
        torch.as_tensor(np.stack([r.normal(size=(samples, n.units)) for r in rng]))
        for n in NETWORK.nodes
    ]
    chips.load([data[0], None, data[2]])
    chips.advance(steps)


def shown(chips):
    return {n: t.clone() for n, t in (chips.flow.states() | {"w": chips.params.flat}).items()}


@pytest.mark.parametrize("kind", [Algebraic, Dendritic])
def test_noise_of_the_circuit_reads_and_writes_is_that_of_torch(kind):
    ids, found = [3, 8], []
    for engine in (Native, Continuous):
        chips, _ = population(ids, engine=engine, circuit=kind(tau_w=5.0, sigma_x=0.1))
        for sample in range(2):
            show(chips, ids, sample, 1, 250)
        found.append(shown(chips))
    for name, expected in found[1].items():
        torch.testing.assert_close(found[0][name], expected, rtol=1e-12, atol=1e-12, msg=name)
    assert float(found[1]["x1"].abs().max()) > 1e-2


@pytest.mark.parametrize("samples", [1, 4])
def test_a_chip_alone_is_the_chip_among_others_and_threads_change_nothing(samples):
    """Bit for bit."""
    ids = [5, 2, 9, 7, 1]
    results = {}
    for threads in (1, 2, 3):
        chips, _ = population(ids, threads)
        show(chips, ids, 0, samples, 40)
        results[threads] = shown(chips)
    for name, value in results[1].items():
        assert torch.equal(value, results[2][name])
        assert torch.equal(value, results[3][name])
    for row, k in enumerate(ids):
        alone, _ = population([k])
        show(alone, [k], 0, samples, 40)
        for name, value in shown(alone).items():
            assert torch.equal(value[0], results[1][name][row]), (k, name)
    assert not torch.equal(results[1]["w"][0], results[1]["w"][1]), "control"


def test_a_chip_alone_is_the_chip_among_a_thousand():
    """Bit for bit."""
    ids = list(range(1000))
    many, _ = population(ids, threads=2)
    show(many, ids, 0, 1, 10)
    together = shown(many)
    for k in (0, 500, 999):
        alone, _ = population([k])
        show(alone, [k], 0, 1, 10)
        for name, value in shown(alone).items():
            assert torch.equal(value[0], together[name][k]), (k, name)
    assert not torch.equal(together["w"][0], together["w"][999]), "control"


@pytest.mark.parametrize("engine", [Native, Continuous])
def test_an_unrelated_source_changes_nothing(engine):
    """Bit for bit: noise of what is read out is no noise of what learns."""
    ids, found = [5, 2], []
    loud = OUTPUTS | {"where": "rate"}
    for more in ({}, {"outputs": OUTPUTS}, {"rates": loud}):
        chips, _ = population(ids, engine=engine, **more)
        show(chips, ids, 0, 1, 30)
        found.append(shown(chips))
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())
    assert not torch.equal(found[0]["w"], found[2]["w"]), "control: a related one"


def test_steps_at_once_are_steps_one_by_one():
    ids = [5, 2]
    found = []
    for parts in ([40], [1] * 40, [7, 33]):
        chips, _ = population(ids)
        show(chips, ids, 0, 2, 0)
        for steps in parts:
            chips.advance(steps)
        found.append(shown(chips))
    for other in found[1:]:
        assert all(torch.equal(value, other[name]) for name, value in found[0].items())


def test_interrupted_is_uninterrupted():
    ids = [5, 2]
    whole, _ = population(ids)
    show(whole, ids, 0, 2, 40)
    first, hardware = population(ids)
    show(first, ids, 0, 2, 13)
    kept = {n: t.clone() for n, t in first.state().items()}
    memory = {n: t.clone() for n, t in hardware.state().items()}
    second, hardware = population(ids)
    second.restore(kept)
    hardware.restore(memory)
    second.advance(27)
    expected = shown(whole)
    assert all(torch.equal(value, expected[name]) for name, value in shown(second).items())


def test_stopped_chips_stand_still_and_the_others_go_on():
    ids = [5, 2, 9]
    free, _ = population(ids)
    show(free, ids, 0, 1, 30)
    held, _ = population(ids)
    show(held, ids, 0, 1, 10)
    before = shown(held)
    held.stop(torch.tensor([False, True, False]))
    held.advance(20)
    after, expected = shown(held), shown(free)
    assert torch.equal(after["w"][1], before["w"][1])
    assert torch.equal(after["x1"][1], before["x1"][1])
    for row in (0, 2):
        assert torch.equal(after["w"][row], expected["w"][row])


REFUSED = {
    "solver": ({"solver_name": "rk4"}, "solver.name 'rk4'"),
    "f": ({"network": Network.mlp([3, 4, 2], "gelu")}, "network.f 'gelu'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused_by_name(name):
    fields, reason = REFUSED[name]
    network = fields.get("network", NETWORK)
    params = Parameters(network, torch.zeros(1, network.parameter_count))
    own = {"network": network, "circuit": Algebraic(tau_w=5.0)} | fields
    with pytest.raises(UnsupportedError, match=reason):
        Native(params=params, dt=0.1, **own)


LONG = {
    "network": {"sizes": [64, 4, 10]},
    "schedule": {"T": 100, "gamma": 0.2},
    "learning": {"alpha": 0.001, "batch": 1, "epochs": 1},
    "data": {"name": "digits", "limit": 20, "limit_test": 5},
    "run": {"backend": "continuous"},
}
CHOICES = {
    "long": ({}, "native", ""),
    "short": ({"schedule": {"T": 99}}, "torch", "1980 steps is shorter"),
    "refused": ({"solver": {"name": "rk4"}}, "torch", "solver.name 'rk4'"),
    "asked": ({"run": {"engine": "torch"}}, "torch", "asks for it"),
    "fast": ({"schedule": {"fast": True}}, "torch", "schedule.fast is set"),
    "wide": ({"network": {"sizes": [64, 2000, 10]}}, "torch", "followed there"),
    "full batch": (
        {
            "network": {"sizes": [64, 300, 10]},
            "learning": {"batch": 300},
            "data": {"limit": 600},
            "schedule": {"T": 1000},
        },
        "torch",
        "products of this size",
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_choice_of_auto_is_said(name):
    sections, engine, reason = CHOICES[name]
    merged = {part: {**LONG.get(part, {}), **sections.get(part, {})} for part in LONG | sections}
    about = ChipRun(config.parse(merged, "test")).engine.about()
    assert about["engine"] == engine
    assert reason in str(about.get("engine_reason", ""))
    assert bool(about.get("engine_reason")) == (engine == "torch")


def test_auto_without_a_compiler_takes_torch_and_says_so(monkeypatch, tmp_path):
    compiler.library.cache_clear()
    monkeypatch.setenv("CC", str(tmp_path / "no-such-compiler"))
    about = ChipRun(config.parse(LONG, "test")).engine.about()
    assert about["engine"] == "torch"
    assert "no C compiler found" in str(about["engine_reason"])
    compiler.library.cache_clear()


def build():
    params = Parameters(NETWORK, torch.zeros(1, NETWORK.parameter_count))
    return Native(NETWORK, params, Algebraic(tau_w=5.0), dt=0.1)


def test_bad_environments_are_refused_in_one_sentence(monkeypatch, tmp_path):
    compiler.library.cache_clear()
    monkeypatch.setenv("CC", str(tmp_path / "no-such-compiler"))
    with pytest.raises(UnsupportedError, match=r"engine native: no C compiler found.*'torch'"):
        build()
    broken = tmp_path / "cc"
    broken.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'it is broken' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    compiler.library.cache_clear()
    with pytest.raises(UnsupportedError, match="it is broken"):
        build()
    monkeypatch.delenv("CC")
    compiler.library.cache_clear()


def test_a_cache_that_cannot_be_written_costs_time_only(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr("pcsim.native.compiler.pooch.os_cache", lambda name: blocked)
    compiler.library.cache_clear()
    with pytest.warns(compiler.CacheWarning, match="cannot be written"):
        assert isinstance(build(), Native)
    compiler.library.cache_clear()


def test_code_of_another_processor_is_never_loaded(monkeypatch, tmp_path):
    """A home folder that an old machine shares: every processor has its own code there."""
    monkeypatch.setattr("pcsim.native.compiler.pooch.os_cache", lambda name: tmp_path)
    found = []
    for flags in ("flags: avx512f", "flags: avx512f", "flags: sse2"):
        monkeypatch.setattr(compiler, "_processor", lambda flags=flags: flags)
        compiler.library.cache_clear()
        assert compiler.library("int pcsim_probe;\n").code is not None
        found.append(len(list((tmp_path / "native").glob("*.so"))))
    compiler.library.cache_clear()
    assert found == [1, 1, 2]


def test_one_wrong_number_in_the_code_is_seen(monkeypatch):
    """Control: the comparison with torch finds a constant that is off by one part in a billion."""
    case: Case = replace(CASES["linear"], name="linear")
    expected = CONTINUOUS.run(case)
    original = call.evaluate
    monkeypatch.setattr(call, "evaluate", lambda node, known: original(node, known) * (1 + 1e-9))
    assert max(differences(expected, NATIVE.run(case)).values()) > 1e-12


def test_memory_of_another_size_never_reaches_the_code():
    chips, _ = population([5, 2])
    show(chips, [5, 2], 0, 1, 1)
    chips.held_clamps[0, "x"] = torch.zeros(2, 1, 99, dtype=torch.float64)
    chips._ready = None
    with pytest.raises(UnsupportedError, match=r"x of g0: \(2, 1, 99\) numbers.* takes 3 of each"):
        chips.advance(1)
