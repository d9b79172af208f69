"""What a result refuses, and what it makes of what it accepts."""

import numpy as np
import pytest

from pcsim.errors import StoreError
from pcsim.store import Result, Variable


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Result({"v": Variable(("x",), np.ones((2, 2)))}), r"variables\.v: 1 axes"),
        (
            lambda: Result({"v": Variable(("x",), np.ones(2)), "w": Variable(("x",), np.ones(3))}),
            r"variables\.w: axis x has length 3, but 2 in variables\.v",
        ),
        (
            lambda: Result({"v": Variable(("x",), np.ones(2))}, {"x": np.arange(3)}),
            r"axis x has length 2, but 3 in coords\.x",
        ),
        (lambda: Result({"v": Variable(("x", "x"), np.ones((2, 2)))}), "appears twice"),
        (lambda: Result({"x": Variable(("x",), np.ones(2))}), "also the name of an axis"),
        (lambda: Result({}, {"x": np.ones((2, 2))}), r"coords\.x: must have one axis"),
        (lambda: Result({"v": Variable((), np.array({}))}), r"variables\.v: .*found dict"),
        (lambda: Result({"v": Variable((), np.array("a\0b"))}), r"variables\.v: .*NUL"),
        (lambda: Result({"v": Variable(("x",), np.array(["\ud800"]))}), "not valid Unicode"),
        (lambda: Result({"v": Variable((), np.datetime64(0, "s"))}), r"variables\.v: .*datetime"),
        (lambda: Result({"v": Variable((), np.longdouble(0))}), "cannot be stored"),
        (lambda: Result({"v": Variable(("x",), np.ma.masked_less([1, 2], 2))}), "masked"),
        (lambda: Result({"a/b": Variable((), np.ones(()))}), "is no name"),
        (lambda: Result({"": Variable((), np.ones(()))}), "is no name"),
        (lambda: Result({}, attrs={"seed": 2**64}), r"attrs\.seed: .*store it as text"),
        (lambda: Result({}, attrs={"a": None}), r"attrs\.a: must be text or a number"),
        (lambda: Result({}, attrs={"pcsim_format": 1}), "meaning of its own"),
        (lambda: Result({"v": Variable((), np.ones(()), {"scale_factor": 2})}), "meaning"),
        (lambda: Result({"v": Variable((), np.ones(()), {"units": "seconds"})}), "calendar"),
        (lambda: Result({}, coord_attrs={"x": {}}), r"coord_attrs\.x"),
        (lambda: Result({}, {"x": [1]})["nothing"], r"nothing: no such variable .*x"),
    ],
)
def test_nonsense_is_refused_by_name(make, message):
    with pytest.raises(StoreError, match=message):
        make()


def test_axis_without_labels_is_numbered_and_text_is_unicode():
    text = np.array(["a", "größe"], dtype=object)
    result = Result({"v": Variable(("x",), text)}, attrs={"seed": np.int64(3)})
    np.testing.assert_array_equal(result["x"], [0, 1])
    assert result["v"].dtype == np.dtype("<U5")
    assert type(result.attrs["seed"]) is int
