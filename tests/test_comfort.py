"""What a person sees at a Python prompt or in a notebook: short, complete where it says so."""

import builtins
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import pcsim
from pcsim import Dendritic, Learner, Network, Stream, compare, config_of, plots, simulate
from pcsim.check import check
from pcsim.compare import Comparison
from pcsim.errors import StoreError, UnsupportedError
from pcsim.recording import Recording
from pcsim.store import Result, Variable

SMALL = Network.mlp([64, 8, 10])
DIGITS = Stream.of("digits", limit=60, epochs=1)


@pytest.fixture(scope="module")
def chips() -> Recording:
    return simulate(SMALL, DIGITS, circuit=Dendritic(), seeds=(1, 4), chips=2, hardware="ecram_li")


@pytest.fixture(scope="module")
def found():
    config = config_of(
        SMALL, DIGITS, hardware="ecram_li", chips=2, learner=Learner(alpha=0.02), seeds=(0, 1, 2)
    )
    return check(config, twins=False, search=False)


def test_a_prompt_shows_lines_not_pages(chips, found):
    for one in (chips, found, chips.config, chips.verdict(), Result.of(chips)):
        assert len(repr(one)) < 600, type(one)
        assert "array(" not in repr(one)
    assert len(str(chips.config)) < 600
    assert f"ecram_li on digits: {found.outcome}" in repr(found)
    assert repr(Result.of(chips)).startswith("<Result of seed 2, chip 2")


def test_the_short_form_of_a_configuration_tells_what_differs_from_the_defaults():
    config = config_of(SMALL, DIGITS, circuit=Dendritic(tau_x=0.02), seeds=(1, 4))
    settings = config.settings()
    assert settings["network.sizes"] == (64, 8, 10)
    assert settings["circuit.kind"] == "dendritic"
    assert settings["circuit.tau_x"] == 0.02
    assert settings["run.seeds"] == (1, 4)
    assert "run.dtype" not in settings
    plain = config_of(SMALL, DIGITS)
    assert "circuit.tau_x" not in plain.settings()
    assert "network.sizes=(64, 8, 10)" in repr(plain)


def test_html_is_a_table_with_names_escaped(chips, found):
    for one in (chips, found, chips.config):
        assert "<table" in one._repr_html_()
    assert "verdict.outcome" in chips._repr_html_()
    assert found.sentence().split(":")[0] in found._repr_html_()
    about = {"long_name": "<script>"}
    assert "<script>" not in Result({"a": Variable((), np.ones(()), about)})._repr_html_()


def test_pandas_has_the_numbers_of_the_result(chips):
    table = chips.to_pandas()
    assert list(table.index.names) == ["seed", "chip"]
    assert len(table) == 4
    assert table.loc[(4, 1), "accuracy"] == chips["accuracy"][1, 1]
    assert table.loc[(1, 0), "verdict.outcome"] == chips["verdict.outcome"][0, 0]
    assert "energy" not in table
    energy = chips.to_pandas("energy", "accuracy")
    assert len(energy) == chips["energy"].size
    late = energy.loc[(4, 0, chips["time"][-1], 1)]
    assert late["energy"] == chips["energy"][1, 0, -1, 1]
    assert late["accuracy"] == chips["accuracy"][1, 0]


def test_pandas_agrees_with_xarray(chips):
    """xarray's own way from the same result is another path to the same table."""
    ours = chips.to_pandas("energy")["energy"]
    theirs = chips.to_xarray()["energy"].to_series()
    assert ours.index.equals(theirs.index)
    np.testing.assert_array_equal(ours, theirs)


def test_axes_in_another_order_are_laid_side_by_side():
    values = np.arange(6.0).reshape(2, 3)
    result = Result({"a": Variable(("x", "y"), values), "b": Variable(("y", "x"), 10 * values.T)})
    table = result.to_pandas("a", "b")
    np.testing.assert_array_equal(table["b"], 10 * table["a"])


def test_what_pandas_cannot_put_into_one_table_is_refused(chips):
    with pytest.raises(StoreError, match=r"energi is no variable .* has: .*energy"):
        chips.to_pandas("energi")
    with pytest.raises(StoreError, match="a call of its own"):
        chips.to_pandas("parameters", "energy")
    with pytest.raises(StoreError, match="no variables"):
        Result({}).to_pandas()


def test_a_check_as_a_table(found):
    table = found.to_pandas()
    assert set(table["row"]) == set(found.runs)
    for row, part in table.groupby("row"):
        np.testing.assert_array_equal(np.sort(part["accuracy"]), np.sort(found.accuracy(row).flat))


@pytest.mark.parametrize(("method", "extra"), [("to_pandas", "pandas"), ("to_xarray", "xarray")])
def test_a_package_that_is_missing_is_named_with_its_extra(method, extra, chips, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == extra:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedError, match=rf"pip install 'pcsim\[{extra}\]'"):
        getattr(chips, method)()


def test_plots_are_figures_of_the_same_functions(chips, found, monkeypatch):
    drawn = []
    for name in ("chip_run", "training_curves", "check_figure"):
        real = getattr(plots, name)
        monkeypatch.setattr(
            plots, name, lambda *a, real=real, name=name: drawn.append(name) or real(*a)
        )
    discrete = simulate(SMALL, DIGITS, learner=Learner(rule="bp"), seeds=2)
    figures = [one.plot() for one in (chips, discrete, found)]
    assert drawn == ["chip_run", "training_curves", "check_figure"]
    for figure in figures:
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")
    assert "Energy" in chips.figures()
    line = figures[1].axes[1].lines[0]
    np.testing.assert_allclose(line.get_ydata(), 100 * (1 - discrete["test_accuracy"]).mean(0))


def test_a_comparison_says_its_gaps_and_draws_itself():
    runs = {
        rule: simulate(SMALL, DIGITS, learner=Learner(rule=rule), seeds=3) for rule in ("bp", "ipc")
    }
    comparison = compare(runs)
    assert isinstance(comparison, Comparison)
    gap = 100 * (runs["ipc"]["accuracy"] - runs["bp"]["accuracy"]).mean()
    assert f"ipc {gap:+.2f} points (" in repr(comparison)
    assert "paired by seed" in repr(comparison)
    assert len(comparison._repr_html_().split("<table")) == len(comparison.tables()) + 1
    assert isinstance(comparison.plot(), Figure)
    assert list(comparison.to_pandas("accuracy").index.names) == ["run", "seed"]


def test_dir_shows_the_public_names_only():
    assert dir(pcsim) == sorted([*pcsim.__all__, "__version__"])


def test_the_page_runs(tmp_path, monkeypatch):
    page = Path(__file__).parents[1] / "docs/python.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, str(page), "exec"), names)
    assert (tmp_path / "my_chip.pdf").stat().st_size > 1000
