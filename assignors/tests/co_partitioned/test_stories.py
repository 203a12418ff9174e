"""Joined topics, story by story."""

import logging

import pytest

from groupwright.assignors import (
    Assignment,
    AssignorError,
    CoPartitionedStickyAssignor,
    Group,
    InvalidInputError,
    JoinedMember,
    Member,
    PartitionsByTopic,
    RangeAssignor,
    RebalanceProtocol,
    StickyAssignor,
    Subscription,
    Topic,
    assign,
    decode_assignment,
    encode_subscription,
    perform_assignment,
    unassigned,
)

PAIR = ["orders", "payments"]
PAIRED = CoPartitionedStickyAssignor([PAIR])

Owned = dict[str, list[int]]


def both(*numbers: int) -> Owned:
    """Return the partitions of these numbers of both topics."""
    return {topic: list(numbers) for topic in PAIR}


def both_of(partitions: int) -> dict[str, int]:
    return dict.fromkeys(PAIR, partitions)


def owner(id_: str, owned: Owned, topics: list[str] = PAIR, generation: int = 1) -> Member:
    return Member(id_, topics, owned=owned, generation=generation)


def settled(assignor: CoPartitionedStickyAssignor, group: Group) -> Assignment:
    """Return the assignment of the second round, to which all members come without what moved."""
    first = assign(assignor, group, cooperative=True)
    members = [
        Member(member.id, member.topics, owned=first[member.id], generation=2, rack=member.rack)
        for member in group.members
    ]
    second = assign(assignor, Group(members, group.topics), cooperative=True)
    assert unassigned(group, second) == PartitionsByTopic()
    return second


def test_the_name_and_the_protocols() -> None:
    assert PAIRED.name == "co-partitioned-sticky"
    assert PAIRED.protocols == {RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER}
    assert PAIRED.user_data(frozenset(PAIR)) is None


def test_a_member_joins_and_whole_bundles_move() -> None:
    group = Group([owner("a", both(0, 1, 2)), owner("b", both(3, 4, 5)), Member("c", PAIR)], both_of(6))
    first = assign(PAIRED, group, cooperative=True)
    assert first == {"a": both(0, 1), "b": both(3, 4), "c": {}}
    assert settled(PAIRED, group) == {"a": both(0, 1), "b": both(3, 4), "c": both(2, 5)}


def test_a_member_leaves_and_nobody_elses_bundles_move() -> None:
    group = Group([owner("a", both(0, 1)), owner("b", both(2, 3))], both_of(6))
    assert assign(PAIRED, group, cooperative=True) == {"a": both(0, 1, 4), "b": both(2, 3, 5)}


def test_a_group_that_comes_from_range_keeps_everything() -> None:
    before = assign(RangeAssignor(), Group([Member(id_, PAIR) for id_ in "abc"], both_of(7)))
    group = Group([Member(id_, PAIR, owned=before[id_], generation=1) for id_ in "abc"], both_of(7))
    for assignor in (PAIRED, CoPartitionedStickyAssignor()):
        assert assign(assignor, group, cooperative=True) == before


def test_by_default_topics_of_one_size_with_the_same_subscribers_are_joined() -> None:
    everything = ["audit", *PAIR]
    group = Group([Member("a", everything), Member("b", everything)], {**both_of(4), "audit": 3})
    assignment = assign(CoPartitionedStickyAssignor(), group)
    for share in assignment.values():
        assert share["orders"].tolist() == share["payments"].tolist()
    # Four bundles and the three partitions of the other topic.
    assert sorted(share.count for share in assignment.values()) == [5, 6]


def test_by_default_members_with_different_topics_all_get_something() -> None:
    """With a list, all bundles would go to the member that subscribes to both topics."""
    group = Group([Member("a", PAIR), Member("b", ["orders"])], both_of(4))
    assert assign(CoPartitionedStickyAssignor(), group) == {
        "a": {"payments": [0, 1, 2, 3]},
        "b": {"orders": [0, 1, 2, 3]},
    }
    assert assign(PAIRED, group) == {"a": both(0, 1, 2, 3), "b": {}}


def test_topics_in_no_list_are_assigned_one_by_one() -> None:
    everything = ["audit", "billing", *PAIR]
    group = Group(
        [Member("a", everything), Member("b", everything)], {**both_of(2), "audit": 2, "billing": 2}
    )
    assignment = assign(PAIRED, group)
    assert [share.count for share in assignment.values()] == [4, 4]
    for share in assignment.values():
        assert share["orders"].tolist() == share["payments"].tolist()


def test_members_that_subscribe_to_a_part_of_a_list_are_assigned_other_topics() -> None:
    group = Group([Member("a", PAIR), Member("b", ["audit", "orders"])], {**both_of(2), "audit": 2})
    assert assign(PAIRED, group) == {"a": both(0, 1), "b": {"audit": [0, 1]}}


def test_a_list_that_no_member_subscribes_to_as_a_whole_is_not_joined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Group([Member("a", ["orders"]), Member("b", ["payments"])], both_of(2))
    with caplog.at_level(logging.WARNING):
        assert assign(PAIRED, group) == {"a": {"orders": [0, 1]}, "b": {"payments": [0, 1]}}
    assert caplog.messages == [
        "No member subscribes to all joined topics ('orders', 'payments'), so they are assigned separately"
    ]


def test_joined_topics_that_do_not_exist_or_have_no_partitions_are_ignored() -> None:
    for topics in ({"orders": 2}, {"orders": 2, "payments": 0}):
        group = Group([Member("a", PAIR), Member("b", PAIR)], topics)
        assert assign(PAIRED, group) == {"a": {"orders": [0]}, "b": {"orders": [1]}}
    assert assign(PAIRED, Group([Member("a", PAIR)], {})) == {"a": {}}


def test_a_topic_that_no_member_subscribes_to_does_not_keep_the_others_apart() -> None:
    lists = CoPartitionedStickyAssignor([["audit", *PAIR]])
    group = Group([Member("a", PAIR), Member("b", PAIR)], {**both_of(2), "audit": 7})
    assert assign(lists, group) == {"a": both(0), "b": both(1)}


def test_different_numbers_of_partitions_are_an_error_that_names_the_topics() -> None:
    group = Group([Member("a", PAIR)], {"orders": 6, "payments": 8})
    with pytest.raises(AssignorError) as raised:
        assign(PAIRED, group)
    assert str(raised.value) == (
        "assignor 'co-partitioned-sticky': joined topics have different numbers of partitions: 'orders' has "
        "6, 'payments' has 8. Create them with equal numbers, or pass allow_unequal=True"
    )


def test_the_rest_of_the_larger_topics_can_be_assigned() -> None:
    topics = ["audit", *PAIR]
    lists = CoPartitionedStickyAssignor([topics], allow_unequal=True)
    group = Group([Member("a", topics), Member("b", topics)], {"orders": 2, "payments": 4, "audit": 6})
    assignment = assign(lists, group)
    for first, second, numbers in (("orders", "payments", range(2)), ("payments", "audit", range(4))):
        for share in assignment.values():
            together = {number for number in share[second].tolist() if number in numbers}
            assert {number for number in share[first].tolist() if number in numbers} == together
    assert [share.count for share in assignment.values()] == [6, 6]


def test_the_rest_may_go_to_members_that_subscribe_to_the_larger_topic_alone() -> None:
    lists = CoPartitionedStickyAssignor([PAIR], allow_unequal=True)
    group = Group([Member("a", PAIR), Member("b", ["payments"])], {"orders": 2, "payments": 4})
    assert assign(lists, group) == {"a": both(0, 1), "b": {"payments": [2, 3]}}


def test_a_new_topic_goes_to_the_owners_of_the_topic_that_it_is_joined_with() -> None:
    group = Group([owner("a", {"orders": [0, 3]}), owner("b", {"orders": [1, 2]})], both_of(4))
    assert assign(PAIRED, group, cooperative=True) == {"a": both(0, 3), "b": both(1, 2)}


def test_partitions_that_topics_grow_by_move_nothing() -> None:
    group = Group([owner("a", both(0, 1)), owner("b", both(2, 3))], both_of(6))
    assert assign(PAIRED, group, cooperative=True) == {"a": both(0, 1, 4), "b": both(2, 3, 5)}


def test_a_split_bundle_is_completed_where_most_of_it_is() -> None:
    topics = ["audit", *PAIR]
    lists = CoPartitionedStickyAssignor([topics])
    members = [
        owner("a", {"audit": [0], "orders": [0], "payments": [1]}, topics),
        owner("b", {"audit": [1], "orders": [1], "payments": [0]}, topics),
    ]
    group = Group(members, dict.fromkeys(topics, 2))
    first = assign(lists, group, cooperative=True)
    assert first == {"a": {"audit": [0], "orders": [0]}, "b": {"audit": [1], "orders": [1]}}
    assert settled(lists, group) == {
        "a": {topic: [0] for topic in topics},
        "b": {topic: [1] for topic in topics},
    }


def test_bundles_that_are_split_evenly_stay_half_where_they_are() -> None:
    """Of two members that own one half of each bundle, each completes every other bundle."""
    group = Group([owner("a", {"orders": [0, 1, 2, 3]}), owner("b", {"payments": [0, 1, 2, 3]})], both_of(4))
    assert settled(PAIRED, group) == {"a": both(0, 2), "b": both(1, 3)}


def test_the_owner_of_most_does_not_count_if_it_does_not_subscribe_to_all_topics() -> None:
    topics = ["audit", *PAIR]
    lists = CoPartitionedStickyAssignor([topics])
    members = [owner("a", both(0)), owner("b", {"audit": [0]}, topics), Member("c", topics)]
    group = Group(members, dict.fromkeys(topics, 1))
    assert settled(lists, group) == {"a": {}, "b": {topic: [0] for topic in topics}, "c": {}}


def test_a_member_that_stops_subscribing_to_one_topic_loses_the_bundles() -> None:
    members = [owner("a", both(0, 1), ["orders"]), owner("b", both(2, 3))]
    group = Group(members, both_of(4))
    assert assign(PAIRED, group, cooperative=True) == {"a": {}, "b": both(2, 3)}
    assert settled(PAIRED, group) == {"a": {}, "b": both(0, 1, 2, 3)}


def test_a_late_members_claim_takes_nothing_from_the_owner() -> None:
    group = Group([owner("a", both(0), generation=5), owner("late", both(0, 1), generation=4)], both_of(2))
    assert assign(PAIRED, group, cooperative=True) == {"a": both(0), "late": both(1)}


def test_claims_to_what_does_not_exist_are_ignored() -> None:
    owned = {"orders": [-1, 0, 99], "payments": [0, 7], "vanished": [0]}
    group = Group([owner("a", owned), Member("b", PAIR)], both_of(2))
    assert assign(PAIRED, group, cooperative=True) == {"a": both(0), "b": both(1)}


@pytest.mark.parametrize("user_data", [b"", b"\xff\xff\xff\xff", b"\0\0\0\7", b"any bytes"])
def test_user_data_is_not_read(user_data: bytes) -> None:
    had = StickyAssignor()
    had.on_assignment(PartitionsByTopic(both(0)), 9)
    members = [
        Member("a", PAIR, owned=both(1), generation=1, user_data=user_data),
        Member("b", PAIR, user_data=had.user_data(frozenset(PAIR))),
    ]
    assert assign(PAIRED, Group(members, both_of(2)), cooperative=True) == {"a": both(1), "b": both(0)}


def test_a_bundle_goes_to_a_rack_where_all_its_partitions_have_a_replica() -> None:
    racks = {
        "orders": Topic(4, [["east"], ["west"], ["east", "west"], ["east"]]),
        "payments": Topic(4, [["east"], ["west"], ["west"], []]),
    }
    group = Group([Member("a", PAIR, rack="east"), Member("b", PAIR, rack="west")], racks)
    assert assign(PAIRED, group) == {"a": both(0, 3), "b": both(1, 2)}


def test_a_bundle_whose_partitions_have_no_rack_in_common_goes_to_a_member_without_a_rack() -> None:
    racks = {"orders": Topic(2, [["east"], ["east"]]), "payments": Topic(2, [["west"], ["east"]])}
    group = Group([Member("a", PAIR, rack="east"), Member("b", PAIR)], racks)
    assert assign(PAIRED, group) == {"a": both(1), "b": both(0)}


def test_a_leader_assigns_from_bytes_to_bytes() -> None:
    joined = [
        JoinedMember(id_, None, encode_subscription(Subscription(tuple(PAIR), owned=owned, generation=3)))
        for id_, owned in (("a", PartitionsByTopic(both(0, 1))), ("b", PartitionsByTopic()))
    ]
    assignments = perform_assignment(PAIRED, joined, both_of(3))
    assert decode_assignment(assignments["a"]).partitions == both(0, 1)
    assert decode_assignment(assignments["b"]).partitions == both(2)


def test_ten_thousand_partitions() -> None:
    """A hundred members, of which ten leave and ten join; 50 pairs of topics."""
    pairs = [[f"left-{number:02}", f"right-{number:02}"] for number in range(50)]
    topics = {name: 100 for pair in pairs for name in pair}
    assignor = CoPartitionedStickyAssignor(pairs)
    group = Group([Member(f"c{number:03}", topics) for number in range(100)], topics)
    before = assign(assignor, group)
    assert {share.count for share in before.values()} == {100}
    members = [
        Member(member.id, topics, owned=before.get(member.id, {}), generation=1)
        for member in [*group.members[10:], *(Member(f"new-{number}", topics) for number in range(10))]
    ]
    after = assign(assignor, Group(members, topics), cooperative=True)
    assert all(after[member.id] == before[member.id] for member in group.members[10:])
    assert {share.count for share in after.values()} == {100}


@pytest.mark.parametrize(
    ("joined", "says"),
    [
        (PAIR, "not 'orders'"),
        ([["orders", 7]], r"not \['orders', 7\]"),
        ([7], "not 7"),
        ([PAIR, ["orders", "audit"]], "topic 'orders' is in two lists of joined topics"),
    ],
)
def test_lists_that_are_none_are_refused(joined: list[list[str]], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        CoPartitionedStickyAssignor(joined)


def test_the_order_of_the_lists_does_not_matter() -> None:
    pairs = [["audit", "billing"], PAIR]
    topics = [topic for pair in pairs for topic in pair]
    group = Group(
        [Member(id_, topics) for id_ in "abc"], {"audit": 4, "billing": 4, "orders": 7, "payments": 7}
    )
    in_reverse = CoPartitionedStickyAssignor([pair[::-1] for pair in pairs[::-1]])
    assert assign(in_reverse, group) == assign(CoPartitionedStickyAssignor(pairs), group)


def test_a_repeated_topic_and_lists_of_one_or_none_are_harmless() -> None:
    lists = CoPartitionedStickyAssignor([["orders", "payments", "orders"], ["audit"], []])
    group = Group([Member("a", PAIR), Member("b", PAIR)], both_of(2))
    assert assign(lists, group) == {"a": both(0), "b": both(1)}
