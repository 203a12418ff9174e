"""Two members of a real group, read as Prometheus reads them: over HTTP."""

import logging
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import pytest
from confluent_kafka import TopicPartition
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from groupwright.assignors import Assignor, Group, LoadAwareAssignor, WeightFunction
from groupwright.consumer import (
    AssignorFailedError,
    Consumer,
    GroupLoad,
    LoadCheckOutcome,
    LoadCheckResult,
    Rebalance,
    RebalanceListener,
)
from groupwright.instrumentation import instrument
from groupwright.instrumentation._metrics.labels import DURATION_BUCKETS
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.kafka


Scrape = Callable[[], dict[tuple[str, frozenset[tuple[str, str]]], float]]


class Member:
    """A consumer, its registry's series over HTTP, and times taken around what it does."""

    def __init__(
        self,
        kafka: LocalKafka,
        group: str,
        client_id: str,
        scrape: Scrape,
        strategy: str | list[Assignor],
        settings: Mapping[str, Any],
    ) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": client_id,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": strategy,
                **settings,
            }
        )
        self.owned = 0
        self.in_callbacks = {"assign": 0.0, "revoke": 0.0}
        self.joining_since = 0.0
        self.polled = (0.0, 0.0)
        self._labels = {"group": group, "client_id": client_id}
        self._scrape = scrape

    def join(self, topic: str) -> None:
        self.joining_since = time.monotonic()
        self.consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def poll(self) -> None:
        before = time.monotonic()
        message = self.consumer.poll(0.05)
        self.polled = (before, time.monotonic())
        assert message is None

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a series of this member, at a scrape of its own."""
        return self._scrape().get((f"groupwright_{name}", frozenset({**self._labels, **labels}.items())))

    def _on_assign(self, _: object, partitions: list[TopicPartition]) -> None:
        started = time.monotonic()
        self.owned += len(partitions)
        self.in_callbacks["assign"] += time.monotonic() - started

    def _on_revoke(self, _: object, partitions: list[TopicPartition]) -> None:
        started = time.monotonic()
        self.owned -= len(partitions)
        self.in_callbacks["revoke"] += time.monotonic() - started


@pytest.fixture
def scrape(registry: CollectorRegistry) -> Iterator[Scrape]:
    """The registry's series, as prometheus-client's own server serves them."""
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)

    def fetch() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{server.server_port}/metrics", timeout=PATIENCE
        ) as response:
            text = response.read().decode()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    yield fetch
    server.shutdown()
    server.server_close()
    thread.join(PATIENCE)


@pytest.fixture
def new_member(
    local_kafka: LocalKafka, request: pytest.FixtureRequest, scrape: Scrape
) -> Callable[..., Member]:
    """Make a member that is closed at the end, whatever happens."""

    def make(group: str, client_id: str, strategy: str | list[Assignor] = "range", **settings: Any) -> Member:
        """Settings have underscores for dots."""
        keys = {key.replace("_", "."): value for key, value in settings.items()}
        member = Member(local_kafka, group, client_id, scrape, strategy, keys)
        request.addfinalizer(member.consumer.close)
        return member

    return make


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, [member.owned for member in members]
        for member in members:
            member.poll()


def test_a_member_joins_and_leaves_and_the_metrics_say_exactly_that(
    registry: CollectorRegistry,
    new_kafka_topic: NewKafkaTopic,
    new_member: Callable[..., Member],
) -> None:
    """Four partitions: all to the first member, two to each, all to the first again."""
    topic = new_kafka_topic(partitions=4)
    first, second = new_member(topic, "first"), new_member(topic, "second")
    for member in (first, second):
        instrument(member.consumer, registry=registry)

    def story(member: Member) -> dict[str, float | None]:
        completed = {"protocol": "range", "outcome": "completed"}
        return {
            "rebalances": member.value("rebalances_total", **completed),
            "assigned": member.value("partitions_assigned_total", topic=topic),
            "revoked": member.value("partitions_revoked_total", topic=topic),
            "lost": member.value("partitions_lost_total", topic=topic),
            "owned": member.value("partitions_owned", topic=topic),
            "generation": member.value("generation"),
        }

    wall_began = time.time()
    first.join(topic)
    poll_until(lambda: first.owned == 4, first)
    assert story(first) == {
        "rebalances": 1, "assigned": 4, "revoked": 0, "lost": 0, "owned": 4, "generation": 1,
    }  # fmt: skip
    assert story(second) == {**dict.fromkeys(story(second)), "rebalances": 0}

    second.join(topic)
    poll_until(lambda: first.owned == second.owned == 2, first, second)
    assert story(first) == {
        "rebalances": 2, "assigned": 6, "revoked": 4, "lost": 0, "owned": 2, "generation": 2,
    }  # fmt: skip
    assert story(second) == {
        "rebalances": 1, "assigned": 2, "revoked": 0, "lost": 0, "owned": 2, "generation": 2,
    }  # fmt: skip

    second.consumer.close()
    poll_until(lambda: first.owned == 4, first)
    assert story(first) == {
        "rebalances": 3, "assigned": 10, "revoked": 6, "lost": 0, "owned": 4, "generation": 3,
    }  # fmt: skip
    assert story(second) == {
        "rebalances": 1, "assigned": 2, "revoked": 2, "lost": 0, "owned": 0, "generation": 2,
    }  # fmt: skip

    assert_durations_fit_times_taken_outside(first, rebalances=3, revocations=2, wall_began=wall_began)
    assert_durations_fit_times_taken_outside(second, rebalances=1, revocations=0, wall_began=wall_began)
    assert_poll_age_fits_times_taken_outside(first)
    for member in (first, second):
        assert member.value("instrumentation_errors_total") == 0
        for outcome in ("lost", "failed"):
            assert member.value("rebalances_total", protocol="range", outcome=outcome) == 0


def assert_durations_fit_times_taken_outside(
    member: Member, *, rebalances: int, revocations: int, wall_began: float
) -> None:
    elapsed = time.monotonic() - member.joining_since
    protocol = {"protocol": "range"}

    total = member.value("rebalance_duration_seconds_sum", **protocol)
    assert total is not None
    assert 0 < total <= elapsed
    assert member.value("rebalance_duration_seconds_count", **protocol) == rebalances
    buckets = [
        member.value("rebalance_duration_seconds_bucket", **protocol, le=str(float(bound)))
        for bound in DURATION_BUCKETS
    ]
    assert buckets[-1] == rebalances  # none took 300 s
    assert buckets[0] == 0  # nor 1 ms, with three answers to wait for

    phases = {}
    for phase in ("revoke", "join", "sync", "assign"):
        name = "rebalance_phase_duration_seconds"
        expected = rebalances if phase != "revoke" else revocations or None
        assert member.value(f"{name}_count", **protocol, phase=phase) == expected
        phases[phase] = member.value(f"{name}_sum", **protocol, phase=phase) or 0.0
    assert 0 < sum(phases.values()) <= total

    for callback, seconds in member.in_callbacks.items():
        name = "rebalance_callback_duration_seconds"
        measured = member.value(f"{name}_sum", callback=callback)
        assert measured is not None
        assert 0 < seconds <= measured <= elapsed
    # Leaving runs a callback, and is no rebalance to the one that leaves.
    assert (member.value("rebalance_callback_duration_seconds_count", callback="revoke") or 0) >= revocations
    assert member.value("rebalance_callback_duration_seconds_count", callback="assign") == rebalances

    last = member.value("last_rebalance_duration_seconds")
    ended_at = member.value("last_rebalance_timestamp_seconds")
    assert last is not None
    assert 0 < last <= total
    assert ended_at is not None
    assert wall_began <= ended_at <= time.time()


def assert_poll_age_fits_times_taken_outside(member: Member) -> None:
    member.poll()
    began, ended = member.polled
    before = time.monotonic()
    age = member.value("last_poll_age_seconds")
    after = time.monotonic()

    assert age is not None
    assert before - ended <= age <= after - began


def test_a_rebalance_that_fails_in_the_assignor_is_counted_before_poll_raises(
    registry: CollectorRegistry,
    new_kafka_topic: NewKafkaTopic,
    new_member: Callable[..., Member],
) -> None:
    topic = new_kafka_topic(partitions=4)
    member = new_member(topic, "leader", strategy=[Unwilling()])
    instrument(member.consumer, registry=registry)
    failed = {"protocol": "none", "outcome": "failed"}
    assert member.value("rebalances_total", **failed) == 0

    member.join(topic)
    with pytest.raises(AssignorFailedError, match="not today"):
        member.consumer.poll(PATIENCE)
    elapsed = time.monotonic() - member.joining_since

    assert member.value("rebalances_total", **failed) == 1
    assert member.value("rebalance_duration_seconds_count", protocol="none") == 1
    duration = member.value("rebalance_duration_seconds_sum", protocol="none")
    assert duration is not None
    assert 0 < duration <= elapsed
    assert member.value("last_rebalance_duration_seconds") == duration
    assert member.value("rebalance_phase_duration_seconds_count", protocol="none", phase="join") == 1
    assert member.value("rebalance_phase_duration_seconds_count", protocol="none", phase="assign") is None
    assert member.value("partitions_owned", topic=topic) is None
    assert member.value("generation") is None
    assert member.value("instrumentation_errors_total") == 0


class Unwilling(Assignor):
    name = "unwilling"

    def assign(self, group: Group) -> NoReturn:  # noqa: ARG002 - the interface's
        raise RuntimeError("not today")


class Recorder(RebalanceListener):
    """Keeps a member's load checks and rebalances."""

    def __init__(self) -> None:
        self.checks: list[LoadCheckResult] = []
        self.rebalances: list[Rebalance] = []

    @property
    def last_measured(self) -> LoadCheckResult | GroupLoad:
        """The last check, or the load after the rebalance that has followed it."""
        last, after = self.checks[-1], self.rebalances[-1]
        if last.ended_at > after.ended_at:
            return last
        assert after.leadership is not None
        assert after.leadership.load is not None
        return after.leadership.load

    def load_checked(self, result: LoadCheckResult) -> None:
        self.checks.append(result)

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)


def test_metrics_listeners_and_the_log_tell_the_same_of_load_checks(
    registry: CollectorRegistry,
    new_kafka_topic: NewKafkaTopic,
    new_member: Callable[..., Member],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Equal weights, then some for which two partitions would have to move, then some for which one does."""
    caplog.set_level(logging.INFO, logger="groupwright.consumer")
    topic = new_kafka_topic(partitions=4)
    weights = [1.0, 1.0, 1.0, 1.0]
    by_load: list[Assignor] = [LoadAwareAssignor(weights=WeightFunction(lambda _, number: weights[number]))]
    settings = {"load_check_interval_ms": 300, "load_check_max_moves": 1}
    first, second = (new_member(topic, name, by_load, **settings) for name in ("first", "second"))
    recorder = Recorder()
    first.consumer.add_listener(recorder)
    for member in (first, second):
        instrument(member.consumer, registry=registry)

    def outcomes() -> Counter[LoadCheckOutcome]:
        return Counter(check.outcome for check in recorder.checks)

    def assert_the_metrics_say_what_the_log_says() -> None:
        """The log may be ahead by checks that no poll has reported yet."""
        sentences = re.findall(r"\[first in .+?\] load check: (.+)", caplog.text)[: len(recorder.checks)]
        assert sentences == list(map(sentence, recorder.checks))
        for outcome, count in outcomes().items():
            assert first.value("load_checks_total", outcome=outcome) == count
        measured = recorder.last_measured
        assert first.value("leader_load_peak_ratio") == measured.peak
        assert first.value("leader_load_bound_ratio") == measured.bound
        moved = [check.moves for check in recorder.checks if check.outcome is LoadCheckOutcome.REBALANCED]
        assert first.value("load_check_moves_total") == sum(map(int, filter(None, moved)))
        assert first.value("instrumentation_errors_total") == 0

    first.join(topic)
    poll_until(lambda: first.owned == 4, first)
    second.join(topic)
    poll_until(lambda: first.owned == second.owned == 2, first, second)
    poll_until(lambda: outcomes()[LoadCheckOutcome.UNCHANGED] > 1, first, second)
    assert_the_metrics_say_what_the_log_says()
    assert first.value("load_checks_total", outcome="limited") == 0
    assert first.value("leader_load_peak_ratio") == 1

    heavy = [each.partition for each in first.consumer.assignment()]
    for number in heavy:
        weights[number] = 10
    rebalances = len(recorder.rebalances)
    poll_until(lambda: outcomes()[LoadCheckOutcome.LIMITED] > 1, first, second)
    assert_the_metrics_say_what_the_log_says()
    assert recorder.checks[-1].moves == 2
    assert len(recorder.rebalances) == rebalances, "the limit is one partition"

    weights[heavy[0]], weights[heavy[1]] = 4, 2
    poll_until(lambda: outcomes()[LoadCheckOutcome.REBALANCED] > 0, first, second)
    assert_the_metrics_say_what_the_log_says()
    assert first.value("load_check_moves_total") == 1
    poll_until(lambda: len(recorder.rebalances) > rebalances and second.owned == 3, first, second)
    moved = recorder.rebalances[rebalances]
    assert moved.reason == "load check"
    assert moved.leadership is not None
    assert moved.leadership.moved == 1
    assert moved.leadership.load is not None
    assert f"load: {moved.leadership.load}" in caplog.text
    assert 0 < moved.leadership.load.moved_share < 0.5
    assert second.value("leader_load_peak_ratio") is second.value("load_check_moves_total") is None


def sentence(check: LoadCheckResult) -> str:
    """What the log says of a load check."""
    assert check.outcome is not LoadCheckOutcome.FAILED
    text = f"busiest member at {check.peak:.2f} of average, "
    if check.outcome is LoadCheckOutcome.UNCHANGED:
        return text + f"none of {check.partitions} partitions moves"
    text += f"{check.moves} of {check.partitions} partitions move, expected {check.expected:.2f}"
    is_limited = check.outcome is LoadCheckOutcome.LIMITED
    return text + ("; no rebalance, since load.check.max.moves is 1" if is_limited else "")
