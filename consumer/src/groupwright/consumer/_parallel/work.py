"""The messages of one process that are in flight: in which order workers get them, and what is done.

Pure: no threads, no clock, no client. Three ideas:

- A **lane** is a queue of messages. An exclusive lane has one worker at a time, so its messages are processed
  one after another: a partition's under `Order.PARTITION`, a key's under `Order.KEY`.
- A **run** is the messages that a worker takes from a lane at once. What it has not done goes back.
- A partition's **progress** is the offset below which everything is done. Only that is committed: a message
  behind one that is not done stays uncommitted, and comes again if the process ends.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from confluent_kafka import Message

from groupwright.core import TopicPartitionKey

_MOST_OF_A_RUN = 100
"""Messages that a worker takes at most at once: taking costs a lock."""


class Order(StrEnum):
    """Which messages are processed one after another, in the order of their offsets."""

    PARTITION = "partition"
    """Those of a partition, as Kafka itself keeps their order. A partition keeps one worker busy at most."""
    KEY = "key"
    """Those of a partition that have the same key. Messages without a key have no order."""
    NONE = "none"
    """None."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a message is tried again whose function has raised.

    Attributes:
        attempts: Further calls after the first.
        backoff: Seconds before the first of them; each further one waits twice as long.
        max_backoff: The longest wait in seconds.
    """

    attempts: int
    backoff: float = 0.1
    max_backoff: float = 10.0

    def __post_init__(self) -> None:
        """Check the values."""
        if self.attempts < 0 or self.backoff < 0 or self.max_backoff < 0:
            raise ValueError(f"attempts and backoffs must not be negative: {self}")

    def delay(self, failures: int) -> float | None:
        """Return seconds until the next attempt after a number of failures; None if there is none."""
        if failures > self.attempts:
            return None
        return min(self.max_backoff, self.backoff * 2.0 ** min(failures - 1, 60))


@dataclass(slots=True, eq=False)
class Progress:
    """Progress of a partition: which of its messages are done.

    Attributes:
        key: The partition.
        received: Offsets, ascending, from the lowest that is not done to the highest that was received.
        next_offset: The offset to commit, below which everything is done; None until a message was received.
        requested: `to_commit` as it was last sent to the coordinator.
        confirmed: Whether the coordinator has acknowledged `requested`.
        last: The last offset that is still handed out; None while all are.
    """

    key: TopicPartitionKey
    received: deque[int] = field(default_factory=deque)
    next_offset: int | None = None
    requested: tuple[int, int] | None = None
    confirmed: bool = False
    last: int | None = None
    _done: set[int] = field(default_factory=set)
    _times: deque[tuple[int, float]] = field(default_factory=deque)
    """The last offset of what was received at the same time, and this time."""

    def receive(self, offset: int, now: float) -> None:
        """Add the next message."""
        if self.next_offset is None:
            # Committed, too: without a committed offset, auto.offset.reset may skip what was never done.
            self.next_offset = offset
        self.received.append(offset)
        if self._times and self._times[-1][1] == now:
            self._times[-1] = (offset, now)
        else:
            self._times.append((offset, now))

    def finish(self, offset: int) -> None:
        """Record that a message is done."""
        received, done = self.received, self._done
        if received[0] != offset:
            done.add(offset)
            return
        received.popleft()
        while received and received[0] in done:
            offset = received.popleft()
            done.remove(offset)
        self.next_offset = offset + 1
        while self._times and self._times[0][0] <= offset:
            self._times.popleft()

    def stop(self, processing: Collection[int]) -> None:
        """Let only messages be handed out that close a gap: below one that is done or being processed."""
        if self.last is None:
            self.last = max([*self._done, *processing], default=-1)

    def hands_out(self, offset: int) -> bool:
        """Return whether a message may be handed out."""
        return self.last is None or offset <= self.last

    @property
    def is_drained(self) -> bool:
        """Whether it has stopped, and everything is done that is still handed out."""
        return self.last is not None and (not self.received or self.received[0] > self.last)

    @property
    def in_flight(self) -> int:
        """The number of messages that are not done."""
        return len(self.received) - len(self._done)

    @property
    def done_beyond(self) -> int:
        """The number of messages that are done, behind one that is not. They come again after a crash."""
        return len(self._done)

    @property
    def to_commit(self) -> tuple[int, int] | None:
        """The offset to commit, and the number of messages done beyond; None if there is nothing to say."""
        return None if self.next_offset is None else (self.next_offset, self.done_beyond)

    @property
    def waiting_since(self) -> float | None:
        """The time at which the message was received that holds the commit back; None if nothing does."""
        return self._times[0][1] if self._times else None

    @property
    def highest(self) -> int:
        """The last offset that was received; -1 before the first."""
        return self.received[-1] if self.received else (self.next_offset or 0) - 1


@dataclass(slots=True, eq=False)
class Lane:
    """A queue of messages.

    Attributes:
        progress: That of their partition.
        key: Its key in `Work`'s lanes; None for a lane that no further message joins.
        is_exclusive: Whether one worker at a time may have messages of it.
        queue: The messages that nobody has taken, each after its number in the order of arrival.
        failures: How often the first of them has failed.
        is_held: Whether nobody may take from it: a worker has it, or its first message waits for a retry.
        is_ready: Whether it is in the list of those to take from.
    """

    progress: Progress
    key: object
    is_exclusive: bool
    queue: deque[tuple[int, Message]] = field(default_factory=deque)
    failures: int = 0
    is_held: bool = False
    is_ready: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """Messages that one worker has taken.

    Attributes:
        lane: Where they come from.
        messages: The messages, in the order of their offsets.
        numbers: Their numbers in the order of arrival.
        done: How many of them are done. The worker alone changes it.
        counted: How many of these the progress knows of.
        is_cut: Whether the worker must stop after the message that it works on.
    """

    lane: Lane
    messages: list[Message]
    numbers: list[int]
    done: int = 0
    counted: int = 0
    is_cut: bool = False

    @property
    def current(self) -> Message | None:
        """The message that the worker works on."""
        done = self.done
        return self.messages[done] if done < len(self.messages) else None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What was left of a partition when this process gave it up.

    Attributes:
        key: The partition.
        next_offset: The offset below which everything is done; None if nothing was received.
        running: Offsets of messages that a worker still works on.
        in_flight: The number of messages that are not done, these included.
        done_beyond: The number of messages that are done, behind one that is not.
    """

    key: TopicPartitionKey
    next_offset: int | None
    running: Sequence[int]
    in_flight: int
    done_beyond: int


class Work:
    """All messages in flight. Not thread-safe."""

    def __init__(self, order: Order, workers: int, max_in_flight: int, retry: Retry) -> None:
        """Create it without partitions.

        Args:
            order: Which messages are processed one after another.
            workers: The number of workers.
            max_in_flight: The number of messages to hold, counted in each partition from the lowest that is
                not done.
            retry: When a message is tried again.
        """
        self.done = 0
        self.retries = 0
        self._order = order
        self._workers = workers
        self._max_in_flight = max_in_flight
        self._retry = retry
        self._partitions: dict[TopicPartitionKey, Progress] = {}
        self._lanes: dict[object, Lane] = {}
        self._ready: list[tuple[int, Lane]] = []
        """A heap by the number of the first message: the oldest is next, so that gaps stay small."""
        self._delayed: list[tuple[float, int, Lane]] = []
        self._numbers = itertools.count()
        self._runs: set[Run] = set()

    # --- Partitions ---------------------------------------------------------------------------------

    @property
    def partitions(self) -> Mapping[TopicPartitionKey, Progress]:
        """The progress of each partition that this process has."""
        return self._partitions

    def assign(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Begin with partitions, at whatever message of theirs comes first."""
        for key in keys:
            self._partitions[key] = Progress(key)

    def stop(self, keys: Collection[TopicPartitionKey] | None = None) -> None:
        """Begin to drain partitions (None: all): runs end with their present message, and no gap stays."""
        self.settle()
        processing: dict[TopicPartitionKey, list[int]] = {}
        for run in self.runs(keys):
            run.is_cut = True
            if run.current is not None:
                processing.setdefault(run.lane.progress.key, []).append(_offset(run.current))
        for progress in self._of(keys):
            progress.stop(processing.get(progress.key, []))

    def is_drained(self, keys: Collection[TopicPartitionKey] | None = None) -> bool:
        """Return whether nothing is left to wait for in partitions that are stopped (None: in all)."""
        self.settle()
        return not self.runs(keys) and all(progress.is_drained for progress in self._of(keys))

    def runs(self, keys: Collection[TopicPartitionKey] | None = None) -> list[Run]:
        """Return what workers have of partitions (None: of all)."""
        return [run for run in self._runs if keys is None or run.lane.progress.key in keys]

    def settle(self) -> None:
        """Have the progress include what workers have done of the runs that they still have."""
        for run in self._runs:
            self._count(run)

    def give_up(self, keys: Collection[TopicPartitionKey]) -> list[GivenUp]:
        """Forget partitions, and return what was left of them. Runs of them no longer count."""
        running: dict[TopicPartitionKey, list[int]] = {}
        for run in self.runs(keys):
            self._count(run)
            run.is_cut = True
            self._runs.discard(run)
            if (message := run.current) is not None:
                running.setdefault(run.lane.progress.key, []).append(_offset(message))
        given_up = self._of(keys)
        for progress in given_up:
            progress.last = -1
            del self._partitions[progress.key]
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane.progress not in given_up}
        return [
            GivenUp(each.key, each.next_offset, running.get(each.key, []), each.in_flight, each.done_beyond)
            for each in given_up
        ]

    # --- Messages -----------------------------------------------------------------------------------

    def add(self, messages: Iterable[Message], now: float) -> dict[TopicPartitionKey, int]:
        """Add received messages; those of partitions that this process no longer has are left out.

        Return offsets to seek to: those below which all is done, of partitions whose log was cut off above
        them. Messages between would be committed with those that come now.
        """
        seeks: dict[TopicPartitionKey, int] = {}
        for message in messages:
            progress = self._partitions.get((message.topic(), message.partition()))  # type: ignore[arg-type]
            if progress is None or progress.key in seeks:
                continue
            offset = _offset(message)
            if offset <= progress.highest:
                # The log was cut off, or the partition came back within the same call: begin again here.
                (left,) = self.give_up([progress.key])
                self.assign([progress.key])
                progress = self._partitions[progress.key]
                if left.next_offset is not None and left.next_offset < offset:
                    seeks[progress.key] = left.next_offset
                    continue
            progress.receive(offset, now)
            lane = self._lane(progress, message)
            lane.queue.append((next(self._numbers), message))
            self._list(lane)
        return seeks

    def take(self, now: float) -> Run | None:
        """Return messages for a worker; None if nothing can be processed now."""
        while self._delayed and self._delayed[0][0] <= now:
            lane = heapq.heappop(self._delayed)[2]
            lane.is_held = False
            self._list(lane)
        while self._ready:
            _, lane = heapq.heappop(self._ready)
            lane.is_ready = False
            if lane.queue and lane.progress.hands_out(_offset(lane.queue[0][1])):
                return self._run_of(lane)
        return None

    def next_retry(self) -> float | None:
        """Return when a message is to be tried again; None if there is none."""
        return self._delayed[0][0] if self._delayed else None

    def finish(self, run: Run) -> None:
        """Take back what a worker has not done of its messages."""
        self._end(run, None)

    def abandon(self, run: Run) -> bool:
        """Take back a run whose present message has failed for good, and begin to drain everything else.

        Return False, and do nothing, if its partition was given up: the message is another process's.
        """
        if run not in self._runs:
            return False
        self.stop()
        progress = run.lane.progress
        # What comes before it is still to be done, and to be committed.
        progress.last = min(
            _offset(run.messages[run.done]) - 1, -1 if progress.last is None else progress.last
        )
        self._end(run, None)
        return True

    def fail(self, run: Run, now: float) -> bool:
        """Take back a run whose present message has failed; return whether the message is tried again.

        If not, the worker keeps the run.
        """
        if run not in self._runs:
            return True  # its partition was given up: it is tried again by whom it now belongs to
        lane = run.lane
        failures = lane.failures + 1 if run.done == 0 else 1
        delay = self._retry.delay(failures)
        if delay is None:
            return False
        self.retries += 1
        if not lane.is_exclusive:
            # From now on it is alone, and the others go on.
            alone = deque([(run.numbers.pop(run.done), run.messages.pop(run.done))])
            self._end(run, None)
            lane = Lane(lane.progress, None, is_exclusive=True, queue=alone, is_held=True)
        else:
            self._end(run, now + delay)
        lane.failures = failures
        heapq.heappush(self._delayed, (now + delay, next(self._numbers), lane))
        return True

    # --- Limits -------------------------------------------------------------------------------------

    @property
    def share(self) -> int:
        """The number of messages that a partition may hold, so that none starves the others."""
        return max(1, self._max_in_flight // max(1, len(self._partitions)))

    @property
    def has_idle_workers(self) -> bool:
        """Whether a worker finds nothing to take, while others work."""
        return not self._ready and len(self._runs) < self._workers

    def full(self) -> set[TopicPartitionKey]:
        """Return the partitions that hold their share of messages."""
        share = self.share
        return {key for key, progress in self._partitions.items() if len(progress.received) >= share}

    def roomy(self) -> set[TopicPartitionKey]:
        """Return the partitions that hold at most half of their share."""
        half = self.share // 2
        return {key for key, progress in self._partitions.items() if len(progress.received) <= half}

    def room(self, paused: Collection[TopicPartitionKey]) -> int:
        """Return the number of messages that may come, of whatever partitions that are not paused.

        At least 1: a partition is assigned, and its first message comes, before its share is known.
        """
        share = self.share
        rooms = (share - len(each.received) for key, each in self._partitions.items() if key not in paused)
        return max(1, min(rooms, default=share))

    # --- Within -------------------------------------------------------------------------------------

    def _of(self, keys: Collection[TopicPartitionKey] | None) -> list[Progress]:
        return [each for key, each in self._partitions.items() if keys is None or key in keys]

    def _lane(self, progress: Progress, message: Message) -> Lane:
        key: object = progress.key
        is_exclusive = self._order is not Order.NONE
        if self._order is Order.KEY:
            value = message.key()
            if value is None:
                is_exclusive = False
            else:
                key = (progress.key, value)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(progress, key, is_exclusive)
        return lane

    def _list(self, lane: Lane) -> None:
        if lane.queue and not lane.is_ready and not lane.is_held:
            lane.is_ready = True
            heapq.heappush(self._ready, (lane.queue[0][0], lane))

    def _run_of(self, lane: Lane) -> Run:
        queue = lane.queue
        number = min(len(queue), _MOST_OF_A_RUN)
        if lane.failures:
            number = 1
        elif not lane.is_exclusive:
            # Smaller ones towards the end, so that no worker has many while others have none.
            number = min(number, max(1, len(queue) // (2 * self._workers)))
        taken = [queue.popleft() for _ in range(number)]
        numbers, messages = [each[0] for each in taken], [each[1] for each in taken]
        run = Run(lane, messages, numbers, is_cut=lane.progress.last is not None)
        self._runs.add(run)
        lane.is_held = lane.is_exclusive
        self._list(lane)
        return run

    def _count(self, run: Run) -> None:
        progress, done = run.lane.progress, run.done
        for message in run.messages[run.counted : done]:
            progress.finish(_offset(message))
        self.done += done - run.counted
        run.counted = done

    def _end(self, run: Run, held_until: float | None) -> None:
        if run not in self._runs:
            return  # its partition was given up
        self._runs.discard(run)
        self._count(run)
        lane = run.lane
        if run.done:
            lane.failures = 0
        back = list(zip(run.numbers[run.done :], run.messages[run.done :], strict=True))
        lane.queue.extendleft(reversed(back))
        if back and not lane.is_exclusive:  # another run may have given back earlier messages before
            lane.queue = deque(sorted(lane.queue, key=_number))
        lane.is_held = held_until is not None
        if not lane.queue and self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]
        self._list(lane)


def _number(queued: tuple[int, Message]) -> int:
    return queued[0]


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "an error is no message"  # noqa: S101 - for mypy
    return offset
