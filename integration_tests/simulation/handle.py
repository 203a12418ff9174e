"""librdkafka's handle with partitions that are assigned by hand, as the consumer uses it.

It follows what the parity suite and experiments have shown of librdkafka 2.16:

- A partition without an offset starts at the committed one, which is fetched from the coordinator; without
  one, or at "beginning" and "end", ListOffsets is sent.
- The late answer to that ListOffsets overrides a seek that was made meanwhile. If the partition was
  unassigned meanwhile, ListOffsets is sent again half a second later, and its answer overrides a new
  assignment's start.
- Messages of a partition that was unassigned, sought or paused are never returned afterwards.
- `incremental_assign` and `incremental_unassign` are refused as a whole.
- A pause outlives an assignment; it is ignored for a topic that was never assigned.
- A position is kept after `incremental_unassign`; there is none between an assignment and the first message.
- With `enable.partition.eof`, a fetch that returns nothing at the end of the log returns that end once, until
  the next message, seek or assignment.
- A signal handler that raises within a native call ends it; what it had taken is dropped.
- A handle that has lost all its brokers fetches nothing, without an error, until it is created again.
- `seek` fails while the committed offset is being fetched, for what is not assigned, and while a former fetch
  of the partition has not ended, which takes up to seconds on a busy machine.
"""

import functools
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.scheduler import MS
from integration_tests.simulation import runtime
from integration_tests.simulation.runtime import MemberProcess, Threading, Wakeup

_Key = tuple[str, int]

SLICE = 0.025
"""Seconds of the shortest native call that the consumer repeats."""
_BUFFERED = 20
"""Longest queue of messages of one partition."""
_RETRY = 300 * MS
"""Longest time until a request to a broker that is not reached is sent again."""
_STOP = 2_000 * MS
"""Longest time until the fetch of an unassigned partition has ended."""
_REPEATED = 500 * MS
"""Time until ListOffsets is sent again after its partition was unassigned."""
_RESETS = {"earliest": OFFSET_BEGINNING, "smallest": OFFSET_BEGINNING, "beginning": OFFSET_BEGINNING}


class _Fetcher:
    """One assigned partition. A version marks what was fetched before a seek or a pause as outdated."""

    __slots__ = (
        "assigned",
        "buffered",
        "end",
        "is_active",
        "is_pending",
        "is_waiting",
        "next",
        "offset",
        "topic_id",
        "version",
    )

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """The offset that it was assigned with."""
        self.assigned = True
        self.is_active = False
        """True if `next` is a real offset."""
        self.is_pending = False
        """True if it is not started yet, because a former fetch of the partition has not ended."""
        self.next = offset
        """The next offset to fetch."""
        self.topic_id: int | None = None
        self.version = 0
        self.buffered = 0
        self.end = -1
        """The end of the log that was returned last; -1 if none was since the start."""
        self.is_waiting = False
        """True if a fetch is under way."""


class Librdkafka:
    """State and calls of librdkafka behind a handle."""

    cluster: Cluster
    """The cluster of the simulation; set for each simulation."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Create a handle in the present thread's process."""
        self._process: MemberProcess = runtime.current().process
        self._random = runtime.present().random
        self._group = config["group.id"]
        self._reset = _RESETS.get(str(config.get("auto.offset.reset", "latest")), OFFSET_END)
        self._fetchers: dict[_Key, _Fetcher] = {}
        self._queue: deque[tuple[_Key, _Fetcher, int, int, bool]] = deque()
        """Partition, its fetcher and version, an offset, and whether that is the end of the log."""
        self._returns_ends = bool(config.get("enable.partition.eof"))
        self._positions: dict[_Key, int] = {}
        self._known: set[str] = set()
        self._paused: set[_Key] = set()
        self._stopping: dict[_Key, int] = {}
        """Times at which the fetches of unassigned partitions have ended."""
        self._fetched = Wakeup()
        self._is_idle = False
        self.idle_until: Callable[[], float] = lambda: 0.0
        """Returns the time until which the consumer has nothing to do between two native calls."""
        self.poll_until = 0.0
        """When the application's present poll ends."""
        self.on_late_answer: Callable[[_Key, int], object] = lambda _key, _offset: None
        """Called when a late ListOffsets response moves a partition that was started elsewhere meanwhile."""
        self.gate = Threading.RLock()
        """Held for each call; confluent-kafka's handle lets one thread in at a time."""
        self._closed = False
        self.lost_brokers = False
        """True if it has lost all its brokers, and does not bootstrap again."""

    # --- Messages

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next message."""
        messages = self.consume(1, timeout)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to `num_messages` messages, after `timeout` seconds at the latest."""
        self._check_open()
        messages: list[Message] = []
        self._take(messages, num_messages)
        if len(messages) == num_messages or timeout == 0:
            return messages
        clock = runtime.present().monotonic
        if timeout >= SLICE and not messages:
            timeout = self._skip_idle_slices(clock, timeout)
            self._take(messages, num_messages)
        deadline = math.inf if timeout < 0 else clock() + timeout
        while len(messages) < num_messages and (remaining := deadline - clock()) > 0:
            self._fetched.wait(remaining)
            self._take(messages, num_messages)
        return messages

    def _skip_idle_slices(self, clock: Callable[[], float], slice_: float) -> float:
        """Wait for as many slices as would return nothing; return the rest of the last one, in seconds.

        While nothing is due, the consumer makes one native call after the other, of 25 to 150 ms each. They
        are skipped until a message comes, the consumer is woken, or its next check or its deadline is due.
        """
        idle = min(self.idle_until(), self.poll_until) - clock()
        if idle <= slice_:
            return slice_
        self._is_idle = True
        self._fetched.wait(idle)
        self._is_idle = False
        return min(self._random.random() * slice_, max(0.0, self.poll_until - clock()))

    def wake(self) -> None:
        """Have the present native call end with its slice."""
        if self._is_idle:
            self._fetched.notify()

    def _take(self, messages: list[Message], most: int) -> None:
        queue = self._queue
        while queue and len(messages) < most:
            key, fetcher, version, offset, is_end = queue.popleft()
            if is_end and fetcher.assigned and fetcher.version == version:
                end = KafkaError(KafkaError._PARTITION_EOF)
                messages.append(Message(topic=key[0], partition=key[1], offset=offset, error=end))
            elif fetcher.assigned and fetcher.version == version:
                fetcher.buffered -= 1
                self._positions[key] = offset + 1
                value = str(fetcher.topic_id).encode()
                messages.append(Message(topic=key[0], partition=key[1], offset=offset, value=value))
                if fetcher.buffered < _BUFFERED // 2:
                    self._fetch(key, fetcher)

    # --- The assignment

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Replace the assignment."""
        self._check_open()
        self._remove(list(self._fetchers))
        if len({_key(p) for p in partitions}) < len(partitions):
            raise _error(KafkaError._INVALID_ARG)
        self._add(partitions)

    def unassign(self) -> None:
        """Remove all partitions."""
        self._check_open()
        self._remove(list(self._fetchers))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Add partitions, or refuse all."""
        self._check_open()
        keys = [_key(p) for p in partitions]
        if len(set(keys)) < len(keys):
            raise _error(KafkaError._INVALID_ARG)
        if any(key in self._fetchers for key in keys):
            raise _error(KafkaError._CONFLICT)
        self._add(partitions)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Remove partitions, or refuse all."""
        self._check_open()
        keys = [_key(p) for p in partitions]
        if len(set(keys)) < len(keys) or any(key not in self._fetchers for key in keys):
            raise _error(KafkaError._INVALID_ARG)
        self._remove(keys)

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions with the offsets that they were assigned with."""
        self._check_open()
        return [TopicPartition(*key, fetcher.offset) for key, fetcher in sorted(self._fetchers.items())]

    def _add(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            key = _key(partition)
            unset = partition.offset == OFFSET_INVALID
            fetcher = self._fetchers[key] = _Fetcher(OFFSET_STORED if unset else partition.offset)
            self._known.add(key[0])
            self._positions.pop(key, None)
            stopped_at = self._stopping.pop(key, 0)
            if stopped_at > self._process.scheduler.now:
                fetcher.is_pending = True
                self._process.call_at(stopped_at, functools.partial(self._begin, key, fetcher))
            else:
                self._start(key, fetcher, fetcher.offset)

    def _begin(self, key: _Key, fetcher: _Fetcher) -> None:
        """Start a partition whose former fetch has ended."""
        fetcher.is_pending = False
        if fetcher.assigned:
            self._start(key, fetcher, fetcher.offset)

    def _remove(self, keys: list[_Key]) -> None:
        for key in keys:
            fetcher = self._fetchers.pop(key)
            fetcher.assigned = False
            self._stopping[key] = self._process.scheduler.now + int(self._random.random() ** 4 * _STOP)
            if not fetcher.is_active and fetcher.offset in {OFFSET_BEGINNING, OFFSET_END}:
                logical = fetcher.offset
                self._process.call_in(_REPEATED, functools.partial(self._repeat, key, logical))

    def _repeat(self, key: _Key, logical: int) -> None:
        """Answer a ListOffsets that was sent again; it overrides the start of a new assignment."""
        fetcher, offset = self._fetchers.get(key), self._logical(key, logical)
        if fetcher is not None and offset is not None and not self._closed:
            self._found(key, fetcher, offset)

    # --- Offsets

    def _start(self, key: _Key, fetcher: _Fetcher, offset: int) -> None:
        """Find the offset to start at, if it is none yet, and fetch."""
        if offset >= 0:
            self._restart(key, fetcher, offset)
        elif offset == OFFSET_STORED:
            self._later(lambda: self._committed_found(key, fetcher), fetcher)
        else:
            self._later(lambda: self._listed(key, fetcher, offset), fetcher)

    def _later(self, action: Callable[[], None], fetcher: _Fetcher, *, longest: int = 0) -> None:
        """Act after a round trip, unless the partition is unassigned by then."""
        delay = int(self._random.random() * longest) if longest else self._round_trip()

        def act() -> None:
            if fetcher.assigned and not self._closed:
                action()

        self._process.call_in(delay, act)

    def _round_trip(self) -> int:
        slow = self._random.random() < 0.05
        return int(self._random.random() * (80 * MS if slow else 4 * MS)) + 300

    def _committed_found(self, key: _Key, fetcher: _Fetcher) -> None:
        broker = self.cluster.coordinator_broker
        if broker is None or not self._reaches(broker):
            self._later(lambda: self._committed_found(key, fetcher), fetcher, longest=_RETRY)
            return
        offset = self.cluster.coordinator.committed(self._group, key)
        self._start(key, fetcher, offset if offset >= 0 else self._reset)

    def _listed(self, key: _Key, fetcher: _Fetcher, logical: int) -> None:
        offset = self._logical(key, logical)
        if offset is None:
            self._later(lambda: self._listed(key, fetcher, logical), fetcher, longest=_RETRY)
        else:
            self._found(key, fetcher, offset)

    def _found(self, key: _Key, fetcher: _Fetcher, offset: int) -> None:
        if fetcher.is_active:
            self.on_late_answer(key, offset)
        self._restart(key, fetcher, offset)

    def _logical(self, key: _Key, logical: int) -> int | None:
        topic = self.cluster.topics.get(key[0])
        if topic is None or key[1] >= len(topic.ends) or not self._reaches(self.cluster.leader(key)):
            return None
        return topic.ends[key[1]] if logical == OFFSET_END else 0

    def _restart(self, key: _Key, fetcher: _Fetcher, offset: int) -> None:
        """Fetch from an offset; what was fetched before is outdated."""
        fetcher.next, fetcher.is_active, fetcher.buffered, fetcher.end = offset, True, 0, -1
        fetcher.version += 1
        fetcher.is_waiting = False
        self._fetch(key, fetcher)

    def _fetch(self, key: _Key, fetcher: _Fetcher) -> None:
        if fetcher.is_waiting or not fetcher.is_active or key in self._paused:
            return
        fetcher.is_waiting = True
        self._later(functools.partial(self._arrived, key, fetcher, fetcher.version), fetcher)

    def _arrived(self, key: _Key, fetcher: _Fetcher, version: int) -> None:
        if version != fetcher.version:
            return
        topic = self.cluster.topics.get(key[0])
        is_known = topic is not None and key[1] < len(topic.ends)
        if topic is None or not is_known or not self._reaches(self.cluster.leader(key)):
            self._later(functools.partial(self._arrived, key, fetcher, version), fetcher, longest=_RETRY)
            return
        end = topic.ends[key[1]]
        fetcher.is_waiting = False
        if fetcher.next > end:  # OFFSET_OUT_OF_RANGE
            self._restart(key, fetcher, end if self._reset == OFFSET_END else 0)
        elif fetcher.next == end:
            fetcher.is_waiting = True
            if self._returns_ends and fetcher.end != end:
                fetcher.end = end
                self._queue.append((key, fetcher, version, end, True))
                self._fetched.notify()
            arrived = lambda: self._more(key, fetcher, version)  # noqa: E731 - short
            topic.fetchers.setdefault(key[1], []).append(arrived)
        else:
            fetcher.topic_id = topic.id
            last = min(end, fetcher.next + _BUFFERED)
            for offset in range(fetcher.next, last):
                self._queue.append((key, fetcher, version, offset, False))
            fetcher.buffered += last - fetcher.next
            fetcher.next = last
            self._fetched.notify()

    def _more(self, key: _Key, fetcher: _Fetcher, version: int) -> None:
        """Go on after a message was produced."""
        if fetcher.assigned and fetcher.version == version and not self._closed:
            fetcher.is_waiting = False
            self._fetch(key, fetcher)

    def _reaches(self, broker: int) -> bool:
        return not self.lost_brokers and self.cluster.reaches(self._process, broker)

    # --- Positions

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the offsets after the last messages."""
        self._check_open()
        return [TopicPartition(*_key(p), self._positions.get(_key(p), OFFSET_INVALID)) for p in partitions]

    def seek(self, partition: TopicPartition) -> None:
        """Continue at another offset."""
        self._check_open()
        key = _key(partition)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            raise _error(KafkaError._UNKNOWN_PARTITION)
        if fetcher.is_pending or (not fetcher.is_active and fetcher.offset == OFFSET_STORED):
            raise _error(KafkaError._STATE)
        self._positions.pop(key, None)
        if partition.offset >= 0:
            self._restart(key, fetcher, partition.offset)
        else:
            fetcher.is_active = False
            fetcher.version += 1
            self._start(key, fetcher, partition.offset)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Pause; messages that were fetched are dropped."""
        self._check_open()
        for key in map(_key, partitions):
            if key[0] in self._known:
                self._paused.add(key)
                fetcher = self._fetchers.get(key)
                if fetcher is not None:
                    self._drop_fetched(key, fetcher)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Fetch again."""
        self._check_open()
        for key in map(_key, partitions):
            self._paused.discard(key)
            fetcher = self._fetchers.get(key)
            if fetcher is not None:
                self._drop_fetched(key, fetcher)
                self._fetch(key, fetcher)

    def _drop_fetched(self, key: _Key, fetcher: _Fetcher) -> None:
        if fetcher.is_active:
            fetcher.next = self._positions.get(key, fetcher.next - fetcher.buffered)
            fetcher.version += 1
            fetcher.buffered, fetcher.is_waiting = 0, False

    # --- Requests of the application

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Fail as librdkafka does without time, or without brokers; else return nothing."""
        self._check_open()
        del topic
        if self.lost_brokers:
            raise _error(KafkaError._TRANSPORT)
        if timeout == 0:
            raise _error(KafkaError._TIMED_OUT)
        self._wait(timeout)
        if not any(self._reaches(broker.number) for broker in self.cluster.brokers):
            raise _error(KafkaError._TRANSPORT)

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Return committed offsets."""
        self._check_open()
        self._wait(timeout)
        broker = self.cluster.coordinator_broker
        if broker is None or not self._reaches(broker):
            raise _error(KafkaError._TIMED_OUT)
        found = (self.cluster.coordinator.committed(self._group, _key(p)) for p in partitions)
        offsets = [OFFSET_INVALID if offset < 0 else offset for offset in found]
        return [TopicPartition(*_key(p), offset) for p, offset in zip(partitions, offsets, strict=True)]

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Time out, as with a timeout of 0."""
        del partitions, timeout
        self._check_open()
        raise _error(KafkaError._TIMED_OUT)

    def get_watermark_offsets(
        self,
        partition: TopicPartition,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 - confluent-kafka's signature
    ) -> tuple[int, int]:
        """Return the first and the last offset."""
        del timeout, cached
        self._check_open()
        topic = self.cluster.topics.get(partition.topic)
        return (0, topic.ends[partition.partition] if topic is not None else OFFSET_INVALID)

    def cluster_id(self, **_: Any) -> str:
        """Return a name."""
        return "simulation"

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Ignore them: no broker asks."""

    def _wait(self, timeout: float) -> None:
        seconds = self._round_trip() / 1_000_000
        runtime.current().block(seconds if timeout < 0 else min(seconds, timeout))

    # --- The end

    def close(self) -> None:
        """Close; nothing is committed, and no group is left."""
        self._closed = True
        for fetcher in self._fetchers.values():
            fetcher.assigned = False
        self._fetchers.clear()
        self._queue.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")


if TYPE_CHECKING:
    from groupwright.consumer._membership.handle import Fetcher

    _implemented: type[Fetcher] = Librdkafka
    """The consumer's interface to what fetches. At run time the consumer is imported later: see `install`."""


class Handle:
    """A `confluent_kafka.Consumer` without a network. Its subclass, the consumer, has names of its own."""

    librdkafka: Librdkafka

    def __init__(self, config: dict[str, Any]) -> None:
        """Create a handle in the present thread's process."""
        self.librdkafka = Librdkafka(config)


def _forward(name: str) -> Any:
    def call(handle: Handle, *args: Any, **kwargs: Any) -> Any:
        librdkafka = handle.librdkafka
        with librdkafka.gate:
            return getattr(librdkafka, name)(*args, **kwargs)

    return call


for _name in (
    "poll", "consume", "assign", "unassign", "incremental_assign", "incremental_unassign", "assignment",
    "position", "seek", "pause", "resume", "list_topics", "committed", "offsets_for_times",
    "get_watermark_offsets", "cluster_id", "set_sasl_credentials", "close",
):  # fmt: skip
    setattr(Handle, _name, _forward(_name))


def _key(partition: TopicPartition) -> _Key:
    return (partition.topic, partition.partition)


def _error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))
