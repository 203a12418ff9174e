"""Gaining and giving up partitions, on the thread that polls: callbacks, librdkafka's handle, listeners.

Underneath only `incremental_assign` and `incremental_unassign` are used (`assign` would fetch again whatever is
kept), with explicit offsets (librdkafka, being in no group, would otherwise look them up by itself).

A user's callback that raises is remembered, the rest is done all the same, and the exception leaves `poll` once,
at the end; the callback is not repeated. Raised inside a native call it would lose a message.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaError,
    TopicPartition,
)

from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.model import UNREADABLE, Offsets, Partitions, TopicPartitionKey, keys
from groupwright.consumer._protocol.rebalance import (
    Clock,
    Kind,
    Listeners,
    Outcome,
    Phase,
    Rebalance,
    Timeline,
)

Native = confluent_kafka.Consumer
Callback = Callable[[Any, list[TopicPartition]], object]

_RESETS = {
    "smallest": OFFSET_BEGINNING,
    "earliest": OFFSET_BEGINNING,
    "beginning": OFFSET_BEGINNING,
    "largest": OFFSET_END,
    "latest": OFFSET_END,
    "end": OFFSET_END,
}
_LOOK_UP = 1.0
"""Seconds for each of the two look-ups of an assignment, at most, retries included."""
_AGAIN = 0.05
"""Seconds between two look-ups of a partition without a leader."""
_PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
_LOGICAL = frozenset({OFFSET_BEGINNING, OFFSET_END})
_UNSET = frozenset({OFFSET_INVALID, OFFSET_STORED})


class AssignmentApplier:
    """Applies the membership's assignments to one consumer's handle. Used by the polling thread alone."""

    def __init__(
        self,
        group_id: str,
        client_id: str,
        offset_reset: str,
        offsets: OffsetTracker,
        ahead: PrefetchBuffer,
        log: logging.LoggerAdapter[logging.Logger],
        clock: Clock = time.monotonic,
        *,
        kind: Kind = Kind.EAGER,
    ) -> None:
        """Start with no callbacks and no listeners."""
        self.on_assign: Callback | None = None
        self.on_revoke: Callback | None = None
        self.on_lost: Callback | None = None
        self.listeners = Listeners(log)
        self.error: BaseException | None = None
        """What the first callback that failed has raised, until it is taken."""
        self.cooperative: bool | None = None
        """Whether the group's last assignment was cooperative (KIP-429), which decides what calls may change it; None before
        the first."""

        self._group_id = group_id
        self._client_id = client_id
        # Where "error" is wanted, librdkafka finds no committed offset by itself and reports it.
        self._reset = _RESETS.get(offset_reset, OFFSET_STORED)
        self._offsets = offsets
        self._prefetch = ahead
        self._log = log
        self._clock = clock
        self._kind = kind
        self._starts: Offsets = {}
        self._in_callback = False
        self._chosen: dict[TopicPartitionKey, int] = {}
        self._given: set[TopicPartitionKey] = set()
        """Partitions that the group has assigned to this member, and not revoked yet."""
        self._prefetched = 0
        """The ticket of the last assignment whose partitions were looked up."""
        self._brokers_answer = True
        self._applied = False
        # An event comes a second time if Ctrl-C has cut the first short.
        self._done = 0

    # --- Events -------------------------------------------------------------------------------------

    def assign(self, consumer: Native, event: Assign) -> None:
        """Gain the event's partitions. A cooperative on_assign is called even if there are none, as in librdkafka."""
        if event.ticket == self._done:
            return
        self.cooperative = event.cooperative
        self._starts = event.offsets
        gained = keys(event.gained)
        self._given.update(gained)
        self._offsets.assigned(gained, event.offsets)
        seconds = self._call(self.on_assign, consumer, gained)
        if not self._applied and event.cooperative:
            self._call_native(self.incremental_assign, consumer, self._unassigned(consumer, gained))
        elif not self._applied:
            self._call_native(self.assign_in_callback, consumer, _partitions(gained))
        self._done = event.ticket
        self.listeners.notify("partitions_assigned", event.gained, seconds)
        timeline, now = event.timeline, self._clock()
        if timeline is not None:
            timeline.end(Phase.ASSIGN, now)
            outcome = Outcome.LOST if timeline.lost else Outcome.COMPLETED
            who = event.identity
            self._report(timeline, outcome, who.member_id, who.generation, who.protocol, event.owned, now)

    def prefetch_metadata(self, consumer: Native, event: Assign) -> None:
        """Have librdkafka find the leaders of what is about to be gained: by itself it looks for new ones once a second."""
        if event.gained and event.ticket != self._prefetched:
            self._prefetched = event.ticket
            gained = keys(event.gained)
            beginnings = [TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in gained]
            self._brokers_answer = self._look_up(consumer, beginnings) is not None

    def revoke(
        self, consumer: Native, event: Revoke, commit: Callable[[Native], object] | None = None
    ) -> None:
        """Give the event's partitions up. Whatever the callback does, none of them stays assigned.

        `commit` is called after the callback, while offsets of the partitions may still be committed.
        """
        if event.ticket == self._done:
            return
        given_up = keys(event.partitions)
        # As in librdkafka: without on_lost, on_revoke hears of lost partitions too.
        callback = (self.on_lost or self.on_revoke) if event.lost else self.on_revoke
        seconds = self._call(callback, consumer, given_up)
        if commit is not None and not event.lost:
            commit(consumer)
        owned = self._assigned(consumer)
        left = [key for key in given_up if key in owned]
        if left:
            self._call_native(Native.incremental_unassign, consumer, _partitions(left))
        self._given.difference_update(given_up)
        self._offsets.dropped(given_up)
        self._prefetch.drop(given_up)
        self.forget(given_up)
        self._done = event.ticket
        self.listeners.notify(
            "partitions_lost" if event.lost else "partitions_revoked", event.partitions, seconds
        )

    def failed(self, timeline: Timeline | None, error: str) -> None:
        """Report the rebalance that an error has ended, if one was under way."""
        if timeline is not None:
            self._report(timeline, Outcome.FAILED, "", -1, None, {}, self._clock(), error)

    # --- What the user may call in a callback -------------------------------------------------------

    @property
    def given(self) -> Partitions:
        """Partitions that the group has assigned to this member, and not revoked yet."""
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(self._given):
            topics.setdefault(topic, []).append(number)
        return topics

    @property
    def holds_partitions(self) -> bool:
        """Whether partitions that the group has assigned to this member are still to be revoked."""
        return bool(self._given)

    @property
    def in_callback(self) -> bool:
        """Whether a rebalance callback is running."""
        return self._in_callback

    def assign_in_callback(self, consumer: Native, partitions: list[TopicPartition]) -> None:
        """Replace the assignment, each partition from its committed offset unless another is given."""
        current = Native.assignment(consumer)
        if current:
            Native.incremental_unassign(consumer, current)
            self._prefetch.drop((p.topic, p.partition) for p in current)
        self.incremental_assign(consumer, partitions)

    def incremental_assign(self, consumer: Native, partitions: list[TopicPartition]) -> None:
        """Assign natively, each partition from its committed offset unless another is given."""
        starts = self._resolved(consumer, [self._with_start(partition) for partition in partitions])
        Native.incremental_assign(consumer, starts)
        self._chosen.update(
            {(p.topic, p.partition): OFFSET_STORED if p.offset in _UNSET else p.offset for p in partitions}
        )
        self._offsets.begin(starts)
        self._prefetch.begin(starts)
        # librdkafka forgets the pause of a partition that it has never heard of, as that of a callback may be.
        paused = [p for p in starts if (p.topic, p.partition) in self._prefetch.paused]
        if paused:
            Native.pause(consumer, paused)
        self._applied = True

    def assignment(self, consumer: Native) -> list[TopicPartition]:
        """Return what is assigned, with the offsets that the application has chosen, as librdkafka does; any thread may ask."""
        return [
            TopicPartition(p.topic, p.partition, self._chosen.get((p.topic, p.partition), p.offset))
            for p in Native.assignment(consumer)
        ]

    def forget(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget which offsets were chosen for partitions that are no longer assigned."""
        for key in keys:
            self._chosen.pop(key, None)

    def note_applied(self) -> None:
        """Note that the user's callback took the assignment into its own hands."""
        self._applied = True

    def pause(self, consumer: Native, partitions: list[TopicPartition]) -> None:
        """Pause natively, and remember it; as in librdkafka, the pause of a topic that it never had is no pause."""
        known = [p for p in partitions if self._offsets.knows(p.topic)]
        Native.pause(consumer, known)
        self._prefetch.pause((p.topic, p.partition) for p in known)

    def resume(self, consumer: Native, partitions: list[TopicPartition]) -> None:
        """Resume natively."""
        Native.resume(consumer, partitions)
        self._prefetch.resume((p.topic, p.partition) for p in partitions)

    def take_error(self) -> BaseException | None:
        """Return what a callback raised, once."""
        error, self.error = self.error, None
        return error

    # --- Parts --------------------------------------------------------------------------------------

    @staticmethod
    def _assigned(consumer: Native) -> set[TopicPartitionKey]:
        return {(p.topic, p.partition) for p in Native.assignment(consumer)}

    def _unassigned(self, consumer: Native, wanted: list[TopicPartitionKey]) -> list[TopicPartition]:
        assigned = self._assigned(consumer)
        return _partitions(key for key in wanted if key not in assigned)

    def _with_start(self, partition: TopicPartition) -> TopicPartition:
        if partition.offset not in _UNSET:
            return partition
        committed = self._starts.get((partition.topic, partition.partition))
        if committed == UNREADABLE:
            # librdkafka asks for it, and returns the coordinator's error from poll.
            return TopicPartition(partition.topic, partition.partition, OFFSET_STORED)
        if committed is None or committed.offset < 0:
            return TopicPartition(partition.topic, partition.partition, self._reset)
        epoch = committed.leader_epoch
        return TopicPartition(partition.topic, partition.partition, committed.offset, leader_epoch=epoch)

    def _resolved(self, consumer: Native, starts: list[TopicPartition]) -> list[TopicPartition]:
        """Return the starts with offsets instead of "beginning" and "end", as far as brokers answer.

        librdkafka would ask for them by itself. But its answer moves the partition whenever it comes: a seek that came first
        is undone. And an answer that comes after the partition was given up has it asked again half a second later, and the
        partition goes on from there, wherever it was assigned meanwhile (`rd_kafka_toppar_handle_Offset`, seen in 2.16).
        """
        logical = [p for p in starts if p.offset in _LOGICAL]
        if not logical or not self._brokers_answer:
            return starts
        found = self._look_up(consumer, logical) or {}
        return [found.get((p.topic, p.partition), p) if p.offset in _LOGICAL else p for p in starts]

    def _look_up(
        self, consumer: Native, wanted: list[TopicPartition]
    ) -> dict[TopicPartitionKey, TopicPartition] | None:
        """Return the offsets of "beginning" and "end", where there are any; None if a broker does not answer in time."""
        found: dict[TopicPartitionKey, TopicPartition] = {}
        deadline = self._clock() + _LOOK_UP
        while wanted:
            try:
                # As timestamps, they are ListOffsets' names of the same.
                answers = Native.offsets_for_times(
                    consumer, wanted, timeout=max(0.0, deadline - self._clock())
                )
            except confluent_kafka.KafkaException as error:
                self._log.debug("offsets could not be looked up, and will be by librdkafka: %s", error)
                return found or None
            found |= {(p.topic, p.partition): p for p in answers if p.error is None and p.offset >= 0}
            # A partition whose leader is about to be known, such as that of a new topic, must not start without an offset.
            passing = {
                (p.topic, p.partition) for p in answers if p.error is not None and p.error.code() in _PASSING
            }
            wanted = [p for p in wanted if (p.topic, p.partition) in passing]
            if self._clock() >= deadline:
                break
            if wanted:
                time.sleep(_AGAIN)
        return found

    def _call(
        self,
        callback: Callback | None,
        consumer: Native,
        partitions: list[TopicPartitionKey],
    ) -> float:
        """Run a user's callback; return the seconds it took."""
        self._applied = False
        if callback is None:
            return 0.0
        started = self._clock()
        self._in_callback = True
        try:
            callback(consumer, _partitions(partitions))
        except BaseException as error:  # noqa: BLE001 - Ctrl-C too waits until the handover is whole
            self.error = self.error or error
        finally:
            self._in_callback = False
        return self._clock() - started

    def _call_native(
        self,
        method: Callable[[Native, list[TopicPartition]], None],
        consumer: Native,
        partitions: list[TopicPartition],
    ) -> None:
        try:
            method(consumer, partitions)
        except confluent_kafka.KafkaException as error:
            self.error = self.error or error

    def _report(
        self,
        timeline: Timeline,
        outcome: Outcome,
        member_id: str,
        generation: int,
        protocol: str | None,
        partitions: Partitions,
        now: float,
        error: str | None = None,
    ) -> None:
        phases: Mapping[Phase, float] = dict(timeline.phases)
        rebalance = Rebalance(
            group=self._group_id,
            client_id=self._client_id,
            member_id=member_id,
            generation=generation,
            protocol=protocol,
            outcome=outcome,
            reason=timeline.reason,
            duration=now - timeline.started,
            phases=phases,
            partitions=partitions,
            ended_at=time.time(),
            error=error,
            kind=self._kind,
            partitions_before=timeline.before,
            leadership=timeline.leadership,
            trigger=timeline.trigger,
        )
        self._log.info(
            "rebalance %s in %.3f s: generation %d, %d partitions (%s)",
            outcome,
            now - timeline.started,
            generation,
            len(keys(partitions)),
            timeline.reason,
        )
        self.listeners.notify("rebalanced", rebalance)


def _partitions(of: Iterable[TopicPartitionKey]) -> list[TopicPartition]:
    return [TopicPartition(topic, int(number)) for topic, number in of]
