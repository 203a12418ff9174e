"""Properties of `co-partitioned-sticky` in every group."""

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwright.assignors import (
    Assignment,
    CoPartitionedStickyAssignor,
    Group,
    Member,
    Topic,
    assign,
)
from groupwright.testing.assignors import check, random_groups

if TYPE_CHECKING:
    from assignors.tests.co_partitioned.conftest import CooperativeGroup, Reference

NAMES = ("audit", "orders", "payments", "refunds")
RACKS = ("east", "west")

topics = st.dictionaries(
    st.sampled_from(NAMES),
    st.integers(0, 5).flatmap(
        lambda size: st.builds(
            Topic,
            st.just(size),
            st.none() | st.lists(st.sets(st.sampled_from(RACKS)), min_size=size, max_size=size),
        )
    ),
)
members = st.builds(
    Member,
    st.just("id"),
    st.lists(st.sampled_from((*NAMES, "nowhere")), unique=True),
    owned=st.dictionaries(st.sampled_from((*NAMES, "nowhere")), st.lists(st.integers(-1, 6), unique=True)),
    generation=st.integers(-1, 2),
    instance_id=st.none(),
    rack=st.none() | st.sampled_from(RACKS),
    user_data=st.none() | st.binary(max_size=9),
)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    drawn = draw(st.lists(members, min_size=1, max_size=5))
    return Group(
        [
            Member(
                f"c{number}",
                member.topics,
                owned=member.owned,
                generation=member.generation,
                rack=member.rack,
                user_data=member.user_data,
            )
            for number, member in enumerate(drawn)
        ],
        draw(topics),
    )


list_of_each = st.none() | st.lists(st.integers(0, 2), min_size=4, max_size=4).map(
    lambda numbers: [
        [name for name, of_name in zip(NAMES, numbers, strict=True) if of_name == number]
        for number in range(2)
    ]
)


@pytest.mark.medium
@settings(deadline=None)
@given(groups(), list_of_each)
def test_a_bundle_has_one_owner_that_subscribes_to_all_of_it_and_the_balance_is_the_best(
    reference: "type[Reference]",
    cooperative: "type[CooperativeGroup]",
    group: Group,
    joined: list[list[str]] | None,
) -> None:
    assignment = cooperative(CoPartitionedStickyAssignor(joined, allow_unequal=True), joined).settle(group)
    known = reference(group, joined)
    assert known.score(assignment) == known.optimum()


@pytest.mark.medium
@settings(deadline=None)
@given(groups(), list_of_each, st.randoms(use_true_random=False))
def test_the_order_of_members_topics_and_lists_does_not_matter(
    group: Group,
    joined: list[list[str]] | None,
    rng: Random,
) -> None:
    def shuffled(lists: list[list[str]] | None) -> list[list[str]] | None:
        return lists and [rng.sample(names, len(names)) for names in rng.sample(lists, len(lists))]

    def run(group: Group, joined: list[list[str]] | None) -> Assignment:
        return assign(CoPartitionedStickyAssignor(joined, allow_unequal=True), group)

    other = Group(
        rng.sample(group.members, len(group.members)),
        dict(rng.sample(list(group.topics.items()), len(group.topics))),
    )
    assert run(other, shuffled(joined)) == run(group, joined)


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor",
    [
        CoPartitionedStickyAssignor(),
        CoPartitionedStickyAssignor([["topic-0", "topic-1"], ["topic-2", "topic-3"]], allow_unequal=True),
    ],
    ids=["default", "lists"],
)
def test_it_passes_the_test_kit(assignor: CoPartitionedStickyAssignor) -> None:
    report = check(assignor, random_groups(count=150), seed=5)
    assert report.most_rounds == 2
