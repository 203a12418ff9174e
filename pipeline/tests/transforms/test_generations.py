"""Fields of a rebalance, from the generations before and after it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from groupwright.pipeline._transforms.generations import Change, Generation, GroupMember, changes

START = datetime(2026, 11, 20, 12, tzinfo=UTC)

Assigned = Mapping[str, tuple[int, ...]]


def generation(number: int, subscribed: tuple[str, ...] = ("orders",), **assigned: Assigned) -> Generation:
    members = {
        id_: GroupMember(id_, f"client-{id_}", subscribed, partitions) for id_, partitions in assigned.items()
    }
    return Generation(number, START + timedelta(minutes=number), members, "range")


def last(*generations: Generation) -> Change:
    return list(changes(generations))[-1]


def test_a_member_that_joins_takes_its_share_and_no_more() -> None:
    change = last(
        generation(1, a={"orders": (0, 1, 2, 3)}), generation(2, a={"orders": (0, 1)}, b={"orders": (2, 3)})
    )
    assert (change.cause, change.joined, change.left) == ("join", ("b",), ())
    assert (change.moved, change.min_moves) == (2, 2)
    assert (change.partitions, change.imbalance_before, change.imbalance_after) == (4, 0, 0)


def test_an_assignor_that_shuffles_moves_more_than_it_needs_to() -> None:
    change = last(
        generation(1, a={"orders": (0, 1, 2, 3)}, b={"orders": (4, 5)}),
        generation(2, a={"orders": (3, 4, 5)}, b={"orders": (0, 1, 2)}),
    )
    assert (change.moved, change.min_moves) == (5, 1)
    assert (change.imbalance_before, change.imbalance_after) == (2, 0)


def test_partitions_of_a_member_that_left_are_no_moves() -> None:
    change = last(
        generation(1, a={"orders": (0, 1)}, b={"orders": (2, 3)}), generation(2, a={"orders": (0, 1, 2, 3)})
    )
    assert (change.cause, change.left, change.moved, change.min_moves) == ("leave", ("b",), 0, 0)


def test_the_second_round_of_a_cooperative_rebalance_is_a_handover() -> None:
    """The first round takes partitions from their owner, and assigns them to no member yet."""
    rounds = (
        generation(1, a={"orders": (0, 1, 2, 3)}),
        generation(2, a={"orders": (0, 1)}, b={}),
        generation(3, a={"orders": (0, 1)}, b={"orders": (2, 3)}),
    )
    found = list(changes(rounds))
    assert [change.cause for change in found] == ["first", "join", "handover"]
    assert [change.moved for change in found] == [0, 2, 0]


def test_a_topic_that_grows_and_a_subscription_that_changes_are_told_apart() -> None:
    grown = last(generation(1, a={"orders": (0, 1)}), generation(2, a={"orders": (0, 1, 2)}))
    assert grown.cause == "metadata"
    changed = last(
        generation(1, a={"orders": (0, 1)}),
        generation(2, ("orders", "returns"), a={"orders": (0, 1), "returns": (0,)}),
    )
    assert changed.cause == "subscription"


def test_a_history_that_begins_in_the_middle_does_not_say_why() -> None:
    assert last(generation(7, a={"orders": (0,)})).cause == "unknown"
    assert last(generation(1, a={"orders": (0,)})).cause == "first"
    assert last(generation(2, a={"orders": (0,)}, b={"orders": (1,)})).cause == "first", "b joined at once"


def test_a_group_that_is_empty_has_no_moves_and_begins_again() -> None:
    found = list(
        changes((generation(1, a={"orders": (0, 1)}), generation(2), generation(3, b={"orders": (0, 1)})))
    )
    assert [change.cause for change in found] == ["first", "leave", "first"]
    assert [(change.moved, change.min_moves) for change in found] == [(0, 0)] * 3


def test_a_partition_that_two_members_were_given_is_an_error_of_that_rebalance() -> None:
    change = last(
        generation(1, a={"orders": (0, 1)}), generation(2, a={"orders": (0, 1)}, b={"orders": (1,)})
    )
    assert change.moved is None
    assert change.error is not None
    assert "orders" in change.error
