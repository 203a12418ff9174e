"""What the group's leader can tell of a plan that it has made: moves, evenness, and who came and went.

An eager member claims nothing when it joins. So the plan that this leader made for the generation before, if it did,
says who had what; without either nothing counts as moved.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from groupwright.assignors import Assignment, Assignor, AssignorError, Group, evaluate
from groupwright.consumer._protocol.rebalance import Leadership

_LARGEST = 500_000
"""Partitions, and pairs of members and topics, that are looked at: at most some 0.1 s before SyncGroup is sent."""


@dataclass(frozen=True, slots=True)
class PreviousAssignment:
    """A plan that was made here, and for which generation."""

    generation: int
    members: frozenset[str]
    assignment: Assignment


class MeasuredAssignor(Assignor):
    """An assignor whose plan is weighed as soon as it is made, on the assignor's own thread."""

    def __init__(
        self,
        assignor: Assignor,
        before: PreviousAssignment | None,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        """Run `assignor`; `before` is the plan of the generation before, if that was made here."""
        self.name = assignor.name
        self.protocols = assignor.protocols
        self.leadership: Leadership | None = None
        """None until a plan is made, and of a group that is too large."""
        self.assignment: Assignment | None = None
        self._assignor = assignor
        self._before = before
        self._log = log

    def assign(self, group: Group) -> Assignment:
        """Return the plan, unchanged."""
        plan = self._assignor.assign(group)
        if not isinstance(plan, Assignment):
            plan = Assignment(plan, members=[member.id for member in group.members])
        self.assignment = plan
        try:
            self.leadership = self._weigh(group, plan)
        except AssignorError:
            pass  # it is no assignment of this group, which is about to be said to the application
        except Exception:  # noqa: BLE001 - the group must get its plan
            self._log.exception(
                "the plan of the assignor %r could not be weighed; going on without it", self.name
            )
        return plan

    def _weigh(self, group: Group, plan: Assignment) -> Leadership | None:
        if len(group.members) * len(group.topics) + _partitions(group) > _LARGEST:
            return None
        claimed = any(member.owned for member in group.members)
        measures = evaluate(group, plan, None if claimed or self._before is None else self._before.assignment)
        return Leadership(
            members=len(group.members),
            moved=measures.moved,
            moves_needed=measures.best_moved,
            imbalance=max(0, measures.imbalance - measures.best_imbalance),
        )


def change_of_members(before: PreviousAssignment | None, members: Iterable[str]) -> str | None:
    """Say who came and went since the plan of the generation before; None where that is not known, or nobody."""
    if before is None:
        return None
    old, new = before.members, frozenset(members)
    parts = [
        f"{_count(names)} {verb}" for verb, names in (("joined", new - old), ("left", old - new)) if names
    ]
    return " and ".join(parts) or None


def _count(names: frozenset[str]) -> str:
    return "a member" if len(names) == 1 else f"{len(names)} members"


def _partitions(group: Group) -> int:
    return sum(topic.partitions for topic in group.topics.values())
