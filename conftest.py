"""Schedule of the tests for pytest-xdist (`make test JOBS=4`).

Tests of one file stay together, because each worker starts a broker of its own. All tests that need a cluster
in containers share one worker, and so do those on Spark: starting a second one takes longer than all of these
tests. The parity suite runs first, since it compares the duration of calls; only the tests in containers,
which mostly wait, run beside it.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_FIRST = "parity"
_BESIDE = "containers"
_SPARK = "spark"
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
            return _FIRST
        if part == "integration_tests" and not rest.startswith(_ON_ONE_BROKER):
            return _BESIDE
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        # The groups that take longest start before groups of more tests.
        preferred = (_FIRST, _BESIDE) if self._runs_first() else (_FIRST, _SPARK, _BESIDE)
        group = next((each for each in preferred if each in self.workqueue), None)
        if group is not None:
            self.workqueue.move_to_end(group, last=False)
        elif self._runs_first():
            return  # the worker idles until `mark_test_complete`
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Record a test's end, and start the idle workers after the group that runs first."""
        ran_first = self._runs_first()
        super().mark_test_complete(node, item_index, duration)
        if ran_first and not self._runs_first():
            for idle in self.nodes:
                self._reschedule(idle)

    def _runs_first(self) -> bool:
        units = [assigned[_FIRST] for assigned in self.assigned_work.values() if _FIRST in assigned]
        return any(list(unit.values()).count(False) > _REFILLED_AT for unit in units)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Distribute tests by group."""
    return _Groups(config, log)
