"""Ledger of a simulated group: owners of partitions, pauses, moves and deliveries.

It measures what a deploy costs; whether a group keeps its guarantees is judged in `_groups`.
"""

from collections.abc import Iterable, Mapping, Sequence

from groupwright.assignors import Group, Member, PartitionsByTopic, StickyAssignor
from groupwright.core import TopicPartitionKey
from groupwright.testing._simulation.observer import Observer
from groupwright.testing._simulation.results import PartitionPause
from groupwright.testing._simulation.scheduler import SECOND, Scheduler


def pod_of(member: str) -> str:
    """Return the pod of a member, whose name is `<pod>.<number of its start>`."""
    return member.rpartition(".")[0]


class GroupLedger(Observer):
    """Records what members report, from `begin` on."""

    def __init__(self, scheduler: Scheduler, topics: Mapping[str, int]) -> None:
        """Create a ledger for partitions without owners."""
        self.joined_members: dict[str, int] = {}
        """Generation of each member that has completed a rebalance and has not ended."""
        self.last_change = 0
        """Time of the last change of owners or generations."""
        self.delivered_total = self.repeated = self.moves = self.min_moves = 0
        self.failures: list[str] = []
        self._scheduler = scheduler
        self._topics = dict(topics)
        self._owners: dict[TopicPartitionKey, list[str]] = {
            (topic, partition): [] for topic, count in topics.items() for partition in range(count)
        }
        self._last_pod: dict[TopicPartitionKey, str] = {}
        self._unowned_since: dict[TopicPartitionKey, int] = dict.fromkeys(self._owners, 0)
        self._pauses: dict[TopicPartitionKey, list[int]] = {partition: [] for partition in self._owners}
        self._next: dict[TopicPartitionKey, int] = dict.fromkeys(self._owners, 0)
        self._balanced: dict[str, PartitionsByTopic] = {}

    def begin(self) -> None:
        """Forget all that has been counted so far, but neither owners nor deliveries."""
        self.delivered_total = self.repeated = self.moves = self.min_moves = 0
        for partition in self._owners:
            self._pauses[partition].clear()
        now = self._scheduler.now
        self._unowned_since = dict.fromkeys(self._unowned_since, now)
        self.last_change = now

    @property
    def consumed(self) -> int:
        """Messages that have been delivered at least once, since the very beginning."""
        return sum(self._next.values())

    def pauses(self) -> tuple[PartitionPause, ...]:
        """Return the pauses of each partition; those that have not ended end now."""
        now = self._scheduler.now
        return tuple(
            PartitionPause(
                *partition,
                tuple(
                    length / SECOND
                    for length in (
                        *pauses,
                        *(
                            (now - self._unowned_since[partition],)
                            if partition in self._unowned_since
                            else ()
                        ),
                    )
                ),
            )
            for partition, pauses in self._pauses.items()
        )

    # --- Of the coordinator and of pods

    def generation_began(self, pods: Iterable[str]) -> None:
        """Count the moves that a balanced assignment to these pods takes at least."""
        listed = sorted(set(pods))
        if listed == sorted(self._balanced):
            return
        members = []
        for pod in listed:
            before = StickyAssignor()
            if pod in self._balanced:
                before.on_assignment(self._balanced[pod], 1)
            members.append(Member(pod, tuple(self._topics), user_data=before.user_data(frozenset())))
        assignment = StickyAssignor().assign(Group(members, self._topics))
        owners = _owners(self._balanced)
        self._balanced = {pod: assignment[pod] for pod in listed}
        if owners:
            now = _owners(self._balanced)
            self.min_moves += sum(owners[partition] != pod for partition, pod in now.items())

    def killed(self, member: str) -> None:
        """A pod was killed: it consumes no longer."""
        self._ended(member)
        for partition, owners in self._owners.items():
            if member in owners:
                self._release(member, partition)

    # --- Of members

    def joined(self, member: str, generation: int) -> None:
        """Record the member's generation."""
        self.joined_members[member] = generation
        self.last_change = self._scheduler.now

    def assigned(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:  # noqa: ARG002 - of the interface
        """Record the new owner; this ends pauses."""
        now, pod = self._scheduler.now, pod_of(member)
        self.last_change = now
        for partition in partitions:
            self._owners[partition].append(member)
            since = self._unowned_since.pop(partition, None)
            if since is not None and since < now:
                self._pauses[partition].append(now - since)
            self.moves += self._last_pod.get(partition, pod) != pod
            self._last_pod[partition] = pod

    def revoked(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:  # noqa: ARG002 - of the interface
        """Record that the member owns these partitions no longer; pauses may begin."""
        self.last_change = self._scheduler.now
        for partition in partitions:
            self._release(member, partition)

    lost = revoked

    def delivered(self, member: str, topic_id: int, topic: str, partition: int, offset: int) -> None:  # noqa: ARG002 - of the interface
        """Count a delivery."""
        self.delivered_total += 1
        expected = self._next[topic, partition]
        if offset < expected:
            self.repeated += 1
        else:
            self._next[topic, partition] = offset + 1

    def committed(self, member: str, partition: TopicPartitionKey, offset: int) -> None:
        """Ignore a commit."""

    def closed(self, member: str) -> None:
        """Record the member's end."""
        self._ended(member)

    def failed(self, member: str, reason: str) -> None:
        """Record a member's fatal error."""
        self.failures.append(f"{member}: {reason}")
        self._ended(member)

    def _ended(self, member: str) -> None:
        self.joined_members.pop(member, None)
        self.last_change = self._scheduler.now

    def _release(self, member: str, partition: TopicPartitionKey) -> None:
        owners = self._owners[partition]
        owners.remove(member)
        if not owners:
            self._unowned_since[partition] = self._scheduler.now


def _owners(assignment: Mapping[str, PartitionsByTopic]) -> dict[TopicPartitionKey, str]:
    return {
        (topic, partition): pod
        for pod, partitions in assignment.items()
        for topic, numbers in partitions.as_tuples().items()
        for partition in numbers
    }
