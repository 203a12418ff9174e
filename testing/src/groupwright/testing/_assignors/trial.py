"""Trial of an assignor on one group."""

import copy
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from groupwright.assignors import (
    NO_GENERATION,
    Assignment,
    AssignmentQuality,
    Assignor,
    AssignorError,
    Group,
    GroupwrightError,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    assign,
    evaluate,
    unassigned,
)

_Partition = tuple[str, int]


class FaultyAssignorError(GroupwrightError, AssertionError):
    """An assignor failed a test.

    Attributes:
        fault: A description of the fault.
        group: The group that it occurred with.
        number: The index of this group among those tested.
    """

    def __init__(self, fault: str, group: Group, number: int) -> None:
        """Store the fault and the group separately."""
        super().__init__(fault, group, number)
        self.fault = fault
        self.group = group
        self.number = number

    def __str__(self) -> str:
        """Describe the fault and the group."""
        members = "".join(f"\n  {member}" for member in self.group.members)
        topics = "".join(f"\n  {name!r}: {topic}" for name, topic in self.group.topics.items())
        return (
            f"{self.fault}\nThis is group {self.number} of those tested. Members:{members}\nTopics:{topics}"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a trial.

    Attributes:
        first: The first assignment.
        last: The assignment after the last rebalance; the first one unless the assignor is cooperative.
        quality: The quality of the last assignment.
        rounds: The rebalances that a cooperative assignor took; 0 for others.
        seconds: The time of the first assignment, including the checks of its result.
    """

    first: Assignment
    last: Assignment
    quality: AssignmentQuality
    rounds: int
    seconds: float


class Trial:
    """A group and the assignors of its members."""

    def __init__(self, assignor: Assignor, group: Group, number: int, *, may_leave_out: bool = False) -> None:
        """Give each member a copy of the assignor, and notify it of the owned partitions.

        Args:
            assignor: The assignor.
            group: The group.
            number: The group's number, for messages.
            may_leave_out: Whether partitions may have no owner.
        """
        self._assignor = assignor
        self._group = group
        self._number = number
        self._may_leave_out = may_leave_out
        self._is_cooperative = RebalanceProtocol.COOPERATIVE in assignor.protocols
        self._of_members = {member.id: copy.deepcopy(assignor) for member in group.members}
        for member in group.members:
            if member.owned or member.generation != NO_GENERATION:
                self._notify(member.id, member.owned, member.generation)

    def run(self, rounds: int) -> Outcome:
        """Run the trial.

        Args:
            rounds: How many rebalances a cooperative assignor may take.

        Raises:
            FaultyAssignorError: The assignor fails.
        """
        joined = self._joined(self._group)
        first, seconds = self._assigned(joined)
        self._expect_same(joined, first, "when it is asked again")
        self._expect_same(
            _shuffled(joined, self._number),
            first,
            "when members, topics and subscriptions come in another order",
        )
        if self._is_cooperative:
            last, took = self._settled(joined, first, rounds)
        else:
            last, took = first, 0
        left_out = unassigned(self._group, last)
        if left_out and not self._may_leave_out:
            raise self._fault(f"gives partitions to nobody: {left_out}")
        return Outcome(first, last, evaluate(self._group, last), took, seconds)

    def seconds(self) -> float:
        """Return the time of one assignment, including the checks of its result.

        Raises:
            FaultyAssignorError: The assignor raises something, or its result is not an assignment of the
                group.
        """
        return self._assigned(self._joined(self._group))[1]

    def _joined(self, group: Group) -> Group:
        """Return the group as its leader decodes it from JoinGroup."""
        return Group([self._join(member) for member in group.members], group.topics)

    def _join(self, member: Member) -> Member:
        user_data = member.user_data
        if user_data is None:
            with self._blaming("user_data"):
                user_data = self._of_members[member.id].user_data(frozenset(member.topics))
            if not isinstance(user_data, bytes | None):
                raise self._fault(f"returns {user_data!r} from user_data, which is neither bytes nor None")
        owned = member.owned if self._is_cooperative else PartitionsByTopic()
        return replace(member, owned=owned, user_data=user_data)

    def _notify(self, id_: str, share: PartitionsByTopic, generation: int) -> None:
        with self._blaming("on_assignment"):
            self._of_members[id_].on_assignment(share, generation)

    def _assigned(self, group: Group) -> tuple[Assignment, float]:
        """Return a checked assignment, and the time it took in seconds."""
        topics = dict(group.topics)
        started = time.perf_counter()
        try:
            with self._blaming("assign"):
                assignment = assign(self._assignor, group)
            return assignment, time.perf_counter() - started
        finally:
            if group.topics != topics:
                raise self._fault("changes the group that it is given")

    @contextmanager
    def _blaming(self, method: str) -> Iterator[None]:
        """Turn every error into a `FaultyAssignorError`."""
        try:
            yield
        except AssignorError as error:
            raise FaultyAssignorError(str(error), self._group, self._number) from error
        except Exception as error:
            raise self._fault(f"raises {error!r} from {method}") from error

    def _expect_same(self, group: Group, expected: Assignment, when: str) -> None:
        assignment, _ = self._assigned(group)
        for id_, share in expected.items():
            if assignment[id_] != share:
                raise self._fault(f"gives {id_!r} first {share}, and {when} {assignment[id_]}")

    def _settled(self, joined: Group, assignment: Assignment, rounds: int) -> tuple[Assignment, int]:
        """Rebalance until no member has to revoke partitions; return the last assignment and the rounds."""
        took = 1
        while True:
            self._check_handover(joined, assignment)
            lost = next(_revoked(joined, assignment), None)
            if lost is None:
                return assignment, took
            if took == rounds:
                raise self._fault(
                    f"does not settle: in rebalance {took}, {lost[0]!r} still has to revoke {lost[1]}"
                )
            joined = self._joined_again(joined, assignment)
            assignment, _ = self._assigned(joined)
            took += 1

    def _check_handover(self, group: Group, assignment: Assignment) -> None:
        """Check that no owned partition is assigned to another member, and no free partition withheld."""
        claimants: dict[_Partition, list[Member]] = {}
        for member in group.members:
            for place in _places(member.owned):
                claimants.setdefault(place, []).append(member)
        for member in group.members:
            for place in _places(assignment[member.id]):
                rivals = _rivals(member, claimants.get(place, []))
                if rivals:
                    raise self._fault(
                        f"gives partition {place[1]} of {place[0]!r} to {member.id!r} "
                        f"while {rivals[0]!r} has it"
                    )
        for topic, partition in _places(unassigned(group, assignment)):
            if (topic, partition) not in claimants and not self._may_leave_out:
                raise self._fault(f"withholds partition {partition} of {topic!r}, which nobody has")

    def _joined_again(self, joined: Group, assignment: Assignment) -> Group:
        """Return the group of the next rebalance, in which members own their assignments."""
        generation = 1 + max(member.generation for member in joined.members)
        for id_, share in assignment.items():
            self._notify(id_, share, generation)
        members = [
            replace(member, owned=assignment[member.id], generation=generation)
            for member in self._group.members
        ]
        return self._joined(Group(members, self._group.topics))

    def _fault(self, does: str) -> FaultyAssignorError:
        return FaultyAssignorError(f"assignor {self._assignor.name!r} {does}", self._group, self._number)


def _places(partitions: PartitionsByTopic) -> Iterator[_Partition]:
    return ((topic, partition) for topic, array in partitions.items() for partition in array.tolist())


def _rivals(member: Member, claimants: Sequence[Member]) -> list[str]:
    """Return the other claimants whose claim is not older than the member's."""
    since = member.generation if member in claimants else NO_GENERATION
    return [rival.id for rival in claimants if rival.id != member.id and rival.generation >= since]


def _revoked(group: Group, assignment: Assignment) -> Iterator[tuple[str, PartitionsByTopic]]:
    """Yield the members that have to revoke partitions, and these partitions."""
    for member in group.members:
        kept = assignment[member.id]
        lost = PartitionsByTopic(
            {
                topic: np.setdiff1d(partitions, kept.get(topic, ()))
                for topic, partitions in member.owned.items()
            }
        )
        if lost:
            yield member.id, lost


def _shuffled(group: Group, seed: int) -> Group:
    """Return the same group in another order."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    members = [
        replace(member, topics=tuple(rng.sample(member.topics, len(member.topics))))
        for member in rng.sample(group.members, len(group.members))
    ]
    topics = list(group.topics.items())
    return Group(members, dict(rng.sample(topics, len(topics))))
