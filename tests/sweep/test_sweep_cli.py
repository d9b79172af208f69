"""`pcsim sweep`: what it prints, and how it ends."""

import sys

import pytest

from pcsim import cli
from pcsim.store import load
from pcsim.sweep import execute

STUDY = """
[network]
sizes = [64, 5, 10]
[learning]
batch = 20
epochs = 1
[data]
limit = 40
[sweep.axes]
"schedule.rule" = ["ipc", "bp"]
learning.alpha = { log = [1e-4, 1e-2, 3] }
"""


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command line in an empty folder with `study.toml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "study.toml").write_text(STUDY)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", "sweep", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_sweep_and_status(call, tmp_path, monkeypatch):
    assert call("study.toml", "--status")[1] == "0 of 6 points done, 6 missing, not running now\n"
    with monkeypatch.context() as patch:
        original, calls = execute.run_config, []

        def stop(config):
            calls.append(config)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return original(config)

        patch.setattr(execute, "run_config", stop)
        code, _, err = call("study.toml")
    assert code == 130
    assert "interrupted: 3 of 6 points are safe in out/study.sweep" in err
    code, out, _ = call("study.toml", "--status")
    assert code == 0
    assert out.startswith("3 of 6 points done, 3 missing")
    code, out, _ = call("study.toml")
    assert code == 0
    assert "2 schedule.rule × 3 learning.alpha, 1 seeds each" in out
    assert "6/6 points" in out
    assert "6 of 6 points done" in out
    assert "stored in out/study.sweep/sweep.h5" in out
    assert "pcsim report out/study.sweep shows it" in out
    merged = load(tmp_path / "out" / "study.sweep" / "sweep.h5")
    rows = [line for line in out.splitlines() if "│ ipc" in line or "│ bp" in line]
    assert len(rows) == 6
    assert f"{100 * merged['accuracy'][1, 2, 0]:.2f}" in rows[5], "every point has its line"
    assert merged["accuracy"].shape == (2, 3, 1)
    assert call("study.toml", "--status")[1] == "6 of 6 points done\n"


def test_run_refuses_a_sweep_and_says_who_takes_it(call, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pcsim", "run", "study.toml"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "study.toml: has a [sweep] section; run it with `pcsim sweep`" in capsys.readouterr().err


def test_failed_points_are_shown_with_their_reason(call):
    change = ("--set", "sweep.axes.data.limit=[40, 10]", "--out", "s")
    code, out, _ = call("study.toml", *change)
    assert code == 0
    assert "6 of 12 points done, 6 failed" in out
    assert "learning.batch: 20 is more than the 10 training samples" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("data.limit=10", "0 of 6 points done, 6 failed"),
        ("sweep.axes.learning.alpha=[1e28, 1e29, 1e30]", "6 of 6 points done, 6 of them diverged"),
    ],
)
def test_a_sweep_without_any_numbers_does_not_end_well(call, change, words):
    code, out, _ = call("study.toml", "--set", change)
    assert words in out
    assert code == 4
    assert call("study.toml", "--set", change, "--status")[0] == 0  # asking is no failure


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.toml",), "nothing.toml: there is no such file"),
        (("study.toml", "--set", "sweep.axes.learning.alpah=[1]"), "did you mean 'alpha'?"),
        (("study.toml", "--set", "learning.epochs=3"), "learning.epochs = 1, not 3"),
        (("study.toml", "--status", "--set", "run.seeds=[1]"), "run.seeds = (0,), not (1,)"),
        (("study.toml", "--workers", "1", "--cluster", "a:1"), "or a cluster"),
        (("study.toml", "--out", "study.toml"), "is there already and holds no sweep"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_sentence(call, tmp_path, arguments, words):
    call("study.toml")
    code, _, err = call(*arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert words in err
