"""Properties of every group."""

import random
from collections.abc import Callable, Iterator

import pytest

from groupwright.assignors import (
    Assignor,
    Group,
    Member,
    PartitionsByTopic,
    assign,
    builtin_assignors,
    unassigned,
)

Groups = Callable[[int, int], Iterator[Group]]

BY_COUNT = [each for each in builtin_assignors() if each.weights is None]  # tests/load tries the others
EACH_ASSIGNOR = pytest.mark.parametrize("assignor", BY_COUNT, ids=lambda assignor: assignor.name)


@pytest.mark.slow
@EACH_ASSIGNOR
def test_every_partition_that_somebody_wants_goes_to_one_that_does(
    random_groups: Groups, assignor: Assignor
) -> None:
    given = 0
    for group in random_groups(11, 1500):
        assignment = assign(assignor, group)
        assert set(assignment) == {member.id for member in group.members}
        owners = {}
        for member in group.members:
            for topic, partitions in assignment[member.id].items():
                assert topic in member.topics
                for partition in partitions.tolist():
                    assert (topic, partition) not in owners
                    owners[topic, partition] = member.id
        wanted = {topic for member in group.members for topic in member.topics}
        assert set(owners) == {
            (name, partition)
            for name, topic in group.topics.items()
            if name in wanted
            for partition in range(topic.partitions)
        }
        given += len(owners)
    assert given > 10_000


@pytest.mark.medium
@EACH_ASSIGNOR
def test_nothing_is_left_to_nobody(random_groups: Groups, assignor: Assignor) -> None:
    for group in random_groups(12, 500):
        assert unassigned(group, assign(assignor, group)) == PartitionsByTopic()


@pytest.mark.slow
@EACH_ASSIGNOR
def test_the_order_of_members_topics_and_subscriptions_does_not_matter(
    random_groups: Groups, seeded: Callable[[int], random.Random], assignor: Assignor
) -> None:
    rng = seeded(13)

    def shuffled(group: Group) -> Group:
        members = [
            Member(member.id, rng.sample(member.topics, len(member.topics)), instance_id=member.instance_id)
            for member in rng.sample(group.members, len(group.members))
        ]
        return Group(members, dict(rng.sample(sorted(group.topics.items(), key=str), len(group.topics))))

    for group in random_groups(14, 500):
        assert assignor.assign(shuffled(group)) == assignor.assign(group)


@pytest.mark.medium
@EACH_ASSIGNOR
def test_with_equal_subscriptions_no_member_gets_two_more_of_a_topic(
    random_groups: Groups, assignor: Assignor
) -> None:
    for group in random_groups(15, 500):
        topics = group.members[0].topics
        alike = Group(
            [Member(member.id, topics, instance_id=member.instance_id) for member in group.members],
            group.topics,
        )
        assignment = assign(assignor, alike)
        for topic in topics:
            sizes = [len(share.get(topic, ())) for share in assignment.values()]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.medium
@EACH_ASSIGNOR
def test_a_million_partitions_are_assigned_to_two_thousand_members(assignor: Assignor) -> None:
    topics = {f"topic-{number:04}": 1000 for number in range(1000)}
    group = Group([Member(f"member-{number:04}", topics) for number in range(2000)], topics)
    sizes = [share.count for share in assign(assignor, group).values()]
    if assignor.name in ("range", "co-partitioned-sticky"):  # partitions of one number are together
        assert sorted(sizes, reverse=True) == [1000] * 1000 + [0] * 1000
    else:
        assert sizes == [500] * 2000
