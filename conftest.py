"""Schedule of the tests for pytest-xdist (`make test-all JOBS=4`), marks of some tests, garbage collection.

Tests of one file stay together, because each worker starts a broker of its own. All tests that need a cluster
in containers share one worker. Those on Spark share two, each with a session of its own: the jobs on a real
Kafka, and all others, which take equally long. The parity suite runs first, since it compares the duration of
calls; only one of the groups on Spark runs beside it. Its random programs do not depend on the load.
"""

import gc
import signal

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_PARITY = "parity"
_SPARK = "spark"
_SPARK_JOBS = "spark jobs"
_JOBS = tuple(f"tests/jobs/test_{name}.py" for name in ("end_to_end", "main", "clusters"))
"""The jobs' tests that use the shared Spark."""
_CONTAINERS = "containers"
_SOAK = "integration_tests/soak/tests/test_soak_kafka.py"
_FUZZ = "integration_tests/parity/fuzz/test_random_programs.py"
_LONG = (
    _FUZZ,
    "integration_tests/simulation/test_simulation.py",
    "testing/tests/test_readme.py",
    "cli/tests/test_demo.py",
    "benchmarks/load/tests/test_load_kafka.py",
    "assignors/tests/load/test_load_oracle.py",
    "docs/tests/test_incident.py",
    "benchmarks/consumer/tests/test_bench_kafka.py",
    "charts/tests/test_prometheus_kafka.py",
    "testing/tests/test_pytest_plugin.py",
)
"""Files of few tests that take a minute: run last, they would keep one worker busy and the others idle."""
_FIRST = (_PARITY, _SPARK)
_ON_ONE_BROKER = (
    "parity",
    "soak",
    "mutations",
    "third_parties",
    "examples",
    "harness",
    "simulation",
    "pipeline_chaos",
)
"""Folders of the integration tests that need no cluster."""


_INTEGRATION = ("integration_tests/", "benchmarks/")
_NOT_QUICK = ("kafka", "spark", "slow")
"""Markers of the tests that `make test-fast` leaves out."""
_REFILLED_AT = 2
"""Tests left to a worker when xdist gives it the next group; it needs that to run its last test."""


class _Groups(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist types it as Any
    """Distributes groups of tests, the largest first, after the parity suite."""

    def _split_scope(self, nodeid: str) -> str:
        part, _, rest = nodeid.partition("/")
        if part == "pipeline" and rest.startswith(_JOBS):
            return _SPARK_JOBS
        if part == "pipeline" or nodeid.startswith("benchmarks/pipeline/"):
            return _SPARK
        if part == "integration_tests" and rest.startswith("parity/") and not nodeid.startswith(_FUZZ):
            return _PARITY
        if part == "integration_tests" and not rest.startswith(_ON_ONE_BROKER):
            return _CONTAINERS
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        # The groups that take longest start before groups of more tests.
        preferred = _FIRST if self._parity_runs() else (*_FIRST, _CONTAINERS, _SPARK_JOBS, _SOAK, *_LONG)
        group = next((each for each in preferred if each in self.workqueue), None)
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


def pytest_configure() -> None:
    """Restore SIGINT, which a shell's background job ignores, as would the programs that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples that are tests, and what is not quick of the integration tests and the benchmarks."""
    for item in items:
        if item.nodeid.startswith("examples/"):
            item.add_marker("kafka")
        elif item.nodeid.startswith(_INTEGRATION) and any(map(item.get_closest_marker, _NOT_QUICK)):
            item.add_marker("integration")


def pytest_collection_finish() -> None:
    """Exempt what the collection has left from garbage collection.

    The modules of all tests hold some 400,000 objects. Without this, each `gc.collect()` of a test, and each
    automatic collection of the oldest generation, takes a quarter of a second to look at them.
    """
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Distribute tests by group."""
    return _Groups(config, log)
