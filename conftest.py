"""Marks of some tests, their groups for pytest-xdist, and what garbage collection may leave alone."""

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

_INTEGRATION = ("integration_tests/", "benchmarks/")
_NOT_QUICK = ("kafka", "spark", "slow")
"""Markers of the tests that need a broker or Spark, or take long."""


def pytest_configure() -> None:
    """Let no property depend on a quiet machine, and restore SIGINT.

    A shell's background job ignores SIGINT, as would the programs that tests interrupt.
    """
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist's own, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what only `make test-all` runs, and keep each file's tests in one worker (`--dist loadgroup`).

    A file's fixtures are then made once. Tests that share something expensive across files, such as a cluster
    or Spark, have a group already.
    """
    for item in items:
        if item.nodeid.startswith("examples/"):
            item.add_marker("kafka")
        elif item.nodeid.startswith(_INTEGRATION) and any(map(item.get_closest_marker, _NOT_QUICK)):
            item.add_marker("integration")
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_finish() -> None:
    """Exempt what the collection has left from garbage collection.

    The modules of all tests hold some 400,000 objects. Without this, each `gc.collect()` of a test, and each
    automatic collection of the oldest generation, takes a quarter of a second to look at them.
    """
    gc.collect()
    gc.freeze()
