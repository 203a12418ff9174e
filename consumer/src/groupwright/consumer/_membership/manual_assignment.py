"""Changes of the assignment by the application: `assign`, `unassign`, their incremental forms, and `seek`."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.handle import Handle, Native, assigned_keys
from groupwright.consumer._membership.offset_tracker import OffsetTracker, check_partitions
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import MemberIdentity
from groupwright.consumer.errors import ConsumerError
from groupwright.core import TopicPartitionKey

_EAGER = (
    "Changes to the current assignment must be made using assign() when rebalance protocol type is EAGER, as "
    "this member's is: its partition.assignment.strategy is not cooperative"
)
_COOPERATIVE = (
    "Local: Erroneous state: this member rebalances cooperatively, so its assignment is changed with "
    "incremental_assign(partitions) and incremental_unassign(partitions)"
)


class ManualAssignment:
    """Applies the application's own changes to the assignment, in a rebalance callback or outside of one.

    For the polling thread.
    """

    def __init__(
        self,
        membership: Membership,
        driver: Driver,
        ownership: Ownership,
        applier: AssignmentApplier,
        committer: Committer,
        offsets: OffsetTracker,
        prefetch: PrefetchBuffer,
        guard: AccessGuard,
        is_closing: Callable[[], bool],
        commit_timeouts: tuple[float, float],
    ) -> None:
        """Create it with nothing assigned.

        Args:
            membership: State of the member; only read here.
            driver: Passes inputs to the membership, on the network thread.
            ownership: What the application owns.
            applier: Applies assignments in callbacks.
            committer: Commits before partitions are unassigned.
            offsets: Offsets to commit.
            prefetch: Prefetched messages.
            guard: Hands over librdkafka's handle.
            is_closing: Whether the consumer is being closed.
            commit_timeouts: Timeouts in seconds of the commit before partitions are unassigned: outside of a
                callback, and in one.
        """
        self.subscribed = False
        """True if the application has subscribed. Otherwise it is in no group, whatever it assigns."""
        self._membership = membership
        self._driver = driver
        self._ownership = ownership
        self._applier = applier
        self._committer = committer
        self._offsets = offsets
        self._prefetch = prefetch
        self._guard = guard
        self._is_closing = is_closing
        self._commit_timeout, self._commit_timeout_in_callback = commit_timeouts

    def assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Replace the assignment; in a callback, choose offsets."""
        if not self._may_change(handle, "Failed to set assignment", whole=True):
            return
        before = assigned_keys(handle)
        self._commit(handle, before)
        if self._applier.in_callback:
            self._applier.assign_in_callback(handle, partitions)
            return
        partitions = self._committer.with_pending_offsets(partitions)
        Native.assign(handle, partitions)
        self._forget_all(before)
        self._record(partitions)
        # This also replaces an assignment of the group that an exception has interrupted.
        self._applier.mark_applied()

    def unassign(self, handle: Handle) -> None:
        """Remove all partitions from the assignment."""
        if self._may_change(handle, "Failed to remove assignment", whole=True):
            self._unassign(handle)

    def incremental_assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Add partitions to the assignment."""
        if not self._may_change(handle, _EAGER, whole=False):
            return
        if self._applier.in_callback:
            self._applier.incremental_assign(handle, partitions)
        else:
            partitions = self._committer.with_pending_offsets(partitions)
            Native.incremental_assign(handle, partitions)
            self._record(partitions)

    def incremental_unassign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Remove partitions from the assignment."""
        if not self._may_change(handle, _EAGER, whole=False):
            return
        unassigned = _keys(partitions)
        if unassigned <= assigned_keys(handle):  # otherwise librdkafka refuses to unassign any
            self._commit(handle, unassigned)
        Native.incremental_unassign(handle, partitions)
        self._forget(unassigned)
        self._applier.unassigned(unassigned)

    def seek(self, handle: Handle, partition: TopicPartition) -> None:
        """Continue at another offset."""
        check_partitions([partition])
        key = (partition.topic, partition.partition)
        is_assigned = key in assigned_keys(handle)
        if not is_assigned and self._applier.awaits_assignment(key):
            self._start_at(handle, partition)
            self._offsets.seek(key, partition.offset, TopicPartition(*key))
            return
        if not is_assigned:
            # Native.position would create the partition in librdkafka, and seek would fail with another code.
            Native.seek(handle, partition)
            return
        before = self._prefetch.positions_of(handle, [partition], self._guard)
        try:
            Native.seek(handle, partition)
        except KafkaException as error:
            is_early = error.args[0].code() == KafkaError._STATE  # noqa: SLF001 - librdkafka's public code
            if not (is_early and self._applier.may_restart(key)):
                raise
            # librdkafka has not begun to fetch, such as while it still ends an earlier assignment's fetch.
            Native.incremental_unassign(handle, [partition])
            self._start_at(handle, partition)
        self._offsets.seek(key, partition.offset, before[0])

    def _start_at(self, handle: Handle, partition: TopicPartition) -> None:
        """Assign a partition natively at this offset; a paused one stays paused."""
        Native.incremental_assign(handle, [partition])
        if (partition.topic, partition.partition) in self._prefetch.paused:
            Native.pause(handle, [partition])

    def _may_change(self, handle: Handle, words: str, *, whole: bool) -> bool:
        """Check that the rebalance protocol allows this change, or unassign all as librdkafka does.

        From its first assignment on, also after `unsubscribe`, an eager member replaces the whole assignment,
        and a cooperative member changes parts of it (KIP-429).

        Args:
            handle: The consumer's handle.
            words: librdkafka's words for the error.
            whole: Whether the whole assignment is replaced.

        Returns:
            Whether the change is still to be made.

        Raises:
            ConsumerError: The protocol does not allow it; with librdkafka's code and words.
        """
        if self._is_closing() or self._membership.fenced:
            self._unassign(handle)
            return False
        if whole is self._applier.cooperative:
            hint = f"{words}: {_COOPERATIVE}" if whole else words
            raise ConsumerError(KafkaError._STATE, hint)  # noqa: SLF001 - librdkafka's public code
        return True

    def _unassign(self, handle: Handle) -> None:
        before = assigned_keys(handle)
        self._commit(handle, before)
        Native.unassign(handle)
        self._forget_all(before)
        self._applier.mark_applied()

    def _forget_all(self, assigned: set[TopicPartitionKey]) -> None:
        """Forget the whole assignment.

        If an exception has interrupted the group's assignment, librdkafka does not have all its partitions.
        """
        self._forget(assigned.union(self._offsets.keys))

    def _forget(self, keys: set[TopicPartitionKey]) -> None:
        self._offsets.dropped(keys)
        self._prefetch.drop(keys)
        self._applier.forget(keys)

    def _commit(self, handle: Handle, unassigned: set[TopicPartitionKey]) -> None:
        """Commit what was consumed of partitions that are about to be unassigned, as librdkafka does."""
        if not self._applier.in_callback:
            self._committer.last_commit(handle, unassigned, self._commit_timeout)
        elif not self._membership.has_lost_partitions:
            timeout, sent = self._commit_timeout_in_callback, self._applier.replaced_offsets
            self._committer.last_commit(handle, unassigned, timeout, sent)

    def _record(self, partitions: list[TopicPartition]) -> None:
        self._offsets.assigned(_keys(partitions), {})
        self._offsets.set_start_offsets(partitions)
        self._prefetch.set_start_offsets(partitions)
        if not self.subscribed:
            self._ownership.identity = MemberIdentity()
            self._driver.call(self._membership.assigned_by_hand)


def _keys(partitions: list[TopicPartition]) -> set[TopicPartitionKey]:
    return {(p.topic, p.partition) for p in partitions}
