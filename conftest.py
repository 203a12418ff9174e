"""Which tests share a worker, where several run side by side (`make test JOBS=3`).

A worker has a broker of its own, so that tests of one file stay together. All that need a cluster in containers share one
worker, and so do those on Spark: a second cluster or a second Spark would take longer to start than they all take.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_ON_ONE_BROKER = ("parity", "soak", "mutations", "third_parties", "examples", "harness")
"""Folders of the integration tests that need no cluster."""


class _Groups(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist types it as Any
    """Shares groups of tests out, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        part, _, rest = nodeid.partition("/")
        if part == "pipeline":
            return "spark"
        if part == "integration_tests" and not rest.startswith(_ON_ONE_BROKER):
            return "containers"
        return nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Share tests out by group."""
    return _Groups(config, log)
