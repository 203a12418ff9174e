"""Assignment statistics of the group's leader: partitions moved, imbalance, members joined and left.

Eager members claim no partitions when they join. The previous owners are then those of this leader's own assignment in
the previous generation; if there was none, no partition counts as moved.

Only a member that leads imports this module, since it imports numpy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from groupwright.assignors import Assignment, Group, evaluate
from groupwright.consumer._protocol.rebalance import Leadership

_MAX_SIZE = 500_000
"""Limit on partitions plus (member, topic) pairs of a group that is evaluated, which takes up to about 0.1 s."""


@dataclass(frozen=True, slots=True)
class PreviousAssignment:
    """An assignment that this member made as the leader.

    Attributes:
        generation: The generation that it was made for.
        members: The ids of the group's members.
        assignment: The assignment.
    """

    generation: int
    members: frozenset[str]
    assignment: Assignment


def evaluate_assignment(
    group: Group, assignment: Assignment, previous: PreviousAssignment | None
) -> Leadership | None:
    """Return the quality of an assignment, or None if the group is too large to evaluate.

    Args:
        group: The group.
        assignment: Its assignment, checked already.
        previous: The assignment of the previous generation, if this member made it. It counts only where no member
            claims any partitions.
    """
    partitions = sum(topic.partitions for topic in group.topics.values())
    if len(group.members) * len(group.topics) + partitions > _MAX_SIZE:
        return None
    has_claims = any(member.owned for member in group.members)
    before = None if has_claims or previous is None else previous.assignment
    quality = evaluate(group, assignment, before, is_checked=True)
    return Leadership(
        members=len(group.members),
        moved=quality.moves,
        moves_needed=quality.min_moves,
        imbalance=max(0, quality.imbalance - quality.min_imbalance),
    )


def change_of_members(previous: PreviousAssignment | None, members: Iterable[str]) -> str | None:
    """Describe which members joined and left since the previous generation; None if none did, or that is unknown."""
    if previous is None:
        return None
    old, new = previous.members, frozenset(members)
    parts = [f"{_count(ids)} {verb}" for verb, ids in (("joined", new - old), ("left", old - new)) if ids]
    return " and ".join(parts) or None


def _count(ids: frozenset[str]) -> str:
    return "a member" if len(ids) == 1 else f"{len(ids)} members"
