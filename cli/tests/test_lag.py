"""Lag in messages and in seconds: of partitions, summed by topic and by group, the largest first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupwright.cli._cluster.findings import offset_notes
from groupwright.cli._cluster.lag import PartitionLag, group_lags
from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli._command_line.suggest import unknown_group
from groupwright.cli.lag.command import By, future_notes, rows
from integration_tests.harness.described_groups import group, lag_of, member, partition

NOW = 1_000_000.0
BILLING = lag_of(
    group(),
    partition("orders", 0, committed=30),  # 70
    partition("orders", 1, committed=10, begin=40),  # 60, since the rest is deleted
    partition("payments", 0, committed=100),  # none
    partition("payments", 1, committed=None),
    partition("gone", 0, end=None, begin=None, error="no leader"),
)
TIMES = {("orders", 0, 30): NOW - 5.00049, ("orders", 1, 40): NOW - 60}


@pytest.mark.parametrize(
    ("committed", "begin", "end", "lag"),
    [
        (30, 0, 100, 70),
        (30, 40, 100, 60),  # deleted messages cannot be consumed
        (100, 0, 100, 0),
        (200, 0, 100, None),  # beyond the end: consumers reset
        (30, None, 100, 70),
        (None, 0, 100, None),
        (30, 0, None, None),
        (0, 0, 0, 0),
    ],
)
def test_lag_of_a_partition(
    committed: int | None, begin: int | None, end: int | None, lag: int | None
) -> None:
    assert partition(committed=committed, begin=begin, end=end).lag == lag


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (By.GROUP, [("billing", 130, 60.0)]),
        (
            By.TOPIC,
            [
                ("billing", "orders", 130, 60.0),
                ("billing", "payments", 0, None),  # of one partition nothing is known
                ("billing", "gone", None, None),
            ],
        ),
        (
            By.PARTITION,
            [
                ("billing", "orders", 0, 70, 5.0, None),
                ("billing", "orders", 1, 60, 60.0, None),
                ("billing", "payments", 0, 0, 0.0, None),
                ("billing", "gone", 0, None, None, None),
                ("billing", "payments", 1, None, None, None),
            ],
        ),
    ],
)
def test_messages_are_summed_and_the_oldest_message_counts(by: By, expected: list[tuple[Any, ...]]) -> None:
    assert [tuple(row.values()) for row in rows([BILLING], TIMES, NOW, by)] == expected


def test_a_partition_has_the_member_that_is_assigned_it() -> None:
    owner = member(client_id="worker")
    of = lag_of(group(owner), partition(owner=owner), partition("orders", 1))

    assert [row["member"] for row in rows([of], {}, NOW, By.PARTITION)] == ["worker", None]


def test_without_times_only_partitions_without_lag_have_seconds() -> None:
    assert [row["seconds"] for row in rows([BILLING], {}, NOW, By.PARTITION)] == [None, None, 0.0, None, None]


@pytest.mark.parametrize(("ahead", "seconds"), [(9, 0.0), (3600, None)], ids=["clocks differ", "future"])
def test_the_age_of_a_message_from_the_future_is_not_known(ahead: float, seconds: float | None) -> None:
    lags, times = [lag_of(group(), partition())], {("orders", 0, 30): NOW + ahead}

    [row] = rows(lags, times, NOW, By.GROUP)
    notes = list(future_notes(lags, times, NOW))

    assert row == {"group": "billing", "messages": 70, "seconds": seconds}
    assert len(notes) == (seconds is None)


def test_offsets_beyond_the_end_and_partitions_without_an_offset_are_named() -> None:
    notes = offset_notes(
        [
            lag_of(group(), partition(committed=200)),
            lag_of(group(), partition(committed=None, owner=member()), partition(number=1)),
            lag_of(group(), partition(committed=None, owner=member())),  # its lag is a dash
            lag_of(group(), partition()),
        ]
    )

    assert [note[:51] for note in notes] == [
        "billing: The committed offset of orders-0 is beyond",
        "billing: No offset of orders-0 is committed, though",
    ]


def test_the_largest_lag_comes_first_then_the_name_and_what_is_not_known_last() -> None:
    lags = [
        lag_of(group(id_="unknown"), partition(committed=None)),
        lag_of(group(id_="nothing")),
        lag_of(group(id_="zero"), partition(committed=100)),
        lag_of(group(id_="b"), partition()),
        lag_of(group(id_="a"), partition()),
        lag_of(group(id_="most"), partition(committed=0)),
    ]

    assert [(row["group"], row["messages"]) for row in rows(lags, {}, NOW, By.GROUP)] == [
        ("most", 100),
        ("a", 70),
        ("b", 70),
        ("zero", 0),
        ("nothing", None),
        ("unknown", None),
    ]


def test_partitions_of_a_group_are_those_that_it_owns_or_has_committed() -> None:
    one = member(assigned={"orders": (0, 1)})
    key = "orders", 2
    found = group_lags(
        {"billing": group(one)},
        {"billing": {("orders", 0): CommittedOffset(30), key: CommittedOffset(1)}},
        {("orders", 0): 0, key: 0},
        {("orders", 0): 100, key: 2},
        {("orders", 1): "no leader"},
        {"orders": "id-1"},
    )["billing"]

    assert found.partitions == (
        PartitionLag("orders", 0, 30, 0, 100, one, topic_id="id-1"),
        PartitionLag("orders", 1, None, None, None, one, "no leader", "id-1"),
        PartitionLag("orders", 2, 1, 0, 2, topic_id="id-1"),
    )
    assert found.total == 71


OFFSETS = st.none() | st.integers(0, 100)


@given(st.lists(st.tuples(st.sampled_from("ab"), OFFSETS, OFFSETS, OFFSETS), max_size=8))
def test_sums_by_group_topic_and_partition_agree(
    facts: list[tuple[str, int | None, int | None, int | None]],
) -> None:
    made = lag_of(
        group(),
        *(
            partition(name, number, committed=committed, begin=begin, end=end)
            for number, (name, committed, begin, end) in enumerate(facts)
        ),
    )
    sums = {by: sum(row["messages"] or 0 for row in rows([made], {}, NOW, by)) for by in By}

    assert set(sums.values()) == {made.total or 0}


def test_an_unknown_group_has_a_close_name_or_the_command_that_lists_groups() -> None:
    assert str(unknown_group("biling", ["billing", "orders"])) == (
        "there is no group 'biling', did you mean 'billing'?"
    )
    assert str(unknown_group("nope", ["billing"])) == (
        "there is no group 'nope', or these credentials may not describe it. "
        "`groupwright groups` lists the groups"
    )
