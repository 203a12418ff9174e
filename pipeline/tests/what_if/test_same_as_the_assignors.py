"""Plans are worked out on numbered members, and remembered. They must be what the assignors themselves give.

The assignors are asked here as a real group asks them: real names, an instance a member, user data in bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from groupwright.assignors import (
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topic,
    assign,
    evaluate,
)
from groupwright.pipeline._what_if.history import TopicMetadata

OURS = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
MEASURES = (
    "generation",
    "members",
    "partitions",
    "moved",
    "min_moves",
    "imbalance",
    "topic_spread",
    "rack_mismatches",
    "rounds",
)
RACKS = ("r1", "r2", "r3")


def some_history(past: Any, random: np.random.Generator, *, mixed: bool, racks: bool) -> Any:
    """Make a random history in which members come and go; return what is known of its topics."""
    topics = {f"topic-{n}": TopicMetadata(int(size)) for n, size in enumerate(random.integers(1, 9, 3))}
    if racks:
        topics = {
            name: TopicMetadata(
                known.partitions, tuple((RACKS[(n + p) % 3], RACKS[p % 3]) for p in range(known.partitions))
            )
            for n, (name, known) in enumerate(topics.items())
        }
    members = [f"m-{serial}" for serial in random.permutation(9)[:4].tolist()]
    for generation in range(1, 9):
        if random.random() < 0.5 and len(members) > 1:
            members.pop(int(random.integers(len(members))))
        if random.random() < 0.6:
            members.append(f"m-{generation * 10 + int(random.integers(9))}")
        wanted = {m: sorted(topics)[: 1 + (hash_of(m) % 3 if mixed else 2)] for m in members}
        past.generation(
            generation,
            {member: {} for member in members},
            subscribed=wanted,
            racks={m: RACKS[hash_of(m) % 3] for m in members} if racks else None,
            instances={m: f"host-{99 - hash_of(m) % 50}-{m}" for m in members if hash_of(m) % 4 == 0},
        )
    return topics


def hash_of(member: str) -> int:
    return sum(member.encode())


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True], ids=["all-subscribe-alike", "subscriptions-differ"])
@pytest.mark.parametrize("racks", [False, True], ids=["no-racks", "racks"])
@pytest.mark.parametrize("seed", range(4))
def test_ours_give_what_they_give_when_played_as_a_users_own(
    past: Any, mixed: Any, racks: Any, seed: Any
) -> None:
    topics = some_history(past, np.random.default_rng(seed), mixed=mixed, racks=racks)
    ours = past.play(*(assignor.name for assignor in OURS), topics=topics)
    own = past.play(*OURS, topics=topics)
    for assignor in OURS:
        assert [[row[name] for name in (*MEASURES, "error")] for row in ours[assignor.name]] == [
            [row[name] for name in (*MEASURES, "error")] for row in own[assignor.name]
        ]


@pytest.mark.parametrize("racks", [False, True], ids=["no-racks", "racks"])
def test_the_measures_are_those_of_the_assignors_part(past: Any, racks: Any) -> None:
    topics = some_history(past, np.random.default_rng(11), mixed=True, racks=racks)
    rows = past.play("range", topics=topics)["range"]
    known = {name: Topic(topic.partitions, topic.racks) for name, topic in topics.items()}
    before: dict[str, PartitionsByTopic] = {}
    for row, members in zip(rows, members_of(past), strict=True):
        group = Group(members, known)
        given = assign(RangeAssignor(), group)
        expected = evaluate(group, given, before)
        assert (row["moved"], row["min_moves"], row["imbalance"]) == (
            expected.moves,
            expected.min_moves,
            expected.imbalance,
        )
        assert row["topic_spread"] == pytest.approx(np.mean(list(expected.spreads.values())))
        assert row["rack_mismatches"] == (expected.rack_mismatches if racks else None)
        before = dict(given)


def members_of(past: Any) -> list[Sequence[Member]]:
    generations: dict[int, list[Member]] = {}
    for row in past.rows:
        if "member_id" in row:
            generations.setdefault(row["generation"], []).append(
                Member(row["member_id"], row["subscribed"], rack=row["rack"], instance_id=row["instance_id"])
            )
    return list(generations.values())
