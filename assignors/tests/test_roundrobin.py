"""Round robin: all partitions are dealt out like cards."""

import pytest

from groupwright.assignors import Group, Member, RoundRobinAssignor

BOTH = ("t1", "t2")

Expected = dict[str, dict[str, list[int]]]


def case(story: str, members: list[Member], topics: dict[str, int], expected: Expected) -> object:
    return pytest.param(members, topics, expected, id=story)


CASES = [
    # What everyone learns first, and the example of Kafka's documentation.
    case(
        "with equal subscriptions the deal is even across topics",
        [Member("a", BOTH), Member("b", BOTH)],
        {"t1": 3, "t2": 3},
        {"a": {"t1": [0, 2], "t2": [1]}, "b": {"t1": [1], "t2": [0, 2]}},
    ),
    case(
        "with different subscriptions the widest may get most",
        [Member("a", ["t0"]), Member("b", ["t0", "t1"]), Member("c", ["t0", "t1", "t2"])],
        {"t0": 1, "t1": 2, "t2": 3},
        {"a": {"t0": [0]}, "b": {"t1": [0]}, "c": {"t1": [1], "t2": [0, 1, 2]}},
    ),
    # The cases of Kafka's RoundRobinAssignorTest.
    case("a member with no topic gets nothing", [Member("a", [])], {}, {"a": {}}),
    case("a topic that does not exist is passed over", [Member("a", ["t1"])], {}, {"a": {}}),
    case("a topic without partitions is passed over", [Member("a", ["t1"])], {"t1": 0}, {"a": {}}),
    case("the only member gets all", [Member("a", ["t1"])], {"t1": 3}, {"a": {"t1": [0, 1, 2]}}),
    case(
        "the only member gets all of all its topics",
        [Member("a", BOTH)],
        {"t1": 1, "t2": 2},
        {"a": {"t1": [0], "t2": [0, 1]}},
    ),
    case(
        "a topic without subscribers is not dealt",
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
        "members that do not subscribe are passed over",
        [Member("a", ["t1"]), Member("b", BOTH), Member("c", ["t1"])],
        {"t1": 3, "t2": 2},
        {"a": {"t1": [0]}, "b": {"t1": [1], "t2": [0, 1]}, "c": {"t1": [2]}},
    ),
    case(
        "static members are ordered by instance id, not by member id",
        [Member("b", BOTH, instance_id="i1"), Member("a", BOTH, instance_id="i2")],
        {"t1": 3, "t2": 3},
        {"b": {"t1": [0, 2], "t2": [1]}, "a": {"t1": [1], "t2": [0, 2]}},
    ),
    case(
        "a static member comes before a dynamic one",
        [Member("b", BOTH, instance_id="i1"), Member("a", BOTH)],
        {"t1": 3, "t2": 3},
        {"b": {"t1": [0, 2], "t2": [1]}, "a": {"t1": [1], "t2": [0, 2]}},
    ),
    # What goes wrong elsewhere.
    case(
        "a topic whose subscribers all sit before the last one served starts around the table again",
        [Member("a", ["t2"]), Member("b", ["t1"]), Member("c", ["t1", "t2"])],
        {"t1": 2, "t2": 2},
        {"a": {"t2": [0]}, "b": {"t1": [0]}, "c": {"t1": [1], "t2": [1]}},
    ),
    case(
        "a topic without metadata between two others does not move the deal on",
        [Member("a", ["t1", "t2", "t3"]), Member("b", ["t1", "t2", "t3"])],
        {"t1": 1, "t3": 1},
        {"a": {"t1": [0]}, "b": {"t3": [0]}},
    ),
]


@pytest.mark.parametrize(("members", "topics", "expected"), CASES)
def test_round_robin(members: list[Member], topics: dict[str, int], expected: Expected) -> None:
    assert RoundRobinAssignor().assign(Group(members, topics)) == expected


def test_static_members_keep_their_partitions_while_dynamic_ones_come_and_go() -> None:
    static = [Member(f"c{number}", BOTH, instance_id=f"i{number}") for number in (1, 2, 3)]
    topics = {"t1": 3, "t2": 3}
    before = RoundRobinAssignor().assign(Group([*static, Member("c4", BOTH)], topics))
    after = RoundRobinAssignor().assign(Group([*static, Member("c5", BOTH)], topics))
    assert before == {
        "c1": {"t1": [0], "t2": [1]},
        "c2": {"t1": [1], "t2": [2]},
        "c3": {"t1": [2]},
        "c4": {"t2": [0]},
    }
    assert after["c5"] == before["c4"]
    assert all(after[member.id] == before[member.id] for member in static)


def test_static_members_keep_their_partitions_over_a_restart_that_gives_them_new_ids() -> None:
    topics = {"t1": 3, "t2": 3}

    def dealt(ids: dict[str, str]) -> Expected:
        group = Group([Member(id_, BOTH, instance_id=instance) for instance, id_ in ids.items()], topics)
        assignment = RoundRobinAssignor().assign(group)
        return {
            instance: {topic: array.tolist() for topic, array in assignment[id_].items()}
            for instance, id_ in ids.items()
        }

    expected = {f"i{number}": {"t1": [number - 1], "t2": [number - 1]} for number in (1, 2, 3)}
    assert dealt({"i1": "c1", "i2": "c2", "i3": "c3"}) == expected
    assert dealt({"i1": "c4", "i2": "c5", "i3": "c1"}) == expected


def test_the_example_of_the_docstring_holds() -> None:
    group = Group([Member(id_, ["orders", "audit"]) for id_ in "ab"], {"orders": 3, "audit": 3})
    assert RoundRobinAssignor().assign(group) == {
        "a": {"audit": [0, 2], "orders": [1]},
        "b": {"audit": [1], "orders": [0, 2]},
    }
