"""Replay with a custom assignor: each member has an instance, whose `on_assignment` is called."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors import (
    NO_GENERATION,
    UNASSIGNED,
    Assignment,
    Assignor,
    AssignorError,
    Group,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    Topic,
    assign,
)
from groupwright.pipeline._what_if.group_shape import Owners
from groupwright.pipeline._what_if.history import History, RecordedGeneration
from groupwright.pipeline._what_if.plan_cache import NotSettledError

_MOST_ROUNDS = 8


@dataclass(slots=True)
class CustomAssignor:
    """Replays one history with a custom assignor.

    Attributes:
        make: Returns an instance for a member.
        history: The group's history.
        instances: The assignor's instances by member identity. A static member that returns keeps its
            assignment, and so its instance.
        generation: The last generation replayed.
    """

    make: Callable[[], Assignor]
    history: History
    instances: dict[int, Assignor] = field(default_factory=dict)
    generation: int = NO_GENERATION

    def play(self, past: RecordedGeneration, owned: Owners) -> tuple[Owners, int]:
        """Return the final owners, and the number of rebalances until then.

        Args:
            past: The generation.
            owned: `(partitions,) int32`, owners at its start.

        Raises:
            AssignorError: The result is not a valid assignment.
            NotSettledError: The assignor is cooperative and does not stop withholding partitions.
            Exception: Any exception of the assignor.
        """
        identities = past.identities.tolist()
        self.instances = {who: self.instances.get(who) or self.make() for who in identities}
        leader = self.instances[identities[0]]
        is_cooperative = RebalanceProtocol.COOPERATIVE in leader.protocols
        before = self.generation
        self.generation = past.number
        for rounds in range(1, _MOST_ROUNDS + 1):
            group = self._group(past, owned if is_cooperative else np.full_like(owned, UNASSIGNED), before)
            assignment = assign(leader, group)
            given = self._owners(past, assignment)
            for who, member in zip(identities, past.members, strict=True):
                self.instances[who].on_assignment(assignment[member.id], past.number)
            if not is_cooperative:
                return given, rounds
            self._check_withholding(past, owned, given)
            if not ((owned != UNASSIGNED) & (given == UNASSIGNED)).any():
                return given, rounds
            owned, before = given, past.number
        raise NotSettledError(f"the assignor still withholds partitions after {_MOST_ROUNDS} rebalances")

    def _group(self, past: RecordedGeneration, owned: Owners, generation: int) -> Group:
        starts, sizes = self._starts(past)
        names = [self.history.topics[topic] for topic in past.topics]
        key = past.key
        racks = key.topic_racks if key and key.topic_racks else (None,) * len(names)
        members = []
        for place, (who, member) in enumerate(zip(past.identities.tolist(), past.members, strict=True)):
            subscribed = self.history.subscriptions[member.subscription]
            claims = _by_topic(np.flatnonzero(owned == place), names, starts)
            members.append(
                Member(
                    member.id,
                    subscribed,
                    owned=claims,
                    generation=generation if claims else NO_GENERATION,
                    instance_id=member.instance_id,
                    rack=member.rack,
                    user_data=self.instances[who].user_data(frozenset(subscribed)),
                )
            )
        topics = {
            name: Topic(size, of_topic) for name, size, of_topic in zip(names, sizes, racks, strict=True)
        }
        return Group(members, topics)

    def _owners(self, past: RecordedGeneration, assignment: Assignment) -> Owners:
        starts, _ = self._starts(past)
        start_of = {
            self.history.topics[topic]: start for topic, start in zip(past.topics, starts, strict=False)
        }
        owners = np.full(past.places.size, UNASSIGNED, np.int32)
        for place, member in enumerate(past.members):
            for topic, partitions in assignment[member.id].items():
                owners[start_of[topic] + partitions] = place
        return owners

    def _starts(self, past: RecordedGeneration) -> tuple[list[int], list[int]]:
        sizes = list(past.key.sizes) if past.key else []
        return np.cumsum([0, *sizes]).tolist(), sizes

    def _check_withholding(self, past: RecordedGeneration, owned: Owners, given: Owners) -> None:
        """Check that no partition is assigned while another member owns it (KIP-429)."""
        wrong = np.flatnonzero((owned != UNASSIGNED) & (given != UNASSIGNED) & (given != owned))
        if wrong.size:
            place = int(wrong[0])
            starts, _ = self._starts(past)
            topic = int(np.searchsorted(starts, place, side="right")) - 1
            raise AssignorError(
                f"the assignor is cooperative, but assigns partition {place - starts[topic]} of "
                f"{self.history.topics[past.topics[topic]]!r} to {past.members[given[place]].id!r} while "
                f"{past.members[owned[place]].id!r} still owns it"
            )


def _by_topic(
    places: np.ndarray[tuple[int], np.dtype[np.intp]], names: list[str], starts: list[int]
) -> PartitionsByTopic:
    bounds = np.searchsorted(places, starts)
    return PartitionsByTopic(
        {
            name: places[bounds[n] : bounds[n + 1]] - starts[n]
            for n, name in enumerate(names)
            if bounds[n] < bounds[n + 1]
        }
    )
