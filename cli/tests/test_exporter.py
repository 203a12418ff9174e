"""`groupwright exporter`: samples from snapshots, bounds of cardinality, the catalogue, and the server."""

import gc
import gzip
import re
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import (
    CommittedOffset,
    DescribedGroup,
    GroupMember,
    GroupType,
    OpenTransaction,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.app import app
from groupwright.cli.exporter import catalogue, reference
from groupwright.cli.exporter.catalogue import CATALOGUE, LABELS, ExporterSpec, Level
from groupwright.cli.exporter.end_offsets import EndOffsets
from groupwright.cli.exporter.exposition import text
from groupwright.cli.exporter.lag_velocity import LagVelocity
from groupwright.cli.exporter.limits import GroupLimit, Patterns
from groupwright.cli.exporter.refresher import Refresher
from groupwright.cli.exporter.server import Pages
from groupwright.cli.exporter.snapshot import HeldPartition, OffsetsTopicState, Snapshot
from groupwright.cli.exporter.state import ExporterState, Options, Page
from groupwright.cli.exporter.status import ExporterStatus
from groupwright.consumer.cluster import Broker
from groupwright.core.http_server import HttpServer
from groupwright.core.metrics import MetricType
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

ORDERS = ("orders", 0)


def lag(
    committed: int | None = 0,
    end: int | None = 0,
    *,
    group: str = "billing",
    type_: GroupType = GroupType.CLASSIC,
    state: str = "Stable",
    members: Sequence[str] = ("m-1",),
    epoch: int | None = None,
    begin: int | None = 0,
    topic_id: str = "",
    protocol_type: str = "consumer",
    stable: int | None = None,
    has_message: bool | None = None,
    share_lag: int | None = None,
) -> GroupLag:
    """A group whose first member is assigned a partition, as far as brokers return assignments."""
    is_known = type_ is not GroupType.CLASSIC or (state == "Stable" and protocol_type == "consumer")
    made = tuple(
        GroupMember(id_, id_, "host", assigned={} if number or not is_known else {"orders": (0,)})
        for number, id_ in enumerate(members)
    )
    described = DescribedGroup(
        group, type_, state, protocol_type, "range", made, Broker(1, "localhost", 9092), epoch
    )
    owners = made[:1] if is_known else ()
    error = "no leader" if end is None else ""
    row = PartitionLag(
        *ORDERS,
        committed,
        begin,
        end,
        owners,
        error,
        topic_id,
        stable=stable,
        has_message=has_message,
        is_shared=type_ is GroupType.SHARE,
        share_lag=share_lag,
    )
    return GroupLag(described, (row,))


def pages(
    *groups: GroupLag, generations: Sequence[int] = (), options: Options | None = None, every: float = 10.0
) -> list[Page]:
    """The pages of one group's snapshots, every ten seconds."""
    state = ExporterState(options or Options(stuck_seconds=30))
    return [
        state.update(
            Snapshot(
                number * every,
                (each,),
                generations={each.group.id: generations[number]} if generations else {},
            )
        )
        for number, each in enumerate(groups)
    ]


def values(made: Sequence[Page], spec: ExporterSpec, *labels: str) -> list[float | None]:
    return [page.samples.get(spec, {}).get(labels) for page in made]


# --- Lag --------------------------------------------------------------------------------------------


def test_lag_of_a_topic_is_the_sum_the_largest_and_the_oldest() -> None:
    rows = (
        PartitionLag("orders", 0, 5, 0, 10),
        PartitionLag("orders", 1, 1, 0, 10),
        PartitionLag("orders", 2, None, 0, 10),
        PartitionLag("orders", 3, 4, 0, None),
    )
    (page,) = pages(GroupLag(lag().group, rows))

    labels = ("billing", "orders")
    assert values([page], catalogue.LAG, *labels) == [14]
    assert values([page], catalogue.LAG_MAX, *labels) == [9]
    assert values([page], catalogue.LAG_SECONDS, *labels) == [None]
    assert values([page], catalogue.LAG_SECONDS_UNKNOWN, *labels) == [2]
    assert values([page], catalogue.COMMITTED, *labels) == [10]
    assert page.unknown_partitions == 1


def test_seconds_are_the_age_of_the_first_uncommitted_message() -> None:
    made = pages(lag(100, 100), lag(100, 120), lag(110, 120), lag(115, 130), lag(130, 130), lag(130, 130))

    # The message 100 arrived between 0 s and 10 s, with 19 others; 130 has not come at all.
    assert values(made, catalogue.LAG_SECONDS, "billing", "orders") == pytest.approx(
        [0, 9.5, 14.5, 22.0, 0, 0]
    )


def test_messages_from_before_the_first_snapshot_are_at_least_as_old_as_that() -> None:
    made = pages(lag(50, 100), lag(50, 120), lag(100, 120), options=Options(by_partition=True))

    assert values(made, catalogue.LAG_SECONDS, "billing", "orders") == [None, 10, pytest.approx(19.5)]
    assert values(made, catalogue.LAG_SECONDS_UNKNOWN, "billing", "orders") == [1, 1, 0]
    of_partition = values(made, catalogue.PARTITION_LAG_SECONDS, "billing", "orders", "0")
    assert of_partition == [None, None, pytest.approx(19.5)]


def test_a_topic_has_no_seconds_while_nothing_is_known_of_one_partition_that_lags() -> None:
    """After a restart of the exporter, an alert that compares seconds alone must not see a 0."""
    rows = PartitionLag("orders", 0, 0, 0, 500), PartitionLag("orders", 1, 500, 0, 500)
    made = pages(*[GroupLag(lag().group, rows)] * 3)

    assert values(made, catalogue.LAG_SECONDS, "billing", "orders") == [None, 10, 20]
    assert values(made, catalogue.LAG_SECONDS_UNKNOWN, "billing", "orders") == [1, 1, 1]


def test_a_topic_is_not_caught_up_while_the_lag_of_one_partition_with_messages_is_not_known() -> None:
    at_end, owners = PartitionLag("orders", 1, 500, 0, 500), lag().group.members[:1]
    made = pages(
        GroupLag(lag().group, (PartitionLag("orders", 0, None, 0, 500, owners), at_end)),
        GroupLag(lag().group, (PartitionLag("orders", 0, None, 500, 500, owners), at_end)),
        GroupLag(lag().group, (PartitionLag("orders", 0, 600, 0, 500, owners), at_end)),
        GroupLag(lag().group, (PartitionLag("orders", 0, 500, 0, 500, owners), at_end)),
    )

    assert values(made, catalogue.LAG_SECONDS, "billing", "orders") == [None, 0, None, 0]
    assert values(made, catalogue.CATCH_UP, "billing", "orders") == [None, 0, None, 0]


def test_nothing_is_interpolated_over_a_topic_that_was_created_again() -> None:
    """The new log reaches the end that the former one had, within one interval."""
    made = pages(
        lag(100, 100, topic_id="a"),
        lag(100, 140, topic_id="a"),
        lag(0, 150, topic_id="b"),
        lag(0, 150, topic_id="b"),
    )

    assert values(made, catalogue.LAG_SECONDS, "billing", "orders") == [0, pytest.approx(9.75), None, 10]
    assert values(made, catalogue.LAG_SECONDS_UNKNOWN, "billing", "orders") == [0, 0, 1, 1]


def test_the_last_known_end_counts_while_a_leader_does_not_respond() -> None:
    silent = lag(90, None, begin=None), lag(95, None, begin=None)
    made = pages(lag(90, 90), lag(90, 100), *silent, lag(95, 110))

    assert values(made, catalogue.LAG, "billing", "orders") == [0, 10, 10, 5, 15]
    assert [page.unknown_partitions for page in made] == [0, 0, 1, 1, 0]
    # The ends from before are still known afterwards.
    assert values(made, catalogue.LAG_SECONDS, "billing", "orders")[-1] == pytest.approx(40 - 6)


def test_all_that_was_last_known_of_a_log_counts_while_its_leader_does_not_respond() -> None:
    known = lag(100, 10_600, begin=10_000, stable=10_500)
    drained = lag(100, 10_600, begin=10_000, stable=10_500, has_message=False)
    silent = lag(100, None, begin=None)
    labels = ("billing", "orders")

    for made in (pages(known, silent), pages(drained, silent)):
        for spec in (catalogue.LAG, catalogue.HELD, catalogue.UNREADABLE, catalogue.DELETED_UNREAD):
            before, after = values(made, spec, *labels)
            assert before == after is not None, spec.name
    assert values(pages(known, silent), catalogue.LAG, *labels) == [500, 500]
    assert values(pages(drained, silent), catalogue.LAG, *labels) == [0, 0]
    assert values(pages(drained, lag(101, None, begin=None)), catalogue.LAG, *labels) == [0, 500]
    passed = pages(known, lag(10_700, None, begin=None))
    assert values(passed, catalogue.LAG, *labels) == [500, None]
    assert values(passed, catalogue.BEYOND_END, *labels) == [0, 0]
    without_commit = lag(None, 1000, begin=990), lag(None, None, begin=None)
    assert values(pages(*without_commit), catalogue.UNCOMMITTED_MESSAGES, *labels) == [10, 10]


def test_messages_without_a_commit_are_not_shown_as_none_while_their_number_is_not_known() -> None:
    labels = ("billing", "orders")
    silent = lag(None, None, begin=None, topic_id="id")  # the group commits nothing, and a leader is away
    hidden = lag(None, None, begin=None)  # brokers leave out the group's commits, too

    assert values(pages(silent), catalogue.UNCOMMITTED, *labels) == [1]
    assert values(pages(silent), catalogue.UNCOMMITTED_MESSAGES, *labels) == [None]
    assert values(pages(hidden), catalogue.ASSIGNED, *labels) == [1]
    assert values(pages(hidden), catalogue.UNCOMMITTED, *labels) == [None]
    assert values(pages(hidden), catalogue.UNCOMMITTED_MESSAGES, *labels) == [None]


def test_a_committed_offset_beyond_the_end_has_no_lag() -> None:
    made = pages(lag(100, 100), lag(100, 20), lag(20, 20))

    assert values(made, catalogue.LAG, "billing", "orders") == [0, None, 0]
    assert values(made, catalogue.BEYOND_END, "billing", "orders") == [0, 1, 0]


def test_partitions_without_a_committed_offset_are_counted_with_their_messages_while_they_are_known() -> None:
    made = pages(
        lag(None, 100, begin=60),
        lag(None, None, state="PreparingRebalance"),
        lag(None, 110, begin=60),
        lag(5, 110, begin=60),
    )

    labels = ("billing", "orders")
    assert values(made, catalogue.LAG, *labels) == [None, None, None, 50]
    assert values(made, catalogue.CATCH_UP, *labels) == [None] * 4
    assert values(made, catalogue.UNCOMMITTED, *labels) == [1, None, 1, 0]
    assert values(made, catalogue.UNCOMMITTED_MESSAGES, *labels) == [40, None, 50, 0]
    assert values(made, catalogue.ASSIGNED, *labels) == [1, None, 1, 1]
    assert values(made, catalogue.DELETED_UNREAD, *labels) == [None, None, None, 55]


def test_nothing_is_said_about_assignments_of_a_group_that_is_none_of_consumers() -> None:
    (page,) = pages(lag(5, 10, protocol_type="connect"))

    for spec in (catalogue.ASSIGNED, catalogue.UNCOMMITTED, catalogue.UNSUBSCRIBED):
        assert values([page], spec, "billing", "orders") == [None]
    assert values([page], catalogue.GROUP_IDLE_MEMBERS, "billing") == [None]


@pytest.mark.parametrize(
    ("member", "unsubscribed"),
    [
        (GroupMember("m", "m", "host", topics=("payments",)), 1),
        (GroupMember("m", "m", "host", topics=("orders",)), 0),
        (GroupMember("m", "m", "host", topic_regex="pay.*", assigned={"payments": (0,)}), 1),
        (GroupMember("m", "m", "host", topic_regex="ord.*", assigned={"orders": (0,)}), 0),
        (GroupMember("m", "m", "host", undecodable="malformed"), None),
        (None, 0),
    ],
    ids=["left", "subscribed", "pattern", "matched", "undecodable", "empty"],
)
def test_a_topic_that_the_group_left_is_counted(member: GroupMember | None, unsubscribed: int | None) -> None:
    described = replace(lag().group, members=() if member is None else (member,))
    (page,) = pages(GroupLag(described, (PartitionLag(*ORDERS, 5, 0, 10),)))

    assert values([page], catalogue.UNSUBSCRIBED, "billing", "orders") == [unsubscribed]


# --- Velocity and retention ---------------------------------------------------------------------------


def test_a_lag_that_shrinks_has_a_velocity_and_a_time_to_catch_up() -> None:
    made = pages(lag(0, 100), lag(10, 100), lag(20, 100), lag(20, 150), lag(150, 150), every=15)

    assert values(made, catalogue.VELOCITY, "billing", "orders") == pytest.approx(
        [None, -10 / 15, -20 / 30, 30 / 45, -100 / 60]
    )
    assert values(made, catalogue.CATCH_UP, "billing", "orders") == [
        None,
        pytest.approx(90 / (10 / 15)),
        pytest.approx(80 / (20 / 30)),
        None,
        0,
    ]


def test_a_lag_that_shrinks_by_retention_alone_has_no_time_to_catch_up() -> None:
    made = pages(lag(0, 100), lag(0, 100, begin=50), lag(10, 100, begin=50), every=15)

    assert values(made, catalogue.VELOCITY, "billing", "orders") == pytest.approx([None, -50 / 15, -50 / 30])
    assert values(made, catalogue.CATCH_UP, "billing", "orders") == [None, None, pytest.approx(30)]


def test_the_velocity_is_that_of_the_last_minutes_and_of_the_same_partitions() -> None:
    velocity = LagVelocity()
    for number in range(100):
        measured = velocity.update(1000, 1, 10.0 * number)
    assert measured == 0
    for number in range(100, 131):
        measured = velocity.update(1000 + 10 * (number - 99), 1, 10.0 * number)
    assert measured == pytest.approx(1, rel=0.05)
    assert velocity.update(5000, 2, 1310.0) is None


def test_messages_that_retention_can_delete_and_has_deleted() -> None:
    made = pages(lag(60, 100), lag(60, 100, begin=50), lag(60, 100, begin=90), lag(100, 100, begin=90))

    assert values(made, catalogue.RETENTION_MARGIN, "billing", "orders") == [60, 10, 0, None]
    assert values(made, catalogue.DELETED_UNREAD, "billing", "orders") == [0, 0, 30, 0]
    assert values(made, catalogue.LAG, "billing", "orders") == [40, 40, 10, 0]


def test_deleted_messages_count_neither_in_messages_nor_in_seconds() -> None:
    made = pages(lag(0, 100), lag(0, 200, begin=150))

    assert values(made, catalogue.LAG, "billing", "orders") == [100, 50]
    assert values(made, catalogue.LAG_SECONDS, "billing", "orders")[1] == pytest.approx(10 - 5.1)


def test_ends_of_a_log_at_rest_keep_the_times_of_its_rest() -> None:
    ends = EndOffsets()
    for time in range(100):
        ends.add(ORDERS, 10, time)
    ends.add(ORDERS, 20, 100)

    assert ends.arrival(ORDERS, 10) == pytest.approx(99.1)
    assert ends.arrival(ORDERS, 19) == pytest.approx(100)
    assert ends.arrival(ORDERS, 20) is None
    assert ends.arrival(ORDERS, 9) is None


def test_ends_are_forgotten_when_a_log_is_truncated() -> None:
    ends = EndOffsets()
    for time, end in enumerate((10, 20, 30, 5, 15)):
        ends.add(ORDERS, end, time)

    assert ends.arrival(ORDERS, 12) == pytest.approx(3.8)
    assert ends.arrival(ORDERS, 25) is None


def test_ends_reach_far_back_in_bounded_memory() -> None:
    ends = EndOffsets(samples=60)
    for time in range(10_000):
        ends.add(ORDERS, time * 7, time)

    assert len(ends._histories[ORDERS][0]) <= 60
    for offset in (0, 100, 35_000, 69_000, 69_980):
        assert ends.arrival(ORDERS, offset) == pytest.approx((offset + 1) / 7)
    ends.keep([])
    assert ends.arrival(ORDERS, 100) is None


# --- Generations and rebalances ---------------------------------------------------------------------


def test_a_classic_groups_changes_and_rebalances_are_seen_without_generations() -> None:
    made = pages(
        lag(),
        lag(state="PreparingRebalance", members=["m-1", "m-2"]),
        lag(state="CompletingRebalance", members=["m-1", "m-2"]),
        lag(members=["m-1", "m-2"]),
        lag(members=["m-1", "m-3"]),  # m-2 was replaced between two snapshots
        lag(members=["m-1", "m-3"]),
        lag(state="Empty", members=[]),
    )

    assert values(made, catalogue.GROUP_REBALANCES, "billing") == [0, 1, 1, 1, 2, 2, 3]
    assert values(made, catalogue.GROUP_GENERATION_CHANGES, "billing") == [0, 0, 0, 1, 2, 2, 3]
    assert values(made, catalogue.GROUP_REBALANCING_SECONDS, "billing") == [0, 0, 10, 0, 0, 0, 0]
    assert values(made, catalogue.GROUP_GENERATION, "billing") == [None] * 7
    assert values(made, catalogue.GROUP_IDLE_MEMBERS, "billing") == [0, None, None, 1, 1, 1, 0]


def test_while_assignments_are_not_known_what_is_counted_by_them_is_absent() -> None:
    connect = replace(lag(), group=replace(lag().group, protocol_type="connect"))
    made = pages(lag(), lag(state="PreparingRebalance"), lag(state="CompletingRebalance"), connect)

    for spec, known in ((catalogue.ASSIGNED, 1), (catalogue.UNCOMMITTED, 0)):
        assert values(made, spec, "billing", "orders") == [known, None, None, None]
    assert values(made, catalogue.GROUP_IDLE_MEMBERS, "billing") == [0, None, None, None]
    assert values(made, catalogue.LAG, "billing", "orders") == [0] * 4


def test_with_generations_no_rebalance_is_missed() -> None:
    states = ["Stable", "PreparingRebalance", "Stable", "Stable", "Stable"]
    made = pages(*(lag(state=state) for state in states), generations=[3, 3, 4, 9, 1])

    # From 9 to 1: the group was deleted and created again.
    assert values(made, catalogue.GROUP_GENERATION, "billing") == [3, 3, 4, 9, 1]
    assert values(made, catalogue.GROUP_GENERATION_CHANGES, "billing") == [0, 0, 1, 6, 7]
    assert values(made, catalogue.GROUP_REBALANCES, "billing") == [0, 0, 1, 6, 7]


def test_epochs_within_one_reconciliation_are_one_rebalance() -> None:
    epochs = [(5, "Stable"), (6, "Reconciling"), (7, "Reconciling"), (7, "Stable"), (9, "Stable")]
    made = pages(*(lag(type_=GroupType.CONSUMER, epoch=epoch, state=state) for epoch, state in epochs))

    assert values(made, catalogue.GROUP_GENERATION, "billing") == [5, 6, 7, 7, 9]
    assert values(made, catalogue.GROUP_GENERATION_CHANGES, "billing") == [0, 1, 2, 2, 4]
    assert values(made, catalogue.GROUP_REBALANCES, "billing") == [0, 1, 1, 1, 2]


def test_counters_go_on_after_a_broker_was_silent_and_begin_again_after_a_group_was_deleted() -> None:
    state = ExporterState(Options())
    first, second = lag(), lag(members=["m-2"])
    for group in (first, second):
        page = state.update(Snapshot(0, (group,)))
    state.update(Snapshot(1, (), silent_brokers=1))
    after_silence = state.update(Snapshot(2, (second,)))
    state.update(Snapshot(3, ()))
    after_deletion = state.update(Snapshot(4, (second,)))

    made = [page, after_silence, after_deletion]
    assert values(made, catalogue.GROUP_REBALANCES, "billing") == [1, 1, 0]


# --- Stuck groups -----------------------------------------------------------------------------------


def test_a_group_is_stuck_when_one_rebalance_does_not_end() -> None:
    made = pages(*[lag(state="PreparingRebalance")] * 5, lag())

    assert values(made, catalogue.GROUP_STUCK, "billing", "rebalancing") == [0, 0, 0, 1, 1, 0]
    assert values(made, catalogue.GROUP_STUCK, "billing", "no_progress") == [0] * 6


def test_rebalances_that_follow_each_other_are_not_a_stuck_one() -> None:
    made = pages(*[lag(state="PreparingRebalance")] * 5, generations=[1, 1, 1, 2, 2])

    assert values(made, catalogue.GROUP_STUCK, "billing", "rebalancing") == [0] * 5


@pytest.mark.parametrize(
    ("groups", "stuck"),
    [
        ([lag(5, 10)] * 5, [0, 0, 0, 1, 1]),
        ([*[lag(5, 10)] * 4, lag(6, 10)], [0, 0, 0, 1, 0]),
        ([lag(5 + number, 20) for number in range(5)], [0] * 5),
        ([lag(None, 20)] * 5, [0] * 5),  # nothing committed, and nothing new to read
        ([lag(None, 20), *[lag(None, 30)] * 5], [0, 0, 0, 0, 1, 1]),
        ([lag(None, 20), *[lag(None, 30)] * 3, lag(25, 30), lag(25, 30)], [0] * 6),
        ([lag(None, 20), *[lag(None, 21)] * 5], [0] * 6),
        ([*[lag(5, 10)] * 2, lag(5, 10, state="PreparingRebalance"), *[lag(5, 10)] * 2], [0, 0, 0, 1, 1]),
        ([*[lag(5, 10)] * 2, lag(5, 10, members=[], state="Empty"), *[lag(5, 10)] * 2], [0] * 5),
        ([lag(5, 10, topic_id="a")] * 2 + [lag(5, 10, topic_id="b")] * 3, [0] * 5),
        ([lag(9, 10)] * 5, [0] * 5),  # the marker that ends a transaction
        ([lag(9, 10, has_message=True)] * 5, [0, 0, 0, 1, 1]),
        ([lag(5, 30, has_message=False)] * 5, [0] * 5),  # aborted messages and markers
        ([lag(5, 30, stable=5)] * 5, [0] * 5),  # behind an open transaction
        ([lag(5, 10, members=[], state="Empty")] * 5, [0] * 5),
    ],
    ids=[
        "stuck",
        "goes on",
        "slow",
        "uncommitted",
        "fails at its first message",
        "commits its first message",
        "uncommitted, transactional",
        "through a rebalance",
        "restarted",
        "created again",
        "marker",
        "one message",
        "aborted",
        "open",
        "empty",
    ],
)
def test_a_group_is_stuck_when_its_committed_offset_does_not_move(
    groups: list[GroupLag], stuck: list[int]
) -> None:
    made = pages(*groups)

    assert values(made, catalogue.GROUP_STUCK, "billing", "no_progress") == stuck
    assert values(made, catalogue.STUCK_PARTITIONS, "billing", "orders") == stuck


def shared(start: int | None, lag_: int | None, end: int = 100) -> GroupLag:
    return lag(start, end, type_=GroupType.SHARE, share_lag=lag_)


@pytest.mark.parametrize(
    ("groups", "stuck"),
    [
        ([shared(5, 95)] * 5, [0, 0, 0, 1, 1]),
        ([shared(5, 95 - number) for number in range(5)], [0] * 5),
        ([shared(5 + number, 20) for number in range(5)], [0] * 5),
        ([shared(5, 20 + 10 * number, 100 + 10 * number) for number in range(5)], [0, 0, 0, 1, 1]),
        ([shared(5, 20 + 5 * number, 100 + 10 * number) for number in range(6)], [0] * 6),
        ([shared(5, 20), shared(5, None), shared(None, None), *[shared(5, 20)] * 2], [0, 0, 0, 1, 1]),
        ([shared(5, 0)] * 5, [0] * 5),
        ([shared(5, None)] * 5, [0, 0, 0, 1, 1]),  # a broker before Kafka 4.2
        ([shared(None, None, 100), *[shared(None, None, 120)] * 5], [0, 0, 0, 0, 1, 1]),
    ],
    ids=[
        "stuck",
        "behind a slow message",
        "goes on",
        "stuck, and its lag grows",
        "slow, and its lag grows",
        "not known for a moment",
        "done",
        "lag not known",
        "hangs at its first messages",
    ],
)
def test_a_share_group_is_stuck_when_it_has_processed_nothing(
    groups: list[GroupLag], stuck: list[int]
) -> None:
    made = pages(*groups)

    assert values(made, catalogue.STUCK_PARTITIONS, "billing", "orders") == stuck
    lags = [each.partitions[0].share_lag for each in groups]
    assert values(made, catalogue.LAG, "billing", "orders") == lags


# --- Transactions -----------------------------------------------------------------------------------


def test_messages_behind_an_open_transaction_and_offsets_without_messages_are_no_lag() -> None:
    rows = (
        PartitionLag("orders", 0, 5, 0, 10, stable=7),
        PartitionLag("orders", 1, 5, 0, 30, stable=25, has_message=False),
        PartitionLag("orders", 2, 5, 0, 6, stable=6, has_message=True),
    )
    (page,) = pages(GroupLag(lag().group, rows))

    labels = ("billing", "orders")
    assert values([page], catalogue.LAG, *labels) == [2 + 0 + 1]
    assert values([page], catalogue.HELD, *labels) == [3 + 5]
    assert values([page], catalogue.UNREADABLE, *labels) == [20]


def test_a_group_that_has_read_the_rest_is_stuck_behind_a_transaction_that_does_not_end() -> None:
    def stuck(*groups: GroupLag) -> list[float | None]:
        return values(pages(*groups), catalogue.GROUP_STUCK, "billing", "transaction")

    waiting = lag(7, 10, stable=7)
    assert stuck(*[waiting] * 5) == [0, 0, 0, 1, 1]
    assert stuck(*[waiting] * 4, lag(10, 10, stable=10)) == [0, 0, 0, 1, 0]
    assert stuck(*[lag(7 + number, 20, stable=7 + number) for number in range(5)]) == [0] * 5
    assert stuck(*[lag(5, 10, stable=7)] * 5) == [0] * 5  # there is more to read
    assert stuck(*[lag(8, 10, stable=7)] * 5) == [0] * 5  # it reads uncommitted messages
    assert stuck(*[lag(7, 10, stable=7, members=[], state="Empty")] * 5) == [0] * 5


def test_the_oldest_transaction_that_holds_messages_of_a_topic_is_shown() -> None:
    transactions = (
        OpenTransaction("young", "Ongoing", 1, 90.0, {"orders": (0,)}),
        OpenTransaction("old", "Ongoing", 2, 50.0, {"orders": (0,), "payments": (0,)}),
        OpenTransaction("elsewhere", "Ongoing", 3, 10.0, {"orders": (1,)}),
    )
    state = ExporterState(Options())
    page = state.update(Snapshot(100.0, (lag(5, 10, stable=5),), transactions=transactions))
    ended = state.update(Snapshot(110.0, (lag(5, 10, stable=10),), transactions=()))

    assert page.samples[catalogue.TOPIC_TRANSACTION_AGE] == {("orders", "old"): 50.0}
    assert catalogue.TOPIC_TRANSACTION_AGE not in ended.samples


# --- The offsets topic ------------------------------------------------------------------------------


def test_partitions_held_back_have_their_messages_and_their_time() -> None:
    state = ExporterState(Options())
    topics = [
        OffsetsTopicState(4, {3: 10}, {3: HeldPartition(10, 12)}),
        OffsetsTopicState(4, {3: 10}, {3: HeldPartition(10, 40)}),
        OffsetsTopicState(4, {2: 7}, {}),  # its leader does not respond
        OffsetsTopicState(4, {3: 10}, {3: HeldPartition(10, 41)}),
        OffsetsTopicState(4, {3: 39}, {3: HeldPartition(39, 40)}),
        OffsetsTopicState(4, {3: 40}, {}),
        None,  # it may not be seen
    ]
    made = [
        state.update(Snapshot(10.0 * number, (), offsets_topic=each, states={"Stable": 2}))
        for number, each in enumerate(topics)
    ]

    assert values(made, catalogue.HELD_PARTITIONS) == [1, 1, 1, 1, 1, 0, None]
    assert values(made, catalogue.HELD_MESSAGES, "3") == [2, 30, 30, 31, 1, None, None]
    assert values(made, catalogue.HELD_SECONDS, "3") == [0, 10, 20, 30, 0, None, None]
    assert values(made, catalogue.GROUPS, "Stable") == [2] * 7


def test_transactions_on_other_topics_alone_are_not_shown_and_the_others_are_bounded() -> None:
    transactions = [
        OpenTransaction(f"t-{number}", "Ongoing", number, 100.0 - number, {"__consumer_offsets": (1,)})
        for number in range(150)
    ]
    transactions.append(OpenTransaction("elsewhere", "Ongoing", 500, 0.0, {"orders": (1,)}))
    page = ExporterState(Options()).update(Snapshot(200.0, (), transactions=tuple(transactions)))

    ages = page.samples[catalogue.TRANSACTION_AGE]
    assert len(ages) == 100
    assert ages[("t-149",)] == 249
    assert ("elsewhere",) not in ages


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def offset_record(group: str, partition: int, offset: int | None) -> tuple[bytes, bytes | None]:
    """A commit of the topic `orders`; a tombstone without an offset."""
    key = struct.pack(">h", 1) + string(group) + string("orders") + struct.pack(">i", partition)
    return key, None if offset is None else struct.pack(">hqi", 3, offset, -1) + string("") + struct.pack(
        ">q", 0
    )


def generation_record(group: str, generation: int | None) -> tuple[bytes, bytes | None]:
    """A classic group without members; a tombstone without a generation."""
    value = struct.pack(">h", 3) + string("consumer") + struct.pack(">ihhqi", generation or 0, -1, -1, 0, 0)
    return struct.pack(">h", 2) + string(group), None if generation is None else value


def test_records_of_the_offsets_topic_become_offsets_and_generations() -> None:
    pa = pytest.importorskip("pyarrow")
    from groupwright.cli.exporter.committed_offsets import CommittedOffsets  # needs pyarrow
    from groupwright.pipeline import decode_batch

    def decoded(*records: tuple[bytes, bytes | None]) -> Any:
        keys, values = zip(*records, strict=True)
        numbers = pa.array([0] * len(records), pa.int32())
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "partition": numbers,
            "offset": numbers.cast(pa.int64()),
            "timestamp": numbers.cast(pa.int64()).cast(pa.timestamp("ms", "UTC")),
        }
        return decode_batch(pa.RecordBatch.from_pydict(columns))

    content = CommittedOffsets()
    content.apply(
        decoded(
            offset_record("billing", 0, 5),
            offset_record("billing", 1, 7),
            generation_record("billing", 3),
            offset_record("orders", 0, 1),
            generation_record("orders", 1),
        ),
        is_past=True,
    )
    content.apply(
        decoded(
            offset_record("billing", 0, 6),
            (b"\x00\x01broken", b""),
            offset_record("billing", 1, None),
            offset_record("orders", 0, None),
            generation_record("orders", None),
            generation_record("billing", 4),
            offset_record("deleted", 0, 1),
            offset_record("deleted", 0, None),
        ),
        is_past=False,
    )

    assert content.offsets == {"billing": {("orders", 0): CommittedOffset(6)}}
    assert content.generations == {"billing": 4}
    assert content.commits == {"billing": 1}
    assert content.records == {"decoded": 12, "failed": 1}


# --- Bounds -----------------------------------------------------------------------------------------


def test_groups_are_chosen_by_name_and_those_shown_stay() -> None:
    limit = GroupLimit(Patterns.of(["b.*", "orders"], ["b-test"]), 2)

    assert limit.choose(["orders", "billing", "b-test", "a"]) == (
        ["billing", "orders"],
        {"excluded": 2, "max_groups": 0},
    )
    assert limit.choose(["orders", "billing", "b-0", "b-1"]) == (
        ["billing", "orders"],
        {"excluded": 0, "max_groups": 2},
    )
    assert limit.choose(["orders", "b-0", "b-1"]) == (["b-0", "orders"], {"excluded": 0, "max_groups": 1})


def test_groups_of_a_silent_broker_keep_their_places() -> None:
    limit = GroupLimit(Patterns(), 2)
    limit.choose(["a", "b", "c", "d"])

    assert limit.choose(["b", "c", "d"], are_all=False) == (["b"], {"excluded": 0, "max_groups": 2})
    assert limit.choose(["a", "b", "c", "d"])[0] == ["a", "b"]
    assert limit.choose(["b", "c", "d"])[0] == ["b", "c"]


def test_names_must_match_as_a_whole() -> None:
    assert not Patterns.of(["bill"], []).select("billing")
    assert Patterns.of([], ["bill"]).select("billing")


def test_topics_left_out_have_no_series() -> None:
    (page,) = pages(lag(), options=Options(topics=Patterns.of([], ["orders"])))

    assert catalogue.LAG not in page.samples
    assert catalogue.TOPIC_END not in page.samples


@pytest.mark.parametrize("max_series", [1, 10, 25, 30, 100, 10_000])
def test_no_page_has_more_series_than_allowed_and_what_is_left_out_is_counted(max_series: int) -> None:
    groups = tuple(lag(1, 5, group=f"g-{number}") for number in range(10))

    def page(most: int) -> Page:
        return ExporterState(Options(by_partition=True, max_series=most)).update(Snapshot(0, groups))

    bounded, whole = page(max_series), page(100_000)
    assert bounded.series == sum(map(len, bounded.samples.values())) <= max_series
    assert bounded.series + sum(bounded.left_out.values()) == whole.series


def test_partitions_have_series_by_choice_alone() -> None:
    (without,) = pages(lag(1, 5))
    (with_them,) = pages(lag(1, 5), options=Options(by_partition=True))

    assert {spec for spec in without.samples if spec.level is Level.PARTITION} == set()
    assert values([with_them], catalogue.PARTITION_LAG, "billing", "orders", "0") == [4]
    assert values([with_them], catalogue.PARTITION_COMMITTED, "billing", "orders", "0") == [1]


# --- The catalogue ----------------------------------------------------------------------------------


@pytest.fixture
def eventful() -> bytes:
    """The page of a cluster to which everything has happened."""
    state = ExporterState(Options(by_partition=True))
    page = None
    for number, (committed, end) in enumerate([(0, 10), (15, 20)]):
        snapshot = Snapshot(
            number * 20.0,
            (lag(committed, end, type_=GroupType.CONSUMER, epoch=3, stable=end - 2),),
            states={"Stable": 1},
            commits={"billing": 7},
            offsets_topic=OffsetsTopicState(4, {3: 10}, {3: HeldPartition(10, 12)}),
            transactions=(
                OpenTransaction("t", "Ongoing", 1, 0.0, {"__consumer_offsets": (3,), "orders": (0,)}),
            ),
        )
        page = state.update(snapshot)
    assert page is not None
    status = ExporterStatus("1.0", "offsets-topic", records={"decoded": 7})
    status.succeeded(page, 10.0, 0.1)
    return text(page.samples) + text(status.samples())


def test_everything_in_the_catalogue_is_emitted_and_nothing_else(eventful: bytes) -> None:
    emitted = {
        (sample.name, frozenset(sample.labels), family.documentation, family.type)
        for family in text_string_to_metric_families(eventful.decode())
        for sample in family.samples
    }

    assert emitted == {
        (spec.name, frozenset(spec.labels), spec.help, _exposed(spec.type)) for spec in CATALOGUE
    }


def _exposed(type_: MetricType) -> str:
    """The type in Prometheus's text format, which has no infos."""
    return "gauge" if type_ is MetricType.INFO else type_


@pytest.mark.integration
def test_prometheus_own_linter_has_no_complaint(eventful: bytes) -> None:
    promtool = find_program("promtool", hint="Debian's package prometheus has it")

    ran = subprocess.run(
        [promtool, "check", "metrics"], input=eventful, capture_output=True, check=False, timeout=PATIENCE
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_names_are_unique_and_say_type_unit_and_project() -> None:
    assert len({spec.name for spec in CATALOGUE}) == len(CATALOGUE)
    for spec in CATALOGUE:
        assert re.fullmatch(r"groupwright_(cluster|exporter)(_[a-z]+)+", spec.name)
        assert spec.name.endswith("_total") == (spec.type is MetricType.COUNTER)
        assert spec.name.endswith("_info") == (spec.type is MetricType.INFO)
        assert spec.help.endswith(".")
        assert set(spec.labels) <= set(LABELS)
        assert ("partition" in spec.labels) == ("topic" in spec.labels and spec.level is Level.PARTITION) or (
            spec.name.startswith("groupwright_cluster_offsets_topic_held_")
        )


def test_a_group_has_as_many_series_as_the_readme_says() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    of_group, of_topic, of_partition = (
        sum(
            len(catalogue.REASONS_STUCK) if "reason" in spec.labels else 1
            for spec in CATALOGUE
            if spec.level is level
        )
        for level in (Level.GROUP, Level.TOPIC, Level.PARTITION)
    )

    sentence = f"A group has at most {of_group} series, each of its topics {of_topic}, and with "
    assert f"{sentence}`--by-partition` each of its partitions {of_partition}." in readme


def test_every_label_is_used_and_its_few_values_are_explained() -> None:
    assert {label for spec in CATALOGUE for label in spec.labels} == set(LABELS)
    explained = {
        "reason": (*catalogue.REASONS_STUCK, *catalogue.REASONS_LEFT_OUT),
        "outcome": (*catalogue.OUTCOMES, *catalogue.RECORD_OUTCOMES),
        "type": tuple(GroupType),
    }
    for label, known in explained.items():
        assert all(f"`{value}`" in LABELS[label] for value in known)


def test_the_reference_page_is_up_to_date() -> None:
    """Otherwise: make docs."""
    page = Path(__file__).parents[1] / "EXPORTER.md"

    assert page.read_text(encoding="utf-8") == reference.page()


# --- Refreshes and the server -----------------------------------------------------------------------


class Script:
    """A source of prepared snapshots and errors."""

    def __init__(self, *answers: Snapshot | Exception) -> None:
        self._answers = list(answers)

    def snapshot(self) -> Snapshot:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def served() -> Iterator[tuple[Pages, ExporterStatus, int]]:
    status = ExporterStatus("1.0", "admin")
    made = Pages(lambda: text(status.samples()))
    server = HttpServer("127.0.0.1", 0, made)
    server.start()
    yield made, status, server.port
    server.close()


def get(port: int, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    compressed = response.headers.get("Content-Encoding") == "gzip"
    return response.status, gzip.decompress(body) if compressed else body


@pytest.mark.medium
def test_a_failed_refresh_is_counted_and_the_last_page_stays(
    served: tuple[Pages, ExporterStatus, int], caplog: pytest.LogCaptureFixture
) -> None:
    made, status, port = served
    source = Script(
        CommandError("no broker responds", ExitStatus.UNREACHABLE), Snapshot(5, (lag(),)), ValueError("odd")
    )
    refresher = Refresher(source, ExporterState(Options()), status, made, 1.0)

    refresher.refresh()
    assert get(port, "/ready") == (503, b"no refresh has succeeded yet\n")
    assert b"groupwright_exporter_up 0.0" in get(port, "/metrics")[1]
    refresher.refresh()
    assert get(port, "/ready") == (200, b"ready\n")
    assert b"groupwright_exporter_up 1.0" in get(port, "/metrics")[1]
    refresher.refresh()

    _, page = get(port, "/metrics")
    assert b'groupwright_cluster_group_members{group="billing"} 1.0' in page
    assert b'groupwright_exporter_refreshes_total{outcome="failed"} 2.0' in page
    assert b"groupwright_exporter_last_refresh_timestamp_seconds 5.0" in page
    assert "no broker responds" in caplog.text
    assert "ValueError: odd" in caplog.text


@pytest.mark.medium
@pytest.mark.parametrize("answer", [Snapshot(5, ()), ValueError("odd")])
def test_a_refresh_defers_garbage_collections(
    served: tuple[Pages, ExporterStatus, int], answer: Snapshot | Exception
) -> None:
    """A full collection of what a refresh makes takes 50 to 100 ms, in which no scrape is answered."""
    made, status, _ = served
    enabled: list[bool] = []

    class Watched(Script):
        def snapshot(self) -> Snapshot:
            enabled.append(gc.isenabled())
            return super().snapshot()

    Refresher(Watched(answer), ExporterState(Options()), status, made, 1.0).refresh()

    assert enabled == [False]
    assert gc.isenabled()


def test_a_compressed_page_is_the_same(served: tuple[Pages, ExporterStatus, int]) -> None:
    made, _, port = served
    made.publish(b"groups 1\n")

    _, plain = get(port, "/metrics")

    assert plain.startswith(b"groups 1\n# HELP groupwright_exporter_build_info ")
    assert get(port, "/metrics", **{"Accept-Encoding": "gzip, deflate"}) == (200, plain)


def test_other_paths_and_methods_are_refused(served: tuple[Pages, ExporterStatus, int]) -> None:
    _, _, port = served

    assert get(port, "/healthy") == (200, b"running\n")
    assert get(port, "/other")[0] == 404
    assert get(port, "/metrics", method="POST")[0] == 405


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group", "["], "--group or --exclude-group: '[' is not a regular expression"),
        (["--exclude-topic", "("], "--topic or --exclude-topic: '(' is not a regular expression"),
        (["--host", "203.0.113.1"], "cannot listen on 203.0.113.1:9095"),
    ],
)
def test_wrong_options_end_the_command(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["exporter", "--bootstrap-servers", "127.0.0.1:1", *arguments])

    assert result.exit_code == ExitStatus.USAGE
    assert message in result.stderr
