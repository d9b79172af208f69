"""The figures show the numbers of the store, at the right place."""

from __future__ import annotations

import numpy as np
import pytest
import report_stores
from matplotlib.collections import QuadMesh

from pcsim.report.along_axes import accuracy_along_axes, margins
from pcsim.report.chip_spread import chip_spread
from pcsim.report.phase_diagram import phase_diagrams, plane_axes
from pcsim.report.running_curves import POINTS, running_curves, thin
from pcsim.report.trajectory_lines import trajectory_lines
from pcsim.report.view import View
from pcsim.store import Result, Variable


@pytest.fixture(scope="module")
def view() -> View:
    return View("study", "study.h5", report_stores.sweep_result())


def test_the_parts_of_axes(view: View) -> None:
    assert view.kind == "sweep"
    assert view.swept == report_stores.AXES
    accuracy = view.values("accuracy")
    assert accuracy is not None
    assert accuracy.shape == (3, 5, 4, 16)
    # Without noise the best rule wins; precision beyond 4 bits is a matter of luck.
    assert view.best_cell()[:2] == (0, 0)
    converged = view.converged()
    assert converged is not None
    quiet, fine = report_stores.NOISE < 0.15, report_stores.BITS >= 4
    np.testing.assert_array_equal(converged[0], quiet[:, None] & fine)
    assert np.isnan(converged[2]).all()  # BP is not judged


def test_phase_diagram_cells(view: View) -> None:
    assert plane_axes(view) == ("hardware.noise", "hardware.bits")
    (drawing,) = phase_diagrams(view)
    panels = drawing.figure.axes[:6]
    accuracy = view.result["accuracy"]
    for column in range(3):
        (mesh,) = [c for c in panels[column].collections if isinstance(c, QuadMesh)]
        shown = np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan)
        np.testing.assert_allclose(shown, 100 * accuracy[column].mean(-1))
        assert panels[column].get_title() == f"rule {report_stores.RULES[column]}"
    assert [t.get_text() for t in panels[0].get_xticklabels()] == ["2", "4", "6", "8"]
    assert [t.get_text() for t in panels[0].get_yticklabels()] == ["0", "0.05", "0.1", "0.2", "0.4"]
    assert panels[3].get_xlabel() == "bits"
    assert panels[0].get_ylabel() == "noise"
    # The region of 3 noises × 3 precisions touches two edges: 3 + 3 sides are drawn.
    assert len(panels[0].lines) == 6
    assert not panels[2].lines


def test_axes_in_the_other_order_give_the_other_picture() -> None:
    result = report_stores.sweep_result()
    variable = result.variables["accuracy"]
    swapped = Variable(
        (variable.dims[1], variable.dims[0], *variable.dims[2:]), variable.values.swapaxes(0, 1)
    )
    coords = {d: result.coords[d] for d in swapped.dims}
    view = View("swapped", "", Result({"accuracy": swapped}, coords))
    assert view.swept == ("hardware.noise", "schedule.rule", "hardware.bits")
    (drawing,) = phase_diagrams(view)
    (mesh,) = [c for c in drawing.figure.axes[0].collections if isinstance(c, QuadMesh)]
    expected = 100 * result["accuracy"][0].mean(-1)
    np.testing.assert_allclose(np.asarray(mesh.get_array()), expected)


def test_accuracy_along_an_axis_goes_through_the_best_point(view: View) -> None:
    (drawing,) = accuracy_along_axes(view)
    by_noise = drawing.figure.axes[1]
    best = view.best_cell()
    for k, line in enumerate(by_noise.lines):
        expected = np.median(100 * view.result["accuracy"][k, :, best[2]], axis=-1)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected)
        np.testing.assert_array_equal(line.get_xdata(), report_stores.NOISE)
    assert "rule ipc, noise 0" in drawing.caption
    (drawing,) = margins(view)
    zero = drawing.figure.axes[1].lines[0]
    np.testing.assert_allclose(
        np.asarray(zero.get_ydata(), float),
        np.median(view.result["verdict.margin"][0, :, best[2]], axis=-1),
    )


def test_energy_band_holds_ninety_per_cent_of_the_chips(view: View) -> None:
    (drawing,) = running_curves(view)
    axes = drawing.figure.axes[0]
    best = view.best_cell()
    total = view.result["energy"].sum(-1)[best[0], :, best[2]]
    assert len(axes.lines) == len(report_stores.NOISE)
    for k, (line, band) in enumerate(zip(axes.lines, axes.collections, strict=True)):
        low, middle, high = np.quantile(total[k], (0.05, 0.5, 0.95), axis=0)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), middle)
        limits = band.get_paths()[0].vertices[:, 1]
        assert limits.min() == pytest.approx(low.min())
        assert limits.max() == pytest.approx(high.max())


def test_a_chip_that_explodes_does_not_hide_the_others() -> None:
    energy = np.exp(-np.linspace(0, 3, 50)) * np.ones((2, 1))
    energy[1] = np.exp(np.linspace(0, 60, 50))
    variable = Variable(("hardware.noise", "seed", "step"), energy[:, None])
    view = View("run", "", Result({"energy": variable}, {"hardware.noise": np.array([0.0, 1.0])}))
    (drawing,) = running_curves(view)
    assert drawing.figure.axes[0].get_ylim()[1] == pytest.approx(100)


def test_long_curves_are_thinned_by_means() -> None:
    rows = np.arange(3 * 1000.0).reshape(3, 1000)
    short = thin(rows)
    assert short.shape == (3, POINTS)
    np.testing.assert_allclose(short[1], 1002 + 5 * np.arange(POINTS))
    np.testing.assert_array_equal(thin(rows[:, :50]), rows[:, :50])


def test_spread_of_many_points_is_taken_within_points(view: View) -> None:
    (drawing,) = chip_spread(view)
    spans = [np.ptp(np.asarray(line.get_xdata(), float)) for line in drawing.figure.axes[0].lines]
    # 5–95 % of a normal spread of one point is 3.3 points; between points there are 50.
    assert max(spans) < 5


def test_trajectories_of_two_chips() -> None:
    time = np.linspace(0, 1, 400)
    values = np.sin(time)[:, None, None] + np.arange(2)[:, None] + 10 * np.arange(3)
    recorded = Result({"x1": Variable(("time", "chip", "unit_x1"), values)}, {"time": time})
    (drawing,) = trajectory_lines(View("run", "", Result({}), recorded))
    lines = drawing.figure.axes[0].lines
    assert len(lines) == 2 * 3
    np.testing.assert_allclose(np.asarray(lines[0].get_ydata(), float), np.sin(time[-150:]))
    assert lines[0].get_color() == lines[3].get_color() != lines[1].get_color()
    assert lines[0].get_linestyle() != lines[3].get_linestyle()


def test_a_store_without_the_needed_variables_has_no_figures() -> None:
    view = View("odd", "", Result({"something": Variable(("unit",), np.arange(3))}))
    for draw in (accuracy_along_axes, chip_spread, margins, phase_diagrams, running_curves):
        assert draw(view) == []
    assert trajectory_lines(view) == []
