"""KIP-848: the records of a rebalance, from the epoch that began it to the members that all are there."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from groupwright.pipeline._transforms.consumer_groups import ConsumerGroup, consumer_generations
from groupwright.pipeline._transforms.generations import Generation, change

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = {"id-of-orders": "orders"}


class Log:
    """Records, a second apart."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def epoch(self, epoch: int, metadata_hash: int = 1) -> None:
        self._add("consumer_group", {"epoch": epoch, "metadata_hash": metadata_hash})

    def member(self, id_: str, *topics: str, instance: str | None = None) -> None:
        member = {"member_id": id_, "client_id": f"client-{id_}", "topics": list(topics)}
        self._add("consumer_member", {**member, "instance_id": instance})

    def current(self, id_: str, epoch: int, *partitions: int, state: str = "stable") -> None:
        assigned = [{"topic_id": "id-of-orders", "partitions": list(partitions)}]
        self._add("current_member", {"member_id": id_, "epoch": epoch, "state": state, "assigned": assigned})

    def gone(self, id_: str) -> None:
        for kind in ("current_member", "target_member", "consumer_member"):
            self._add(kind, {"member_id": id_}, tombstone=True)

    def generations(self) -> list[Generation]:
        return list(consumer_generations(self.records, NAMES))

    def _add(self, kind: str, value: dict[str, Any], *, tombstone: bool = False) -> None:
        time = START + timedelta(seconds=len(self.records))
        self.records.append({"record_kind": kind, kind: value, "tombstone": tombstone, "log_time": time})


def two_members() -> Iterator[Log]:
    """One member, and then another, for which the first revokes partitions."""
    log = Log()
    log.member("a", "orders")
    log.epoch(1)
    log.current("a", 1, 0, 1)
    log.member("b", "orders")
    log.epoch(2)
    log.current("b", 2, state="unreleased")
    log.current("a", 1, 0, state="unrevoked")
    log.current("a", 2, 0)
    log.current("b", 2, 1)
    yield log


def test_a_rebalance_lasts_from_the_new_epoch_to_the_last_member_that_is_stable() -> None:
    (log,) = two_members()
    first, second = log.generations()
    assert (first.number, first.cause, first.members["a"].assigned) == (1, "first", {"orders": (0, 1)})
    assert (second.number, second.cause) == (2, "join")
    assert second.started == START + timedelta(seconds=4)
    assert second.completed == START + timedelta(seconds=8)
    assert {id_: member.assigned for id_, member in second.members.items()} == {
        "a": {"orders": (0,)},
        "b": {"orders": (1,)},
    }


def test_epochs_that_were_passed_by_are_one_rebalance() -> None:
    (log,) = two_members()
    log.gone("b")
    log.epoch(3)
    log.member("c", "orders")
    log.epoch(4)
    log.current("c", 4, state="unreleased")
    log.current("a", 4, 0)
    log.current("c", 4, 1)
    third = log.generations()[2]
    assert (third.number, third.cause, sorted(third.members)) == (4, "leave", ["a", "c"])
    assert third.started == START + timedelta(seconds=12)


def test_the_last_member_that_leaves_ends_it_at_once() -> None:
    (log,) = two_members()
    log.gone("a")
    log.gone("b")
    log.epoch(3)
    empty = log.generations()[-1]
    assert (empty.number, empty.cause, empty.members, empty.started) == (3, "leave", {}, empty.completed)


def test_members_that_leave_one_after_the_other_end_it_once() -> None:
    """The tombstones of each precede the epoch of its leave. The epoch of an empty group has no hash."""
    (log,) = two_members()
    log.gone("a")
    log.epoch(3)
    log.gone("b")
    log.epoch(4, metadata_hash=0)
    (empty,) = log.generations()[2:]
    assert (empty.number, empty.cause, empty.members) == (4, "leave", {})
    assert empty.started == START + timedelta(seconds=12)


def test_an_epoch_that_a_leave_supersedes_is_not_reached() -> None:
    """When b's tombstones are written, c has reached the epoch of a's leave, and nobody else has to."""
    (log,) = two_members()
    log.member("c", "orders")
    log.epoch(3)
    for id_, partitions in (("a", (0,)), ("b", (1,)), ("c", ())):
        log.current(id_, 3, *partitions)
    log.gone("a")
    log.epoch(4)
    log.current("c", 4, 0)
    log.gone("b")
    log.epoch(5)
    log.current("c", 5, 0, 1)
    (last,) = log.generations()[3:]
    assert (last.number, last.cause, list(last.members)) == (5, "leave", ["c"])


def test_a_static_member_that_is_back_with_another_id_needs_no_epoch() -> None:
    log = Log()
    log.member("a", "orders", instance="one")
    log.epoch(1)
    log.current("a", 1, 0, 1)
    log.current("a", -2, 0, 1)
    log.gone("a")
    log.member("b", "orders", instance="one")
    log.current("b", 1, 0, 1)
    log.epoch(2, metadata_hash=2)
    log.current("b", 2, 0, 1, 2)
    assert [(generation.number, generation.cause) for generation in log.generations()] == [
        (1, "first"),
        (2, "metadata"),
    ]


def test_a_state_between_the_records_of_a_leave_is_kept() -> None:
    (log,) = two_members()
    log.gone("a")
    log.epoch(3)
    log.gone("b")
    before = ConsumerGroup()
    assert len(list(before.generations(log.records))) == 2
    after = ConsumerGroup.from_json(before.to_json())
    assert (after, after.leaving) == (before, {"b"})
    log.epoch(4)
    (empty,) = after.generations(log.records[-1:])
    assert (empty.number, empty.members) == (4, {})


def test_new_metadata_and_new_subscriptions_are_told_apart() -> None:
    (log,) = two_members()
    log.epoch(3, metadata_hash=2)
    log.current("a", 3, 0, 2)
    log.current("b", 3, 1, 3)
    log.member("a", "orders", "returns")
    log.epoch(4, metadata_hash=2)
    log.current("a", 4, 0, 2)
    log.current("b", 4, 1, 3)
    assert [generation.cause for generation in log.generations()[2:]] == ["metadata", "subscription"]


def test_a_history_that_begins_in_the_middle_does_not_say_why() -> None:
    """As in a compacted log: the members' records are there, but not those of earlier epochs."""
    log = Log()
    for id_ in ("a", "b"):
        log.member(id_, "orders")
    log.epoch(57)
    log.current("a", 57, 0)
    log.current("b", 57, 1)
    log.gone("b")
    log.epoch(58)
    log.current("a", 58, 0, 1)
    group = ConsumerGroup(names=NAMES)
    found = [change(group.last, each) for each in group.generations(log.records)]
    assert [(each.after.number, each.cause) for each in found] == [(57, "unknown"), (58, "leave")]
    assert [(each.joined, each.left) for each in found] == [(None, None), ((), ("b",))]
    assert [(each.moved, each.min_moves) for each in found] == [(None, None), (0, 0)]


def test_the_first_epoch_of_a_new_group_is_one_or_two() -> None:
    """Brokers of version 4.4 begin with 2; the group is deleted between."""
    log = Log()
    for first in (1, 2):
        log.member("a", "orders")
        log.epoch(first)
        log.current("a", first, 0)
        log.gone("a")
        log.epoch(first + 1)
        log._add("consumer_group", {}, tombstone=True)
    assert [(each.number, each.cause) for each in log.generations()] == [
        (1, "first"),
        (2, "leave"),
        (2, "first"),
        (3, "leave"),
    ]


def test_a_member_whose_record_is_missing_makes_the_generations_before_it_unknown() -> None:
    """The first epoch that is read is that of b's join; a joined before."""
    log = Log()
    log.member("b", "orders")
    log.epoch(1)
    log.current("b", 1, 1)
    log.epoch(2, metadata_hash=2)
    log.current("a", 2, 0)
    log.current("b", 2, 1)
    log.epoch(3, metadata_hash=3)
    log.current("a", 3, 0, 2)
    log.current("b", 3, 1)
    log.member("a", "orders", instance="one")
    log.gone("a")
    group = ConsumerGroup(names=NAMES)
    found = [change(group.last, each) for each in group.generations(log.records)]
    assert [(each.cause, sorted(each.after.members)) for each in found] == [
        ("first", ["b"]),
        ("unknown", ["a", "b"]),
        ("metadata", ["a", "b"]),
    ]
    assert (found[1].before, found[1].joined, found[1].moved) == (None, None, None)
    assert (found[2].before, group.leaving) == (found[1].after, {"one"})


def test_a_topic_that_is_deleted_makes_no_moves() -> None:
    (log,) = two_members()
    log.epoch(3, metadata_hash=2)
    log.current("a", 3)
    log.current("b", 3)
    log.epoch(4, metadata_hash=3)
    log.current("a", 4, 0)
    log.current("b", 4, 1)
    group = ConsumerGroup(names=NAMES)
    found = [change(group.last, each) for each in group.generations(log.records)]
    assert [(each.moved, each.min_moves) for each in found[2:]] == [(0, 0)] * 2


def test_a_static_member_that_will_be_back_holds_nobody_up() -> None:
    (log,) = two_members()
    log.current("b", -2, 1)
    log.epoch(3)
    log.current("a", 3, 0)
    assert [generation.number for generation in log.generations()] == [1, 2, 3]
