"""Java's sticky assignors on the same groups: ours is never less even, nor moves more if equally even."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Assignment,
    Group,
    JoinedMember,
    Member,
    StickyAssignor,
    decode_assignment,
    perform_assignment,
)
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.conftest import Jvm
    from assignors.tests.sticky.conftest import CooperativeGroup, Reference

pytestmark = pytest.mark.kafka

Joined = Callable[[Group], list[JoinedMember]]
Make = Callable[[random.Random, int], Group]


def javas(jvm: "Jvm", assignor: str, group: Group, members: list[JoinedMember]) -> Assignment:
    counts = {name: topic.partitions for name, topic in group.topics.items()}
    answers = jvm.perform_assignment(assignor, members, counts)
    return Assignment({id_: decode_assignment(data).partitions for id_, data in answers.items()})


def comparable(group: Group) -> Group:
    """Return the group without racks, which the driver's cluster has not, and without the boldest lies.

    Java gives partitions that do not exist, or that a member does not subscribe to any more, to members that
    claim them, and fails with an exception at some others.
    """
    sizes = {name: topic.partitions for name, topic in group.topics.items()}
    members = [
        Member(
            member.id,
            member.topics,
            owned={
                topic: [number for number in partitions.tolist() if 0 <= number < sizes.get(topic, 0)]
                for topic, partitions in member.owned.items()
                if topic in member.topics
            },
            generation=member.generation,
        )
        for member in group.members
    ]
    return Group(members, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
def test_a_java_leader_of_sticky_is_never_more_even_and_never_moves_less(
    jvm: "Jvm",
    reference: "type[Reference]",
    seeded: Callable[[int], random.Random],
    eagerly: Callable[[Group], Group],
    joined: Joined,
    arbitrary_group: Callable[[random.Random], Group],
    eventful_group: Make,
    block: int,
) -> None:
    less_even = moves_more = 0
    for seed in range(500 * block, 500 * (block + 1)):
        rng = seeded(seed)
        group = comparable(arbitrary_group(rng) if seed % 3 else eventful_group(rng, 1 + seed % 5))
        members = joined(eagerly(group))
        counts = {name: topic.partitions for name, topic in group.topics.items()}
        answers = perform_assignment(StickyAssignor(), members, counts)
        ours = Assignment({id_: decode_assignment(data).partitions for id_, data in answers.items()})
        theirs = javas(jvm, "sticky", group, members)
        mine, java = reference.score(group, ours), reference.score(group, theirs)
        assert mine <= java, seed
        less_even += mine.squares < java.squares
        moves_more += mine.squares == java.squares and mine.moved < java.moved
    assert less_even > 12, "Java's stops at a local optimum"
    assert moves_more > 50


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
def test_a_java_group_of_cooperative_sticky_never_comes_to_rest_any_better(
    jvm: "Jvm",
    reference: "type[Reference]",
    cooperative: "CooperativeGroup",
    seeded: Callable[[int], random.Random],
    joined: Joined,
    eventful_group: Make,
    block: int,
) -> None:
    for seed in range(125 * block, 125 * (block + 1)):
        group = comparable(eventful_group(seeded(30_000 + seed), 1 + seed % 5))
        mine = reference.score(group, cooperative.settle(group))
        java = group
        for generation in range(100, 110):
            assignment = javas(jvm, "cooperative-sticky", java, joined(java))
            at_rest = all(member.owned == assignment[member.id] for member in java.members)
            java = cooperative.rejoined(java, assignment, generation)
            if at_rest:
                assert mine <= reference.score(group, assignment), seed
                break
        else:
            pytest.fail(f"Java's group does not come to rest: {seed}")


def test_java_leads_a_group_of_our_members_and_we_one_of_its(
    jvm: "Jvm", joined: Joined, eagerly: Callable[[Group], Group]
) -> None:
    """What members of `sticky` had stands in the user data, in the same bytes for both."""
    owned = ({"a": [0, 2], "b": [1]}, {"a": [1], "b": [0, 2]})
    group = Group(
        [Member(f"c{number}", ["a", "b"], owned=had, generation=7) for number, had in enumerate(owned)],
        {"a": 3, "b": 3},
    )
    members = joined(eagerly(group))
    assert javas(jvm, "sticky", group, members) == dict(zip(("c0", "c1"), owned, strict=True))
    assert StickyAssignor().assign(eagerly(group)) == dict(zip(("c0", "c1"), owned, strict=True))
