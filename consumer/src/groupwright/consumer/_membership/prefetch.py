"""Messages that librdkafka has handed over, and that the application has not taken yet.

A native call for each message costs more than the message. So a caller that keeps up is served from a handful that one
call has brought. All that says how far the application has come must then say it of what it has taken: `positions`
does, for commits too. What is given up, sought elsewhere or paused leaves the handful before the next message is taken.

A caller that takes its time gets each message by a call of its own, as without this module.

Messages move from librdkafka to a list or a queue here within one call into C: CPython runs signal handlers between two
bytecodes, and a message that only the interpreter's stack holds is lost if a handler raises. One that runs inside the native
call makes confluent-kafka throw the whole handful away; `lost` tells then where to fetch it again.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat, starmap

from confluent_kafka import Message, TopicPartition

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.group_membership import Handle, Native
from groupwright.consumer._protocol.model import TopicPartitionKey

BATCH_SIZE = 128
_ONE, _AT_ONCE = repeat(1), repeat(0.0)
_KEEPS_UP = 0.05
"""Seconds in which a caller that keeps up has taken all of the last handful."""


class PrefetchBuffer:
    """The handful of one consumer. Only the polling thread takes and gives up; any thread may pause and ask."""

    def __init__(self, handful: int = BATCH_SIZE) -> None:
        """Start with nothing. Where the handful is 0, nothing is ever taken ahead."""
        self.waiting: deque[Message] = deque()
        """What the next polls return, oldest first."""
        self.unsorted = False
        """Whether a pause or its end has to be heeded by `apply_pauses` first."""
        self.paused: frozenset[TopicPartitionKey] = frozenset()
        """What is kept back: all that the application, or a revocation under way, has paused."""
        self.cut_short = False
        """Whether an exception has ended a native call, so that messages may be `lost`."""
        self._handful = handful
        self._handfuls = repeat(handful)
        self._held: list[Message] = []
        self._carried: dict[TopicPartitionKey, TopicPartition] = {}
        self._reached: dict[TopicPartitionKey, int] = {}
        """Where each partition goes on after all that was ever here of it."""
        self._last_fill = 0.0
        # Held while librdkafka's positions run ahead of what is noted here. Its callbacks may ask for positions.
        self._lock = threading.RLock()

    def next(
        self, messages: list[Message], consume: Callable[[int, float], list[Message]], now: float
    ) -> None:
        """Append the next message, if librdkafka has one at once."""
        if not self.waiting and self._handful:
            self._fill_waiting(consume, now)
        if self.waiting:
            messages.extend(starmap(self.waiting.popleft, repeat((), 1)))

    def _fill_waiting(self, consume: Callable[[int, float], list[Message]], now: float) -> None:
        wanted = self._handfuls if now - self._last_fill < _KEEPS_UP else _ONE
        self._last_fill = now
        with self._lock:
            self._fill(self.waiting, consume, wanted, _AT_ONCE)

    def gather(
        self,
        messages: list[Message],
        most: int,
        consume: Callable[[int, float], list[Message]],
        timeout: float,
    ) -> None:
        """Append up to `most` messages: those that wait here, or without any, what librdkafka has within `timeout`."""
        if self.waiting and most > 0:
            messages.extend(starmap(self.waiting.popleft, repeat((), min(most, len(self.waiting)))))
        else:
            self._fill(messages, consume, (most,), (timeout,))

    def _fill(
        self,
        messages: "deque[Message] | list[Message]",
        consume: Callable[[int, float], list[Message]],
        most: Iterable[int],
        timeout: Iterable[float],
    ) -> None:
        """Make one native call, with the first number of each argument: `map` takes iterables, and made once they cost nothing."""
        before = len(messages)
        try:
            # One bytecode, the call of `next`, makes the native call and keeps what it brings.
            next(map(messages.extend, map(consume, most, timeout)))
        except BaseException:
            self.interrupted()
            raise
        if len(messages) > before:
            self._note(messages, before)

    def interrupted(self) -> None:
        """Note that an exception has ended a native call. The poll of another base may raise it with nothing lost."""
        self.cut_short = self._handful > 0

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Note where partitions begin, where that is an offset."""
        self._reached.update({(p.topic, p.partition): p.offset for p in partitions if p.offset >= 0})

    def taken(self, message: Message) -> None:
        """Note a message that librdkafka has handed over past this object."""
        self._note((message,))

    def lost(self, positions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return where partitions go on that librdkafka has handed more of than came here; positions are so from now on."""
        with self._lock:
            self.cut_short = False
            for message in (*self._held, *self.waiting):
                self._note((message,))
            lost = [
                TopicPartition(p.topic, p.partition, reached)
                for p in positions
                if (reached := self._reached.get((p.topic, p.partition), p.offset)) < p.offset
            ]
            self.seed_positions(lost)
        return lost

    def _note(self, messages: Sequence[Message], begin: int = 0) -> None:
        """Note how far partitions have come with these messages, of `begin` on; there is one at least."""
        # Once for every handful: written out, this takes 0.4 us, and 0.7 with a call for each of its parts.
        first, last = messages[begin], messages[-1]
        topic, partition, offset, start = last.topic(), last.partition(), last.offset(), first.offset()
        # Mostly all are of one partition. Where it only seems so, as across a gap in the offsets, `lost` may name an
        # earlier offset of the others, and messages come twice: but none is lost.
        if (
            offset is not None
            and start is not None
            and offset - start == len(messages) - begin - 1
            and partition is not None
            and partition == first.partition()
            and topic is not None
            and topic == first.topic()
            and last.error() is None
        ):
            key, end = (topic, partition), offset + 1
            if end > self._reached.get(key, 0):
                self._reached[key] = end
            return
        for message in islice(messages, begin, None):
            found, offset = _key(message), message.offset()
            if found is not None and offset is not None and message.error() is None:
                self._reached[found] = max(offset + 1, self._reached.get(found, 0))

    def put_back(self, messages: list[Message]) -> None:
        """Take back messages that the application does not get now; they are the next ones. For the polling thread."""
        with self._lock:
            self.waiting.extendleft(starmap(messages.pop, repeat((), len(messages))))
            self.unsorted = True  # a partition may have been paused since they were taken

    def positions(self, read: Callable[[], list[TopicPartition]]) -> list[TopicPartition]:
        """Return librdkafka's positions, as `read` reads them, set back to what was taken."""
        with self._lock:
            found = [p if p.offset >= 0 else self._carried.get((p.topic, p.partition), p) for p in read()]
            messages = [*self.waiting.copy(), *self._held]
        first: dict[TopicPartitionKey, Message] = {}
        for message in messages:
            key = _key(message)
            if key is not None and message.error() is None:
                first.setdefault(key, message)
        return [_set_back(position, first.get((position.topic, position.partition))) for position in found]

    def positions_of(
        self, handle: Handle, partitions: list[TopicPartition] | None, guard: AccessGuard
    ) -> list[TopicPartition]:
        """Return how far the application has come in these partitions, or in all that are assigned; for any thread."""

        def read() -> list[TopicPartition]:
            return Native.position(handle, Native.assignment(handle) if partitions is None else partitions)

        with guard.shared():
            return self.positions(read)

    def seed_positions(self, positions: Iterable[TopicPartition]) -> None:
        """Keep librdkafka's positions over to another handle, which has none before it has handed a message over."""
        with self._lock:
            self._carried.update({(p.topic, p.partition): p for p in positions if p.offset >= 0})

    def first_offsets(self) -> dict[TopicPartitionKey, int]:
        """Return where each partition's messages here begin; any thread may ask, and no poll waits for it."""
        first: dict[TopicPartitionKey, int] = {}
        for message in (*self._held, *self.waiting.copy()):
            key, offset = _key(message), message.offset()
            if key is not None and offset is not None and message.error() is None:
                first[key] = min(offset, first.get(key, offset))
        return first

    def drop(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget what is here of these partitions: it is given up, or sought anew. For the polling thread."""
        gone = set(keys)
        with self._lock:
            for message in self.waiting.copy():
                if _key(message) in gone:
                    self._remove(message)
            self._held = [message for message in self._held if _key(message) not in gone]
            for key in gone:
                self._carried.pop(key, None)
                self._reached.pop(key, None)

    def pause(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Keep these back, once `apply_pauses` was called."""
        with self._lock:
            self.paused |= frozenset(keys)
            self.unsorted = True

    def resume(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Let these come again, once `apply_pauses` was called."""
        with self._lock:
            self.paused -= frozenset(keys)
            self.unsorted = True

    def apply_pauses(self) -> None:
        """Heed pauses and their ends. For the polling thread."""
        with self._lock:
            for message in self.waiting.copy():
                if _key(message) in self.paused and self._remove(message):
                    self._held.append(message)
            # Held messages are older than those of the same partition that came since.
            resumed = [message for message in self._held if _key(message) not in self.paused]
            self._held = [message for message in self._held if _key(message) in self.paused]
            self.waiting.extendleft(reversed(resumed))
            self.unsorted = False

    def _remove(self, message: Message) -> bool:
        """Remove one message from `waiting`; return False if another thread has taken it from there meanwhile.

        One atomic call for each message: `poll` takes from `waiting` without a lock.
        """
        try:
            self.waiting.remove(message)
        except ValueError:
            return False
        return True


def _key(message: Message) -> TopicPartitionKey | None:
    """Return the partition of a message, or of an error such as the partition's end; None if it is of none."""
    topic, partition = message.topic(), message.partition()
    return None if topic is None or partition is None else (topic, partition)


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
