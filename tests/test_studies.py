"""What scaled studies share: cells that resume, claims that are kept, scales by command line."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from rich.table import Table

from pcsim import store
from pcsim.architectures.mlp import Mlp
from pcsim.cli import experiment, main
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.experiments.common import claims, keeping, scaled
from pcsim.experiments.common.claims import Claim, Verdict
from pcsim.experiments.common.falling_curves import effort_to_reach, speed_up
from pcsim.experiments.complexity import study as complexity
from pcsim.experiments.fullbatch_efficiency import study as fullbatch_efficiency
from pcsim.experiments.generative_efficiency import study as generative_efficiency
from pcsim.experiments.generative_efficiency.recall import RecallSetting
from pcsim.experiments.hyperparameter_convergence import study as hyperparameter_convergence
from pcsim.experiments.mlp_classification import study as mlp_classification
from pcsim.experiments.update_time import study as update_time
from pcsim.experiments.weight_transport import study as weight_transport
from pcsim.frozen import Frozen
from pcsim.store import Result, Variable
from pcsim.store.files import MADE_BY_PCSIM
from pcsim.store.parts import Parts
from pcsim.sweep import collect

SCALED = [
    n
    for n in experiment.names()
    if hasattr(import_module(f"pcsim.experiments.{n}.study"), "SCALES")
]


def cell(value: float) -> Result:
    return Result({"value": Variable((), np.array(value))})


def test_an_interrupted_study_goes_on_with_the_missing_cells(tmp_path):
    done: list[str] = []

    def measure(name: str, value: float) -> Result:
        done.append(name)
        return cell(value)

    def stop() -> Result:
        raise KeyboardInterrupt

    jobs = {name: partial(measure, name, k) for k, name in enumerate("abc")}
    with pytest.raises(InterruptedRunError, match=r"2 of 3 cells are safe in .*the same command"):
        collect({**jobs, "c": stop}, tmp_path, "s")
    assert done == ["a", "b"]
    found = collect(jobs, tmp_path, "s")
    assert done == ["a", "b", "c"]
    assert [float(one["value"]) for one in found.values()] == [0, 1, 2]
    collect(jobs, tmp_path, "s")
    assert len(done) == 3
    collect(jobs, tmp_path, "another setting")
    assert done == ["a", "b", "c", *"abc"]
    Parts(tmp_path).forget()
    assert not tmp_path.exists()


@pytest.mark.slow
def test_processes_find_what_one_process_finds(tmp_path):
    setting = fullbatch_efficiency.Setting(
        data="digits", images=20, test_images=20, hidden=6, smms=24, points=2, seeds=(0, 1)
    )
    images, _ = fullbatch_efficiency.load(setting)
    jobs = {
        rule: partial(fullbatch_efficiency.train, setting, 3, rule, ("sgd", 1e-3), images)
        for rule in ("BP", "iPC")
    }
    alone = collect(jobs, tmp_path / "one", "s")
    together = collect(jobs, tmp_path / "two", "s", workers=2)
    assert list(together) == list(alone)
    for name, one in alone.items():
        for variable in one.variables:
            np.testing.assert_allclose(together[name][variable], one[variable], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """Two of three cells are under way, each far longer than the test waits."""
    program = f"""
import os
from functools import partial
from pathlib import Path
from pcsim.sweep import collect

if __name__ == "__main__":
    folder = {str(tmp_path)!r}
    long = "echo $PPID > {{}}/{{}}; exec sleep 20"
    jobs = {{name: partial(os.system, long.format(folder, name)) for name in "abc"}}
    collect(jobs, Path(folder), "s", workers=2)
"""
    (tmp_path / "program.py").write_text(program)
    root = str(Path(store.__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "program.py"], env={**os.environ, "PYTHONPATH": root}
    )
    numbers = [tmp_path / "a", tmp_path / "b"]
    wait_until(lambda: all(n.exists() and n.read_text().strip() for n in numbers))
    workers = [int(n.read_text()) for n in numbers]
    assert all(map(alive, workers))
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(map(alive, workers)), 10)
    assert not (tmp_path / "c").exists()


def alive(process: int) -> bool:
    """Return whether a process runs; one that is dead and not yet buried does not."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Look again and again, and fail after a while."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_claims_survive_the_store(tmp_path):
    made = [
        Claim("water is wet", Verdict.HOLDS, "3 of 3"),
        Claim("ε falls", claims.judged(False), "γ = 0.5"),
        Claim("for all L", Verdict.OPEN, "L ≤ 4 only"),
    ]
    store.save(Result(claims.variables(made)), tmp_path / "a.h5")
    assert claims.stored(store.load(tmp_path / "a.h5")) == made


def test_speed_up_of_known_curves():
    effort = np.arange(1.0, 101.0)
    assert effort_to_reach(effort, 100 - effort, 40) == 60
    assert effort_to_reach(effort, 100 - effort, -1) == np.inf
    # e^{−3n} reaches any level three times as early as e^{−n}
    fast, slow = np.exp(-0.03 * effort), np.exp(-0.01 * effort)
    assert speed_up(effort, fast, effort, slow) == pytest.approx(100 / 34)
    assert speed_up(effort, slow, effort, fast) == 0
    assert speed_up(effort, np.full(100, np.nan), effort, slow) == 0
    assert speed_up(effort, fast, effort, np.full(100, np.nan)) == np.inf


@pytest.mark.parametrize("name", SCALED)
def test_every_scaled_study_has_two_scales_and_a_page(name):
    module = import_module(f"pcsim.experiments.{name}.study")
    assert {"small", "paper"} <= set(module.SCALES)
    page = Path(__file__).parents[1] / "docs" / getattr(module, "PAGE", f"paper_{name}.md")
    assert f"pcsim experiment {name}" in page.read_text(encoding="utf-8")


def call(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["pcsim", "experiment", *arguments])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_small_is_the_default_scale(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(complexity.SCALES, "small", complexity.Setting(deepest=4, T=3, updates=1))
    assert call(monkeypatch, "complexity", "-o", str(tmp_path)) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "complexity_small.h5",
        "complexity_small.png",
    ]
    result = store.load(tmp_path / "complexity_small.h5")
    assert (result.attrs["scale"], result["depth"].tolist()) == ("small", [2, 3, 4])
    assert [claim.verdict for claim in claims.stored(result)] == [Verdict.HOLDS] * 3
    assert "5 full, 2 partial" in capsys.readouterr().out


TINY = {
    "fullbatch_efficiency": fullbatch_efficiency.Setting(
        data="digits",
        images=20,
        test_images=20,
        hidden=6,
        depths=(2,),
        smms=48,
        points=3,
        seeds=(0,),
    ),
    "generative_efficiency": generative_efficiency.Setting(
        data=("digits",),
        images=10,
        networks=((6, 2),),
        variants=(("sgd", 1e-3, 0.1), ("adam", 1e-3, 0.1)),
        iterations=16,
        recall=RecallSetting(width=8, depth=2, iterations=16, recall_steps=5, shown=2),
        recall_data="digits",
    ),
    "update_time": update_time.Setting(
        hidden_layers=(1, 2), widths=(4, 8), seconds=0.01, rounds=2, threads=(1,)
    ),
    "mlp_classification": mlp_classification.Setting(
        data=("digits",),
        network=Mlp(sizes=(64, 6, 10)),
        alphas=(1e-3, 1e-2),
        weight_decays=(0.1,),
        gammas=(0.5,),
        T=3,
        search=mlp_classification.Stage(limit=400, validation=100, epochs=1, seeds=(0,)),
        report=mlp_classification.Stage(limit=400, validation=100, epochs=2, seeds=(0, 1)),
    ),
    "hyperparameter_convergence": hyperparameter_convergence.Setting(
        trials=(
            hyperparameter_convergence.Trial(
                name="tiny", data="digits", network=Mlp(sizes=(64, 6, 10))
            ),
        ),
        alphas=(1e-3, 1e-2),
        weight_decays=(0.1,),
        gammas=(0.1, 0.5),
        T=2,
        limit=400,
        epochs=2,
    ),
    "weight_transport": weight_transport.Setting(
        data="digits",
        network=Mlp(sizes=(64, 6, 6, 10)),
        alphas=(1e-3,),
        T=3,
        limit=300,
        validation=100,
        epochs=1,
        seeds=(0, 1),
        records=5,
    ),
}


WITH_TABLE = ("mlp_classification", "hyperparameter_convergence")


@pytest.mark.parametrize("name", TINY)
def test_a_study_leaves_result_and_figures_and_no_cells(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        import_module(f"pcsim.experiments.{name}.study").SCALES, "small", TINY[name]
    )
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    assert call(monkeypatch, name, "--scale", "small", "-o", str(tmp_path)) == 0
    made = {p.name for p in tmp_path.iterdir()}
    recall = {f"{name}_small_recall.png"} if name.startswith("gen") else set()
    table = {f"{name}_small.csv"} if name in WITH_TABLE else set()
    assert made == {f"{name}_small.h5", f"{name}_small.png"} | recall | table
    result = store.load(tmp_path / f"{name}_small.h5")
    assert result.attrs["setting"] == TINY[name].model_dump_json()
    printed = capsys.readouterr().out
    for claim in claims.stored(result):
        assert claim.verdict.value in printed
    if name in WITH_TABLE:
        draws_again(name, tmp_path, monkeypatch)


def draws_again(name, folder, monkeypatch):
    """Figure and table of a stored result are made again, pixel by pixel, and nothing is run."""
    (path,), (table,) = folder.glob("*.png"), folder.glob("*.csv")
    pixels, text = imread(path), table.read_text(encoding="utf-8")
    path.unlink()
    table.unlink()
    assert call(monkeypatch, name, "--figures", "-o", str(folder)) == 0
    np.testing.assert_array_equal(imread(path), pixels)
    assert table.read_text(encoding="utf-8") == text


def test_every_study_with_claims_draws_its_own_results_again():
    studies = {n: import_module(f"pcsim.experiments.{n}.study") for n in SCALED}
    drawn = {name: study for name, study in studies.items() if hasattr(study, "figures")}
    assert set(TINY) | {"alexnet", "masked_lm", "robustness", "width"} <= set(drawn)
    for name, study in drawn.items():
        module, shown, scales = study.figures.args
        assert (Path(module).parent.name, scales) == (name, study.SCALES)
        assert callable(shown) or shown.figures, "a function says it for each result"


class Toy(Frozen):
    size: int = 1


def test_figures_and_tables_are_made_from_beside_the_study_or_refused(tmp_path, capsys):
    def draw(found, path):
        path.write_bytes(MADE_BY_PCSIM.encode() + str(float(found["value"])).encode())
        return path

    shown = scaled.Shown(
        lambda found: [Table(f"value {float(found['value'])}")],
        {"": draw, "_again": draw},
        lambda found: [{"value": str(float(found["value"]))}],
    )
    scales, beside = {"small": Toy()}, tmp_path / "toy"
    beside.mkdir()
    redraw = partial(scaled.redraw, str(beside / "study.py"), shown, scales, tmp_path / "out")
    with pytest.raises(StoreError, match=r"there is no result toy_\*.h5 .* pcsim experiment toy"):
        redraw()
    values, found = (
        {"value": Variable((), np.array(1.0))},
        [Claim("it grows", Verdict.HOLDS, "1 > 0")],
    )
    scaled.begin("toy", scales, "small", beside).publish(values, {}, found, shown)
    capsys.readouterr()
    redraw()
    told = capsys.readouterr().out
    assert "value 1.0" in told
    assert "it grows" in told, "claims are told as they were stored"
    for name in ("toy_small.png", "toy_small_again.png", "toy_small.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (beside / name).read_bytes()
    # A result of one's own goes before the kept one.
    scaled.begin("toy", scales, "small", tmp_path / "out").publish(
        {"value": Variable((), np.array(2.0))}, {}, found, shown
    )
    redraw()
    assert (tmp_path / "out/toy_small.png").read_bytes().endswith(b"2.0")
    (tmp_path / "out/toy_small.h5").unlink()
    keeping.keep(Result(values), beside / "other_small.h5", "other")
    (beside / "other_small.h5").replace(beside / "toy_small.h5")
    with pytest.raises(StoreError, match="was not made by the study"):
        redraw()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("speed", "--figures"), "'speed' keeps no result to draw again"),
        (("width", "--figures", "--scale", "small"), "only --out goes with it"),
        (("speed", "--scale", "small"), "--scale small: 'speed' has no scales"),
        (("speed", "--part", "wide"), "--part wide: choose one of compiled, discrete"),
        (("stability", "--part", "wide"), "--part wide: 'stability' has none"),
        (("complexity", "--scale", "huge"), "has no such scale; choose one of small, paper"),
    ],
)
def test_scales_that_are_refused(arguments, words, monkeypatch, capsys):
    assert call(monkeypatch, *arguments) == 2
    assert words in capsys.readouterr().err
