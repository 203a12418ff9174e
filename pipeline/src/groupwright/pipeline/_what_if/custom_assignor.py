"""Replay with a custom assignor: each member has an instance, whose `on_assignment` is called."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors import (
    NO_GENERATION,
    UNASSIGNED,
    Assignment,
    Assignor,
    Group,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    Topic,
    simulate,
)
from groupwright.pipeline._what_if.group_shape import Owners
from groupwright.pipeline._what_if.history import History, RecordedGeneration


@dataclass(slots=True)
class CustomAssignor:
    """Replays one history with a custom assignor.

    Attributes:
        make: Returns an instance for a member.
        history: The group's history.
        instances: The assignor's instances by member identity. Static members keep theirs, with its state,
            across restarts.
        last_generation: The generation of the last assignment, counted by the simulation.
    """

    make: Callable[[], Assignor]
    history: History
    instances: dict[int, Assignor] = field(default_factory=dict)
    last_generation: int = NO_GENERATION

    @property
    def is_cooperative(self) -> bool:
        """True if the assignor rebalances cooperatively."""
        return RebalanceProtocol.COOPERATIVE in self.make().protocols

    def replay(self, recorded: RecordedGeneration, owned: Owners) -> tuple[Owners, int, int]:
        """Return the final owners, the number of rebalances until then, and that of revoked partitions.

        Args:
            recorded: The generation; its number must be higher than that of the last call.
            owned: `(partitions,) int32`, owners before the generation.

        Raises:
            AssignorError: The result is not a valid assignment, or the group does not settle.
            Exception: Any exception of the assignor.
        """
        identities = recorded.identities.tolist()
        self.instances = {identity: self.instances.get(identity) or self.make() for identity in identities}
        instance_of = {
            member.id: self.instances[identity]
            for identity, member in zip(identities, recorded.members, strict=True)
        }
        (simulated,) = simulate(self._group(recorded, owned), lambda member: instance_of[member.id])
        self.last_generation = simulated.group.members[0].generation
        revoked = sum(map(len, simulated.revoked.values()))
        return self._owners(recorded, simulated.assignment), len(simulated.rebalances), revoked

    def _group(self, recorded: RecordedGeneration, owned: Owners) -> Group:
        starts, sizes = self._starts(recorded)
        names = [self.history.topics[topic] for topic in recorded.topics]
        key = recorded.key
        racks = key.topic_racks if key and key.topic_racks else (None,) * len(names)
        members = []
        for position, member in enumerate(recorded.members):
            of_member = _by_topic(np.flatnonzero(owned == position), names, starts)
            members.append(
                Member(
                    member.id,
                    self.history.subscriptions[member.subscription],
                    owned=of_member,
                    generation=self.last_generation if of_member else NO_GENERATION,
                    instance_id=member.instance_id,
                    rack=member.rack,
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
