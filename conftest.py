"""Schedule of the tests for pytest-xdist (`make test JOBS=4`).

Tests of one file stay together, because each worker starts a broker of its own. All tests that need a cluster
in containers share one worker, and so do those on Spark: starting a second one takes longer than all of these
tests. These two groups take longest, so they start first. The parity suite starts with them, and nothing else
runs beside it, since it compares the duration of calls.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_PARITY = "parity"
_SPARK = "spark"
_CONTAINERS = "containers"
_LONGEST = (_PARITY, _SPARK, _CONTAINERS)
_ON_ONE_BROKER = ("soak", "mutations", "third_parties", "examples", "harness")
"""Folders of the integration tests that need no cluster."""


_REFILLED_AT = 2
"""Tests left to a worker when xdist gives it the next group; it needs that to run its last test."""


class _Groups(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist types it as Any
    """Distributes groups of tests, the largest first, after the parity suite."""

    def _split_scope(self, nodeid: str) -> str:
        part, _, rest = nodeid.partition("/")
        if part == "pipeline" or nodeid.startswith("benchmarks/pipeline/"):
            return _SPARK
        if part == "integration_tests" and rest.startswith("parity/"):
            return _PARITY
        if part == "integration_tests" and not rest.startswith(_ON_ONE_BROKER):
            return _CONTAINERS
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        group = next((each for each in _LONGEST if each in self.workqueue), None)
        if group is not None:
            self.workqueue.move_to_end(group, last=False)
        elif self._parity_runs():
            return  # the worker idles until `mark_test_complete`
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Record a test's end, and start the idle workers after the group that runs first."""
        parity_ran = self._parity_runs()
        super().mark_test_complete(node, item_index, duration)
        if parity_ran and not self._parity_runs():
            for idle in self.nodes:
                self._reschedule(idle)

    def _parity_runs(self) -> bool:
        units = [assigned[_PARITY] for assigned in self.assigned_work.values() if _PARITY in assigned]
        return any(list(unit.values()).count(False) > _REFILLED_AT for unit in units)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Distribute tests by group."""
    return _Groups(config, log)
