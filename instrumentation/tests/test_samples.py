"""Samples of a membership and of statistics: exact values, growth, and failures to read."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError
from prometheus_client import CollectorRegistry

from groupwright.consumer import Rebalance
from groupwright.instrumentation import (
    GroupLoad,
    Leadership,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    Metrics,
    instrument,
)
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import (
    ConsumerStatistics,
    PartitionStatistics,
    read_consumer,
)
from groupwright.instrumentation.consumer_metrics import Options

Value = Callable[..., float | None]
NewConsumer = Callable[..., Any]


def test_a_membership_is_shown_as_the_consumer_reports_it(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    snapshot = MembershipSnapshot(
        state="preparing_rebalance",
        coordinator=3,
        round_trip=0.25,
        heartbeat_age=1.5,
        max_poll_interval=10.0,
    )
    consumer = new_consumer(membership_snapshot=snapshot, age=lambda: 2.5)
    instrument(consumer, registry)

    states = ("unjoined", "preparing_rebalance", "completing_rebalance", "stable")
    assert [value("groupwright_membership_state", state=state) for state in states] == [0, 1, 0, 0]
    assert value("groupwright_coordinator_node") == 3
    assert value("groupwright_coordinator_round_trip_seconds") == 0.25
    assert value("groupwright_last_heartbeat_age_seconds") == 1.5
    assert value("groupwright_poll_interval_used_ratio") == 0.25


def test_totals_grow_and_a_decrease_adds_nothing(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    """A broker that leaves the statistics takes its part of the totals with it."""
    consumer = new_consumer()
    instrument(consumer, registry)

    def after(joins: int, refused: int) -> list[float | None]:
        consumer.membership_snapshot = MembershipSnapshot(
            requests={"join_group": joins}, request_failures={("join_group", "NOT_COORDINATOR"): refused}
        )
        failures = {"request": "join_group", "error": "NOT_COORDINATOR"}
        return [
            value("groupwright_group_requests_total", request="join_group"),
            value("groupwright_group_request_failures_total", **failures),
        ]

    assert after(3, 1) == [3, 1]
    assert after(3, 1) == [3, 1]
    assert after(5, 2) == [5, 2]
    assert after(1, 0) == [5, 2]
    assert after(2, 1) == [6, 3]


def test_of_two_scrapes_at_once_each_adds_what_it_read_before_the_other_reads(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    """Else an older total would follow a newer one, and what came between would count twice."""
    other = threading.Thread(target=lambda: list(registry.collect()))
    totals = itertools.count(1.0)

    class Reading:
        def __get__(self, *_: object) -> MembershipSnapshot:
            snapshot = MembershipSnapshot(poll_seconds=next(totals))
            if snapshot.poll_seconds == 1:
                other.start()
                other.join(0.2)  # it waits for this scrape; without the lock it ends now
            return snapshot

    consumer = new_consumer()
    consumer.__class__ = type("Scripted", (type(consumer),), {"membership_snapshot": Reading()})
    del consumer.__dict__["membership_snapshot"]
    instrument(consumer, registry)
    list(registry.collect())
    other.join()

    assert value("groupwright_poll_seconds_total") == 3


def test_a_snapshot_that_raises_is_counted_and_the_rest_is_shown(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        state = property(lambda _: 1 / 0)
        max_poll_interval = None
        fenced = 0

    consumer = new_consumer(membership_snapshot=Broken())
    instrument(consumer, registry, advise=False)

    assert value("groupwright_instrumentation_errors_total") == 2  # of the membership, and of its lag
    assert value("groupwright_rebalances_total", protocol="none", outcome="failed") == 0
    assert len(caplog.records) == 2


def test_the_leaders_statistics_are_counted_and_shown(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: Callable[..., Rebalance],
) -> None:
    led = new_rebalance(leadership=Leadership(members=5, moved=7, min_moves=4, imbalance=2))
    consumer = new_consumer()
    listener = instrument(consumer, registry)
    listener.rebalanced(led)
    listener.rebalanced(led)
    assert value("groupwright_leader_moves_total") == 14
    assert value("groupwright_leader_min_moves_total") == 8
    assert (value("groupwright_leader_imbalance"), value("groupwright_leader_members")) == (2, 5)

    listener.rebalanced(new_rebalance())  # another leads now
    assert value("groupwright_leader_moves_total") == 14
    assert (value("groupwright_leader_imbalance"), value("groupwright_leader_members")) == (None, None)


def test_members_that_cannot_be_decoded_count_in_each_rebalance(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: Callable[..., Rebalance],
) -> None:
    """Also where the group is too large to be measured."""
    listener = instrument(new_consumer(), registry)
    listener.rebalanced(new_rebalance())
    assert value("groupwright_leader_undecodable_members_total") is None
    listener.rebalanced(new_rebalance(leadership=Leadership(3, 0, 0, 0)))
    assert value("groupwright_leader_undecodable_members_total") == 0
    for reasons in (
        {"a": "malformed subscription", "b": "malformed user data"},
        {"a": "malformed subscription"},
    ):
        listener.rebalanced(new_rebalance(undecodable=reasons))
    assert value("groupwright_leader_undecodable_members_total") == 3


def test_the_load_is_that_of_the_last_check_or_rebalance(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: Callable[..., Rebalance],
    new_load_check: Callable[..., LoadCheckResult],
    group_load: GroupLoad,
) -> None:
    def ratios() -> tuple[float | None, float | None]:
        return value("groupwright_leader_load_peak_ratio"), value("groupwright_leader_load_bound_ratio")

    leadership = Leadership(members=2, moved=1, min_moves=0, imbalance=1, load=group_load)
    consumer = new_consumer()
    listener = instrument(consumer, registry)
    assert ratios() == (None, None)
    listener.rebalanced(new_rebalance(leadership=leadership, ended_at=1000.0))
    assert ratios() == (1.25, 1.125)
    listener.load_checked(new_load_check(ended_at=1001.0))
    assert ratios() == (1.5, 1)
    failed = new_load_check(LoadCheckOutcome.FAILED, peak=None, bound=None, ended_at=1002.0)
    listener.load_checked(failed)
    assert ratios() == (1.5, 1)
    listener.rebalanced(new_rebalance(leadership=leadership, ended_at=1003.0))
    assert ratios() == (1.25, 1.125)

    without_weights = Leadership(members=2, moved=1, min_moves=0, imbalance=1)
    listener.rebalanced(new_rebalance(leadership=without_weights, ended_at=1004.0))
    assert ratios() == (None, None)
    listener.rebalanced(new_rebalance(ended_at=1005.0))  # another leads now
    assert ratios() == (None, None)


def test_load_checks_are_counted_by_what_they_decided(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: Callable[..., Rebalance],
    new_load_check: Callable[..., LoadCheckResult],
    group_load: GroupLoad,
) -> None:
    """The counters are there at 0 before the first check, so that `increase()` sees it."""

    def counted() -> dict[str, float | None]:
        return {
            outcome: value("groupwright_load_checks_total", outcome=outcome) for outcome in LoadCheckOutcome
        }

    consumer = new_consumer()
    listener = instrument(consumer, registry)
    listener.rebalanced(new_rebalance(leadership=Leadership(2, 1, 0, 1)))
    assert counted() == dict.fromkeys(LoadCheckOutcome), "no check concerns a group without weights"
    listener.rebalanced(new_rebalance(leadership=Leadership(2, 1, 0, 1, load=group_load)))
    assert counted() == dict.fromkeys(LoadCheckOutcome, 0)
    assert value("groupwright_load_check_moves_total") == 0

    for outcome in (*LoadCheckOutcome, LoadCheckOutcome.REBALANCED):
        listener.load_checked(new_load_check(outcome))

    assert counted() == {"rebalanced": 2, "unchanged": 1, "limited": 1, "failed": 1}
    assert value("groupwright_load_check_moves_total") == 6, "a check that the limit stops moves nothing"
    assert value("groupwright_instrumentation_errors_total") == 0


def test_commits_are_counted_by_error_and_timed_where_the_time_is_known(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    consumer = new_consumer()
    listener = instrument(consumer, registry)
    assert value("groupwright_commits_total") == 0
    listener.commit_ended(0.25, None)
    listener.commit_ended(None, None)
    listener.commit_ended(0.5, "ILLEGAL_GENERATION")

    assert value("groupwright_commits_total") == 3
    assert value("groupwright_commit_failures_total", error="ILLEGAL_GENERATION") == 1
    assert value("groupwright_commit_duration_seconds_count") == 2
    assert value("groupwright_commit_duration_seconds_sum") == 0.75


def test_a_membership_of_librdkafkas_is_completed_from_statistics(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    statistics: Callable[[str], str],
) -> None:
    """Groupwright's consumer under KIP-848."""
    callbacks = LibrdkafkaCallbacks(read_consumer)
    callbacks.record_statistics(statistics("consumer"))
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(max_poll_exceeded=2))
    consumer.settings = {"group.protocol": "consumer"}
    Metrics.of(registry).add_consumer(consumer, None, callbacks)

    assert value("groupwright_coordinator_node") == 1
    assert value("groupwright_membership_state", state="stable") == 1
    assert value("groupwright_max_poll_exceeded_total") == 2
    assert value("groupwright_consumer_info", client="librdkafka", kind="consumer") == 1


def consumed(position: int) -> PartitionStatistics:
    """A partition of 10 messages, of which the application has consumed those below `position`."""
    return PartitionStatistics(position, 10, -1001, 10, 0, 10, 10)


def test_lag_is_shown_by_topic_and_by_partition_on_request(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    partitions = {("orders", 0): consumed(6), ("orders", 1): consumed(2), ("bills", 0): consumed(10)}
    callbacks = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, partitions))
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, Options(lag_by_partition=True), callbacks)
    other = new_consumer(client_id="c-2")
    others = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, partitions))
    Metrics.of(registry).add_consumer(other, None, others)
    callbacks.record_statistics("")
    others.record_statistics("")

    assert (value("groupwright_lag", topic="orders"), value("groupwright_lag_max", topic="orders")) == (12, 8)
    assert value("groupwright_lag", topic="bills") == 0
    assert value("groupwright_partition_lag", topic="orders", partition="1") == 8
    assert value("groupwright_lag", client_id="c-2", topic="orders") == 12
    assert value("groupwright_partition_lag", client_id="c-2", topic="orders", partition="1") is None


def test_committed_lag_adds_what_is_received_and_not_committed(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    partitions = {
        ("orders", 0): consumed(6)._replace(committed=5),
        ("orders", 1): consumed(2)._replace(committed=0),
        ("bills", 0): consumed(10),  # nothing is committed
    }
    callbacks = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, partitions))
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, None, callbacks)
    callbacks.record_statistics("")

    assert [value("groupwright_lag", topic=topic) for topic in ("orders", "bills")] == [4 + 8, 0]
    assert [value("groupwright_committed_lag", topic=topic) for topic in ("orders", "bills")] == [
        5 + 10,
        None,
    ]


def test_committed_lag_is_unknown_while_a_producer_commits(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    """The consumer knows the offset from which it started alone, so the lag grew without an end."""
    partitions = {("orders", 0): consumed(6)._replace(committed=0)}
    callbacks = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, partitions))
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(commits_by_producer=True))
    Metrics.of(registry).add_consumer(consumer, None, callbacks)
    callbacks.record_statistics("")

    assert value("groupwright_lag", topic="orders") == 4
    assert value("groupwright_committed_lag", topic="orders") is None


def test_what_was_fetched_is_counted_by_topic_and_throttling_is_shown(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, statistics: Callable[[str], str]
) -> None:
    """The file's consumer has fetched ten messages of 100 bytes from each of three partitions."""
    text = statistics("consumer")
    throttled = text.replace('"throttle":{"min":0,"max":0', '"throttle":{"min":0,"max":250', 1)
    callbacks = LibrdkafkaCallbacks(read_consumer)
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, None, callbacks)
    for each in (text, throttled):
        callbacks.record_statistics(each)

        assert value("groupwright_fetched_messages_total", topic="orders") == 30
        assert value("groupwright_fetched_bytes_total", topic="orders") == 3000
        assert value("groupwright_throttle_seconds") == (0.25 if each == throttled else 0)


def test_the_age_of_the_last_commit_is_that_of_one_that_succeeded(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    consumer = new_consumer()
    listener = instrument(consumer, registry)
    listener.commit_ended(0.1, "REBALANCE_IN_PROGRESS")
    assert value("groupwright_last_commit_age_seconds") is None

    listener.commit_ended(0.1, None)
    age = value("groupwright_last_commit_age_seconds")
    assert age is not None
    assert age >= 0
    consumer.age = lambda: None  # it is closed
    assert value("groupwright_last_commit_age_seconds") is None


def test_a_closed_consumer_has_no_lag(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    callbacks = LibrdkafkaCallbacks(
        lambda _: ConsumerStatistics(1.0, "stable", None, {}, {("orders", 0): consumed(6)})
    )
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, None, callbacks)
    callbacks.record_statistics("")
    assert value("groupwright_lag", topic="orders") == 4

    consumer.age = lambda: None
    assert value("groupwright_lag", topic="orders") is None


def test_a_closed_consumer_has_counters_and_its_last_rebalance(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: Callable[..., Rebalance],
    statistics: Callable[[str], str],
) -> None:
    """Its gauges would stand beside those of a successor with the same client id."""
    callbacks = LibrdkafkaCallbacks(read_consumer)
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(state="unjoined"))
    listener = Metrics.of(registry).add_consumer(consumer, None, callbacks)
    listener.rebalanced(new_rebalance())
    listener.partitions_revoked({"orders": [0, 1, 2]}, 0.0)
    listener.commit_ended(0.1, None)
    callbacks.record_statistics(statistics("consumer"))

    def gauges() -> set[str]:
        return {
            sample.name
            for family in registry.collect()
            if family.type in {"gauge", "info"}
            for sample in family.samples
        } - {"groupwright_build_info"}

    of_last_rebalance = {
        "groupwright_partitions_owned",
        "groupwright_generation",
        "groupwright_last_rebalance_timestamp_seconds",
        "groupwright_last_rebalance_duration_seconds",
    }
    of_client = {
        "groupwright_membership_state",
        "groupwright_statistics_age_seconds",
        "groupwright_throttle_seconds",
        "groupwright_last_commit_age_seconds",
    }
    assert of_last_rebalance | of_client <= gauges()
    consumer.age = lambda: None
    callbacks.record_error(KafkaError(KafkaError._TRANSPORT))

    assert gauges() == of_last_rebalance
    assert value("groupwright_partitions_owned", topic="orders") == 0
    assert value("groupwright_client_errors_total", error="_TRANSPORT") == 1
    assert value("groupwright_fetched_messages_total", topic="orders") == 30


@pytest.mark.parametrize(("state", "lags"), [("stable", [4, 8]), ("unjoined", [None, 8])])
def test_a_member_that_has_left_the_group_has_no_lag_of_the_groups_partitions(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    state: str,
    lags: list[float | None],
) -> None:
    """Its successor has it. Topic "bills" is assigned by hand."""
    partitions = {("orders", 0): consumed(6), ("bills", 0): consumed(2)}
    callbacks = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, partitions))
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(state=state))
    listener = Metrics.of(registry).add_consumer(consumer, None, callbacks)
    listener.partitions_assigned({"orders": [0]}, 0.0)
    callbacks.record_statistics("")

    assert [value("groupwright_lag", topic=topic) for topic in ("orders", "bills")] == lags


def test_broken_statistics_are_counted_each_time_and_logged_once(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    callbacks = LibrdkafkaCallbacks(read_consumer)
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, callbacks=callbacks)
    callback = callbacks.configure({}, asynchronous=False)["stats_cb"]
    for _ in range(3):
        callback('{"brokers": {}')

    assert value("groupwright_instrumentation_errors_total") == 3
    (logged,) = caplog.records
    assert "statistics cannot be read" in logged.getMessage()


def test_a_clients_errors_are_counted_by_name(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    callbacks = LibrdkafkaCallbacks(read_consumer)
    consumer = new_consumer()
    Metrics.of(registry).add_consumer(consumer, callbacks=callbacks)
    for code in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TRANSPORT):
        callbacks.record_error(KafkaError(code))

    assert value("groupwright_client_errors_total", error="_TRANSPORT") == 2
    assert value("groupwright_client_errors_total", error="_ALL_BROKERS_DOWN") == 1


def test_a_closed_or_fenced_consumer_is_no_member(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    consumer = new_consumer(settings={"partition.assignment.strategy": "range"})
    instrument(consumer, registry)
    info = {"client": "groupwright", "kind": ""}
    assert value("groupwright_consumer_info", **info) == 1

    consumer.membership_snapshot = MembershipSnapshot(fenced=1)
    assert value("groupwright_consumer_info", **info) is None
    consumer.membership_snapshot = MembershipSnapshot()
    assert value("groupwright_consumer_info", **info) == 1
    consumer.age = lambda: None
    assert value("groupwright_consumer_info", **info) is None


def test_series_of_known_labels_are_at_0_from_the_start(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    instrument(new_consumer(settings={"partition.assignment.strategy": "range,my-own"}), registry)

    assert value("groupwright_rebalances_total", protocol="none", outcome="failed") == 0
    for protocol in ("range", "my-own"):
        for outcome in ("completed", "lost", "failed"):
            assert value("groupwright_rebalances_total", protocol=protocol, outcome=outcome) == 0
    for protocol in ("range", "my-own"):
        assert value("groupwright_rebalance_duration_seconds_bucket", protocol=protocol, le="+Inf") == 0
    for rule in ("storm", "flapping", "slow-callback", "max-poll-interval"):
        assert value("groupwright_warnings_total", rule=rule) == 0
