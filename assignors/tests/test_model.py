"""The model refuses what cannot be, and says what it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groupwright.assignors import Group, InvalidInputError, Member, Topic

# What a type checker would refuse too, hidden from it.
SEVEN: Any = 7
HALF: Any = 0.5
TEXT: Any = "heavy"

WRONG: dict[str, Callable[[], object]] = {
    "a member's id must be a string that is not empty, not ''": lambda: Member("", []),
    "a member's id must be a string that is not empty, not 7": lambda: Member(SEVEN, []),
    "member 'm': topics must be a collection of names, not 'orders'": lambda: Member("m", "orders"),
    "member 'm': topics must be a collection of names, not ['orders', 7]": lambda: Member(
        "m", ["orders", SEVEN]
    ),
    "member 'm': topics must be a collection of names, not 7": lambda: Member("m", SEVEN),
    "topic 't': partitions must be a sequence of 32-bit integers, not [0.5]": lambda: Member(
        "m", [], owned={"t": [HALF]}
    ),
    "topic 't': partitions must be a sequence of integers, not 7": lambda: Member(
        "m", [], owned={"t": SEVEN}
    ),
    "member 'm' is in the group more than once": lambda: Group([Member("m", []), Member("m", [])], {}),
    "topic 't': the number of partitions must be from 0 to 2147483647, not -1": lambda: Group([], {"t": -1}),
    "topic 't': the number of partitions must be from 0 to 2147483647, not 2147483648": lambda: Group(
        [], {"t": 2**31}
    ),
    "topic 't': the number of partitions must be an integer, not 0.5": lambda: Group([], {"t": HALF}),
    "a topic's name must be a string, not 7": lambda: Group([], {SEVEN: 1}),
    "racks must have one element per partition: 1 for 2 partitions": lambda: Topic(2, racks=[["a"]]),
    "racks must be a collection of names for each partition, not ['a', 'b']": lambda: Topic(
        2, racks=["a", "b"]
    ),
    "weights must have one element per partition: 1 for 2 partitions": lambda: Topic(2, weights=[1.0]),
    "weights must be finite numbers, none negative, not [1.0, -1.0]": lambda: Topic(2, weights=[1.0, -1.0]),
    "weights must be finite numbers, none negative, not [nan]": lambda: Topic(1, weights=[float("nan")]),
    "weights must be numbers, not ['heavy']": lambda: Topic(1, weights=[TEXT]),
}


@pytest.mark.parametrize(("message", "make"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_is_refused(message: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert str(caught.value) == message


def test_members_have_defaults_of_a_dynamic_member_that_joins_first() -> None:
    member = Member("c-1", ["orders"])
    assert (member.topics, dict(member.owned), member.generation) == (("orders",), {}, -1)
    assert (member.instance_id, member.rack, member.user_data) == (None, None, None)


def test_a_rack_of_no_characters_is_no_rack_since_that_is_kafkas_default() -> None:
    assert Member("c-1", [], rack="").rack is None


def test_claims_are_taken_as_they_come() -> None:
    """A member may say that it owns what does not exist; it must not stop the group."""
    assert Member("c-1", [], owned={"gone": [7, -3, 7], "none": []}).owned == {"gone": [-3, 7]}


@pytest.mark.parametrize("names", [[], ["t"]])
def test_topics_may_come_from_an_iterator(names: list[str]) -> None:
    assert Member("m", iter(names)).topics == tuple(names)


def test_a_number_of_partitions_may_be_numpys() -> None:
    count: Any = np.int64(3)
    assert Group([], {"orders": count}).topics == {"orders": Topic(3)}


def test_equal_groups_are_equal() -> None:
    def group() -> Group:
        topic = Topic(2, racks=[["a", "b"], ["b"]], weights=[1, 2])
        return Group([Member("c-1", ["t"], owned={"t": [0, 1]}, generation=3)], {"t": topic})

    assert group() == group()
    assert group() != Group(group().members, {"t": 2})
    assert Topic(2, weights=[1, 2]) != Topic(2, weights=[1, 3])
    assert Topic(2) != 2
    assert hash(Topic(2, weights=[1, 2])) == hash(Topic(2, weights=[1, 2]))
    assert hash(group().members) == hash(group().members)


def test_subscribers_come_in_kafkas_order_and_without_what_cannot_be_assigned() -> None:
    group = Group(
        [
            Member("b", ["orders", "unknown", "empty"]),
            Member("a", ["orders"]),
            Member("c", ["orders", "audit", "audit"], instance_id="i"),
        ],
        {"orders": 2, "audit": 1, "empty": 0, "unwanted": 4},
    )
    ids = {topic: [member.id for member in members] for topic, members in group.subscribers().items()}
    assert list(ids.items()) == [("audit", ["c"]), ("orders", ["c", "a", "b"])]
