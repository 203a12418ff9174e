"""The thread that polls: it receives messages for the workers, commits what is done, and serves rebalances.

    poll -> Work.add -> workers take, process, finish -> commit
                 ^ full partitions are paused

Workers are threads or asyncio's tasks; the engine knows only that they call `take`, `finish` and `fail`. All
calls of the consumer are made by the polling thread, also those of the rebalance callbacks.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import DeserializingConsumer, KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer._parallel.work import GivenUp, Run, Work
from groupwright.consumer.errors import ConfigurationError
from groupwright.core import GroupwrightError, TopicPartitionKey
from groupwright.core.locking import call_locked

_POLL_SECONDS = 0.1
"""How long a poll waits. Between polls, commits are sent and paused partitions resumed."""
_MOST_AT_ONCE = 500
"""Messages that are received at most at once."""
_PATIENCE_SECONDS = 0.1
"""How long workers may take to make room before a full partition is paused. librdkafka drops what it has
fetched of a paused one, so pausing for a moment would fetch the same messages again and again."""
_TURN_SECONDS = 1.0
"""How long messages may come of one partition alone, while what was fetched of others waits behind them."""
_LOOKUP_SECONDS = 5.0
_LAST_WORDS = ("groupwright: ", " later messages were processed")
"""Words around the number of messages done behind an offset, which is committed with it."""

_log = logging.getLogger("groupwright.parallel")


class MessageFailedError(GroupwrightError):
    """The function raised for a message, and neither a retry nor a dead letter was left.

    The function's exception is its cause. The message is not committed, nor is any behind it in its
    partition.

    Attributes:
        message: The message.
    """

    def __init__(self, message: Message) -> None:
        """Create the error for a message."""
        super().__init__(
            f"{name_of(message)} could not be processed; it is not committed, nor is any behind it in its "
            "partition"
        )
        self.message = message


@dataclass(frozen=True, slots=True)
class ParallelStatistics:
    """State of the workers and their messages at one moment.

    Attributes:
        in_flight: Messages that were received and are not done, by partition. A consumer's lag, which counts
            from the committed offset, includes them.
        running: The number of messages that workers work on.
        done_beyond: The number of messages that are done behind one that is not, and so cannot be committed.
        oldest_seconds: The age, since it was received, of the message that holds a commit back the longest.
        done: The number of messages that were processed, since the start.
        retries: The number of calls that were repeated, since the start.
        dead_letters: The number of messages that were given to the dead-letter function, since the start.
    """

    in_flight: Mapping[TopicPartitionKey, int]
    running: int
    done_beyond: int
    oldest_seconds: float
    done: int
    retries: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds.

    Attributes:
        commit_interval: Between two commits.
        drain_timeout: Longest wait for messages in flight before a partition is given up.
    """

    commit_interval: float
    drain_timeout: float


class Engine:
    """The polling side."""

    def __init__(
        self,
        create: Callable[[dict[str, Any]], Any],
        config: Mapping[str, Any],
        work: Work,
        limits: Limits,
        *,
        looks_back: bool,
    ) -> None:
        """Create the consumer.

        Args:
            create: Creates it from a configuration.
            config: Its configuration.
            work: The messages in flight.
            limits: Times.
            looks_back: Whether messages may have been done behind the committed offset of a partition.

        Raises:
            ConfigurationError: The configuration has the client commit by itself, or times contradict.
            TypeError: The consumer deserializes.
        """
        self.dead_letters = 0
        self.on_ready: Callable[[], object] = lambda: None
        """Called by any thread when there may be something to take, or all has ended; the lock is held."""
        self.on_given_up: Callable[[Sequence[Run]], object] = lambda _: None
        """Called by the polling thread with runs that no longer count."""
        self._work = work
        self._looks_back = looks_back
        self._limits = limits
        # Reentrant, so that a signal handler may ask for the statistics.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._on_commit = config.get("on_commit")
        self.group_id = str(config.get("group.id", ""))
        self.client_id = str(config.get("client.id", "rdkafka"))
        self.consumer = create(_configured(config, limits) | {"on_commit": self._committed})
        if isinstance(self.consumer, DeserializingConsumer):
            self.consumer.close()
            raise TypeError(
                "a DeserializingConsumer cannot work in parallel: create a Consumer, and deserialize in the "
                "function, so that a message which cannot be deserialized is tried again or a dead letter"
            )
        if (measure := getattr(self.consumer, "measure_work", None)) is not None:
            engine = weakref.ref(self)  # so that a consumer that was never run can be collected
            measure(lambda: [] if (found := engine()) is None else found.working())
        self._error: BaseException | None = None
        self._failure: tuple[Message, BaseException] | None = None
        self._is_stopping = False
        self._has_ended = False
        self._paused: set[TopicPartitionKey] = set()
        """Partitions that are paused, also if they were revoked: one that is assigned again stays paused."""
        self._turn: tuple[set[TopicPartitionKey], float] = set(), 0.0
        """The one partition of which messages come, and since when; several if that has just ended."""
        self._assigned: list[TopicPartitionKey] = []
        """Partitions of which it is not known yet what was done of them before."""
        self._next_commit = 0.0

    # --- For any thread -----------------------------------------------------------------------------

    def stop(self) -> None:
        """Have `run` end. A signal handler may call it: it takes no lock."""
        self._is_stopping = True

    def statistics(self) -> ParallelStatistics:
        """Return what is going on."""
        return call_locked(self._lock, self._statistics)

    def working(self) -> list[Message]:
        """Return the messages that workers work on."""

        def working() -> list[Message]:
            return [message for run in self._work.runs() if (message := run.current) is not None]

        return call_locked(self._lock, working)

    # --- For workers --------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """True once workers get no more messages."""
        return self._has_ended

    def take(self, *, waits: bool) -> Run | None:
        """Return messages to process; None if there are none at this moment, or at last.

        Args:
            waits: Whether to wait until there are some, or all has ended.
        """

        def take() -> Run | None:
            while not self._has_ended:
                run = self._work.take(time.monotonic())
                if run is not None or not waits:
                    return run
                self._changed.wait(self.seconds_to_retry())
            return None

        return call_locked(self._lock, take)

    def seconds_to_retry(self) -> float | None:
        """Return the time until a message is to be tried again; None if there is none."""
        retry = self._work.next_retry()
        return None if retry is None else max(0.0, retry - time.monotonic())

    def finish(self, run: Run) -> None:
        """Take back what a worker has not done of a run."""
        call_locked(self._lock, self._changing, self._work.finish, run)

    def retries(self, run: Run, message: Message, error: BaseException) -> bool:
        """Return whether the failed message of a run is tried again; if so, the run is taken back."""
        if not isinstance(error, Exception):
            return False
        is_given_up = self.is_given_up(run)
        if not call_locked(self._lock, self._changing, self._work.fail, run, time.monotonic()):
            return False
        if not is_given_up:
            _log.info("%s is tried again: %r", name_of(message), error)
        return True

    def is_given_up(self, run: Run) -> bool:
        """Return whether the partition of a run that a worker has is no longer this process's."""
        return call_locked(self._lock, lambda: run not in self._work.runs())

    def count_dead_letter(self, message: Message, error: BaseException) -> None:
        """Count, and log, a message that was given to the dead-letter function."""
        _log.warning("%s was given to the dead-letter function: %r", name_of(message), error)

        def count() -> None:
            self.dead_letters += 1

        call_locked(self._lock, count)

    def break_off(self, error: BaseException) -> None:
        """Have `run` end with an error that is no message's: a worker has ended."""

        def break_off() -> None:
            self._error = self._error or error
            self._is_stopping = True

        call_locked(self._lock, self._changing, break_off)

    def fail(self, run: Run, message: Message, error: BaseException) -> None:
        """Take back a run whose message has failed for good, and have `run` raise it if it still counts."""

        def fail() -> None:
            if self._work.abandon(run):
                self._failure = self._failure or (message, error)
                self._is_stopping = True

        call_locked(self._lock, self._changing, fail)

    def _changing(self, change: Callable[..., Any], *arguments: Any) -> Any:
        result = change(*arguments)
        self._changed.notify_all()
        self.on_ready()
        return result

    # --- The polling thread -------------------------------------------------------------------------

    def run(self, topics: Sequence[str]) -> None:
        """Consume until `stop`, or until a message fails; then give everything up, and close the consumer.

        Raises:
            MessageFailedError: A message failed.
            KafkaException: The consumer cannot go on.
        """
        consumer = self.consumer
        try:
            consumer.subscribe(
                list(topics), on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
            )
            while not self._is_stopping:
                self._step()
            running = len(self.working())
            if running:
                _log.info(
                    "stopping, when %d messages are done that are being processed, within %g s",
                    running,
                    self._limits.drain_timeout,
                )
        finally:
            try:
                self._give_up(None, drains=True)
            finally:
                self._end()
                consumer.close()
        if self._error is not None:
            raise self._error
        if self._failure is not None:
            message, error = self._failure
            raise MessageFailedError(message) from error

    def _step(self) -> None:
        messages = self._receive()
        if messages:
            now = time.monotonic()
            seeks, given_up = call_locked(self._lock, self._changing, self._add, messages, now)
            if given_up:
                self.on_given_up(given_up)
            for (topic, number), offset in seeks.items():
                _log.warning(
                    "%s [%d]: its log was cut off; it is read again from offset %d", topic, number, offset
                )
                self.consumer.seek(TopicPartition(topic, number, offset))
            came_of = {(message.topic(), message.partition()) for message in messages}
            if self._turn[0] != came_of or len(came_of) > 1:
                self._turn = came_of, now  # type: ignore[assignment] # they are messages
            self._wait_for(self._has_room, _PATIENCE_SECONDS)
            self._pause()
        if self._paused:
            self._resume()
        if self._assigned:
            self._say_what_may_come_twice()
        now = time.monotonic()
        if now >= self._next_commit:
            self._next_commit = now + self._limits.commit_interval
            self._commit(None, waits=False)

    def _receive(self) -> list[Message]:
        """Return messages: the first that comes, and those that are there already."""
        first = self.consumer.poll(_POLL_SECONDS)
        if first is None:
            return []
        more = min(self._work.room(self._paused), _MOST_AT_ONCE) - 1
        messages = [first, *(self.consumer.consume(more, 0) if more > 0 else ())]
        return [message for message in messages if message.error() is None or _report(message)]

    def _add(
        self, messages: Sequence[Message], now: float
    ) -> tuple[Mapping[TopicPartitionKey, int], Sequence[Run]]:
        """Add messages; return offsets to seek to, and runs of partitions that begin again."""
        before = self._work.runs()
        seeks = self._work.add(messages, now)
        kept = set(self._work.runs())
        return seeks, [run for run in before if run not in kept]

    def _has_room(self) -> bool:
        full = self._work.full()
        if self._is_stopping or full <= self._paused:
            return True
        # While workers are idle, other partitions should come: the full ones are paused at once.
        return self._work.has_idle_workers and bool(self._work.partitions.keys() - self._paused - full)

    def _pause(self) -> None:
        """Pause partitions that are full, and those that have had their turn."""
        paused, (turn, since) = self._work.full(), self._turn
        if time.monotonic() - since >= _TURN_SECONDS and self._work.partitions.keys() - self._paused - turn:
            paused |= turn
            self._turn = turn, time.monotonic()  # else it would be paused again as soon as it is resumed
        paused = (paused & self._work.partitions.keys()) - self._paused
        if paused:
            self.consumer.pause([TopicPartition(*key) for key in paused])
            self._paused |= paused

    def _resume(self) -> None:
        """Resume partitions that have room again."""
        roomy = self._paused & self._work.roomy()
        if roomy:
            self.consumer.resume([TopicPartition(*key) for key in roomy])
            self._paused -= roomy

    # --- Rebalances: the polling thread, within a poll ---------------------------------------------

    def _assign(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        keys = [_key(each) for each in partitions]
        _log.info("assigned: %s", _names(keys))
        call_locked(self._lock, self._work.assign, keys)
        if self._looks_back:
            self._assigned += keys

    def _revoke(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        self._give_up({_key(each) for each in partitions}, drains=True)

    def _lose(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        self._give_up({_key(each) for each in partitions}, drains=False)

    def _give_up(self, keys: Collection[TopicPartitionKey] | None, *, drains: bool) -> None:
        """Give partitions up (None: all): wait for workers, commit what is done, and say what is not.

        Args:
            keys: The partitions.
            drains: Whether they still belong to this process; if not, nothing is committed.
        """
        work = self._work
        if drains:
            call_locked(self._lock, work.stop, keys)
            self._wait_for(lambda: work.is_drained(keys), self._limits.drain_timeout)
            self._commit(keys, waits=True)
        runs = call_locked(self._lock, work.runs, keys)
        left = call_locked(
            self._lock, self._changing, work.give_up, work.partitions.keys() if keys is None else keys
        )
        if runs:
            self.on_given_up(runs)
        if left:
            _log.info("%s: %s", "given up" if drains else "lost", _names([each.key for each in left]))
        for each in left:
            _tell(each, drains=drains)

    def _end(self) -> None:
        def end() -> None:
            self._has_ended = True

        call_locked(self._lock, self._changing, end)

    def _wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait, for `seconds` at most, until workers have brought about a condition."""
        call_locked(self._lock, self._changed.wait_for, condition, seconds)

    # --- Commits ------------------------------------------------------------------------------------

    def _commit(self, keys: Collection[TopicPartitionKey] | None, *, waits: bool) -> None:
        """Commit what is done and not committed of partitions (None: of all)."""

        def offsets() -> list[TopicPartition]:
            self._work.settle()
            found = []
            for key, progress in self._work.partitions.items():
                is_known = progress.to_commit == progress.requested and (progress.confirmed or not waits)
                if (keys is None or key in keys) and progress.to_commit is not None and not is_known:
                    progress.requested, progress.confirmed = progress.to_commit, False
                    found.append(_committing(key, *progress.to_commit))
            return found

        wanted = call_locked(self._lock, offsets)
        if not wanted:
            return
        try:
            committed = self.consumer.commit(offsets=wanted, asynchronous=not waits)
        except KafkaException as error:
            self._not_committed(wanted, error.args[0])
        else:
            if waits:
                self._note(committed)

    def _committed(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        """Record the result of a commit that nobody waited for, and call the application's own callback."""
        if error is None:
            self._note(partitions)
        else:
            self._not_committed(partitions, error)
        if self._on_commit is not None:
            self._on_commit(error, partitions)

    def _note(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            progress = self._work.partitions.get(_key(each))
            if each.error is not None:
                self._not_committed([each], each.error)
            elif progress is not None and progress.requested and progress.requested[0] == each.offset:
                progress.confirmed = True

    def _not_committed(self, partitions: Iterable[TopicPartition], error: Any) -> None:
        for each in partitions:
            progress = self._work.partitions.get(_key(each))
            if progress is not None:
                progress.requested = None  # the next commit contains it again
            _log.warning(
                "%s [%d]: offset %d was not committed: %s", each.topic, each.partition, each.offset, error
            )

    def _say_what_may_come_twice(self) -> None:
        """Log how many messages behind the committed offset had been done when it was committed."""
        wanted, self._assigned = self._assigned, []
        keys = [key for key in wanted if key in self._work.partitions]
        if not keys:
            return
        try:
            found = self.consumer.committed([TopicPartition(*key) for key in keys], timeout=_LOOKUP_SECONDS)
        except KafkaException as error:
            _log.info("it is not known how many messages may come a second time: %s", error)
            return
        for each in found:
            words = each.metadata or ""
            if words.startswith(_LAST_WORDS[0]) and words.endswith(_LAST_WORDS[1]):
                number = words.removeprefix(_LAST_WORDS[0]).removesuffix(_LAST_WORDS[1])
                _log.warning(
                    "%s [%d]: begins at offset %d, and at least %s messages behind it come a second time: "
                    "they were processed before, when the message at this offset was not",
                    each.topic, each.partition, each.offset, number,
                )  # fmt: skip

    def _statistics(self) -> ParallelStatistics:
        self._work.settle()
        partitions = self._work.partitions
        since = [each.waiting_since for each in partitions.values() if each.waiting_since is not None]
        return ParallelStatistics(
            in_flight={key: progress.in_flight for key, progress in partitions.items()},
            running=len(self.working()),
            done_beyond=sum(progress.done_beyond for progress in partitions.values()),
            oldest_seconds=max(0.0, time.monotonic() - min(since)) if since else 0.0,
            done=self._work.done,
            retries=self._work.retries,
            dead_letters=self.dead_letters,
        )


def name_of(message: Message) -> str:
    """Return a message's place, as `orders [3] at offset 120`."""
    return f"{message.topic()} [{message.partition()}] at offset {message.offset()}"


def _names(keys: Iterable[TopicPartitionKey]) -> str:
    """Return partitions as `orders [0, 3], refunds [1]`."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in sorted(keys):
        numbers.setdefault(topic, []).append(partition)
    return ", ".join(f"{topic} {partitions}" for topic, partitions in numbers.items()) or "no partitions"


def _key(partition: TopicPartition) -> TopicPartitionKey:
    return partition.topic, partition.partition


def _committing(key: TopicPartitionKey, offset: int, done_beyond: int) -> TopicPartition:
    if not done_beyond:
        return TopicPartition(*key, offset)
    return TopicPartition(*key, offset, str(done_beyond).join(_LAST_WORDS))


def _tell(left: GivenUp, *, drains: bool) -> None:
    """Log the unfinished messages of a partition that is given up."""
    topic, partition = left.key
    how = "given up" if drains else "lost"
    if left.running:
        _log.warning(
            "%s [%d]: %s while messages were still processed, which come a second time elsewhere: offsets %s",
            topic, partition, how, ", ".join(map(str, sorted(left.running))),
        )  # fmt: skip
    if left.done_beyond:
        _log.warning(
            "%s [%d]: %s with offset %s not done, and %d later messages done, which come a second time",
            topic, partition, how, left.next_offset, left.done_beyond,
        )  # fmt: skip


def _report(message: Message) -> bool:
    """Log an error that the client has returned instead of a message; return False.

    Raises:
        KafkaException: The client cannot go on, or not with a partition.
    """
    error = message.error()
    assert error is not None, "a message"  # noqa: S101 - for mypy
    if error.fatal():
        raise KafkaException(error)
    if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - confluent-kafka has no other name
        # With auto.offset.reset=error, nothing more comes of the partition, and all others would hide it.
        _log.error("%s [%d]: %s", message.topic(), message.partition(), error.str())
        raise KafkaException(error)
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
        _log.warning("%s", error.str())
    return False


def _configured(config: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Return the client's configuration: it must not commit messages that are not done.

    Raises:
        ConfigurationError: It is to commit by itself, or a drain takes longer than the client may be silent.
    """
    for name in ("enable.auto.commit", "enable.auto.offset.store"):
        if str(config.get(name, "false")).lower() != "false":
            raise ConfigurationError(
                f"{name} must be false or absent: the client would commit messages that are not processed yet"
            )
    silence = float(config.get("max.poll.interval.ms", 300_000)) / 1000
    if limits.drain_timeout >= silence:
        raise ConfigurationError(
            f"drain_timeout ({limits.drain_timeout:g} s) must be less than max.poll.interval.ms "
            f"({silence:g} s), after which the group goes on without this consumer"
        )
    return {**config, "enable.auto.commit": False, "enable.auto.offset.store": False}
