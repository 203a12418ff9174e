"""Fields of a rebalance, from the generations before and after it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

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
    found = list(changes(replace(each, protocol="cooperative-sticky") for each in rounds))
    assert [change.cause for change in found] == ["first", "join", "handover"]
    assert [change.moved for change in found] == [0, 2, 0]


def test_withheld_partitions_are_moves_before_the_second_round_is_known() -> None:
    first = generation(1, a={"orders": (0, 1, 2, 3)})
    second = replace(generation(2, a={"orders": (0, 1)}, b={}), protocol="cooperative-sticky")
    assert last(first, second).moved == 2


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "ours"])
def test_partitions_of_a_deleted_topic_are_no_moves(protocol: str) -> None:
    """Each member has half of both topics, and then half of the one that is left."""
    topics = ("orders", "returns")
    both = generation(
        1, topics, a={"orders": (0, 1), "returns": (0, 1)}, b={"orders": (2, 3), "returns": (2, 3)}
    )
    one = generation(2, topics, a={"orders": (0, 1)}, b={"orders": (2, 3)})
    swapped = generation(3, topics, a={"orders": (2, 3)}, b={"orders": (0, 1)})
    found = list(changes(replace(each, protocol=protocol) for each in (both, one, swapped)))
    assert [(change.moved, change.min_moves) for change in found] == [(0, 0), (0, 0), (4, 0)]


def test_a_topic_with_fewer_partitions_leaves_a_balanced_group_alone() -> None:
    """As it is when it was deleted and created again: partitions 4 to 7 exist no longer."""
    before = generation(1, a={"orders": (0, 1, 4, 5)}, b={"orders": (2, 3, 6, 7)})
    shrunk = [generation(number, a={"orders": (0, 1)}, b={"orders": (2, 3)}) for number in (2, 3)]
    found = list(changes((before, *shrunk)))
    assert [(change.moved, change.min_moves) for change in found] == [(0, 0)] * 3


@pytest.mark.parametrize("number", [0x40000000, 0x7FFFFFFF])
def test_partitions_that_no_topic_can_have_are_an_error_of_that_rebalance(number: int) -> None:
    damaged = generation(2, a={"orders": (0, 1, number)})
    grown = generation(4, a={"orders": (0, 1, 2)})
    whole = [generation(1, a={"orders": (0, 1)}), damaged, generation(3, a={"orders": (0, 1)}), grown]
    found = list(changes(whole))
    total = number + 1
    assert found[1].error == f"too many partitions: the assignments name {total} of at most 4000000"
    assert (found[1].moved, found[1].min_moves) == (None, None)
    assert [(each.moved, each.min_moves, each.error) for each in found[2:]] == [(0, 0, None)] * 2
    assert found[3].cause == "metadata", "the damaged generation says nothing of the topic's size"


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
