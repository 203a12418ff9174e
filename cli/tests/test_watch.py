"""`groupwright watch` without a broker: snapshots in, events, views and frames out."""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from rich.console import Console

from groupwright import cli
from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import DescribedGroup, GroupMember, GroupType
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.watch import run
from groupwright.cli.watch.document import document
from groupwright.cli.watch.events import (
    Event,
    LagReported,
    MemberJoined,
    MemberRestarted,
    Rebalanced,
    StateChanged,
)
from groupwright.cli.watch.progress import LagRate
from groupwright.cli.watch.reporters import CSV_HEADER, Lines, csv_line, line
from groupwright.cli.watch.sentences import sentence, span
from groupwright.cli.watch.view import frame
from groupwright.cli.watch.watched_group import GroupView, WatchedGroup
from groupwright.consumer.cluster import Broker

SCHEMA = json.loads(
    (Path(cli.__file__).parent / "_schemas" / "watch.schema.json").read_text(encoding="utf-8")
)
START = 1_800_000_000.0
CLASSIC = GroupType.CLASSIC


def member(name: str, *partitions: int, id_: str = "", **fields: Any) -> GroupMember:
    assigned = {"orders": partitions} if partitions else {}
    values: dict[str, Any] = {"client_id": name, "host": "10.0.0.1", "assigned": assigned} | fields
    return GroupMember(id=f"{name}-{id_ or '0123456789ab'}", **values)


def group(
    *members: GroupMember,
    state: str = "Stable",
    type_: GroupType = CLASSIC,
    epoch: int | None = None,
    committed: Mapping[int, int] | None = None,
    ends: Mapping[int, int] | None = None,
    topic_id: str = "",
    unknown: Collection[int] = (),
    protocol_type: str = "consumer",
) -> GroupLag:
    """Return a group with its lag; the ends of the logs of `unknown` partitions are not known."""
    broker = Broker(1, "127.0.0.1", 9092)
    described = DescribedGroup("billing", type_, state, protocol_type, "range", members, broker, epoch)
    owners = {number: (each,) for each in members for number in each.assigned.get("orders", ())}
    numbers = sorted({*(committed or {}), *owners})
    return GroupLag(
        described,
        tuple(
            PartitionLag(
                "orders",
                number,
                (committed or {}).get(number),
                None if number in unknown else 0,
                None if number in unknown else (ends or {}).get(number, 100),
                owners.get(number, ()),
                "no leader" if number in unknown else "",
                topic_id=topic_id,
            )
            for number in numbers
        ),
    )


def watched(*snapshots: GroupLag, seconds: float = 1.0) -> tuple[WatchedGroup, list[list[Event]]]:
    """Take a snapshot every second; return the events of each. All are valid by the schema."""
    watching = WatchedGroup(lag_seconds=1e9)
    events = [
        watching.update(snapshot, START + number * seconds) for number, snapshot in enumerate(snapshots)
    ]
    for event in (each for some in events for each in some):
        jsonschema.validate(document("billing", event), SCHEMA)
    return watching, events


def sentences(*snapshots: GroupLag) -> list[list[str]]:
    """Return the sentences of each snapshot but the first."""
    return [[sentence(event) for event in events] for events in watched(*snapshots)[1][1:]]


# --- Events


def test_the_first_look_says_what_there_is() -> None:
    _, (events,) = watched(group(member("a", 0, 1), member("b", 2), committed={0: 40, 1: 100, 2: 100}))

    assert [sentence(event) for event in events] == ["Stable (classic): 2 members, 3 partitions, lag 60"]
    found = document("billing", events[0])
    assert found["event"] == "group"
    assert found["time"] == "2027-01-15T08:00:00.000Z"
    assert [(each["name"], each["assigned"], each["lag"]) for each in found["members"]] == [
        ("a", {"orders": [0, 1]}, 60),
        ("b", {"orders": [2]}, 0),
    ]


def test_a_classic_rebalance_is_followed_from_its_first_look_to_its_end() -> None:
    before, after = (member("a", 0, 1, 2),), (member("a", 0, 1), member("b", 2))
    joining = (member("a"), member("b"))

    assert sentences(
        group(*before),
        group(*before),
        group(*joining, state="PreparingRebalance"),
        group(*joining, state="CompletingRebalance"),
        group(*after),
        group(*after),
    ) == [
        [],
        ["Stable -> PreparingRebalance", "b joined from 10.0.0.1"],
        ["PreparingRebalance -> CompletingRebalance"],
        [
            "CompletingRebalance -> Stable",
            (
                "rebalance: 2.0 s, Stable -> PreparingRebalance -> CompletingRebalance -> Stable; b joined; "
                "1 partition moved; a lost orders 2; b gained orders 2"
            ),
        ],
        [],
    ]


def test_a_rebalance_between_two_looks_is_seen_by_what_it_changed() -> None:
    assert sentences(group(member("a", 0), member("b", 1)), group(member("a", 0, 1))) == [
        [
            "b left",
            (
                "rebalance: between two snapshots, Stable; b left; 1 partition moved; b lost orders 1; "
                "a gained orders 1"
            ),
        ]
    ]


@pytest.mark.medium
def test_a_member_that_leaves_and_joins_again_keeps_its_name() -> None:
    first, second, third = (member("b", 1, id_=each) for each in ("one", "two", "three"))
    _, events = watched(
        group(member("a", 0), first),
        group(member("a"), state="PreparingRebalance"),
        group(member("a"), member("b", id_="two"), state="PreparingRebalance"),
        group(member("a"), state="PreparingRebalance"),
        group(member("a", 0), third),
    )

    assert second.id != third.id
    joined = [each for some in events for each in some if isinstance(each, MemberJoined)]
    assert [(each.member, each.again) for each in joined] == [("b", True), ("b", True)]
    rebalance = events[-1][-1]
    assert isinstance(rebalance, Rebalanced)
    assert sentence(rebalance).startswith(
        "rebalance: 3.0 s, Stable -> PreparingRebalance -> Stable; b (2 times) left; b (2 times) joined; "
    )
    assert (rebalance.lost, rebalance.gained) == ({"b": {"orders": (1,)}}, {"b": {"orders": (1,)}})


def test_members_with_one_client_id_are_told_apart() -> None:
    watching, events = watched(
        group(member("rdkafka", 0, id_="aaaaaaaa-1"), member("rdkafka", 1, id_="bbbbbbbb-1")),
        group(member("rdkafka", 0, id_="aaaaaaaa-1"), member("rdkafka", 1, id_="cccccccc-1")),
    )

    assert [each.name for each in watching.view(START).members] == ["rdkafka/aaaaaaaa", "rdkafka/cccccccc"]
    assert [sentence(each) for each in events[1][:2]] == [
        "rdkafka/bbbbbbbb left",
        "rdkafka/cccccccc joined from 10.0.0.1",
    ]


def test_a_static_member_that_restarts_is_neither_a_rebalance_nor_a_move() -> None:
    static = {"instance_id": "pod-1"}

    assert sentences(
        group(member("a", 0, id_="one", **static)),
        group(member("a", 0, id_="two", **static)),
        group(member("a", 0, id_="three", host="10.0.0.2", **static)),
    ) == [
        ["pod-1 has a new member id, on 10.0.0.1"],
        ["pod-1 has a new member id, on 10.0.0.2, before on 10.0.0.1"],
    ]
    _, events = watched(group(member("a", 0, id_="1", **static)), group(member("a", 0, id_="2", **static)))
    assert [type(each) for each in events[1]] == [MemberRestarted]


def test_epochs_and_incremental_moves_of_kip_848_are_one_rebalance() -> None:
    def snapshot(state: str, epoch: int, a: tuple[int, ...], b: tuple[int, ...] | None) -> GroupLag:
        members = [member("a", *a, epoch=epoch, target={"orders": (0, 1)})]
        if b is not None:
            members.append(member("b", *b, epoch=epoch, target={"orders": (2, 3)} if b else {}))
        return group(*members, state=state, type_=GroupType.CONSUMER, epoch=epoch)

    watching, events = watched(
        snapshot("Stable", 3, (0, 1, 2, 3), None),
        snapshot("Reconciling", 4, (0, 1, 2, 3), ()),
        snapshot("Reconciling", 5, (0, 1), ()),
        snapshot("Reconciling", 5, (0, 1), (2,)),
        snapshot("Stable", 5, (0, 1), (2, 3)),
    )

    assert [len(each) for each in events[1:4]] == [2, 0, 0]
    assert [sentence(event) for event in events[-1]] == [
        "Reconciling -> Stable",
        (
            "rebalance: 3.0 s, Stable -> Reconciling -> Stable, epoch 3 -> 5; b joined; 2 partitions moved; "
            "a lost orders 2-3; b gained orders 2-3"
        ),
    ]
    assert [each.recent for each in watching.view(START + 4).members] == [{}, {"orders": (2, 3)}]


def test_partitions_that_appear_or_lose_their_owner_are_moves_too() -> None:
    (grown,), (idle,) = (
        sentences(group(member("a", 0)), group(member("a", 0, 1))),
        sentences(group(member("a", 0)), group(member("a"))),
    )

    assert grown == ["rebalance: between two snapshots, Stable; 1 partition moved; a gained orders 1"]
    assert idle == ["rebalance: between two snapshots, Stable; 1 partition moved; a lost orders 0"]


@pytest.mark.medium
def test_of_a_rebalance_under_way_at_the_first_look_no_move_is_known() -> None:
    rebalancing = group(member("a"), state="PreparingRebalance")
    watching, events = watched(rebalancing, group(member("a", 0, 1)), group(member("a", 0), member("b", 1)))

    assert [sentence(event) for event in events[0]] == [
        "PreparingRebalance (classic): 1 member, partitions not known, lag not known"
    ]
    assert [sentence(event) for event in events[1]] == [
        "PreparingRebalance -> Stable",
        (
            "rebalance: 1.0 s, PreparingRebalance -> Stable; what moved is not known, as it began before the "
            "first snapshot"
        ),
    ]
    assert (document("billing", events[1][1])["moved"], document("billing", events[1][1])["gained"]) == (
        None,
        {},
    )
    assert [each.recent for each in watching.view(START + 2).members] == [{}, {"orders": (1,)}]
    lines = drawn(watched(rebalancing)[0].view(START))
    assert lines[1] == "1 member, partitions not known; lag not known"
    assert lines[-3].split() == ["a", "10.0.0.1", "-", "-", "-"]


def test_what_members_of_a_group_that_appears_gain_is_known() -> None:
    watching = WatchedGroup()
    watching.appear()
    watching.update(group(member("a"), state="PreparingRebalance"), START)
    events = watching.update(group(member("a", 0, 1)), START + 1)

    assert [sentence(event) for event in events] == [
        "PreparingRebalance -> Stable",
        "rebalance: 1.0 s, PreparingRebalance -> Stable; 2 partitions moved; a gained orders 0-1",
    ]


@pytest.mark.medium
def test_groups_without_members_and_deleted_groups_say_so_and_come_back() -> None:
    empty, dead, back = (
        group(state="Empty", committed={0: 5}),
        group(state="Dead"),
        group(member("a", 0), state="Stable"),
    )

    _, empties, deads, backs = watched(group(member("a", 0)), empty, dead, back)[1]
    assert [sentence(event) for event in empties][:2] == [
        "Stable -> Empty: the group has no members",
        "a left",
    ]
    assert [sentence(event) for event in deads] == ["Empty -> Dead: the group does not exist any more"]
    assert [sentence(event) for event in backs][:2] == ["Dead -> Stable", "a joined again from 10.0.0.1"]
    assert isinstance(deads[0], StateChanged)


def test_several_changes_in_one_look_are_all_told() -> None:
    (events,) = sentences(
        group(member("a", 0, 1), member("b", 2, 3), member("c", 4)),
        group(member("a", 0, 3), member("d", 1, 2), member("e", 4)),
    )

    assert events[:4] == ["b left", "c left", "d joined from 10.0.0.1", "e joined from 10.0.0.1"]
    assert events[4:] == [
        (
            "rebalance: between two snapshots, Stable; b, c left; d, e joined; 4 partitions moved; "
            "a lost orders 1; b lost orders 2-3; c lost orders 4; a gained orders 3; d gained orders 1-2; "
            "e gained orders 4"
        )
    ]


# --- Lag


def flow(number: int, *, produced: float, consumed: float, every: int = 1, behind: int = 2000) -> GroupLag:
    """A group that commits every so many seconds."""
    end = 10_000 + round(produced * number)
    committed = 10_000 - behind + round(consumed * (number - number % every))
    return group(member("a", 0), committed={0: committed}, ends={0: end})


@pytest.mark.medium
@pytest.mark.parametrize(
    ("produced", "consumed", "every", "said"),
    [
        (100, 60, 1, "growing by 40.0/s"),
        (60, 100, 1, "drained in "),
        (100, 100, 1, "steady"),
        (100, 100, 5, "steady"),  # the lag is a saw tooth between automatic commits
        (100, 0, 1, "growing by 100.0/s"),
    ],
)
def test_rates_and_trend_are_those_between_commits(
    produced: int, consumed: int, every: int, said: str
) -> None:
    for snapshots in (18, 23, 31, 32, 33, 34, 35, 47):
        watching, _ = watched(
            *(flow(each, produced=produced, consumed=consumed, every=every) for each in range(snapshots))
        )
        lag = watching.view(START).lag

        assert lag.produced == pytest.approx(produced)
        assert lag.consumed == pytest.approx(consumed)
        assert said in sentence(LagReported(time=START, lag=lag, stalled=()))


def test_no_trend_is_told_before_there_is_one_and_no_rate_at_the_first_look() -> None:
    def lag(snapshots: int) -> str:
        watching, _ = watched(*(flow(each, produced=10, consumed=5) for each in range(snapshots)))
        return sentence(LagReported(time=START, lag=watching.view(START).lag, stalled=()))

    assert lag(1) == "lag 2,000"
    assert lag(10) == "lag 2,045, 10.0/s produced, 5.0/s consumed"
    assert lag(16).endswith("growing by 5.0/s")


def test_a_group_that_stopped_consumes_nothing() -> None:
    snapshots = [flow(min(each, 20), produced=0, consumed=50) for each in range(60)]
    watching, _ = watched(*snapshots)

    assert watching.view(START).lag.consumed == 0


def test_a_reset_of_offsets_is_no_negative_rate_and_unknown_lag_is_said() -> None:
    watching, _ = watched(
        group(member("a", 0), committed={0: 90}),
        group(member("a", 0), committed={0: 10}),
        group(member("a", 0), committed={0: 30}),
    )

    assert watching.view(START).lag.consumed == 10
    assert sentence(
        LagReported(time=START, lag=watched(group(member("a", 0)))[0].view(START).lag, stalled=())
    ) == ("lag not known")


def test_the_lag_says_which_partitions_it_leaves_out_and_has_no_trend_then() -> None:
    one = member("a", 0, 1)

    def taken(second: int, *, unknown: bool) -> GroupLag:
        committed, ends = {0: 10 * second, 1: 0}, {0: 2000, 1: 2000}
        return group(one, committed=committed, ends=ends, unknown=[1] if unknown else [])

    watching, _ = watched(*(taken(each, unknown=each > 20) for each in range(31)))
    view = watching.view(START)

    assert sentence(LagReported(time=START, lag=view.lag, stalled=())) == (
        "lag 1,700 (1 partition not known), 0.0/s produced, 10.0/s consumed"
    )
    assert document("billing", LagReported(time=START, lag=view.lag, stalled=()))["lag"] == {
        "messages": 1700,
        "unknown_partitions": 1,
        "produced_per_second": 0.0,
        "consumed_per_second": 10.0,
        "trend": "unknown",
        "drain_seconds": None,
    }
    assert [each.lag for each in view.members] == [None]
    caught_up = group(one, committed={0: 100, 1: 50}, unknown=[1])
    assert watched(caught_up)[0].view(START).lag.trend == "unknown"


@pytest.mark.medium
@pytest.mark.parametrize("committed", [{0: 40}, {}], ids=["committed", "without a commit"])
def test_a_partition_without_progress_stays_while_the_end_of_its_log_is_not_known(
    committed: dict[int, int],
) -> None:
    def stalled(*snapshots: GroupLag) -> list[float]:
        watching, _ = watched(*snapshots)
        return [each.seconds for each in watching.view(START).stalled]

    begin = group(member("a", 0), committed=committed, ends={0: 90})
    behind = group(member("a", 0), committed=committed)
    unknown = group(member("a", 0), committed=committed, unknown=[0])
    moved = group(member("a", 0), committed={0: 45}, unknown=[0])

    assert stalled(begin, *[behind] * 10, *[unknown] * 10, behind) == [21 if committed else 20]
    assert stalled(begin, *[behind] * 10, *[unknown] * 10) == [20 if committed else 19]
    assert stalled(begin, *[behind] * 10, *[moved] * 20) == []
    assert stalled(*[unknown] * 20) == []


def test_a_group_that_fails_at_its_first_message_makes_no_progress() -> None:
    def snapshots(end: int) -> list[GroupLag]:
        return [group(member("a", 0), ends={0: 100 if each < 2 else end}) for each in range(20)]

    (stalled,) = watched(*snapshots(120))[0].view(START).stalled
    event = LagReported(time=START, lag=LagRate(), stalled=(stalled,))

    assert (stalled.committed, stalled.member) == (None, "a")
    assert sentence(event).endswith("; no progress of orders-0 without a committed offset for 17 s (a)")
    assert watched(*snapshots(100))[0].view(START).stalled == ()  # nothing has arrived since


def test_a_topic_that_was_created_again_is_another_one() -> None:
    """Neither its messages nor its commits, or their absence, go on where the former topic's ended."""
    former = [group(member("a", 0), committed={0: 10}, ends={0: 100}, topic_id="a")] * 14
    new = [group(member("a", 0), committed={0: 10}, ends={0: 200}, topic_id="b")] * 3
    watching, _ = watched(*former, *new)

    assert watching.view(START).lag.produced == 0
    assert watching.view(START).stalled == ()
    assert watched(*former, *former)[0].view(START).stalled


@pytest.mark.medium
def test_a_partition_without_progress_is_named_through_rebalances_with_its_owner() -> None:
    def snapshot(number: int) -> GroupLag:
        owner = member("ab"[number // 5 % 2], 0, 1)
        state = "PreparingRebalance" if number % 5 == 4 else "Stable"
        committed = {0: 40, 1: number * 10}
        return group(
            member(owner.client_id) if state != "Stable" else owner, state=state, committed=committed
        )

    watching, _ = watched(*map(snapshot, range(21)))

    (stalled,) = watching.view(START).stalled
    assert (stalled.partition, stalled.committed, stalled.seconds, stalled.member) == (0, 40, 20, "a")
    event = LagReported(time=START, lag=watching.view(START).lag, stalled=(stalled,))
    assert sentence(event).endswith("; no progress of orders-0 at 40 for 20 s (a)")


def test_a_member_that_leaves_after_no_progress_is_told_with_the_place_and_the_cause() -> None:
    stuck = [group(member("a", 0), member("b", 1), committed={0: 40, 1: each * 2}) for each in range(20)]
    _, events = watched(*stuck, group(member("a", 0, 1), committed={0: 40, 1: 40}))
    assert sentence(events[-1][0]) == "b left"  # it made progress

    _, events = watched(*stuck, group(member("b", 0, 1), committed={0: 40, 1: 40}))
    left, rebalanced = events[-1][:2]
    cause = "a left after no progress of orders-0 at 40 for 20 s: it died, or exceeded max.poll.interval.ms"
    assert sentence(left) == cause
    assert sentence(rebalanced).startswith(f"rebalance: between two snapshots, Stable; {cause}; 1 partition")
    for event in (left, rebalanced):
        found = document("billing", event)
        jsonschema.validate(found, SCHEMA)
        assert [(each["partition"], each["member"]) for each in found["stalled"]] == [(0, "a")]


def test_a_row_of_csv_has_time_kind_and_text() -> None:
    _, events = watched(group(member("a", 0)), group(member("a", 0), member("b, c", 1)))
    rows = list(csv.reader(map(csv_line("billing"), chain(*events))))

    assert all(len(row) == len(CSV_HEADER.split(",")) for row in rows)
    assert rows[1][1:] == ["joined", "billing", "b, c joined from 10.0.0.1"]


def test_the_lag_is_told_every_so_often() -> None:
    watching = WatchedGroup(lag_seconds=5)
    kinds = [
        [each.kind for each in watching.update(flow(number, produced=1, consumed=1), START + number)]
        for number in range(11)
    ]

    assert [number for number, some in enumerate(kinds) if "lag" in some] == [5, 10]


# --- No answer


def test_without_an_answer_the_last_view_stays_until_there_is_one() -> None:
    watching, _ = watched(group(member("a", 0), committed={0: 5}))
    missed = watching.miss("broker 1 is away", START + 4)
    again = watching.miss("broker 1 is away still", START + 5)
    view = watching.view(START + 9)

    assert [sentence(event) for event in missed] == ["no answer: broker 1 is away"]
    assert again == []
    assert (view.unavailable_since, view.unavailable_reason) == (START, "broker 1 is away still")
    assert [each.name for each in view.members] == ["a"]
    (answered,) = watching.update(group(member("a", 0), committed={0: 5}), START + 12)
    assert sentence(answered) == "brokers answer again, after 12.0 s"
    for event in (*missed, answered):
        jsonschema.validate(document("billing", event), SCHEMA)
    assert watching.view(START + 12).unavailable_since is None


# --- The frame


def drawn(view: GroupView, width: int = 80, height: int | None = None, now: float = START) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False, highlight=False)
    console.print(frame(view, console, now=now, height=height))
    return out.getvalue().splitlines()


def busy(members: int = 3, each: int = 4, **fields: Any) -> GroupView:
    """A group whose last member has just got its partitions from the first."""
    numbers = [range(number * each, (number + 1) * each) for number in range(members)]
    last = numbers[-1]
    before = [member(f"worker-{index}", *some, **fields) for index, some in enumerate(numbers[:-1])]
    before[0] = member("worker-0", *numbers[0], *last, **fields)
    after = [member(f"worker-{index}", *some, **fields) for index, some in enumerate(numbers)]
    committed = dict.fromkeys(range(members * each), 40)
    watching, _ = watched(group(*before, committed=committed), *[group(*after, committed=committed)] * 17)
    return watching.view(START + 17)


@pytest.mark.parametrize("width", [80, 200])
def test_a_frame_has_everything_and_marks_partitions_without_colours(width: int) -> None:
    watching, _ = watched(
        group(member("worker-0", 0, 1, 2, 3), committed=dict.fromkeys(range(4), 40)),
        group(member("worker-0", 0, 1), member("worker-1", 2, 3), committed=dict.fromkeys(range(4), 40)),
    )

    lines = drawn(watching.view(START + 1), width)

    assert max(map(len, lines)) <= width
    assert lines[0].startswith("billing  Stable for 0 s  classic, range")
    assert lines[1].startswith("2 members, 4 partitions; lag 240, 0.0/s produced, 0.0/s consumed")
    assert lines[3].split() == ["member", "host", "lag", "n", "partitions"]
    assert [line.split() for line in lines[4:6]] == [
        ["worker-0", "10.0.0.1", "120", "2", "orders", "0-1"],
        ["worker-1", "10.0.0.1", "120", "2", "orders", "2-3*"],
    ]
    assert lines[6] == "* moved recently"
    assert lines[8] == "1 rebalance seen, 1 in the last minute"
    assert "between two snapshots, Stable" in lines[9]
    rest = " ".join(" ".join(lines[10:]).split())
    assert rest == "worker-1 joined; 2 partitions moved; worker-0 lost orders 2-3; worker-1 gained orders 2-3"


def test_the_mark_goes_after_some_time() -> None:
    assert not [line for line in drawn(busy()) if "*" in line]


@pytest.mark.medium
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 24), (80, 12), (40, 24), (80, 50)])
def test_a_large_group_fits_the_terminal_and_says_what_is_left_out(width: int, height: int) -> None:
    view = busy(members=120, each=3)

    lines = drawn(view, width, height)

    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    more = re.search(
        r"and (\d+) more members: ([\d,]+) partitions, lag ([\d,]+)", " ".join(" ".join(lines).split())
    )
    assert more is not None
    rows = [line for line in lines if re.match(r"worker-\d+ ", line)]
    assert len(rows) + int(more[1]) == 120
    assert int(more[2]) == 3 * int(more[1])
    assert "1 rebalance seen" in " ".join(lines)


def test_without_a_limit_nothing_is_left_out() -> None:
    lines = drawn(busy(members=120, each=3), 80)

    assert sum(line.startswith("worker-") for line in lines) >= 120
    assert not [line for line in lines if "more member" in line]


def test_many_partitions_of_a_member_are_cut_between_runs_with_a_number() -> None:
    numbers = tuple(range(0, 400, 2))
    watching, _ = watched(group(member("a", *numbers)))
    view = watching.view(START)

    text = " ".join(" ".join(drawn(view, 80, 24)).split())
    found = re.search(r"a 10.0.0.1 - 200 orders ([\d ]+) and (\d+) more", text)
    assert found is not None
    shown = list(map(int, found[1].split()))
    assert shown == list(numbers[: len(shown)])
    assert len(shown) + int(found[2]) == 200
    assert f"orders {' '.join(map(str, numbers))}" in " ".join(" ".join(drawn(view, 80)).split())


def test_long_names_are_folded_not_cut() -> None:
    name = "a-very-long-client-id-" * 4
    watching, _ = watched(group(member(name, 0, rack="eu-west-1a", instance_id="pod-1")))

    for width in (80, 200):
        lines = drawn(watching.view(START), width, 24)
        assert max(map(len, lines)) <= width
        assert "…" not in " ".join(lines)
        assert "eu-west-1a" in " ".join(lines)
        squeezed = "".join(" ".join(lines).split())
        assert name in squeezed or name[:20] in squeezed


def test_a_narrow_terminal_folds_partitions_and_cuts_none() -> None:
    fields: dict[str, Any] = {"rack": "r1", "instance_id": "pod-1", "epoch": 7}
    snapshot = group(member("app", *range(11), **fields), type_=GroupType.CONSUMER, epoch=7)

    for width in (60, 40):
        lines = drawn(watched(snapshot)[0].view(START), width)
        assert max(map(len, lines)) <= width
        assert any(line.rstrip().endswith(" 0-10") for line in lines)


def test_racks_instances_and_epochs_have_columns_where_there_are_any() -> None:
    fields: dict[str, Any] = {"rack": "r1", "instance_id": "pod-1", "epoch": 7, "target": {"orders": (0, 1)}}
    snapshot = group(member("app", 0, **fields), state="Reconciling", type_=GroupType.CONSUMER, epoch=8)
    lines = drawn(watched(snapshot)[0].view(START))

    assert "consumer, range, epoch 8" in lines[0]
    row = next(index for index, each in enumerate(lines) if each.startswith("member"))
    assert lines[row].split() == [
        *("member", "client", "id", "instance", "host", "rack", "epoch", "lag", "n"),
        "partitions",
    ]
    assert lines[row + 1].split() == [
        "pod-1",
        "app",
        "pod-1",
        "10.0.0.1",
        "r1",
        "7…",
        "-",
        "1",
        "orders",
        "0",
    ]
    assert "… has not reached the group's epoch and target assignment" in lines


@pytest.mark.parametrize(
    ("snapshot", "said"),
    [
        (group(state="Empty", committed={0: 5}), "! The group has no members: nothing is consumed."),
        (
            group(state="Empty", committed={0: 5}, protocol_type=""),
            "! The group has no members: clients that assign partitions themselves",
        ),
        (group(state="Dead"), "billing  the group does not exist  "),
        (group(member("a"), state="PreparingRebalance"), "! Rebalancing"),
    ],
)
def test_states_that_are_not_stable_say_what_they_mean(snapshot: GroupLag, said: str) -> None:
    lines = drawn(watched(snapshot)[0].view(START))

    assert [line for line in lines if line.startswith(said)]


def test_a_duration_is_known_only_of_what_began_while_it_was_watched() -> None:
    rebalancing = group(member("a"), state="PreparingRebalance")
    watching, _ = watched(group(member("a", 0)))
    assert drawn(watching.view(START))[0].startswith("billing  Stable  classic, range")

    watching.update(group(member("a", 0)), START + 9)
    assert drawn(watching.view(START + 9))[0].startswith("billing  Stable, seen for 9 s  classic, range")

    watching.update(rebalancing, START + 10)
    watching.update(rebalancing, START + 12)
    lines = drawn(watching.view(START + 12))
    assert lines[0].startswith("billing  PreparingRebalance for 2 s  ")
    assert "! Rebalancing for 2 s, partitions are those before it" in lines

    watching.update(group(member("a", 0)), START + 15)
    watching.update(group(member("a", 0)), START + 19)
    assert drawn(watching.view(START + 19))[0].startswith("billing  Stable for 4 s  ")


def test_a_rebalance_from_before_the_first_snapshot_has_no_duration_and_no_partitions() -> None:
    rebalancing = group(member("a"), state="PreparingRebalance")
    watching, _ = watched(rebalancing)
    assert "! Rebalancing" in drawn(watching.view(START))

    watching.update(rebalancing, START + 3)
    assert "! Rebalancing, seen for 3 s" in drawn(watching.view(START + 3))


def test_the_last_view_says_since_when_there_is_no_answer() -> None:
    watching, _ = watched(group(member("a", 0)))
    watching.miss("cannot query the cluster", START + 1)

    lines = drawn(watching.view(START + 65), now=START + 65)
    assert re.search(
        r"! No answer since \d\d:\d\d:\d\d \(1 min 05 s\): cannot query the cluster", "\n".join(lines)
    )
    assert "a  " in "\n".join(lines)


def test_partitions_before_a_rebalance_stay_in_the_view() -> None:
    watching, _ = watched(group(member("a", 0, 1)), group(member("a"), state="PreparingRebalance"))

    assert [each.assigned for each in watching.view(START + 1).members] == [{"orders": (0, 1)}]


# --- The loop


class Recorder(Lines):
    """Lines and views that were shown."""

    def __init__(self) -> None:
        super().__init__(line)
        self.sentences: list[str] = []
        self.views: list[GroupView] = []

    def report(self, events: Sequence[Event]) -> None:
        self.sentences += map(sentence, events)

    def show(self, view: GroupView, now: float) -> None:  # noqa: ARG002 - as the protocol has it
        self.views.append(view)


def played(*answers: GroupLag | BaseException, once: bool = False) -> Recorder:
    """Watch a group whose snapshots have these results, to the last, which ends it."""
    left, recorder = list(answers), Recorder()

    def snapshot() -> GroupLag:
        answer = left.pop(0) if left else SystemExit()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with suppress(SystemExit), run.Snapshots(snapshot, 0.001) as snapshots:
        run.watch(snapshots, WatchedGroup(interval=1), recorder, interval=1, end=None, once=once)
    return recorder


AWAY = CommandError("broker 1 is away", ExitStatus.UNREACHABLE)


def test_the_loop_goes_on_when_brokers_are_back() -> None:
    recorder = played(group(member("a", 0)), AWAY, AWAY, group(member("a", 0)))

    assert recorder.sentences[:2] == [
        "Stable (classic): 1 member, 1 partition, lag not known",
        "no answer: broker 1 is away",
    ]
    assert recorder.sentences[2].startswith("brokers answer again")


def test_once_shows_one_view() -> None:
    assert len(played(group(member("a", 0)), group(member("a", 0)), once=True).views) == 1


@pytest.mark.parametrize(
    "answers",
    [
        (AWAY,),
        (group(member("a", 0)), CommandError("no", ExitStatus.FORBIDDEN)),
        (group(), ValueError("a defect")),
    ],
    ids=["away at first", "forbidden", "defect"],
)
def test_other_errors_end_the_loop(answers: tuple[Any, ...]) -> None:
    with pytest.raises((CommandError, ValueError)):
        played(*answers)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min"), (90_000 * 3, "3 d 3 h")],
)
def test_spans_are_readable(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_the_schema_is_strict_and_knows_every_event() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    kinds = {
        SCHEMA["$defs"][each["$ref"].rpartition("/")[2]]["properties"]["event"]["const"]
        for each in SCHEMA["oneOf"]
    }
    assert kinds == {each.kind for each in leaves(Event)}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document("billing", watched(group())[1][0][0]), "more": 1}, SCHEMA)


def leaves(kind: type[Event]) -> list[type[Event]]:
    return [
        each for some in kind.__subclasses__() for each in (leaves(some) or [some]) if hasattr(each, "kind")
    ]


@pytest.mark.medium
def test_no_broker_is_said(groupwright: Callable[..., Any]) -> None:
    for options in ([], ["--wait"], ["--once"]):
        result = groupwright(
            "watch", "billing", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "1", *options
        )
        assert (result.returncode, result.stdout) == (3, "")
        assert "cannot query the cluster at 127.0.0.1:1" in result.stderr
