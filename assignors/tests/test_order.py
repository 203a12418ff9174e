"""Members and names come in Java's order. Where it differs from Python's, two leaders would not agree."""

import random
from collections.abc import Callable

from groupwright.assignors import Member
from groupwright.assignors._model.group import member_order
from groupwright.assignors._model.partitions import sorted_names, strictly_ascending

HALFWIDTH = "\uffee"
GRINNING = "\U0001f600"


def test_a_character_of_two_code_units_comes_before_the_last_ones_of_one() -> None:
    assert sorted([HALFWIDTH, GRINNING]) == [HALFWIDTH, GRINNING]
    assert sorted_names([HALFWIDTH, GRINNING]) == (GRINNING, HALFWIDTH)


def test_a_prefix_comes_first_and_capitals_before_small_letters() -> None:
    assert sorted_names(["b", "a.b", "a", "B", "é"]) == ("B", "a", "a.b", "b", "é")


def test_static_members_come_before_dynamic_ones_whatever_their_ids() -> None:
    """librdkafka compares instance ids only where both have one: with a mix, its order goes in circles."""
    members = [
        Member("1", []),
        Member("2", [], instance_id="z"),
        Member("3", [], instance_id="a"),
        Member("0", []),
        Member("4", [], instance_id=GRINNING),
        Member("5", [], instance_id=HALFWIDTH),
        Member("6", [], instance_id=""),
    ]
    assert [member.id for member in sorted(members, key=member_order)] == ["6", "3", "2", "4", "5", "0", "1"]


def test_static_members_of_one_instance_are_parted_by_their_ids() -> None:
    members = [Member(id_, [], instance_id="same") for id_ in ("b", "c", "a")]
    assert [member.id for member in sorted(members, key=member_order)] == ["a", "b", "c"]


def test_names_are_strictly_ascending_if_sorting_and_uniting_changes_nothing(
    seeded: Callable[[int], random.Random],
) -> None:
    rng = seeded(16)
    seen = set()
    for _ in range(500):
        names = tuple(rng.choices(("a", "b", "c", "é", HALFWIDTH, GRINNING), k=rng.randint(0, 3)))
        ascending = sorted_names(set(names)) == names
        assert strictly_ascending(names) == ascending
        seen.add((len(names), ascending))
    assert {(2, True), (2, False), (3, True), (3, False)} <= seen
