"""The leader's plan, as the assignor's thread makes it. Only a member that leads imports this: numpy comes with it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    JoinedMember,
    Topic,
    perform_assignment,
    subscribed_topics,
    withhold_claimed,
)
from groupwright.assignors import assign as run_assignor
from groupwright.consumer._coordinator.assignment_stats import (
    MeasuredAssignor,
    PreviousAssignment,
    change_of_members,
)
from groupwright.consumer._protocol.rebalance import Leadership

__all__ = ["Planned", "make_plan", "subscribed_topics"]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan as bytes for each member, and what the leader can tell of it."""

    assignments: Mapping[str, bytes]
    leadership: Leadership | None
    change: str | None
    """How the group's members have changed, in words, where that is known."""
    made: PreviousAssignment | None
    """What the plan of the next generation is held against."""


def make_plan(
    assignor: Assignor,
    members: tuple[JoinedMember, ...],
    topics: Mapping[str, Topic],
    generation: int,
    before: PreviousAssignment | None,
    log: logging.LoggerAdapter[logging.Logger],
    *,
    cooperative: bool,
) -> Planned:
    """Run the assignor for this generation; `before` is the plan of the one before, if it was made here.

    Raises:
        Exception: whatever the assignor raised; `AssignorError` if its result is no assignment.
    """
    if cooperative and not isinstance(assignor, CooperativeStickyAssignor):
        assignor = _Checked(assignor)
    weighed = MeasuredAssignor(assignor, before, log)
    assignments = perform_assignment(weighed, members, topics)
    made = (
        None
        if weighed.assignment is None
        else PreviousAssignment(generation, frozenset(assignments), weighed.assignment)
    )
    return Planned(assignments, weighed.leadership, change_of_members(before, assignments), made)


class _Checked(Assignor):
    """An assignor of somebody's own, which in a cooperative group must not give away what is still owned (KIP-429)."""

    def __init__(self, assignor: Assignor) -> None:
        self.name = assignor.name
        self.protocols = assignor.protocols
        self._assignor = assignor

    def assign(self, group: Group) -> Assignment:
        plan = run_assignor(self._assignor, group)
        safe = withhold_claimed(group, plan)
        for member, partitions in plan.items():
            for topic, numbers in partitions.items():
                early = sorted(set(map(int, numbers)).difference(map(int, safe[member].get(topic, ()))))
                if early:
                    raise AssignorError(
                        f"assignor {self.name!r} rebalances cooperatively, but gives {topic!r} [{early[0]}] to {member!r} "
                        "while another member owns it: return withhold_claimed(group, plan) instead of the plan"
                    )
        return plan
