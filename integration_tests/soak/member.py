"""A member of a group: one consumer in a process of its own, which writes its history as it goes.

SIGTERM has it leave in good order. SIGUSR1 keeps it busy: it does not poll for `Timing.silence`.
"""

import dataclasses
import json
import logging
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer import Consumer, Rebalance
from soak import events
from soak.events import HistoryWriter, Key, now
from soak.timing import Timing

_PULSE_SECONDS = 0.1
_STARVED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Role:
    """What a member's process is told."""

    bootstrap_servers: str
    group: str
    topics: list[str]
    name: str
    """Unique among all processes; its ``client.id``."""
    instance: str | None
    assignor: str
    commits: str
    """auto, sync or async."""
    history: str
    """The path of its history."""

    @property
    def signature(self) -> str:
        """What the member writes beside the offsets that it commits by hand: who the coordinator knows it as."""
        return self.instance or self.name

    def command(self) -> list[str]:
        """Return the command line that starts the member."""
        return [sys.executable, "-m", "soak.member", json.dumps(dataclasses.asdict(self))]

    def configuration(self, timing: Timing) -> dict[str, Any]:
        """Return the consumer's configuration."""
        static = {"group.instance.id": self.instance} if self.instance else {}
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": self.group,
            "client.id": self.name,
            "partition.assignment.strategy": self.assignor,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": int(timing.session * 1000),
            "heartbeat.interval.ms": int(timing.heartbeat * 1000),
            "max.poll.interval.ms": int(timing.max_poll * 1000),
            "enable.auto.commit": self.commits == "auto",
            "auto.commit.interval.ms": int(timing.commit * 1000),
            # A commit that waits for a broker that is away must not outlast max.poll.interval.ms.
            "socket.timeout.ms": int(timing.max_poll * 500),
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2000,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
            **static,
        }


class Member:
    """The consumer, its callbacks and its history; all on one thread."""

    def __init__(self, role: Role, timing: Timing, history: HistoryWriter) -> None:
        """Make the consumer; nothing is joined yet."""
        self.leaving = threading.Event()
        self.busy = threading.Event()
        self._role = role
        self._timing = timing
        self._history = history
        self._processed: dict[Key, int] = {}
        self._commit_at = now()
        self._consumer = Consumer(role.configuration(timing), on_commit=self._on_commit)
        self._consumer.add_listener(self)

    def run(self) -> None:
        """Consume until told to leave, then close."""
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self._consumer.subscribe(self._role.topics, **callbacks)
        while not self.leaving.is_set():
            self._consume()
            if self._role.commits != "auto" and now() >= self._commit_at:
                self._commit_at = now() + self._timing.commit
                self._commit(self._processed, asynchronous=self._role.commits == "async")
            if self.busy.is_set():
                self.busy.clear()
                begun = now()
                self._history.write(events.Busy(begun, begun))
                self.leaving.wait(self._timing.silence)
                self._history.write(events.Busy(now(), begun))
        self._consumer.close()

    def _consume(self) -> None:
        polled = now()
        try:
            message = self._consumer.poll(self._timing.poll)
        except KafkaException as error:
            self._history.write(events.Failed(now(), "poll", repr(error)))
            return
        if message is None:
            return
        error_of = message.error()
        if error_of is None:
            self._process(message, polled)
        elif error_of.code() != KafkaError._MAX_POLL_EXCEEDED:
            self._history.write(events.Failed(now(), "poll", str(error_of)))

    def _process(self, message: Message, polled: float) -> None:
        topic, number, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert number is not None
        assert offset is not None
        # Before anything else: a commit of it can begin with the next poll.
        value = (message.value() or b"").decode()
        self._history.write(events.Consumed(now(), polled, (topic, number), offset, value))
        self._processed[topic, number] = offset + 1

    # --- Commits ------------------------------------------------------------------------------------

    def _commit(self, offsets: dict[Key, int], *, asynchronous: bool) -> None:
        """Commit, even what has been committed before: a member that was expelled must be refused."""
        if not offsets:
            return
        begun, wanted = now(), dict(offsets)
        partitions = [
            TopicPartition(*key, offset, metadata=self._role.signature) for key, offset in wanted.items()
        ]
        try:
            self._consumer.commit(offsets=partitions, asynchronous=asynchronous)
        except KafkaException as error:
            self._history.write(events.Committed(now(), begun, wanted, str(error)))
        else:
            if not asynchronous:
                self._history.write(events.Committed(now(), begun, wanted, None))

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        offsets = {(p.topic, p.partition): p.offset for p in partitions}
        self._history.write(events.Committed(now(), None, offsets, None if error is None else str(error)))

    # --- Rebalances ---------------------------------------------------------------------------------

    def _on_assign(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._history.write(events.Assigned(now(), _keys(partitions)))

    def _on_revoke(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, lost=False)

    def _on_lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, lost=True)

    def _give_up(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        begun, keys = now(), _keys(partitions)
        processed = {key: self._processed.pop(key) for key in keys if key in self._processed}
        if self._role.commits != "auto":
            # What is lost is committed too: that must be refused.
            self._commit(processed, asynchronous=False)
        self._history.write(events.GivenUp(now(), begun, keys, lost))

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Note the end of a rebalance."""
        ended = events.Rebalanced(now(), rebalance.generation, rebalance.reason, str(rebalance.outcome))
        self._history.write(ended)

    def partitions_assigned(self, partitions: object, seconds: float) -> None:
        """Told by on_assign already."""

    def partitions_revoked(self, partitions: object, seconds: float) -> None:
        """Told by on_revoke already."""

    def partitions_lost(self, partitions: object, seconds: float) -> None:
        """Told by on_lost already."""


def watch_for_starvation(history: HistoryWriter) -> None:
    """Note each time in which this process did not run, for as long as it lives."""
    pause, last = threading.Event(), now()
    while True:
        pause.wait(_PULSE_SECONDS)
        before, last = last, now()
        if last - before > _STARVED_SECONDS:
            history.write(events.Starved(last, before))


def main(role: Role) -> int:
    """Be a member until SIGTERM; return the exit status."""
    _log_to_stderr()
    history = HistoryWriter(Path(role.history))
    member = Member(role, Timing(), history)
    signal.signal(signal.SIGTERM, lambda *_: member.leaving.set())
    signal.signal(signal.SIGUSR1, lambda *_: member.busy.set())
    threading.Thread(target=watch_for_starvation, args=(history,), daemon=True).start()
    history.write(events.Started(now(), role.group, role.name, role.instance, role.assignor, role.commits))
    try:
        member.run()
    except Exception as error:
        logging.getLogger("soak").exception("the member ends")
        history.write(events.Failed(now(), "the member's life", repr(error)))
        return 1
    history.write(events.Ended(now()))
    return 0


def _keys(partitions: list[TopicPartition]) -> tuple[Key, ...]:
    return tuple((p.topic, p.partition) for p in partitions)


def _log_to_stderr() -> None:
    def stamp(record: logging.LogRecord) -> bool:
        record.monotonic = now()
        return True

    handler = logging.StreamHandler()
    handler.addFilter(stamp)
    handler.setFormatter(logging.Formatter("%(monotonic).3f %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("groupwright").setLevel(logging.DEBUG)


if __name__ == "__main__":
    sys.exit(main(Role(**json.loads(sys.argv[1]))))
