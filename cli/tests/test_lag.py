"""Lag in messages and in seconds: of partitions, summed by topic and by group, the largest first."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from groupwright.cli._cluster import client
from groupwright.cli._cluster.findings import offset_notes
from groupwright.cli._cluster.first_messages import FirstMessages
from groupwright.cli._cluster.lag import LogOffsets, PartitionLag, group_lags
from groupwright.cli._cluster.model import CommittedOffset, DescribedGroup, ListedGroup, TopicMetadata
from groupwright.cli._command_line.exit import ExitStatus
from groupwright.cli._command_line.output import OutputFormat
from groupwright.cli._command_line.suggest import unknown_group
from groupwright.cli.describe.command import describe
from groupwright.cli.groups.command import groups as list_groups
from groupwright.cli.lag.command import By, future_notes, rows, unread_notes
from groupwright.cli.lag.command import lag as show_lag
from groupwright.consumer.cluster import Broker
from integration_tests.harness.described_groups import group, lag_of, listed, member, partition

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
    ("committed", "stable", "has_message", "numbers"),
    [
        (30, 100, None, (70, 0, 0)),
        (30, 60, None, (30, 40, 0)),  # an open transaction began at 60
        (60, 60, None, (0, 40, 0)),
        (80, 60, None, (0, 20, 0)),  # it reads uncommitted messages
        (30, 60, True, (30, 40, 0)),
        (30, 60, False, (0, 40, 30)),  # aborted messages and markers up to 60
        (None, 60, None, (None, None, None)),
    ],
)
def test_lag_counts_what_can_be_read(
    committed: int | None,
    stable: int,
    has_message: bool | None,  # noqa: FBT001 - a parameter of the test
    numbers: tuple[int | None, ...],
) -> None:
    """Numbers are the lag, the held messages and the unreadable offsets."""
    found = partition(committed=committed, stable=stable, has_message=has_message)

    assert (found.lag, found.held, found.unreadable) == numbers


@pytest.mark.parametrize(
    ("committed", "has_message", "is_behind"),
    [(30, None, True), (99, None, False), (99, True, True), (30, False, False), (100, None, False)],
)
def test_one_offset_may_be_a_marker_unless_a_message_was_found(
    committed: int,
    has_message: bool | None,  # noqa: FBT001 - a parameter of the test
    is_behind: bool,  # noqa: FBT001 - as above
) -> None:
    assert partition(committed=committed, stable=100, has_message=has_message).is_behind == is_behind


def test_messages_behind_open_transactions_are_summed() -> None:
    of = lag_of(group(), partition(stable=60), partition("orders", 1, stable=90), partition("payments"))

    [row] = rows([of], {}, NOW, By.GROUP)
    assert (row["messages"], row["held"]) == (30 + 60 + 70, 40 + 10)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (By.GROUP, [("billing", 130, 60.0, 0)]),
        (
            By.TOPIC,
            [
                ("billing", "orders", 130, 60.0, 0),
                ("billing", "payments", 0, None, 0),  # of one partition nothing is known
                ("billing", "gone", None, None, None),
            ],
        ),
        (
            By.PARTITION,
            [
                ("billing", "orders", 0, 70, 5.0, 0, None),
                ("billing", "orders", 1, 60, 60.0, 0, None),
                ("billing", "payments", 0, 0, 0.0, 0, None),
                ("billing", "gone", 0, None, None, None, None),
                ("billing", "payments", 1, None, None, None, None),
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

    assert row == {"group": "billing", "messages": 70, "seconds": seconds, "held": 0}
    assert len(notes) == (seconds is None)


def test_the_age_of_a_row_is_not_known_while_that_of_one_message_is_not() -> None:
    """The largest age that is known may be far below that of the message that was not read."""
    of = lag_of(
        group(),
        partition("orders", 0),
        partition("orders", 1, committed=10),
        partition("payments", 0),
        partition("payments", 1),
        partition("refunds", 0),
        partition("refunds", 1, committed=100),
    )
    read = FirstMessages(
        times={
            ("orders", 0, 30): NOW - 5,
            ("payments", 0, 30): NOW - 6,
            ("payments", 1, 30): None,
            ("refunds", 0, 30): NOW - 7,
        },
        late={("orders", 1, 10)},
    )

    found = {row["topic"]: row["seconds"] for row in rows([of], read.times, NOW, By.TOPIC)}
    assert found == {"orders": None, "payments": None, "refunds": 7.0}
    assert [row["seconds"] for row in rows([of], read.times, NOW, By.GROUP)] == [None]
    assert list(unread_notes([of], read, 2.5)) == [
        (
            "billing: The first message of orders-1 that is not committed was not read within 2.5 s, so its "
            "age is not known."
        ),
        (
            "billing: The first message of payments-1 that is not committed cannot be read, or has no "
            "timestamp, so its age is not known."
        ),
    ]


class LeaderlessCluster:
    """A group with one partition that lags, and one whose leader is down. No message is read in time."""

    def __init__(self, *_: object, **__: object) -> None:
        self.leaders = (1, -1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def groups(self) -> tuple[list[ListedGroup], dict[Broker, str]]:
        return [listed("billing")], {}

    def describe(self, ids: Iterable[str], **_: object) -> dict[str, DescribedGroup]:
        return {id_: group(member(assigned={"orders": (0, 1)}), id_=id_) for id_ in ids}

    def committed(self, ids: Iterable[str]) -> dict[str, dict[tuple[str, int], CommittedOffset]]:
        return {id_: {("orders", number): CommittedOffset(30) for number in (0, 1)} for id_ in ids}

    def share_offsets(self, ids: Iterable[str]) -> dict[str, dict[tuple[str, int], CommittedOffset]]:
        assert not list(ids)
        return {}

    def topics(self, names: Collection[str]) -> dict[str, TopicMetadata]:
        nowhere = (frozenset[str](),) * 2
        return {"orders": TopicMetadata("orders", "id-1", self.leaders, nowhere)} if "orders" in names else {}

    def offsets(
        self, partitions: Iterable[tuple[str, int]], timestamp: int, **_: object
    ) -> tuple[dict[tuple[str, int], int | None], dict[tuple[str, int], str]]:
        known: dict[tuple[str, int], int | None] = dict.fromkeys(
            partitions, 0 if timestamp == client.EARLIEST else 100
        )
        errors = {key: "the partition has no leader" for key in known if self.leaders[key[1]] < 0}
        return {key: offset for key, offset in known.items() if key not in errors}, errors

    def first_messages(self, offsets: Collection[tuple[str, int, int]], timeout: float) -> FirstMessages:
        assert timeout > 0
        return FirstMessages(late=set(offsets))


UNKNOWN = "billing: The offsets of orders-1 are not known: the partition has no leader.\n"
LATE = (
    "billing: The first message of orders-0 that is not committed was not read within 10 s, so its age is "
    "not known.\n"
)


def outcome(
    capsys: pytest.CaptureFixture[str], command: Callable[..., None], *arguments: Any, **options: Any
) -> tuple[int, str, str]:
    with pytest.raises(typer.Exit) as exited:
        command(*arguments, bootstrap_servers="a:1", output=OutputFormat.CSV, **options)
    printed = capsys.readouterr()
    return exited.value.exit_code, printed.out.splitlines()[1], printed.err


def test_a_log_whose_offsets_are_not_known_is_named_with_status_7(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "Cluster", LeaderlessCluster)

    assert outcome(capsys, list_groups) == (
        ExitStatus.INCOMPLETE,
        "billing,classic,Stable,range,1,2,70,1",
        f"groupwright groups: {UNKNOWN}",
    )
    assert outcome(capsys, show_lag, seconds=False) == (
        ExitStatus.INCOMPLETE,
        "billing,70,,0",
        f"groupwright lag: {UNKNOWN}",
    )
    assert outcome(capsys, describe, "billing") == (
        ExitStatus.INCOMPLETE,
        "orders,0,30,100,70,0,0,worker",
        f"groupwright describe: {UNKNOWN}",
    )


def test_a_message_that_is_not_read_in_time_is_named_with_status_7(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Cluster(LeaderlessCluster):
        def __init__(self, *_: object, **__: object) -> None:
            self.leaders = (1, 1)

        def committed(self, ids: Iterable[str]) -> dict[str, dict[tuple[str, int], CommittedOffset]]:
            return {
                id_: {("orders", 0): CommittedOffset(30), ("orders", 1): CommittedOffset(100)} for id_ in ids
            }

    monkeypatch.setattr(client, "Cluster", Cluster)

    assert outcome(capsys, show_lag) == (ExitStatus.INCOMPLETE, "billing,70,,0", f"groupwright lag: {LATE}")
    assert outcome(capsys, show_lag, seconds=False) == (ExitStatus.OK, "billing,70,,0", "")
    assert outcome(capsys, list_groups)[0] == ExitStatus.OK


def test_a_log_that_is_not_known_is_named_though_no_lag_is() -> None:
    (note,) = offset_notes([lag_of(group(), partition(end=None, error="no leader"))])

    assert note == "billing: The offsets of orders-0 are not known: no leader."


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


def topic(partitions: int) -> TopicMetadata:
    return TopicMetadata("orders", "id-1", (1,) * partitions, (frozenset(),) * partitions)


def test_partitions_of_a_group_are_those_that_it_owns_or_has_committed() -> None:
    one = member(assigned={"orders": (0, 1)})
    key = "orders", 2
    found = group_lags(
        {"billing": group(one)},
        {"billing": {("orders", 0): CommittedOffset(30), key: CommittedOffset(1)}},
        LogOffsets(
            begins={("orders", 0): 0, key: 0},
            ends={("orders", 0): 100, key: 2},
            stable={("orders", 0): 90, key: 3},  # queried later
            errors={("orders", 1): "no leader"},
            topics={"orders": topic(3)},
        ),
    )["billing"]

    assert found.partitions == (
        PartitionLag("orders", 0, 30, 0, 100, (one,), topic_id="id-1", stable=90),
        PartitionLag("orders", 1, None, None, None, (one,), "no leader", "id-1"),
        PartitionLag("orders", 2, 1, 0, 3, topic_id="id-1", stable=3),
    )
    assert (found.total, found.held) == (62, 10)


@pytest.mark.parametrize(
    ("of", "others"),
    [
        (group(member(assigned={"orders": (0,)})), ["orders-1"]),
        (group(member(topics=("other",), assigned={})), ["other-0", "other-1"]),
        (group(member(), state="PreparingRebalance"), ["orders-1"]),
        (group(member(topics=(), assigned={}), protocol_type="connect"), []),
        (group(), ["orders-1"]),
        (group(protocol_type=""), []),
    ],
    ids=["subscribes", "left", "rebalances", "connect", "stopped", "assigns by hand"],
)
def test_partitions_that_nobody_reads_belong_to_a_group_that_should_read_them(
    of: DescribedGroup, others: list[str]
) -> None:
    """Clients see new partitions minutes later; until then the lag seemed to be that of the others."""
    logs = LogOffsets(
        begins={("orders", 0): 0, ("orders", 1): 0},
        ends={("orders", 0): 100, ("orders", 1): 50},
        topics={"orders": topic(2), "other": topic(2)},
    )

    found = group_lags({"billing": of}, {"billing": {("orders", 0): CommittedOffset(30)}}, logs)

    assert [(each.name, each.lag) for each in found["billing"].partitions] == [
        ("orders-0", 70),
        *((name, None) for name in others),
    ]
    notes = [note.split(" is ")[:2] for note in offset_notes(found.values())]
    assert notes == [["billing: No offset of orders-1", "committed, though there are messages: the lag"]] * (
        "orders-1" in others
    )


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
