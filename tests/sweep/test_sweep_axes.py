"""Axes: lists, ranges, pairs, and what a user can get wrong."""

import json
from copy import deepcopy

import pytest
from sweep_world import small

from pcsim.errors import ConfigError
from pcsim.sweep import make_sweep, read_sweep


def axes_of(sweep):
    return {axis.dim: axis.columns for axis in make_sweep({**small(), "sweep": sweep}).table.axes}


def one(field, given):
    return axes_of({"axes": {field: given}})[field][0]


def test_ranges():
    assert one("learning.alpha", {"log": [1e-3, 1e-1, 3]}) == (1e-3, 1e-2, 1e-1)
    assert one("learning.alpha", {"lin": [0.1, 0.5, 5]}) == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert one("learning.alpha", {"log": [1e-1, 1e-3, 3]}) == (1e-1, 1e-2, 1e-3)


def test_ranges_of_whole_numbers_stay_whole():
    found = one("schedule.T", {"log": [1, 1000, 4]})
    assert found == (1, 10, 100, 1000)
    assert all(type(value) is int for value in found)
    assert all(type(value) is int for value in one("schedule.T", {"lin": [2, 8, 4]}))
    assert one("learning.alpha", {"lin": [1, 2, 3]}) == (1.0, 1.5, 2.0)


def test_points_are_every_combination_times_the_pairs():
    sweep = make_sweep(
        {
            **small(),
            "sweep": {
                "axes": {"network.sizes.1": [4, 5], "network.f": ["tanh", "relu", "gelu"]},
                "paired": [{"schedule.T": [2, 3], "schedule.gamma": [0.2, 0.1]}],
            },
        }
    )
    assert sweep.shape == (2, 3, 2)
    assert len(sweep.points) == 12
    assert [p.cell for p in sweep.points[:3]] == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]
    for point in sweep.points:
        config = point.config
        assert config.network.sizes == (64, (4, 5)[point.cell[0]], 10)
        assert config.network.f == ("tanh", "relu", "gelu")[point.cell[1]]
        pair = ((2, 0.2), (3, 0.1))[point.cell[2]]
        assert (config.schedule.T, config.schedule.gamma) == pair
        assert config.learning.alpha == 2e-3  # what is not swept stays


def test_the_rule_of_a_point_brings_its_own_defaults():
    sections = {k: v for k, v in small().items() if k != "schedule"}
    sweep = make_sweep({**sections, "sweep": {"axes": {"schedule.rule": ["ipc", "zil"]}}})
    assert [p.config.schedule.gamma for p in sweep.points] == [0.5, 1.0]


def test_sections_and_fields_that_the_file_leaves_to_the_sweep():
    data = small()
    del data["network"]
    data["sweep"] = {"axes": {"network": [{"sizes": [64, 4, 10]}, {"sizes": [64, 10]}]}}
    assert [len(p.config.network.sizes) for p in make_sweep(data).points] == [3, 2]


def test_file_with_and_without_quotes_and_changes_from_the_command_line(tmp_path):
    head = "[network]\nsizes = [64, 5, 10]\n[sweep.axes]\n"
    quoted, bare = tmp_path / "quoted.toml", tmp_path / "bare.toml"
    quoted.write_text(f'{head}"learning.alpha" = [0.1, 0.2]\n"schedule.T" = {{ lin = [2, 4, 3] }}')
    bare.write_text(f"{head}learning.alpha = [0.1, 0.2]\nschedule.T = {{ lin = [2, 4, 3] }}")
    assert read_sweep(quoted) == read_sweep(bare)
    for path in (quoted, bare):
        changed = read_sweep(
            path, {"sweep.axes.learning.alpha": "[0.3]", "run.seeds": "[7]", "sweep.fuse": "2"}
        )
        assert changed.shape == (1, 3)
        assert changed.points[0].config.learning.alpha == 0.3
        assert changed.seeds == (7,)
        assert changed.table.fuse == 2


REFUSED = [
    ({"axes": {"learning.alpah": [1.0]}}, "learning.alpah: unknown name; did you mean 'alpha'?"),
    (
        {"axes": {"learning.alpha": [1.0, -1.0]}},
        "learning.alpha: must be greater than or equal to 0, got -1.0",
    ),
    ({"axes": {"learning.alpha": [1.0, -1.0]}}, "point 1"),
    ({"axes": {"learning.alpha": []}}, "sweep.axes.learning.alpha: must be a list of values"),
    ({"axes": {"learning.alpha": 0.1}}, "sweep.axes.learning.alpha: must be a list of values"),
    ({"axes": {"data.name": "digits"}}, "sweep.axes.data.name: must be a list of values"),
    ({"axes": {"learning.alpha": [0.1, 0.1]}}, "[0.1] is listed 2 times"),
    ({"axes": {"learning.alpha": {"log": [0, 1, 3]}}}, "log: a logarithmic range needs ends above"),
    ({"axes": {"learning.alpha": {"lin": [0, 1]}}}, "lin: must be [first, last, how many]"),
    ({"axes": {"learning.alpha": {"lin": [0, 1, 1]}}}, "count of at least 2"),
    ({"axes": {"learning.alpha": {"lin": ["a", 1, 2]}}}, "two numbers and a count"),
    ({"axes": {"run.seeds": [[0], [1]]}}, "run.seeds: cannot be swept; every point has all seeds"),
    ({"axes": {"run": [{"seeds": [1]}]}}, "run: cannot be swept; every point has all seeds"),
    (
        {"axes": {"record.trajectories": [True], "run.backend": ["continuous"]}},
        "record.trajectories: a sweep keeps statistics",
    ),
    (
        {"axes": {"schedule.rule": ["ipc", "bp"], "schedule.pc_update_at": ["after"]}},
        "study.toml: schedule.pc_update_at: has no meaning in this run, and would be ignored; it "
        "needs schedule.rule 'pc', at one of the points at least",
    ),
    ({"axes": {"grid.alpha": [[0.1]]}}, "grid.alpha: cannot be swept; sweep the field itself"),
    ({"axes": {"network.sizes.7": [3]}}, "'7' must be the number of an item, 0 to 2"),
    ({"axes": {"schedule.T.x": [3]}}, "there is a value, not a section, before 'x'"),
    ({"axes": {"schedule.T.x.y": [3]}}, "there is a value, not a section, before 'y'"),
    ({"axes": {"network": [{"sizes": [64, 10]}], "network.f": ["relu"]}}, "is inside of network"),
    ({"axes": {}}, "sweep.axes: name at least one field"),
    ({"paired": [{"schedule.T": [1, 2], "schedule.gamma": [0.1]}]}, "schedule.T has 2"),
    ({"paired": {"schedule.T": [1, 2]}}, "write each as a section [[sweep.paired]]"),
    ({"axes": {"schedule.T": [1]}, "paired": [{"schedule.T": [1]}]}, "schedule.T is there twice"),
    ({"axes": {"schedule.T": [1]}, "fuze": 3}, "sweep.fuze: unknown name; did you mean 'fuse'?"),
    ({"axes": {"schedule.T": [1]}, "fuse": 0}, "sweep.fuse: "),
    ({"axes": {"schedule.T": [1]}, "invalid": "skip"}, "sweep.invalid: "),
    (3, "sweep: must be a section, got 3"),
]


@pytest.mark.parametrize(("table", "words"), REFUSED)
def test_what_is_refused_names_the_field(table, words):
    data = {**small(), "sweep": deepcopy(table)}
    with pytest.raises(ConfigError) as caught:
        make_sweep(data, "study.toml")
    assert str(caught.value).startswith("study.toml: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_configuration_without_sweep_is_told_where_to_go():
    data = small()
    del data["sweep"]
    with pytest.raises(ConfigError, match=r"no \[sweep\] section; `pcsim run` takes single runs"):
        make_sweep(data)


def test_combinations_that_make_no_sense_are_recorded_if_asked_for():
    plain = {"batch": 0, "epochs": None}
    data = small(run={"automatic": True}, learning=plain, schedule={"T": None})
    data["sweep"] = {"axes": {"schedule.rule": ["ipc", "bp"]}}
    with pytest.raises(ConfigError, match=r"run.automatic needs .* \(schedule.rule = \"bp\"\)"):
        make_sweep(data)
    data["sweep"]["invalid"] = "record"
    good, bad = make_sweep(data).points
    assert good.config is not None
    assert bad.config is None
    assert bad.problem.startswith("run.automatic needs schedule.rule = 'ipc'")
    data["sweep"]["axes"]["schedule.rule"] = ["bp"]
    with pytest.raises(ConfigError, match="no point makes sense"):
        make_sweep(data)


def test_rules_of_one_sweep_leave_out_what_only_the_others_need():
    """T and gamma of the file, and an axis, belong to iPC and PC; BP runs without them."""
    data = small()
    data["sweep"] = {"axes": {"schedule.rule": ["pc", "bp"], "schedule.gamma": [0.1, 0.2]}}
    points = make_sweep(data).points
    assert [p.config.schedule.gamma for p in points] == [0.1, 0.2, 0.5, 0.5]
    assert [sorted(p.unused) for p in points[1:3]] == [[], ["schedule.T", "schedule.gamma"]]
    assert all(p.config.schedule.T == 3 for p in points[:2])


def test_descriptions_are_frozen_data():
    sweep = make_sweep(small())
    with pytest.raises(Exception, match="frozen"):
        sweep.table.fuse = 3
    assert json.loads(sweep.table.model_dump_json())["fuse"] == 32
