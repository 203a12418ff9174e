"""Metrics and probes of a stream: the delay, readiness, liveness, and the page as HTTP serves it."""

import subprocess
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from groupwright.pipeline import PipelineError
from groupwright.pipeline._jobs.data_loss import DataLoss, Kind
from groupwright.pipeline._jobs.endpoints import serving
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.metrics import TASKS
from groupwright.pipeline._jobs.status import StreamStatus
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

STARTED = 1_700_000_000.0
BATCH = BatchSummary(records=Counter(offset_commit=30, client_event=10), errors=2)


@dataclass
class Clock:
    """A monotonic and a wall clock that the test sets."""

    seconds: float = 100.0

    def wall(self) -> float:
        return STARTED + self.seconds - 100


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease() -> list[bool]:
    return [True]


@pytest.fixture
def status(clock: Clock, lease: list[bool]) -> StreamStatus:
    return StreamStatus("delta", 60, lambda: lease[0], lambda: clock.seconds, clock.wall)


def value(status: StreamStatus, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(status)
    return registry.get_sample_value(f"groupwright_pipeline_{name}", labels)


def observe(status: StreamStatus, end: int, position: int, held: int = 0) -> None:
    status.logs_observed({"events": {0: end, 1: 3}}, {"events": {0: position, 1: 5}}, held)


def test_a_stream_without_a_batch_is_healthy_and_not_ready(status: StreamStatus) -> None:
    assert status.unhealthy() == ""
    assert status.unready() == "the first batch has not ended yet"


def test_a_stream_is_ready_after_its_first_batch_or_if_there_is_nothing_to_read(
    status: StreamStatus, clock: Clock
) -> None:
    observe(status, end=10, position=0)
    assert status.unready()
    status.batch_added(BATCH, 2.5)
    assert status.unready() == ""

    idle = StreamStatus("parquet", 60, lambda: True, lambda: clock.seconds, clock.wall)
    observe(idle, end=10, position=10)
    assert idle.unready() == ""


def test_a_stream_without_progress_is_unhealthy_after_its_limit(status: StreamStatus, clock: Clock) -> None:
    clock.seconds += 61
    assert status.unhealthy().startswith("no batch has ended for 61 s")
    observe(status, end=10, position=10)
    assert status.unhealthy() == ""
    clock.seconds += 59
    observe(status, end=20, position=10)  # records arrive, and no batch ends
    assert status.unhealthy() == ""
    clock.seconds += 2
    assert status.unhealthy() == status.unready() != ""
    status.batch_added(BATCH, 1)
    assert status.unhealthy() == ""


def test_a_stream_that_has_lost_its_lease_is_unhealthy(status: StreamStatus, lease: list[bool]) -> None:
    status.batch_added(BATCH, 1)
    lease[0] = False
    assert "lost its lease" in status.unhealthy()
    assert value(status, "lease_held") == 0


def test_the_delay_is_the_age_of_the_last_observed_end_that_was_passed(
    status: StreamStatus, clock: Clock
) -> None:
    observe(status, end=100, position=0)
    assert value(status, "behind_records") == 100
    clock.seconds = 110
    observe(status, end=200, position=50)
    assert value(status, "behind_seconds") == 10, "since the start"
    clock.seconds = 120
    observe(status, end=300, position=100)  # what was there at 100 is read
    assert value(status, "behind_seconds") == 20
    clock.seconds = 130
    observe(status, end=400, position=300)  # what was there at 120 is read
    assert value(status, "behind_seconds") == 10
    assert value(status, "behind_records") == 100
    clock.seconds = 133
    observe(status, end=400, position=400, held=7)
    assert (value(status, "behind_seconds"), value(status, "behind_records")) == (0, 0)
    assert value(status, "held_records") == 7
    assert value(status, "last_progress_timestamp_seconds") == STARTED + 33


def test_the_delay_begins_with_the_age_of_the_oldest_unread_record(
    status: StreamStatus, clock: Clock
) -> None:
    """Restarts of a job that never catches up do not reset it."""
    status.started_behind(900)
    clock.seconds += 30
    observe(status, end=100, position=0)
    assert value(status, "behind_seconds") == 930


def test_the_delay_ends_although_a_log_that_is_gone_was_never_read_to_its_end(
    status: StreamStatus, clock: Clock
) -> None:
    observe(status, end=100, position=10)
    status.losses_accepted([DataLoss("events", Kind.RECREATED, "gone", "go on", (0,))])
    for end in (8, 13, 18, 23):  # always five records behind
        clock.seconds += 10
        observe(status, end=end, position=end - 5)
    assert value(status, "behind_seconds") == 10


def test_records_losses_and_tasks_are_counted(status: StreamStatus, clock: Clock) -> None:
    clock.seconds = 107
    status.batch_added(BATCH, 2.5)
    status.batch_added(BATCH, 1.5)
    status.losses_accepted([DataLoss("events", Kind.EXPIRED, "gone", "go on", (0, 1))])
    assert value(status, "records_total", kind="offset_commit") == 60
    assert value(status, "quarantined_records_total") == 4
    assert {kind: value(status, "losses_total", kind=kind.value) for kind in Kind} == {
        **dict.fromkeys(Kind, 0),
        Kind.EXPIRED: 1,
    }
    assert value(status, "task_runs_total", task="batch") == 2
    assert value(status, "task_seconds_total", task="batch") == 4
    assert value(status, "task_last_duration_seconds", task="batch") == 1.5
    assert value(status, "task_last_end_timestamp_seconds", task="batch") == STARTED + 7
    assert {value(status, "task_runs_total", task=task) for task in set(TASKS) - {"batch"}} == {0}


def get(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.mark.medium
def test_the_page_and_the_probes_are_served_over_http(status: StreamStatus, lease: list[bool]) -> None:
    with serving("127.0.0.1:0", status) as port:
        assert port
        assert get(port, "/ready") == (503, "the first batch has not ended yet\n")
        assert get(port, "/healthy") == (200, "running\n")
        status.batch_added(BATCH, 1)
        assert get(port, "/ready") == (200, "ready\n")
        lease[0] = False
        assert get(port, "/healthy")[0] == 503
        code, page = get(port, "/metrics")
    assert code == 200
    families = {family.name: family for family in text_string_to_metric_families(page)}
    assert all(name.startswith("groupwright_pipeline_") for name in families)
    assert all(family.documentation.endswith(".") for family in families.values())
    assert [sample.labels["format"] for sample in families["groupwright_pipeline_build_info"].samples] == [
        "delta"
    ]


@pytest.mark.integration
def test_prometheus_has_nothing_against_the_names(status: StreamStatus) -> None:
    promtool = find_program("promtool", hint="Debian's package prometheus has it")
    with serving("127.0.0.1:0", status) as port:
        assert port
        status.batch_added(BATCH, 1)
        page = get(port, "/metrics")[1]
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize("address", ["9096", "localhost", "127.0.0.1:99999", "127.0.0.1:http"])
def test_an_address_that_is_none_is_refused_by_name(status: StreamStatus, address: str) -> None:
    with pytest.raises(PipelineError, match=f"metrics_address={address}"), serving(address, status):
        pytest.fail("it was bound")


def test_without_an_address_nothing_is_served(status: StreamStatus) -> None:
    with serving("", status) as port:
        assert port is None
