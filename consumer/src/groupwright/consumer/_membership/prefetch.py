"""Prefetch buffer: messages that librdkafka has returned and the application has not taken yet.

A native call costs more than processing a message. So an application that keeps up gets messages from a batch
that one native call has returned; a slow application gets each message by its own native call. With a batch,
librdkafka's positions are ahead of the application; `PrefetchBuffer.positions` returns the application's,
also for commits. Messages of partitions that are revoked, sought or paused leave the buffer before the next
message is taken.

Messages move from librdkafka to a list or a deque within one call into C: CPython runs signal handlers
between two bytecodes, and if a handler raises, messages on the interpreter's stack are lost. If a handler
raises inside the native call, confluent-kafka drops the whole batch; `PrefetchBuffer.seek_targets` then
returns the offsets to seek to.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat, starmap
from typing import TYPE_CHECKING

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    OFFSET_STORED,
    Message,
    TopicPartition,
)

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.handle import Handle, Native
from groupwright.core import TopicPartitionKey
from groupwright.core.locking import locked

if TYPE_CHECKING:
    from groupwright.consumer._membership.processing_meter import ProcessingMeter

BATCH_SIZE = 128
_STARTS = {OFFSET_INVALID: OFFSET_STORED}
"""The logical offset at which librdkafka starts a partition that is assigned without one."""
_FIXED = frozenset({OFFSET_BEGINNING, OFFSET_STORED})
"""Logical offsets that stay where they are until the first message is returned."""
_ONE, _AT_ONCE = repeat(1), repeat(0.0)
_KEEPS_UP = 0.05
"""An application that takes a whole batch within this time, in seconds, keeps up."""


class PrefetchBuffer:
    """Prefetched messages of one consumer. The polling thread changes it; any thread may pause and read."""

    def __init__(self, batch_size: int = BATCH_SIZE) -> None:
        """Create an empty buffer. With a batch size of 0, nothing is ever prefetched."""
        self.waiting: deque[Message] = deque()
        """Messages that the next polls return, oldest first."""
        self.pauses_changed = False
        """True if `apply_pauses` must be called before the next message is taken."""
        self.paused: frozenset[TopicPartitionKey] = frozenset()
        """Partitions that the application has paused."""
        self.cut_short = False
        """True if an exception has ended a native call, which may have dropped messages (`seek_targets`)."""
        self.taken: list[Message] = []
        """Messages that the present call has taken. They count as not consumed until it returns them. If an
        exception ends the call, the next one puts back what it finds here."""
        self.error: Message | None = None
        """An error that poll returns before messages, until it has."""
        self.meter: ProcessingMeter | None = None
        """Receives the messages that the application gets, if processing times are measured."""
        self._batch_size = batch_size
        self._batch = repeat(batch_size)
        self._held: list[Message] = []
        """Messages of paused partitions, which were prefetched before the pause, oldest first."""
        self._seeded: dict[TopicPartitionKey, TopicPartition] = {}
        """Positions of partitions of which librdkafka has none: see `seed_positions`."""
        self._reached: dict[TopicPartitionKey, int] = {}
        """By partition, the offset after the last message that was ever in the buffer, or its start."""
        self._last_fill = 0.0
        self._drops = 0
        """Number of calls of `drop`."""
        # Held while librdkafka's positions are ahead of `_reached`. Re-entrant: librdkafka's callbacks may
        # read positions. A thread that has it waits for the handle in `_fill_waiting` alone.
        self._lock = threading.RLock()

    def next(
        self, messages: list[Message], consume: Callable[[int, float], list[Message]], now: float
    ) -> None:
        """Append the next prefetched message; fill the buffer first if it is empty. Never waits."""
        if not self.waiting and self._batch_size:
            self._fill_waiting(consume, now)
        if self.waiting:
            messages.extend(starmap(self.waiting.popleft, repeat((), 1)))

    @locked
    def _fill_waiting(self, consume: Callable[[int, float], list[Message]], now: float) -> None:
        wanted = self._batch if now - self._last_fill < _KEEPS_UP else _ONE
        self._last_fill = now
        before = len(self.waiting)
        self._call(map(self.waiting.extend, map(consume, wanted, _AT_ONCE)))
        self._note(self.waiting, before)

    def gather(self, most: int, consume: Callable[[int, float], list[Message]], timeout: float) -> None:
        """Take up to `most` more messages: prefetched ones, or librdkafka's within `timeout` seconds."""
        before = len(self.taken)
        if self.waiting and most > 0:
            self.taken.extend(starmap(self.waiting.popleft, repeat((), min(most, len(self.waiting)))))
            return
        returned = map(consume, (most,), (timeout,))
        # An empty list is replaced, so that no message is visited again for a copy.
        kept = map(self.taken.extend, returned) if before else map(setattr, (self,), ("taken",), returned)
        self._call(kept)
        self._note(self.taken, before)

    def _call(self, kept: Iterator[None]) -> None:
        """Make one native call, and keep what it returns: both in one bytecode, the call of `next`."""
        try:
            next(kept)
        except BaseException:
            self.cut_short = True
            raise

    def _note(self, messages: deque[Message] | list[Message], before: int) -> None:
        """Note what a native call has added after the first messages."""
        if len(messages) > before:
            self._record_reached(messages, before)
            if self.meter is not None:
                self.meter.returned(messages, before, waits=messages is self.waiting)
        elif self.meter is not None and not messages:
            self.meter.nothing_returned()

    def set_start_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """Record the start offsets of assigned partitions.

        The end of a partition moves. So messages after it that an interrupted native call drops are not
        fetched again.
        """
        self._reached.update({(p.topic, p.partition): _STARTS.get(p.offset, p.offset) for p in partitions})

    def record(self, message: Message) -> None:
        """Record a message that a native poll has returned, without this buffer."""
        self._record_reached((message,))
        if self.meter is not None:
            self.meter.returned((message,), 0, waits=False)

    @locked
    def seek_targets(self, positions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of which a native call has dropped messages, with the offsets to seek to."""
        if not self._batch_size:
            return []
        self._record_buffered()
        targets = [
            TopicPartition(p.topic, p.partition, reached)
            for p in positions
            if (reached := self._reached.get((p.topic, p.partition), p.offset)) < p.offset
            and (reached >= 0 or reached in _FIXED)
        ]
        self.seed_positions(targets)
        return targets

    def restarts(
        self, assigned: Iterable[TopicPartition], positions: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Return where to assign partitions again to go on: where the last message ended, or at the start."""
        starts = []
        for start, position in zip(assigned, positions, strict=True):
            key = (start.topic, start.partition)
            reached = self._reached.get(key, start.offset)
            # librdkafka's position counts, unless it is ahead of the last message in the buffer.
            is_known = position.offset >= 0 and not (reached in _FIXED or 0 <= reached < position.offset)
            starts.append(position if is_known else TopicPartition(*key, reached))
        self.seed_positions(starts)
        return starts

    def _record_reached(self, messages: Sequence[Message], begin: int = 0) -> None:
        """Record the offsets after these messages, from index `begin` on.

        A batch has few runs of messages of one partition with consecutive offsets, and the last one of each
        is enough. If a run is taken for longer than it is, as across a gap in the offsets, `seek_targets`
        returns a lower offset for other partitions: messages are then fetched twice, but none is lost.
        """
        end = len(messages)
        while end > begin:
            last = messages[end - 1]
            key, offset = _key(last), last.offset()
            if key is None or offset is None or last.error() is not None:
                end -= 1
                continue
            self._reached[key] = max(offset + 1, self._reached.get(key, 0))
            first, before = messages[begin], end - 1 - begin
            is_one_run = first.offset() == offset - before and _key(first) == key
            end = begin if is_one_run else _run_start(messages, begin, end, key, offset)

    def _record_buffered(self) -> None:
        """Record the offsets after all messages in the buffer, which an exception may have left out."""
        for message in self._buffered():
            self._record_reached((message,))

    @locked
    def put_back(self, messages: list[Message]) -> None:
        """Put messages back at the head of the buffer. For the polling thread."""
        self._forget_returned()
        self.waiting.extendleft(starmap(messages.pop, repeat((), len(messages))))
        self.pauses_changed = True  # a partition may have been paused since they were taken

    def positions(self, read: Callable[[], list[TopicPartition]]) -> list[TopicPartition]:
        """Return the application's positions.

        Those that `read` returns, set back to the first prefetched message.
        """
        while True:
            drops, native = self._drops, read()
            # What `read` has seen of a native call is in the buffer by the time that the lock is free. The
            # lock is not held during `read`, which waits for the handle: a callback within a poll of another
            # thread, which has the handle, may need the lock.
            found, messages, is_current = self._with_buffer(native, drops)
            if is_current:
                break
        first: dict[TopicPartitionKey, Message] = {}
        for message in messages:
            key = _key(message)
            if key is not None and message.error() is None:
                first.setdefault(key, message)
        return [_set_back(position, first.get((position.topic, position.partition))) for position in found]

    @locked
    def _with_buffer(
        self, positions: list[TopicPartition], drops: int
    ) -> tuple[list[TopicPartition], list[Message], bool]:
        """Return positions of librdkafka, the messages in the buffer, and whether both fit.

        They do not if messages have been dropped since `drops`: the positions are those of before.
        """
        found = [self._without_dropped(position) for position in positions]
        return found, self._buffered(), drops == self._drops

    def _without_dropped(self, position: TopicPartition) -> TopicPartition:
        """Return a position of librdkafka, set back to what an interrupted native call may have dropped."""
        key = (position.topic, position.partition)
        if position.offset < 0:
            return self._seeded.get(key, position)
        if not (self.cut_short and self._batch_size):
            return position
        reached = self._reached.get(key, position.offset)
        if reached in _FIXED:
            return TopicPartition(*key, OFFSET_INVALID)
        return TopicPartition(*key, reached) if 0 <= reached < position.offset else position

    def _buffered(self) -> list[Message]:
        """Return all messages that librdkafka has returned and the application has not taken."""
        return [*self.taken, *self.waiting.copy(), *self._held]

    def positions_of(
        self, handle: Handle, partitions: list[TopicPartition] | None, guard: AccessGuard
    ) -> list[TopicPartition]:
        """Return the application's positions in these partitions (None: all assigned ones).

        For any thread.
        """

        def read() -> list[TopicPartition]:
            return Native.position(handle, Native.assignment(handle) if partitions is None else partitions)

        with guard.shared():
            return self.positions(read)

    @locked
    def seed_positions(self, positions: Iterable[TopicPartition]) -> None:
        """Set positions for a new handle, which has none before it has returned a message."""
        self._seeded.update({(p.topic, p.partition): p for p in positions if p.offset >= 0})

    def seeded_offsets(self) -> dict[TopicPartitionKey, int]:
        """Return the positions that were seeded; for any thread, without a lock."""
        return {key: partition.offset for key, partition in self._seeded.copy().items()}

    def first_offsets(self) -> dict[TopicPartitionKey, int]:
        """Return each partition's first prefetched offset; for any thread, without a lock."""
        first: dict[TopicPartitionKey, int] = {}
        for message in self._buffered():
            key, offset = _key(message), message.offset()
            if key is not None and offset is not None and message.error() is None:
                first[key] = min(offset, first.get(key, offset))
        return first

    @locked
    def drop(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Drop the messages of partitions that were revoked or sought. For the polling thread.

        Those that the present call has taken are dropped too: it has called a callback that seeks.
        """
        gone = set(keys)
        self._drops += 1
        self._forget_returned()
        self.taken[:] = [message for message in self.taken if _key(message) not in gone]
        for message in self.waiting.copy():
            if _key(message) in gone:
                self._remove(message)
        self._held = [message for message in self._held if _key(message) not in gone]
        for key in gone:
            self._seeded.pop(key, None)
            self._reached.pop(key, None)

    @locked
    def pause(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Hold the messages of these partitions, once `apply_pauses` was called."""
        self.paused |= frozenset(keys)
        self.pauses_changed = True

    @locked
    def resume(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Return messages of these partitions again, once `apply_pauses` was called."""
        self.paused -= frozenset(keys)
        self.pauses_changed = True

    @locked
    def apply_pauses(self) -> None:
        """Apply `pause` and `resume`. For the polling thread."""
        self._forget_returned()
        # An exception may have had messages put back before their offsets were recorded. Once the
        # application has them, `seek_targets` would return their offsets: they would be fetched again.
        self._record_buffered()
        if self.taken:
            self._held[:0] = [message for message in self.taken if _key(message) in self.paused]
            self.taken[:] = [message for message in self.taken if _key(message) not in self.paused]
        for message in self.waiting.copy():
            if _key(message) in self.paused and self._remove(message):
                self._held.append(message)
        # Held messages are older than those of the same partition that came since.
        resumed = [message for message in self._held if _key(message) not in self.paused]
        self._held = [message for message in self._held if _key(message) in self.paused]
        self.waiting.extendleft(reversed(resumed))
        self.pauses_changed = False

    def _forget_returned(self) -> None:
        """Have the meter wait for the next native call, because `waiting` is about to change.

        The meter derives from `waiting` which messages the application has.
        """
        if self.meter is not None:
            self.meter.nothing_returned()

    def _remove(self, message: Message) -> bool:
        """Remove one message from `waiting`; return False if another thread has taken it meanwhile.

        One atomic call for each message: `poll` takes from `waiting` without a lock.
        """
        try:
            self.waiting.remove(message)
        except ValueError:
            return False
        return True


def _key(message: Message) -> TopicPartitionKey | None:
    """Return the partition of a message or of an error; None for an error that is about no partition."""
    topic, partition = message.topic(), message.partition()
    return None if topic is None or partition is None else (topic, partition)


def _run_start(messages: Sequence[Message], begin: int, end: int, key: TopicPartitionKey, offset: int) -> int:
    """Return the index after `begin` at which the run starts that ends at this offset, before index `end`."""

    def is_of_run(index: int) -> bool:
        message = messages[index]
        return message.offset() == offset - (end - 1 - index) and _key(message) == key

    if not is_of_run(end - 2):
        return end - 1
    return begin + bisect_left(range(begin, end - 1), x=True, key=is_of_run)


def _set_back(position: TopicPartition, first: Message | None) -> TopicPartition:
    if first is None:
        return position
    offset, epoch = first.offset(), first.leader_epoch()
    return TopicPartition(
        position.topic,
        position.partition,
        position.offset if offset is None else offset,
        leader_epoch=-1 if epoch is None else epoch,
    )
