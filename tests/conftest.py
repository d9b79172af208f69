"""Marks that follow from where a test is: what needs Brian2 or ngspice says so."""

import pytest

ENGINES = ("brian", "spice")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests in a folder of an engine, and cases of shared suites that name one."""
    for item in items:
        case = item.callspec.id if hasattr(item, "callspec") else ""
        for engine in ENGINES:
            if item.path.parent.name == engine or engine in case:
                item.add_marker(engine)
