"""Which tests share a worker, where several run side by side (`make test JOBS=3`).

A worker has a broker of its own, so that tests of one file stay together. All that need a cluster in containers share one
worker, and so do those on Spark: a second cluster or a second Spark would take longer to start than they all take. These two
begin first, since they are the longest.
"""

from pathlib import Path

import pytest

_CLUSTERS = frozenset({"kafka", "cluster", "breakable_cluster"})
_ROOT = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """Name the group of a test, for pytest-xdist."""
    item.add_marker(pytest.mark.xdist_group(_group(item)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have the long groups begin first."""
    if hasattr(config, "workerinput"):  # a process that runs all of them goes through the folders
        items.sort(key=lambda item: _group(item).startswith("/"))


def _group(item: pytest.Item) -> str:
    part = item.path.relative_to(_ROOT).parts[0]
    if part == "integration_tests" and _CLUSTERS.intersection(getattr(item, "fixturenames", ())):
        return "containers"
    return "spark" if part == "pipeline" else f"/{item.path.relative_to(_ROOT)}"
