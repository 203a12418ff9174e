"""Range with racks (KIP-881): the same loads first, then co-partitioning, then racks."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from groupwright.assignors import Assignment, Group, Member, RangeAssignor, Topic

Racks = Sequence[str | None]

NOWHERE: Racks = (None, None, None)
ABC: Racks = ("a", "b", "c")


def spread(partitions: Mapping[str, int], replicas: int, brokers: Racks) -> dict[str, Topic]:
    """Return topics whose replicas are placed as a controller places them.

    Each partition is on `replicas` brokers in a row; each topic starts at the broker after the last one's.
    """
    topics = {}
    start = 0
    for name, count in partitions.items():
        of_partitions = [
            {brokers[(start + number + replica) % len(brokers)] for replica in range(replicas)} - {None}
            for number in range(count)
        ]
        topics[name] = Topic(count, racks=[{rack for rack in racks if rack} for racks in of_partitions])
        start += count
    return topics


def members(racks: Racks, subscriptions: Iterable[str]) -> list[Member]:
    return [
        Member(f"c{number}", topics.split(), rack=rack)
        for number, (rack, topics) in enumerate(zip(racks, subscriptions, strict=True))
    ]


def shares(*listed: str) -> dict[str, dict[str, list[int]]]:
    """`"t1 0 3, t2 1"` for each member."""
    return {
        f"c{number}": {
            topic: [int(partition) for partition in partitions]
            for topic, *partitions in map(str.split, share.split(", "))
        }
        for number, share in enumerate(listed)
    }


def rack_mismatches(group: Group, assignment: Assignment) -> int:
    """Return the number of partitions without a replica in their owner's rack."""
    return sum(
        member.rack not in (group.topics[topic].racks or ())[partition]
        for member in group.members
        for topic, partitions in assignment[member.id].items()
        for partition in partitions.tolist()
        if member.rack is not None
    )


# Kafka's RangeAssignorTest: four groups, each first where racks have no say, and then where they have.

EVERYONE = ("t1 t2 t3",) * 3
ONE_NARROW = ("t1 t2 t3", "t1 t2 t3", "t1 t3")
SIX_SEVEN_TWO = {"t1": 6, "t2": 7, "t3": 2}
ALL_FIVE = {"t1": 5, "t2": 5, "t3": 5}

PLAIN = {
    "all subscribe to topics of 6, 7 and 2": (
        SIX_SEVEN_TWO,
        EVERYONE,
        shares("t1 0 1, t2 0 1 2, t3 0", "t1 2 3, t2 3 4, t3 1", "t1 4 5, t2 5 6"),
    ),
    "one is narrower, topics of 6, 7 and 2": (
        SIX_SEVEN_TWO,
        ONE_NARROW,
        shares("t1 0 1, t2 0 1 2 3, t3 0", "t1 2 3, t2 4 5 6, t3 1", "t1 4 5"),
    ),
    "all subscribe to topics of 5": (
        ALL_FIVE,
        EVERYONE,
        shares("t1 0 1, t2 0 1, t3 0 1", "t1 2 3, t2 2 3, t3 2 3", "t1 4, t2 4, t3 4"),
    ),
    "one is narrower, topics of 5": (
        ALL_FIVE,
        ONE_NARROW,
        shares("t1 0 1, t2 0 1 2, t3 0 1", "t1 2 3, t2 3 4, t3 2 3", "t1 4, t3 4"),
    ),
}
NO_SAY = {
    "brokers have no racks": (3, NOWHERE, ABC),
    "members have no racks": (3, ABC, NOWHERE),
    "every partition is in every rack": (3, ABC, ABC),
    "every partition is in every rack, and one rack has no member": (4, (*ABC, "d"), ABC),
    "members are in other racks than brokers": (3, ABC, ("d", "e", "f")),
    "members are in other racks than brokers, or in none": (3, ABC, (None, "e", "f")),
}


@pytest.mark.parametrize(("replicas", "brokers", "of_members"), NO_SAY.values(), ids=NO_SAY)
@pytest.mark.parametrize(("partitions", "subscriptions", "expected"), PLAIN.values(), ids=PLAIN)
def test_ranges_are_as_ever_where_racks_make_no_difference(
    partitions: Mapping[str, int],
    subscriptions: Sequence[str],
    expected: object,
    replicas: int,
    brokers: Racks,
    of_members: Racks,
) -> None:
    group = Group(members(of_members, subscriptions), spread(partitions, replicas, brokers))
    assert RangeAssignor().assign(group) == expected


FOUR = ("a", "b", "b", "a")
HALVES = ("t1 t2", "t1 t2", "t3 t4", "t3 t4")
ALL_OF_FOUR = ("t1 t2 t3 t4",) * 4
SIX_SIX_TWO_TWO = {"t1": 6, "t2": 6, "t3": 2, "t4": 2}
SIX_TOPICS = {"t1": 6, "t2": 6, "t3": 2, "t4": 2, "t5": 4, "t6": 4}

CASES = {
    "one replica each, and everybody is near everything": (
        SIX_SEVEN_TWO, 1, ABC, ABC, EVERYONE,
        shares("t1 0 3, t2 0 3 6", "t1 1 4, t2 1 4, t3 0", "t1 2 5, t2 2 5, t3 1"), 0,
    ),
    "two replicas each, and one partition is left for a member that is not near": (
        SIX_SEVEN_TWO, 2, ABC, ABC, EVERYONE,
        shares("t1 0 2, t2 0 2 3, t3 1", "t1 1 3, t2 1 4, t3 0", "t1 4 5, t2 5 6"), 1,
    ),
    "a member in a rack without brokers takes what is left, and does not change the ranges": (
        SIX_SEVEN_TWO, 3, ("a", "b"), ABC, EVERYONE,
        shares("t1 0 1, t2 0 1 2, t3 0", "t1 2 3, t2 3 4, t3 1", "t1 4 5, t2 5 6"), 4,
    ),
    "one replica each, one member narrower": (
        SIX_SEVEN_TWO, 1, ABC, ABC, ONE_NARROW,
        shares("t1 0 3, t2 0 2 3 6", "t1 1 4, t2 1 4 5, t3 0", "t1 2 5, t3 1"), 2,
    ),
    "two replicas each, one member narrower": (
        SIX_SEVEN_TWO, 2, ABC, ABC, ONE_NARROW,
        shares("t1 0 2, t2 0 2 3 5, t3 1", "t1 1 3, t2 1 4 6, t3 0", "t1 4 5"), 0,
    ),
    "a narrower member in a rack without brokers": (
        SIX_SEVEN_TWO, 3, ("a", "b"), ABC, ONE_NARROW,
        shares("t1 0 1, t2 0 1 2 3, t3 0", "t1 2 3, t2 4 5 6, t3 1", "t1 4 5"), 2,
    ),
    "topics of one size stay together, though none of them is then near; one replica": (
        ALL_FIVE, 1, ABC, ABC, EVERYONE,
        shares("t1 0 1, t2 0 1, t3 0 1", "t1 2 3, t2 2 3, t3 2 3", "t1 4, t2 4, t3 4"), 10,
    ),
    "topics of one size stay together, though none of them is then near; two replicas": (
        ALL_FIVE, 2, ABC, ABC, EVERYONE,
        shares("t1 0 1, t2 0 1, t3 0 1", "t1 2 3, t2 2 3, t3 2 3", "t1 4, t2 4, t3 4"), 5,
    ),
    "topics of one size stay together, and a member in a rack without brokers takes what is left": (
        ALL_FIVE, 3, ("a", "b"), ABC, EVERYONE,
        shares("t1 0 1, t2 0 1, t3 0 1", "t1 2 3, t2 2 3, t3 2 3", "t1 4, t2 4, t3 4"), 3,
    ),
    "of topics of one size those with the same subscribers stay together; one replica": (
        ALL_FIVE, 1, ABC, ABC, ONE_NARROW,
        shares("t1 0 1, t2 0 1 4, t3 0 1", "t1 2 3, t2 2 3, t3 2 3", "t1 4, t3 4"), 9,
    ),
    "of topics of one size those with the same subscribers stay together; two replicas": (
        ALL_FIVE, 2, ABC, ABC, ONE_NARROW,
        shares("t1 2, t2 0 1 3, t3 2", "t1 0 3, t2 2 4, t3 0 3", "t1 1 4, t3 1 4"), 0,
    ),
    "of topics of one size, and a narrower member in a rack without brokers": (
        ALL_FIVE, 3, ("a", "b"), ABC, ONE_NARROW,
        shares("t1 0 1, t2 0 1 2, t3 0 1", "t1 2 3, t2 3 4, t3 2 3", "t1 4, t3 4"), 2,
    ),
    "two halves of a group, every partition in both racks": (
        SIX_SIX_TWO_TWO, 2, ("a", "b"), FOUR, HALVES,
        shares("t1 0 1 2, t2 0 1 2", "t1 3 4 5, t2 3 4 5", "t3 0, t4 0", "t3 1, t4 1"), 0,
    ),
    "two halves of a group, with one replica each, stay together and near": (
        SIX_SIX_TWO_TWO, 1, ("a", "b"), FOUR, HALVES,
        shares("t1 0 2 4, t2 0 2 4", "t1 1 3 5, t2 1 3 5", "t3 1, t4 1", "t3 0, t4 0"), 0,
    ),
    "four topics of two sizes, every partition in both racks": (
        SIX_SIX_TWO_TWO, 2, ("a", "b"), FOUR, ALL_OF_FOUR,
        shares("t1 0 1, t2 0 1, t3 0, t4 0", "t1 2 3, t2 2 3, t3 1, t4 1", "t1 4, t2 4", "t1 5, t2 5"), 0,
    ),
    "four topics of two sizes, with one replica each, stay together and near": (
        SIX_SIX_TWO_TWO, 1, ("a", "b"), FOUR, ALL_OF_FOUR,
        shares("t1 0 2, t2 0 2, t3 0, t4 0", "t1 1 3, t2 1 3, t3 1, t4 1", "t1 5, t2 5", "t1 4, t2 4"), 0,
    ),
    "a rack without members matches no member": (
        SIX_SIX_TWO_TWO, 1, ABC, FOUR, ALL_OF_FOUR,
        shares("t1 0 3, t2 0 3, t3 0, t4 0", "t1 1 4, t2 1 4, t3 1, t4 1", "t1 2, t2 2", "t1 5, t2 5"), 6,
    ),
    "six topics of three sizes": (
        SIX_TOPICS, 3, ABC, ABC, ("t1 t2 t3 t4 t5 t6 t7 t8 t9",) * 3,
        shares(
            "t1 0 1, t2 0 1, t3 0, t4 0, t5 0 1, t6 0 1",
            "t1 2 3, t2 2 3, t3 1, t4 1, t5 2, t6 2",
            "t1 4 5, t2 4 5, t5 3, t6 3",
        ), 0,
    ),
    "six topics of three sizes with two replicas each stay together, and near": (
        SIX_TOPICS, 2, ABC, ABC, ("t1 t2 t3 t4 t5 t6 t7 t8 t9",) * 3,
        shares(
            "t1 0 2, t2 0 2, t3 0, t4 0, t5 1, t6 1",
            "t1 1 3, t2 1 3, t3 1, t4 1, t5 2, t6 2",
            "t1 4 5, t2 4 5, t5 0 3, t6 0 3",
        ), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("partitions", "replicas", "brokers", "of_members", "subscriptions", "expected", "mismatches"),
    CASES.values(),
    ids=CASES,
)
def test_partitions_go_near_as_far_as_shares_and_company_allow(
    partitions: Mapping[str, int],
    replicas: int,
    brokers: Racks,
    of_members: Racks,
    subscriptions: Sequence[str],
    expected: object,
    mismatches: int,
) -> None:
    group = Group(members(of_members, subscriptions), spread(partitions, replicas, brokers))
    assignment = RangeAssignor().assign(group)
    assert assignment == expected
    assert rack_mismatches(group, assignment) == mismatches


def test_static_members_keep_their_shares_over_a_restart_that_gives_them_new_ids() -> None:
    topics = {name: spread({name: 5}, 2, (*ABC, *ABC))[name] for name in ("t1", "t2")}

    def by_instance(*ids: str) -> dict[str, object]:
        group = Group(
            [
                Member(id_, topics, instance_id=f"i{number}", rack=rack)
                for number, (id_, rack) in enumerate(zip(ids, ABC, strict=True))
            ],
            topics,
        )
        assignment = RangeAssignor().assign(group)
        return {f"i{number}": assignment[id_] for number, id_ in enumerate(ids)}

    before = by_instance("c1", "c2", "c3")
    assert before == {
        "i0": {"t1": [0, 2], "t2": [0, 2]},
        "i1": {"t1": [1, 3], "t2": [1, 3]},
        "i2": {"t1": [4], "t2": [4]},
    }
    assert by_instance("c1", "c5", "c4") == before


def test_a_member_without_a_rack_is_near_everything_and_an_empty_rack_is_none() -> None:
    """librdkafka lets such a member match nothing where topics stay together."""
    topics = spread({"t1": 4, "t2": 4}, 1, ("a", "b"))
    for rack in (None, ""):
        group = Group([Member("c0", topics, rack=rack), Member("c1", topics, rack="a")], topics)
        assert RangeAssignor().assign(group) == shares("t1 0 1, t2 0 1", "t1 2 3, t2 2 3")


def test_one_topic_that_needs_racks_makes_co_partitioned_topics_be_matched_too() -> None:
    """They are matched partition by partition, so a member without a rack may go first.

    Without such a topic they are cut into ranges.
    """
    alike = {name: Topic(2, racks=[["a"], ["a"]]) for name in ("t1", "t2")}
    group = Group([Member("c0", alike, rack="b"), Member("c1", alike)], alike)
    assert RangeAssignor().assign(group) == shares("t1 0, t2 0", "t1 1, t2 1")
    needy = {**alike, "t3": Topic(3, racks=[["a"], ["b"], ["b"]])}
    with_needy = Group([Member("c0", needy, rack="b"), Member("c1", needy)], needy)
    assert RangeAssignor().assign(with_needy) == shares("t1 1, t2 1, t3 1 2", "t1 0, t2 0, t3 0")


def test_topics_that_stay_together_with_one_of_unknown_racks_are_near_nobody_with_a_rack() -> None:
    topics = {"t1": Topic(2, racks=[["b"], ["a"]]), "t2": Topic(2)}
    group = Group([Member("c0", topics, rack="a"), Member("c1", topics, rack="b")], topics)
    assert RangeAssignor().assign(group) == shares("t1 0, t2 0", "t1 1, t2 1")


def test_the_example_of_the_docstring_holds() -> None:
    topics = {"orders": Topic(7, racks=[["r1"], ["r2"]] * 3 + [["r1"]])}
    members = [Member(id_, topics, rack=rack) for id_, rack in (("a", "r1"), ("b", "r2"), ("c", "r2"))]
    assert RangeAssignor().assign(Group(members, topics)) == {
        "a": {"orders": [0, 2, 4]},
        "b": {"orders": [1, 3]},
        "c": {"orders": [5, 6]},
    }
