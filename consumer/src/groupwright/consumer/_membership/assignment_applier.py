"""Assignment applier: applies assignments and revocations to the handle, and calls callbacks.

It calls `incremental_assign` and `incremental_unassign` only, because `assign` would fetch the retained
partitions again. It passes explicit offsets, because librdkafka would otherwise send OffsetFetch itself.

An exception of a callback does not end the rebalance. It is recorded in `Failures`, and `poll` raises it
once, after the rebalance; the callback is not called again.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Collection, Iterable

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaException,
    TopicPartition,
)

from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._membership.callbacks import Failures, RebalanceCallback
from groupwright.consumer._membership.handle import (
    Handle,
    Native,
    assigned_keys,
    request_leaders,
    request_metadata,
)
from groupwright.consumer._membership.offset_lookup import OffsetLookup
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.rebalance_reporter import RebalanceReporter
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.model import UNREADABLE, Offsets, keys
from groupwright.consumer._protocol.timers import Clock
from groupwright.core import Phase, TopicPartitionKey

_RESETS = {
    "smallest": OFFSET_BEGINNING,
    "earliest": OFFSET_BEGINNING,
    "beginning": OFFSET_BEGINNING,
    "largest": OFFSET_END,
    "latest": OFFSET_END,
    "end": OFFSET_END,
}
_LOGICAL = frozenset({OFFSET_BEGINNING, OFFSET_END})
_UNSET = frozenset({OFFSET_INVALID, OFFSET_STORED})
_MOST_TOPICS_REQUESTED = 10
"""In one rebalance: each is a request of its own."""
_METADATA_SECONDS = 10.0
"""Age of a request from which another is sent. confluent-kafka leaks 112 bytes with each exception."""


class AssignmentApplier:
    """Applies the membership's assignments to one consumer's handle. Used by the polling thread alone."""

    def __init__(
        self,
        offset_reset: str,
        ownership: Ownership,
        committed: CommittedOffsets,
        offsets: OffsetTracker,
        prefetch: PrefetchBuffer,
        lookup: OffsetLookup,
        failures: Failures,
        reporter: RebalanceReporter,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create it without callbacks.

        Args:
            offset_reset: ``auto.offset.reset``.
            ownership: Learns of the partitions that are assigned and revoked.
            committed: The newest committed offsets of the assignment's partitions.
            offsets: Offsets to commit; receives the start offsets.
            prefetch: Prefetched messages; those of revoked partitions are dropped.
            lookup: Finds the offsets of "beginning" and "end".
            failures: Receives exceptions of callbacks and of the handle.
            reporter: Reports rebalances to listeners.
            clock: Monotonic seconds.
        """
        self.on_assign: RebalanceCallback | None = None
        self.on_revoke: RebalanceCallback | None = None
        self.on_lost: RebalanceCallback | None = None
        self.cooperative: bool | None = None
        """True if the last assignment was cooperative (KIP-429), which decides the calls that may change it;
        None before the first."""

        # With "error", librdkafka itself fetches the committed offset, finds none, and returns an error.
        self._reset = _RESETS.get(offset_reset, OFFSET_STORED)
        self._ownership = ownership
        self._committed = committed
        self._offsets = offsets
        self._prefetch = prefetch
        self._lookup = lookup
        self._failures = failures
        self._reporter = reporter
        self._listeners = reporter.listeners
        self._clock = clock
        self._in_callback = False
        self._chosen: dict[TopicPartitionKey, int] = {}
        """Offsets that the application has passed to assign calls, for `assignment`."""
        self._prepared = 0
        """Ticket of the last assignment that was prepared."""
        self._new_topics: list[TopicPartition] = []
        """Partitions of topics that librdkafka does not know yet."""
        self._requested: dict[str, float] = {}
        """Times at which the leaders of topics were requested, for a rebalance."""
        self._applied = False
        """True if the assignment was changed since the last callback began: `assign` then keeps it."""
        self._replaced: set[TopicPartitionKey] = set()
        """Partitions that were assigned by hand, and that an eager assignment is still to replace."""
        self.replaced_offsets: Offsets = {}
        """Offsets of these partitions that were committed before on_assign was called."""
        self._unassigned: set[TopicPartitionKey] = set()
        """Partitions that the application has unassigned since the last callback.

        If an exception has interrupted their assignment, the next poll completes it without them.
        """
        self._called = self._done = 0
        """Ticket of the last event whose callback has returned, and of the last one that was applied.

        If KeyboardInterrupt ended a poll between the two, the same event is served again.
        """
        self._callback_seconds = 0.0
        """Duration of the last callback."""

    # --- Events -------------------------------------------------------------------------------------

    def assign(self, handle: Handle, event: Assign, under_way: Offsets) -> None:
        """Assign the gained partitions; as in librdkafka, a cooperative on_assign is called even for none.

        Args:
            handle: The consumer's handle.
            event: The assignment.
            under_way: Offsets of commits that have not ended. If an exception has ended the first call, the
                application may have committed since.
        """
        if event.ticket == self._done:
            return
        gained = keys(event.gained)
        again = event.ticket == self._called
        if not again:
            self.cooperative = event.cooperative
            self._ownership.gain(gained)
            self._offsets.assigned(gained, self._committed.newest)
            self._replaced = set() if event.cooperative else assigned_keys(handle)
            self._call(self.on_assign, handle, gained, event.ticket)
        if not self._applied:
            kept = assigned_keys(handle).intersection(gained) if again or event.cooperative else set()
            kept -= {key for key in self._replaced if self._offsets.sought(key) is None}
            if again:
                self._record_kept(handle, kept)
                restarted = set(gained) - kept
                self._committed.update({key: under_way[key] for key in under_way if key in restarted})
            wanted = _partitions(key for key in gained if key not in kept | self._unassigned)
            if event.cooperative:
                self._call_native(self.incremental_assign, handle, wanted)
            else:
                self._call_native(functools.partial(self.assign_in_callback, kept=kept), handle, wanted)
        self._done = event.ticket
        self.replaced_offsets = {}
        self._listeners.notify("partitions_assigned", event.gained, self._callback_seconds)
        timeline, now = event.timeline, self._clock()
        if timeline is not None:
            timeline.end(Phase.ASSIGN, now)
            self._reporter.completed(timeline, event, now)

    def withdraw(self, event: Assign) -> bool:
        """Forget an assignment, and return True, unless its on_assign was called: it is owned then.

        The consumer closes, so no poll will call on_assign, and on_revoke must not be called for it either.
        """
        if event.ticket == self._called:
            return False
        gained = keys(event.gained)
        self._ownership.give_up(gained)
        self._offsets.dropped(gained)
        return True

    def prepare(self, handle: Handle, event: Assign) -> bool:
        """Start the look-up of offsets for `assign`; return whether `assign` may be called. Never blocks.

        The look-up times out after a second. `assign` then passes logical offsets to librdkafka.
        """
        if event.ticket != self._prepared:
            gained = keys(event.gained)
            self._new_topics = [
                TopicPartition(*key, OFFSET_END) for key in gained if not self._offsets.was_assigned(key[0])
            ]
            self._request_metadata(handle, filter(self._offsets.was_assigned, event.gained))
            self._lookup.begin(self._logical_offsets(gained, self._committed.newest))
            self._prepared = event.ticket  # last: after a signal handler's exception, it begins again
        if self._new_topics and request_leaders(handle, self._new_topics):
            self._new_topics = []  # else the next poll tries again
        return self.is_prepared(event)

    def is_prepared(self, event: Assign) -> bool:
        """Return whether the look-up that `prepare` began has ended, with or without offsets."""
        return event.ticket == self._prepared and not self._lookup.pending

    def _logical_offsets(
        self, gained: list[TopicPartitionKey], committed: Offsets
    ) -> set[tuple[TopicPartitionKey, int]]:
        """Return the logical offsets to look up.

        These are the starts of partitions without a committed offset. An on_assign may choose either one for
        any partition, so with an on_assign they are all.
        """
        wanted = {(key, reset) for key in gained for reset in (_LOGICAL if self.on_assign else ())}
        if self._reset in _LOGICAL:
            starts = [(key, committed.get(key)) for key in gained]
            unset = {
                key for key, start in starts if start is None or (start.offset < 0 and start != UNREADABLE)
            }
            wanted |= {(key, self._reset) for key in unset}
        return wanted

    def _request_metadata(self, handle: Handle, topics: Iterable[str]) -> None:
        """Make librdkafka request the leaders of topics that it knows already, without waiting.

        Its own membership does so in each rebalance. A leader that has moved since would be found out by
        fetches that fail, which takes several round trips.
        """
        now = self._clock()
        due = (topic for topic in topics if now - self._requested.get(topic, -math.inf) > _METADATA_SECONDS)
        for topic in itertools.islice(due, _MOST_TOPICS_REQUESTED):
            self._requested[topic] = now
            request_metadata(handle, topic)

    @property
    def awaits_first_offsets(self) -> bool:
        """True if the first assignment waits for its offsets, so that there is nothing to fetch."""
        return not self._ownership and self._lookup.pending

    def wait_for_offsets(self, seconds: float) -> None:
        """Wait until the look-up has ended, for `seconds` at most."""
        self._lookup.wait(seconds)

    def revoke(self, handle: Handle, event: Revoke, commit: Callable[[Handle], object] | None = None) -> None:
        """Revoke the event's partitions, even if the callback raises or does not unassign them.

        `commit` is called after the callback, while offsets of the partitions may still be committed.
        """
        if event.ticket == self._done:
            return
        revoked = keys(event.partitions)
        if event.ticket != self._called:
            # As in librdkafka: without on_lost, on_revoke is called with lost partitions too.
            callback = (self.on_lost or self.on_revoke) if event.lost else self.on_revoke
            self._call(callback, handle, revoked, event.ticket)
        if commit is not None and not event.lost:
            commit(handle)
        assigned = assigned_keys(handle)
        # As in librdkafka, an eager revocation ends partitions that were assigned by hand, too.
        unassigned = assigned.intersection(revoked) if event.cooperative else assigned
        if unassigned:
            self._call_native(Native.incremental_unassign, handle, _partitions(sorted(unassigned)))
        self._ownership.give_up(revoked)
        dropped = unassigned.union(revoked)
        self._offsets.dropped(dropped)
        self._prefetch.drop(dropped)
        self.forget(dropped)
        self._done = event.ticket
        self._listeners.notify(
            "partitions_lost" if event.lost else "partitions_revoked",
            event.partitions,
            self._callback_seconds,
        )

    # --- What is being applied ----------------------------------------------------------------------

    def may_restart(self, key: TopicPartitionKey) -> bool:
        """Return whether a partition may be assigned again at another offset: it is the group's.

        With ``auto.offset.reset=error``, librdkafka returns an error for a partition that has no start, and
        refuses to seek.
        """
        return key in self._ownership and self._reset in _LOGICAL

    def awaits_assignment(self, key: TopicPartitionKey) -> bool:
        """Return whether on_assign was called for this partition, and an exception then ended the poll.

        The next poll completes the assignment.
        """
        return key in self._ownership and self._called != self._done

    @property
    def in_callback(self) -> bool:
        """True if a rebalance callback is running."""
        return self._in_callback

    # --- The handle's assignment --------------------------------------------------------------------

    def assign_in_callback(
        self,
        handle: Handle,
        partitions: list[TopicPartition],
        kept: Collection[TopicPartitionKey] = frozenset(),
    ) -> None:
        """Replace the assignment, except for the partitions `kept`; called while a rebalance is applied.

        A partition without an offset starts at its committed one.
        """
        current = [p for p in Native.assignment(handle) if (p.topic, p.partition) not in kept]
        if current:
            Native.incremental_unassign(handle, current)
            self._replaced.clear()
            replaced = {(p.topic, p.partition) for p in current}
            self._prefetch.drop(replaced)
            replaced.difference_update((p.topic, p.partition) for p in partitions)
            self._offsets.dropped(replaced)
            self.forget(replaced)
        self.incremental_assign(handle, partitions)

    def incremental_assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Assign natively; a partition without an offset starts at its committed one."""
        starts = self._with_starts(partitions)
        Native.incremental_assign(handle, starts)
        self._record(handle, partitions, starts)
        self._applied = True

    def _record_kept(self, handle: Handle, kept: Collection[TopicPartitionKey]) -> None:
        """Record what a poll has assigned before an exception ended it.

        The application may have sought since, and goes on there.
        """
        partitions = _partitions(key for key in kept if self._offsets.sought(key) is None)
        self._record(handle, partitions, self._with_starts(partitions))
        for key in kept:
            self._chosen.setdefault(key, OFFSET_STORED)  # a seek changes no offset of `assignment`

    def _record(self, handle: Handle, partitions: list[TopicPartition], starts: list[TopicPartition]) -> None:
        """Record assigned partitions, as they were passed and with their start offsets."""
        self._chosen.update(
            {(p.topic, p.partition): OFFSET_STORED if p.offset in _UNSET else p.offset for p in partitions}
        )
        self._offsets.set_start_offsets(starts)
        self._prefetch.set_start_offsets(starts)
        # librdkafka ignores a pause of a partition that it does not know yet, as on_assign may call it.
        paused = [p for p in starts if (p.topic, p.partition) in self._prefetch.paused]
        if paused:
            Native.pause(handle, paused)

    def assignment(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions with the offsets that the application has passed; for any thread."""
        return [
            TopicPartition(p.topic, p.partition, self._chosen.get((p.topic, p.partition), p.offset))
            for p in Native.assignment(handle)
        ]

    def forget(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget the offsets that were passed for partitions that are no longer assigned."""
        for key in keys:
            self._chosen.pop(key, None)

    def mark_applied(self) -> None:
        """Record that the application has chosen the whole assignment, so that `assign` does not."""
        self._applied = True

    def unassigned(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Record that the application has unassigned some partitions.

        In a callback, it then chooses the whole assignment, as in confluent-kafka.
        """
        self._unassigned.update(keys)
        self._applied = self._applied or self._in_callback

    def pause(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Pause natively; as in librdkafka, without effect on a topic that was never assigned."""
        known = [p for p in partitions if self._offsets.knows(p.topic)]
        Native.pause(handle, known)
        self._prefetch.pause((p.topic, p.partition) for p in known)

    def resume(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Resume natively; messages that were held come before those that librdkafka fetches from now on."""
        self._prefetch.resume((p.topic, p.partition) for p in partitions)
        Native.resume(handle, partitions)

    # --- Parts --------------------------------------------------------------------------------------

    def _with_start(self, partition: TopicPartition) -> TopicPartition:
        if partition.offset not in _UNSET:
            return partition
        committed = self._committed.newest.get((partition.topic, partition.partition))
        if committed == UNREADABLE:
            # librdkafka sends OffsetFetch itself, and poll returns the coordinator's error.
            return TopicPartition(partition.topic, partition.partition, OFFSET_STORED)
        if committed is None or committed.offset < 0:
            return TopicPartition(partition.topic, partition.partition, self._reset)
        epoch = committed.leader_epoch
        return TopicPartition(partition.topic, partition.partition, committed.offset, leader_epoch=epoch)

    def _with_starts(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return partitions with their starts; offsets replace "beginning" and "end" where they were found.

        librdkafka would look them up itself. But the late response of its ListOffsets overrides a seek that
        was made meanwhile. If the partition was unassigned meanwhile, librdkafka sends ListOffsets again half
        a second later, and the response overrides the offset of a new assignment
        (`rd_kafka_toppar_handle_Offset`, seen in 2.16).
        """
        starts = map(self._with_start, partitions)
        return [self._found(p) if p.offset in _LOGICAL else p for p in starts]

    def _found(self, start: TopicPartition) -> TopicPartition:
        offset = self._lookup.find((start.topic, start.partition), start.offset)
        return start if offset is None else TopicPartition(start.topic, start.partition, offset)

    def _call(
        self,
        callback: RebalanceCallback | None,
        handle: Handle,
        partitions: list[TopicPartitionKey],
        ticket: int,
    ) -> None:
        """Call a callback of the application for the event with this ticket."""
        self._applied = False
        self._unassigned.clear()
        started = self._clock()
        # Made before the `try`: an exception of a signal handler would otherwise count as the callback's own,
        # and the callback would never be called.
        arguments = _partitions(partitions)
        self._in_callback = True
        try:
            if callback is not None:
                callback(handle, arguments)
        except BaseException as error:  # noqa: BLE001 - Ctrl-C too waits until the rebalance is applied
            self._failures.record(error)
        finally:
            self._in_callback = False
            self._called = ticket
        self._callback_seconds = self._clock() - started

    def _call_native(
        self,
        method: Callable[[Handle, list[TopicPartition]], None],
        handle: Handle,
        partitions: list[TopicPartition],
    ) -> None:
        try:
            method(handle, partitions)
        except KafkaException as error:
            self._failures.record(error)


def _partitions(pairs: Iterable[TopicPartitionKey]) -> list[TopicPartition]:
    return [TopicPartition(topic, int(number)) for topic, number in pairs]
