"""Assignments and partitions by topic: mappings on the outside, columns on the inside."""

import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest

from groupwright.assignors import (
    UNASSIGNED,
    Assignment,
    AssignorError,
    InvalidInputError,
    PartitionsByTopic,
)


def test_partitions_are_ascending_arrays_that_cannot_be_changed() -> None:
    partitions = PartitionsByTopic({"orders": (7, 0, 3, 0), "none": []})
    assert partitions["orders"].dtype == np.int32
    assert partitions["orders"].tolist() == [0, 3, 7]
    assert list(partitions) == ["orders"]
    assert (len(partitions), partitions.count) == (1, 3)
    with pytest.raises(ValueError, match="read-only"):
        partitions["orders"][0] = 1
    with pytest.raises(KeyError):
        partitions["none"]


@pytest.mark.parametrize(
    "given", [[0, 1], (1, 0), {0, 1}, range(2), np.array([1, 0, 1]), np.array([0, 1], np.uint8), iter([0, 1])]
)
def test_partitions_are_taken_from_any_collection_of_integers(given: list[int]) -> None:
    assert PartitionsByTopic({"orders": given})["orders"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "given",
    [[2**31], [-(2**31) - 1], ["0"], "0", [0.0], [None], [[0], [1]], [[0], [1, 2]], 0, np.array([True])],
)
def test_partitions_that_are_not_32_bit_integers_are_refused(given: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="topic 'orders': partitions must be"):
        PartitionsByTopic({"orders": given})


def test_partitions_equal_every_mapping_that_names_the_same_ones() -> None:
    partitions = PartitionsByTopic({"b": [1, 2], "a": [0]})
    assert partitions == {"a": (0,), "b": [2, 1], "c": []}
    assert partitions == PartitionsByTopic({"a": [0], "b": [1, 2]})
    assert hash(partitions) == hash(PartitionsByTopic({"a": [0], "b": [1, 2]}))
    assert partitions != {"a": [0], "b": [1]}
    assert partitions != {"a": [0, 1], "b": [2]}
    assert partitions != {"a": "what?"}
    assert partitions != ["a", "b"]


def test_an_assignment_gives_every_member_a_place() -> None:
    assignment = Assignment({"c-2": {"orders": [2, 0]}}, members=["c-1", "c-2"])
    assert list(assignment) == ["c-1", "c-2"]
    assert assignment["c-2"]["orders"].tolist() == [0, 2]
    assert assignment["c-1"] == {}
    assert (len(assignment), assignment.count, assignment.topics) == (2, 2, ("orders",))
    assert "c-3" not in assignment
    with pytest.raises(KeyError):
        assignment["c-3"]


def test_an_assignment_of_nothing_to_nobody_is_empty() -> None:
    assert len(Assignment({})) == 0
    assert Assignment({}).count == 0
    assert Assignment.from_owners([], {}) == Assignment({}) == {}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"a": {"t": [0]}, "b": {"t": [1, 0]}}, "partition 0 of 't' is assigned both to 'a' and to 'b'"),
        ({"a": {"t": [5, 5]}}, "partition 5 of 't' is assigned to 'a' twice"),
        ({"a": {"t": [-1]}}, "member 'a' is assigned partition -1 of 't'; they start at 0"),
    ],
)
def test_a_partition_that_is_given_twice_or_negative_is_refused(
    plan: dict[str, dict[str, list[int]]], message: str
) -> None:
    with pytest.raises(AssignorError) as caught:
        Assignment(plan)
    assert str(caught.value) == message


def test_a_partition_that_is_no_integer_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInputError, match="member 'a', topic 't': partitions must be"):
        Assignment({"a": {"t": "0"}})  # type: ignore[dict-item]  # what is refused here too


def test_owners_name_members_by_their_place_and_may_be_nobody() -> None:
    owners = {"t": [1, UNASSIGNED, 0, 1], "none": [], "free": [UNASSIGNED]}
    assignment = Assignment.from_owners(["z", "a"], owners)
    assert assignment == {"z": {"t": [2]}, "a": {"t": [0, 3]}}
    assert assignment.members == ("a", "z")
    assert assignment.topics == ("t",)
    for kind in (np.int8, np.uint64):
        assert Assignment.from_owners(["a"], {"t": np.zeros(2, kind)}) == {"a": {"t": [0, 1]}}


@pytest.mark.parametrize("owner", [2, -2, 2**31])
def test_an_owner_that_is_no_member_is_refused_with_its_place(owner: int) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Assignment.from_owners(["a", "b"], {"s": [0, 1], "t": [1, 0, owner]})
    assert str(caught.value) == (
        f"partition 2 of 't' has owner {owner}, "
        "which is neither UNASSIGNED nor one of 2 members, numbered from 0"
    )


@pytest.mark.parametrize("owners", [[0.0], ["0"], [[0], [1]]])
def test_owners_that_are_not_numbers_are_refused(owners: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="the owners of 't' must be indexes of members, not"):
        Assignment.from_owners(["a", "b"], {"t": owners})


def test_owners_need_members_that_are_named_once() -> None:
    with pytest.raises(InvalidInputError, match="members are repeated"):
        Assignment.from_owners(["a", "a"], {})


def test_more_members_than_16_bits_can_number_are_no_obstacle() -> None:
    members = [f"{number:06}" for number in range(70_000)]
    assignment = Assignment.from_owners(members, {"t": np.arange(70_000)[::-1]})
    assert assignment["069999"] == {"t": [0]}
    assert assignment["000000"] == {"t": [69_999]}


def test_both_ways_to_make_an_assignment_agree(seeded: Callable[[int], random.Random]) -> None:
    rng = seeded(17)
    members = ["c", "a", "\uffee", "\U0001f600"]
    for _ in range(300):
        owners = {
            topic: [rng.randint(-1, 3) for _ in range(rng.randint(0, 6))]
            for topic in rng.sample(["t2", "t1", "é"], rng.randint(0, 3))
        }
        plan: dict[str, dict[str, list[int]]] = {}
        for topic, owned_by in owners.items():
            for partition, owner in enumerate(owned_by):
                if owner != UNASSIGNED:
                    plan.setdefault(members[owner], {}).setdefault(topic, []).append(partition)
        assignment = Assignment.from_owners(members, owners)
        assert assignment == Assignment(plan, members)
        assert hash(assignment) == hash(Assignment(plan, members))
        assert assignment == {member: plan.get(member, {}) for member in members}


def test_assignments_that_differ_are_not_equal() -> None:
    assignment = Assignment({"a": {"t": [0, 1]}, "b": {}})
    assert assignment != Assignment({"a": {"t": [0, 1]}})
    assert assignment != Assignment({"a": {"t": [0]}, "b": {"t": [1]}})
    assert assignment != {"a": {"t": [0, 1]}}
    assert assignment != "assignment"


def test_they_show_themselves_as_the_dictionaries_that_they_equal() -> None:
    assignment = Assignment({"a": {"t": [1, 0]}, "b": {}})
    assert repr(assignment) == "Assignment({'a': {'t': [0, 1]}, 'b': {}})"
    assert repr(PartitionsByTopic({"t": range(1000)})) == "{'t': [  0,   1,   2, ..., 997, 998, 999]}"
    assert (
        repr(PartitionsByTopic({f"t{number}": [0] for number in range(20)})) == "<20 partitions of 20 topics>"
    )
    large = Assignment.from_owners([str(number) for number in range(20)], {"t": range(20)})
    assert repr(large) == "<Assignment of 20 partitions of 1 topics to 20 members>"


def test_they_survive_pickling_as_between_processes_of_a_cluster() -> None:
    assignment = Assignment({"a": {"t": [1, 0]}, "b": {}})
    assert pickle.loads(pickle.dumps(assignment)) == assignment  # noqa: S301 - its own bytes
    assert pickle.loads(pickle.dumps(assignment["a"])) == {"t": [0, 1]}  # noqa: S301 - its own bytes
