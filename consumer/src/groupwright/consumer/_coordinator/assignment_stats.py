"""Assignment statistics of the group's leader: partitions moved, imbalance, loads.

Eager members claim no partitions when they join. The previous owners are then those of this leader's own
assignment in the previous generation; if there was none, no partition counts as moved.

Only a member that leads imports this module, since it imports numpy.
"""

from __future__ import annotations

from groupwright.assignors import Assignment, Group, evaluate, evaluate_load
from groupwright.core import GroupLoad, Leadership

_MAX_SIZE = 500_000
"""Limit on partitions plus (member, topic) pairs of a group; evaluating one takes up to about 0.1 s, and
as long again with weights."""


def evaluate_assignment(
    group: Group, assignment: Assignment, previous: Assignment | None
) -> Leadership | None:
    """Return the quality of an assignment, or None if the group is too large to evaluate.

    Args:
        group: The group.
        assignment: Its assignment, checked already.
        previous: The assignment of the previous generation, if this member made it. It counts only where no
            member claims any partitions.
    """
    partitions = sum(topic.partitions for topic in group.topics.values())
    if len(group.members) * len(group.topics) + partitions > _MAX_SIZE:
        return None
    has_claims = any(member.owned for member in group.members)
    before = None if has_claims else previous
    quality = evaluate(group, assignment, before, is_checked=True)
    return Leadership(
        members=len(group.members),
        moved=quality.moves,
        min_moves=quality.min_moves,
        imbalance=max(0, quality.imbalance - quality.min_imbalance),
        load=_load(group, assignment, before),
    )


def _load(group: Group, assignment: Assignment, before: Assignment | None) -> GroupLoad | None:
    """Return the members' loads, or None if no topic has weights."""
    if all(topic.weights is None for topic in group.topics.values()):
        return None
    report = evaluate_load(group, assignment, before)
    return GroupLoad(
        loads=report.loads,
        busiest=max(report.loads, key=lambda id_: report.loads[id_] / report.capacities[id_]),
        peak=report.peak_over_average,
        bound=report.bound_over_average,
        moved_load=report.moved_weight,
    )
