"""Which tests share a worker, where several run side by side (`make test JOBS=3`).

A worker has a broker of its own, so that tests of one file stay together. All that need a cluster in containers share one
worker, and so do those on Spark: a second cluster or a second Spark would take longer to start than they all take. These two
begin first, since they are the longest.
"""

from pathlib import Path

import pytest

_CLUSTERS = frozenset({"kafka", "cluster", "breakable_cluster"})
_ROOT = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the group of each test, for pytest-xdist."""
    if not hasattr(config, "workerinput"):
        return  # one process runs them all
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: groups[item].startswith("/"))


def _group(item: pytest.Item) -> str:
    part = item.path.relative_to(_ROOT).parts[0]
    if part == "integration_tests" and _CLUSTERS.intersection(getattr(item, "fixturenames", ())):
        return "containers"
    return "spark" if part == "pipeline" else f"/{item.path.relative_to(_ROOT)}"
