"""The table of sites is the one list of them."""

from typing import get_args

import pytest

from pcsim.circuits.blocks import Place
from pcsim.substrate.effect import FABRICATED, SITES, Site


def test_the_type_has_the_names_of_the_table():
    assert get_args(Site) == tuple(SITES)


def test_a_place_at_no_site_is_refused():
    """A misspelt site would be a place at which nothing ever acts."""
    assert Place("membrane", 0, "x", "x_seen", 0).key == "membrane0"
    with pytest.raises(ValueError, match="'membrain' is not in the table of sites"):
        Place("membrain", 0, "x", "x_seen", 0)


def test_what_is_fabricated_is_no_signal():
    """What is set once per chip has no moment of a time step at which it is asked for."""
    for name in FABRICATED:
        row = SITES[name]
        assert (row.once, row.common, row.symbols) == (False, False, ())
