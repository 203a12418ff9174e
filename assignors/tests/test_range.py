"""Range: each topic is cut into ranges, by itself."""

import pytest

from groupwright.assignors import Group, Member, RangeAssignor, Topic

ALL = ("t1", "t2", "t3")
SIX = ("t1", "t2", "t3", "t4", "t5", "t6")

Expected = dict[str, dict[str, list[int]]]


def case(story: str, members: list[Member], topics: dict[str, int], expected: Expected) -> object:
    return pytest.param(members, topics, expected, id=story)


CASES = [
    # What everyone learns first.
    case(
        "seven partitions for three members are cut 3, 2, 2",
        [Member("a", ["t"]), Member("b", ["t"]), Member("c", ["t"])],
        {"t": 7},
        {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4]}, "c": {"t": [5, 6]}},
    ),
    case(
        "many topics of two partitions leave the third member idle",
        [Member(id_, ["t1", "t2", "t3", "t4"]) for id_ in "abc"],
        {"t1": 2, "t2": 2, "t3": 2, "t4": 2},
        {
            "a": {"t1": [0], "t2": [0], "t3": [0], "t4": [0]},
            "b": {"t1": [1], "t2": [1], "t3": [1], "t4": [1]},
            "c": {},
        },
    ),
    # The cases of Kafka's RangeAssignorTest.
    case("a member with no topic gets nothing", [Member("a", [])], {}, {"a": {}}),
    case("a topic that does not exist is passed over", [Member("a", ["t1"])], {}, {"a": {}}),
    case("a topic without partitions is passed over", [Member("a", ["t1"])], {"t1": 0}, {"a": {}}),
    case("the only member gets all", [Member("a", ["t1"])], {"t1": 3}, {"a": {"t1": [0, 1, 2]}}),
    case(
        "the only member gets all of all its topics",
        [Member("a", ["t1", "t2"])],
        {"t1": 1, "t2": 2},
        {"a": {"t1": [0], "t2": [0, 1]}},
    ),
    case(
        "a topic without subscribers is not assigned",
        [Member("a", ["t1"])],
        {"t1": 3, "other": 3},
        {"a": {"t1": [0, 1, 2]}},
    ),
    case(
        "one partition goes to the first of two",
        [Member("a", ["t1"]), Member("b", ["t1"])],
        {"t1": 1},
        {"a": {"t1": [0]}, "b": {}},
    ),
    case(
        "two partitions go one to each of two",
        [Member("a", ["t1"]), Member("b", ["t1"])],
        {"t1": 2},
        {"a": {"t1": [0]}, "b": {"t1": [1]}},
    ),
    case(
        "only subscribers of a topic share it",
        [Member("a", ["t1"]), Member("b", ["t1", "t2"]), Member("c", ["t1"])],
        {"t1": 3, "t2": 2},
        {"a": {"t1": [0]}, "b": {"t1": [1], "t2": [0, 1]}, "c": {"t1": [2]}},
    ),
    case(
        "the first member gets the odd partition of every topic",
        [Member("a", ["t1", "t2"]), Member("b", ["t1", "t2"])],
        {"t1": 3, "t2": 3},
        {"a": {"t1": [0, 1], "t2": [0, 1]}, "b": {"t1": [2], "t2": [2]}},
    ),
    case(
        "static members are ordered by instance id, not by member id",
        [Member("b", ["t1", "t2"], instance_id="i1"), Member("a", ["t1", "t2"], instance_id="i2")],
        {"t1": 3, "t2": 3},
        {"b": {"t1": [0, 1], "t2": [0, 1]}, "a": {"t1": [2], "t2": [2]}},
    ),
    case(
        "a static member comes before a dynamic one",
        [Member("b", ["t1", "t2"], instance_id="i1"), Member("a", ["t1", "t2"])],
        {"t1": 3, "t2": 3},
        {"b": {"t1": [0, 1], "t2": [0, 1]}, "a": {"t1": [2], "t2": [2]}},
    ),
    case(
        "each topic is cut by itself",
        [Member(id_, ALL) for id_ in "abc"],
        {"t1": 6, "t2": 7, "t3": 2},
        {
            "a": {"t1": [0, 1], "t2": [0, 1, 2], "t3": [0]},
            "b": {"t1": [2, 3], "t2": [3, 4], "t3": [1]},
            "c": {"t1": [4, 5], "t2": [5, 6]},
        },
    ),
    case(
        "a narrower subscription changes the cut of its topics alone",
        [Member("a", ALL), Member("b", ALL), Member("c", ["t1", "t3"])],
        {"t1": 6, "t2": 7, "t3": 2},
        {
            "a": {"t1": [0, 1], "t2": [0, 1, 2, 3], "t3": [0]},
            "b": {"t1": [2, 3], "t2": [4, 5, 6], "t3": [1]},
            "c": {"t1": [4, 5]},
        },
    ),
    case(
        "topics of one size with the same subscribers are cut alike",
        [Member("a", ALL), Member("b", ALL), Member("c", ["t1", "t3"])],
        {"t1": 5, "t2": 5, "t3": 5},
        {
            "a": {"t1": [0, 1], "t2": [0, 1, 2], "t3": [0, 1]},
            "b": {"t1": [2, 3], "t2": [3, 4], "t3": [2, 3]},
            "c": {"t1": [4], "t3": [4]},
        },
    ),
    case(
        "two halves of a group are cut apart",
        [
            Member("a", ["t1", "t2"]),
            Member("b", ["t1", "t2"]),
            Member("c", ["t3", "t4"]),
            Member("d", ["t3", "t4"]),
        ],
        {"t1": 6, "t2": 6, "t3": 2, "t4": 2},
        {
            "a": {"t1": [0, 1, 2], "t2": [0, 1, 2]},
            "b": {"t1": [3, 4, 5], "t2": [3, 4, 5]},
            "c": {"t3": [0], "t4": [0]},
            "d": {"t3": [1], "t4": [1]},
        },
    ),
    case(
        "topics of one size stay together among topics of other sizes, and with unknown ones",
        [Member(id_, [*SIX, "t7", "t8"]) for id_ in "abc"],
        {"t1": 6, "t2": 6, "t3": 2, "t4": 2, "t5": 4, "t6": 4},
        {
            "a": {"t1": [0, 1], "t2": [0, 1], "t3": [0], "t4": [0], "t5": [0, 1], "t6": [0, 1]},
            "b": {"t1": [2, 3], "t2": [2, 3], "t3": [1], "t4": [1], "t5": [2], "t6": [2]},
            "c": {"t1": [4, 5], "t2": [4, 5], "t5": [3], "t6": [3]},
        },
    ),
    case(
        "a topic named twice in a subscription counts once",
        [Member("a", ["t1", "t1"]), Member("b", ["t1"])],
        {"t1": 3},
        {"a": {"t1": [0, 1]}, "b": {"t1": [2]}},
    ),
]


@pytest.mark.parametrize(("members", "topics", "expected"), CASES)
def test_range(members: list[Member], topics: dict[str, int], expected: Expected) -> None:
    assert RangeAssignor().assign(Group(members, topics)) == expected


@pytest.mark.parametrize(("members", "topics", "expected"), CASES)
@pytest.mark.parametrize("known_of", ["members", "partitions", "both"])
def test_range_is_the_same_where_racks_make_no_difference(
    members: list[Member], topics: dict[str, int], expected: Expected, known_of: str
) -> None:
    if known_of != "partitions":
        members = [
            Member(member.id, member.topics, instance_id=member.instance_id, rack="abc"[number % 3])
            for number, member in enumerate(members)
        ]
    racks = None if known_of == "members" else ["a", "b", "c"]
    in_all = {name: Topic(count, racks=racks and [racks] * count) for name, count in topics.items()}
    assert RangeAssignor().assign(Group(members, in_all)) == expected


def test_static_members_keep_their_ranges_while_dynamic_ones_come_and_go() -> None:
    both = ["t1", "t2"]
    static = [Member(f"c{number}", both, instance_id=f"i{number}") for number in (1, 2, 3)]
    topics = {"t1": 5, "t2": 4}
    before = RangeAssignor().assign(Group([*static, Member("c4", both)], topics))
    after = RangeAssignor().assign(Group([*static, Member("c5", both)], topics))
    assert before == {
        "c1": {"t1": [0, 1], "t2": [0]},
        "c2": {"t1": [2], "t2": [1]},
        "c3": {"t1": [3], "t2": [2]},
        "c4": {"t1": [4], "t2": [3]},
    }
    assert after["c5"] == before["c4"]
    assert all(after[member.id] == before[member.id] for member in static)


def test_static_members_keep_their_ranges_over_a_restart_that_gives_them_new_ids() -> None:
    both = ["t1", "t2"]
    topics = {"t1": 5, "t2": 5}
    ids_before = {"i1": "c1", "i2": "c2", "i3": "c3"}
    ids_after = {"i1": "c1", "i2": "c5", "i3": "c4"}

    def by_instance(ids: dict[str, str]) -> Expected:
        group = Group([Member(id_, both, instance_id=instance) for instance, id_ in ids.items()], topics)
        assignment = RangeAssignor().assign(group)
        return {
            instance: {topic: array.tolist() for topic, array in assignment[id_].items()}
            for instance, id_ in ids.items()
        }

    assert by_instance(ids_after) == by_instance(ids_before)
    assert by_instance(ids_after) == {
        "i1": {"t1": [0, 1], "t2": [0, 1]},
        "i2": {"t1": [2, 3], "t2": [2, 3]},
        "i3": {"t1": [4], "t2": [4]},
    }


def test_the_example_of_the_docstring_holds() -> None:
    group = Group([Member(id_, ["orders", "audit"]) for id_ in "abc"], {"orders": 7, "audit": 2})
    assert RangeAssignor().assign(group) == {
        "a": {"orders": [0, 1, 2], "audit": [0]},
        "b": {"orders": [3, 4], "audit": [1]},
        "c": {"orders": [5, 6]},
    }
