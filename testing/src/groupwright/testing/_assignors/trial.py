"""Trial of an assignor on one group."""

import copy
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from groupwright.assignors import (
    Assignment,
    AssignmentQuality,
    Assignor,
    AssignorError,
    Group,
    GroupwrightError,
    PartitionsByTopic,
    Plan,
    RebalanceProtocol,
    SimulatedEvent,
    assign,
    evaluate,
    simulate,
    unassigned,
)


class FaultyAssignorError(GroupwrightError, AssertionError):
    """An assignor failed a test.

    Attributes:
        fault: A description of the fault.
        group: The group that it occurred with, as given to the leader.
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
        rounds: Number of rebalances until a cooperative assignor's group settled; 0 for others.
        seconds: The time of one assignment, including the checks of its result.
    """

    first: Assignment
    last: Assignment
    quality: AssignmentQuality
    rounds: int
    seconds: float


class Trial:
    """A group and the assignors of its members."""

    def __init__(
        self, assignor: Assignor, group: Group, number: int, *, allow_unassigned: bool = False
    ) -> None:
        """Prepare the trial.

        Args:
            assignor: The assignor, of which each member gets a copy.
            group: The group.
            number: The group's number, for messages.
            allow_unassigned: Whether partitions may have no owner.
        """
        self._assignor = assignor
        self._group = group
        self._given = group
        """The last group that a leader was given."""
        self._leader: _CheckedCopy | None = None
        self._number = number
        self._allow_unassigned = allow_unassigned

    def run(self, rounds: int) -> Outcome:
        """Run the trial.

        Args:
            rounds: How many rebalances a cooperative assignor may take.

        Raises:
            FaultyAssignorError: The assignor fails.
        """
        simulated = self._simulate(rounds)
        if not simulated.rebalances:  # a group without members has no leader
            return Outcome(simulated.assignment, simulated.assignment, evaluate(self._group, {}), 0, 0.0)
        joined, first = simulated.rebalances[0].group, simulated.rebalances[0].assignment
        seconds = self._expect_same(joined, first, "when it assigns the same group again")
        self._expect_same(
            _shuffled(joined, self._number),
            first,
            "when members, topics and subscriptions come in another order",
        )
        is_cooperative = RebalanceProtocol.COOPERATIVE in self._assignor.protocols
        if is_cooperative and not self._allow_unassigned:
            for rebalance in simulated.rebalances:
                withheld = unassigned(rebalance.group, rebalance.assignment, unclaimed=True)
                if withheld:
                    fault = f"withholds partitions that no member has: {withheld}"
                    raise self.fault(fault, rebalance.group)
        last = simulated.assignment
        left_out = unassigned(self._group, last)
        if left_out and not self._allow_unassigned:
            raise self.fault(f"leaves partitions unassigned: {left_out}", simulated.rebalances[-1].group)
        rebalances = len(simulated.rebalances) if is_cooperative else 0
        return Outcome(first, last, evaluate(self._group, last), rebalances, seconds)

    def seconds(self) -> float:
        """Return the time of one assignment, including the checks of its result.

        Raises:
            FaultyAssignorError: The assignor raises something, or its result is not an assignment of the
                group.
        """
        joined = self._simulate(rounds=8).rebalances[0].group
        return self._assigned(joined)[1]

    def _simulate(self, rounds: int) -> SimulatedEvent:
        with self.errors_as_faults("assign"):
            (simulated,) = simulate(
                self._group, lambda _: _CheckedCopy(self, self._assignor), max_rebalances=rounds
            )
        return simulated

    def on_lead(self, leader: "_CheckedCopy", group: Group) -> None:
        """Record the member that assigns, and a copy of the group that it is given."""
        self._leader = leader
        self._given = Group(group.members, dict(group.topics))

    def _assigned(self, group: Group) -> tuple[Assignment, float]:
        """Return a checked assignment by the last leader, and the time it took in seconds."""
        leader = self._leader
        if leader is None:
            raise RuntimeError("the group has had no rebalance")
        started = time.perf_counter()
        with self.errors_as_faults("assign"):
            assignment = assign(leader, group)
        return assignment, time.perf_counter() - started

    @contextmanager
    def errors_as_faults(self, method: str) -> Iterator[None]:
        """Turn every error in the block into a `FaultyAssignorError`, which names the method."""
        try:
            yield
        except FaultyAssignorError:
            raise
        except AssignorError as error:
            raise FaultyAssignorError(str(error), self._given, self._number) from error
        except Exception as error:
            raise self.fault(f"raises {error!r} from {method}") from error

    def _expect_same(self, group: Group, expected: Assignment, when: str) -> float:
        """Check that the assignor returns this assignment, and return the time it took in seconds."""
        assignment, seconds = self._assigned(group)
        for id_, share in expected.items():
            if assignment[id_] != share:
                raise self.fault(f"gives {id_!r} first {share}, and {when} {assignment[id_]}")
        return seconds

    def fault(self, does: str, group: Group | None = None) -> FaultyAssignorError:
        """Return a fault of the assignor, by default with the last group that a leader was given."""
        return FaultyAssignorError(
            f"assignor {self._assignor.name!r} {does}", group or self._given, self._number
        )


class _CheckedCopy(Assignor):
    """A member's copy of the assignor, whose errors name the method."""

    def __init__(self, trial: Trial, original: Assignor) -> None:
        self.name = original.name
        self.protocols = original.protocols
        self._trial = trial
        with trial.errors_as_faults("copy.deepcopy, which makes each member's assignor"):
            self._copy = copy.deepcopy(original)

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        with suppress(AttributeError):  # a frozen assignor
            self._copy.rebalance_protocol = self.rebalance_protocol
        with self._trial.errors_as_faults("user_data"):
            user_data = self._copy.user_data(topics)
        if not isinstance(user_data, bytes | None):
            raise self._trial.fault(f"returns {user_data!r} from user_data, which is neither bytes nor None")
        return user_data

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        with self._trial.errors_as_faults("on_assignment"):
            self._copy.on_assignment(assignment, generation)

    def assign(self, group: Group) -> Assignment | Plan:
        topics = dict(group.topics)
        self._trial.on_lead(self, group)
        try:
            return self._copy.assign(group)
        finally:
            if group.topics != topics:
                raise self._trial.fault("changes the group that it is given")


def _shuffled(group: Group, seed: int) -> Group:
    """Return the same group in another order."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    members = [
        replace(member, topics=tuple(rng.sample(member.topics, len(member.topics))))
        for member in rng.sample(group.members, len(group.members))
    ]
    topics = list(group.topics.items())
    return Group(members, dict(rng.sample(topics, len(topics))))
