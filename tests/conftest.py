"""Marks that follow from where a test is: what needs Brian2 or ngspice says so."""

import gc

import pytest

ENGINES = ("brian", "spice")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests in a folder of an engine, and cases of shared suites that name one."""
    for item in items:
        case = item.callspec.id if hasattr(item, "callspec") else ""
        for engine in ENGINES:
            if item.path.parent.name == engine or engine in case:
                item.add_marker(engine)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at what was imported."""
    _keep_what_is_there()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what tests have left in caches: Brian2's are large, and it collects in every run."""
    if item.get_closest_marker("brian") or (nextitem and nextitem.path != item.path):
        _keep_what_is_there()


def _keep_what_is_there() -> None:
    """Take what is no garbage now out of all later collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def one_thread():
    """Let torch compute on one thread: small networks are slower on two."""
    import torch  # many tests need none

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
