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
from groupwright.pipeline._what_if.assignment_cache import NotConvergedError
from groupwright.pipeline._what_if.group_shape import Owners
from groupwright.pipeline._what_if.history import History, RecordedGeneration

_MAX_ROUNDS = 8


@dataclass(slots=True)
class CustomAssignor:
    """Replays one history with a custom assignor.

    Attributes:
        make: Returns an instance for a member.
        history: The group's history.
        instances: The assignor's instances by member identity. Static members keep theirs, with its state,
            across restarts.
        last_generation: The last generation replayed.
    """

    make: Callable[[], Assignor]
    history: History
    instances: dict[int, Assignor] = field(default_factory=dict)
    last_generation: int = NO_GENERATION

    def replay(self, recorded: RecordedGeneration, owned: Owners) -> tuple[Owners, int]:
        """Return the final owners, and the number of rebalances until then.

        Args:
            recorded: The generation; its number must be higher than that of the last call.
            owned: `(partitions,) int32`, owners before the generation.

        Raises:
            AssignorError: The result is not a valid assignment.
            NotConvergedError: The assignor is cooperative, and still withholds partitions after 8 rebalances.
            Exception: Any exception of the assignor.
        """
        identities = recorded.identities.tolist()
        self.instances = {identity: self.instances.get(identity) or self.make() for identity in identities}
        leader = self.instances[identities[0]]
        is_cooperative = RebalanceProtocol.COOPERATIVE in leader.protocols
        claim_generation = self.last_generation
        self.last_generation = recorded.number
        for rounds in range(1, _MAX_ROUNDS + 1):
            claimed = owned if is_cooperative else np.full_like(owned, UNASSIGNED)
            group = self._group(recorded, claimed, claim_generation)
            assignment = assign(leader, group)
            assigned = self._owners(recorded, assignment)
            for identity, member in zip(identities, recorded.members, strict=True):
                self.instances[identity].on_assignment(assignment[member.id], recorded.number)
            if not is_cooperative:
                return assigned, rounds
            self._check_withholding(recorded, owned, assigned)
            if not ((owned != UNASSIGNED) & (assigned == UNASSIGNED)).any():
                return assigned, rounds
            owned, claim_generation = assigned, recorded.number
        raise NotConvergedError(f"the assignor still withholds partitions after {_MAX_ROUNDS} rebalances")

    def _group(self, recorded: RecordedGeneration, claimed: Owners, claim_generation: int) -> Group:
        starts, sizes = self._starts(recorded)
        names = [self.history.topics[topic] for topic in recorded.topics]
        key = recorded.key
        racks = key.topic_racks if key and key.topic_racks else (None,) * len(names)
        members = []
        identities = recorded.identities.tolist()
        for position, (identity, member) in enumerate(zip(identities, recorded.members, strict=True)):
            subscribed = self.history.subscriptions[member.subscription]
            claims = _by_topic(np.flatnonzero(claimed == position), names, starts)
            members.append(
                Member(
                    member.id,
                    subscribed,
                    owned=claims,
                    generation=claim_generation if claims else NO_GENERATION,
                    instance_id=member.instance_id,
                    rack=member.rack,
                    user_data=self.instances[identity].user_data(frozenset(subscribed)),
                )
            )
        topics = {
            name: Topic(size, topic_racks)
            for name, size, topic_racks in zip(names, sizes, racks, strict=True)
        }
        return Group(members, topics)

    def _owners(self, recorded: RecordedGeneration, assignment: Assignment) -> Owners:
        starts, _ = self._starts(recorded)
        start_of = {
            self.history.topics[topic]: start for topic, start in zip(recorded.topics, starts, strict=False)
        }
        owners = np.full(recorded.partition_indices.size, UNASSIGNED, np.int32)
        for position, member in enumerate(recorded.members):
            for topic, partitions in assignment[member.id].items():
                owners[start_of[topic] + partitions] = position
        return owners

    def _starts(self, recorded: RecordedGeneration) -> tuple[list[int], list[int]]:
        sizes = list(recorded.key.sizes) if recorded.key else []
        return np.cumsum([0, *sizes]).tolist(), sizes

    def _check_withholding(self, recorded: RecordedGeneration, owned: Owners, assigned: Owners) -> None:
        """Check that no partition is assigned while another member owns it (KIP-429)."""
        wrong = np.flatnonzero((owned != UNASSIGNED) & (assigned != UNASSIGNED) & (assigned != owned))
        if wrong.size:
            index = int(wrong[0])
            starts, _ = self._starts(recorded)
            topic = int(np.searchsorted(starts, index, side="right")) - 1
            new_owner, owner = recorded.members[assigned[index]], recorded.members[owned[index]]
            raise AssignorError(
                f"the assignor is cooperative, but assigns partition {index - starts[topic]} of "
                f"{self.history.topics[recorded.topics[topic]]!r} to {new_owner.id!r} while {owner.id!r} "
                "still owns it"
            )


def _by_topic(
    partition_indices: np.ndarray[tuple[int], np.dtype[np.intp]], names: list[str], starts: list[int]
) -> PartitionsByTopic:
    bounds = np.searchsorted(partition_indices, starts)
    return PartitionsByTopic(
        {
            name: partition_indices[bounds[n] : bounds[n + 1]] - starts[n]
            for n, name in enumerate(names)
            if bounds[n] < bounds[n + 1]
        }
    )
