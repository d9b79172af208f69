"""Damaged and extreme configurations through the command line: a result, or one sentence."""

import runpy
import sys
import warnings
from pathlib import Path

import fuzz_world
import numpy as np
import pytest
import torch

from pcsim import cli, config, store
from pcsim.backends.discrete import Discrete
from pcsim.cli.exit_codes import OF_NO_USE, USER_ERROR
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.sweep.outcome import outcome_of

EXAMPLES = runpy.run_path(str(Path(__file__).parent / "hw_models" / "kinds.py"))["EXAMPLES"]
RUNS, BLOCKS = 8, 4
FINAL = ("parameters", "train_energy", "accuracy")
"""What is not finite in a result only if it has diverged."""


def fuzzed(seed):
    return fuzz_world.damaged(seed) if seed % 4 == 0 else fuzz_world.extreme(seed, EXAMPLES)


@pytest.fixture
def pcsim_run(tmp_path, monkeypatch, capsys):
    """Return what runs data by `pcsim run`: exit code, error output and file of the result.

    Any exception that is no sentence for a person comes through.
    """

    def invoke(data, name):
        file, target = tmp_path / f"{name}.toml", tmp_path / f"{name}.h5"
        file.write_text("")
        monkeypatch.setattr(config, "load", lambda *_: config.parse(data, f"{name}.toml"))
        monkeypatch.setattr(sys, "argv", ["pcsim", "run", str(file), "-o", str(target)])
        capsys.readouterr()
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                cli.main()
            except SystemExit as end:
                code = end.code
        return code, capsys.readouterr(), target

    return invoke


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_result_or_one_sentence(block, pcsim_run):
    for seed in range(RUNS * block, RUNS * (block + 1)):
        code, said, target = pcsim_run(fuzzed(seed), f"run{seed}")
        if code == USER_ERROR:
            assert len(said.err.strip().splitlines()) == 1, said.err
            assert said.err.startswith("error: ")
            assert not target.exists()
            continue
        assert code in (0, OF_NO_USE), said.err
        result = store.load(target)
        state, reason = outcome_of(result)
        finite = all(np.isfinite(result[n]).all() for n in FINAL if n in result.variables)
        assert finite or "diverged" in reason, seed
        assert reason in said.out
        assert (code == OF_NO_USE) == (state == "diverged")


def test_both_kinds_of_ends_occur():
    """The fuzz would show nothing if all or none of it were refused by the first validation."""
    accepted = 0
    for seed in range(BLOCKS * RUNS):
        try:
            config.parse(fuzzed(seed))
        except config.ConfigError:
            continue
        accepted += 1
    assert 0.3 < accepted / (BLOCKS * RUNS) < 0.8


def test_a_presentation_of_any_length_starts_at_once():
    network = config.parse({"network": {"sizes": [64, 4, 10]}}).network.build()
    params = initial_parameters(network, [0], torch.float32)
    rule = Discrete(network, params, Schedule(T=2**31 - 1), Optimizer(OptimizerSpec(), params, 0.1))
    plans = [rule._planned_step(t) for t in (0, 1, 2, 3, 4, 5, 6, 7, 2**30, 2**31 - 2)]
    assert plans == [rule._plan(t) for t in (0, 1, 2, 3, 4, 5, 6, 7, 2**30, 2**31 - 2)]
