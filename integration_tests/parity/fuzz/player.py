"""Plays a random program on a `Lab`.

What two runs do must not hang on chance. So after each step that brings partitions or messages the player polls until nothing
has come for a while; members are named so that assignors see them in one order; and a partial read stops only where
one partition is left to read from.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Message, TopicPartition

from parity.client import Client, record
from parity.fuzz.programs import MESSAGES, Program
from parity.lab import Lab

_SILENCE = 0.7
"""Seconds without anything that end a read."""
_ASSIGNED = 5.0
"""Seconds within which a subscription brings an assignment, if it brings any."""
_PATIENCE = 15.0
_MAX_POLL_INTERVAL = 6.0


class Player:
    """Plays one program."""

    def __init__(self, lab: Lab, program: Program) -> None:
        """Make the topics and the consumer."""
        self._lab = lab
        self._program = program
        if program.breaks_kafka:
            lab.kafka  # noqa: B018 - from here on all is on a broker that may be cut off
        self._topics = [lab.topic(count, messages=MESSAGES) for count in program.partitions]
        self._client = self._member("c1", on_commit=record)
        self._second: Client | None = None

    def play(self) -> None:
        """Play the steps, and close."""
        for name, *arguments in self._program.steps:
            if self._client.closed and name not in {"position", "commit", "read"}:
                continue  # what closed consumers answer is for scenarios
            getattr(self, f"_{name}")(*arguments)
        if self._second is not None:
            self._second.attempt("close")
        if not self._client.closed:
            self._client.attempt("close")

    def _member(self, name: str, **settings: Any) -> Client:
        own = dict(self._program.settings)
        if name != "c1":
            own.pop("group_instance_id", None)
        return self._lab.consumer(
            client_id=name,
            max_poll_interval_ms=int(_MAX_POLL_INTERVAL * 1000),
            socket_timeout_ms=10_000,  # and a commit that is retried in vain is over before the program is
            topic_metadata_refresh_interval_ms=1000,
            **own,
            **settings,
        )

    # --- Reading ------------------------------------------------------------------------------------

    def _read(self, count: int) -> None:
        self._drain(lambda: self._client.poll(0.05), count)

    def _consume(self, size: int) -> None:
        self._drain(lambda: self._client.consume(size, 0.05), 100)

    def _drain(self, poll: Callable[[], object], count: int) -> None:
        """Poll until nothing comes any longer; or until so many messages have, if they come from one partition."""
        client = self._client
        before, quiet_since = len(client.messages), time.monotonic()
        deadline = quiet_since + _PATIENCE
        while time.monotonic() < min(deadline, quiet_since + _SILENCE):
            seen = self._seen(client)
            try:
                poll()
                if self._second is not None:
                    self._second.poll(0.0)
            except (KafkaException, RuntimeError, ValueError):
                time.sleep(0.05)
            if self._seen(client) != seen:
                quiet_since = time.monotonic()
            if len(client.messages) - before >= count and self._reads_one_partition():
                break

    def _seen(self, client: Client) -> tuple[int, int, int]:
        revoked = len(client.revoked) + (0 if self._second is None else len(self._second.messages))
        return len(client.messages), len(client.errors), revoked

    def _reads_one_partition(self) -> bool:
        try:
            return len(self._client.raw.assignment()) == 1
        except (KafkaException, RuntimeError):
            return False

    def _idle(self, seconds: float) -> None:
        self._client.idle(seconds)

    def _stall(self) -> None:
        time.sleep(_MAX_POLL_INTERVAL + 1.5)  # the application is busy for longer than max.poll.interval.ms
        self._read(100)

    # --- Calls --------------------------------------------------------------------------------------

    def _subscribe(self, topics: tuple[int, ...], kind: str, pause: str) -> None:
        names = [self._topics[number] for number in topics]
        self._client.attempt("subscribe", names, **self._callbacks(kind))
        if pause == "settle":
            before = len(self._client.messages)
            self._await_assignment()
            if len(self._client.messages) == before or not self._reads_one_partition():
                self._settle()
        elif pause == "assigned":
            self._client.until(self._client.raw.assignment, "assigned", timeout=_ASSIGNED)

    def _await_assignment(self) -> None:
        """Poll until something is assigned, or an error says why not; on a busy machine that takes longer than silence."""
        client, deadline = self._client, time.monotonic() + _ASSIGNED
        errors = len(client.errors)
        with suppress(KafkaException, RuntimeError, ValueError):
            while (
                not client.raw.assignment() and len(client.errors) == errors and time.monotonic() < deadline
            ):
                client.poll(0.02)

    def _callbacks(self, kind: str) -> dict[str, Callable[..., object]]:
        if kind == "none":
            return {}
        return {
            "on_assign": getattr(self, f"_on_assign_{kind}", record),
            "on_revoke": getattr(self, f"_on_revoke_{kind}", record),
            "on_lost": record,
        }

    def _on_assign_assigns(self, client: Client, partitions: list[TopicPartition]) -> None:
        client.attempt("incremental_assign" if self._cooperative else "assign", partitions)

    def _on_assign_assigns_at(self, client: Client, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = 3
        self._on_assign_assigns(client, partitions)

    def _on_assign_seeks(self, client: Client, partitions: list[TopicPartition]) -> None:
        self._on_assign_assigns_at(client, partitions)
        for partition in partitions:
            client.attempt("seek", TopicPartition(partition.topic, partition.partition, 7))

    def _on_assign_pauses(self, client: Client, partitions: list[TopicPartition]) -> None:
        self._on_assign_assigns(client, partitions)
        client.attempt("pause", partitions[:1])

    def _on_assign_raises(self, *_: object) -> None:
        raise ValueError("on_assign fails")

    def _on_assign_slow(self, *_: object) -> None:
        time.sleep(_MAX_POLL_INTERVAL + 1.5)  # a callback may take longer than max.poll.interval.ms

    def _on_revoke_commits(self, client: Client, _: object) -> None:
        client.attempt("commit", asynchronous=False)

    def _on_revoke_commits_async(self, client: Client, _: object) -> None:
        client.attempt("commit")

    def _on_revoke_raises(self, *_: object) -> None:
        raise ValueError("on_revoke fails")

    @property
    def _cooperative(self) -> bool:
        return "cooperative" in str(self._program.settings["partition_assignment_strategy"])

    def _settle(self) -> None:
        """Poll until a rebalance that may be under way is over."""
        self._drain(lambda: self._client.poll(0.02), 1)

    def _unsubscribe(self) -> None:
        self._client.attempt("unsubscribe")
        self._settle()

    def _assign(self, partitions: tuple[tuple[int, int, int], ...]) -> None:
        self._client.attempt("assign", self._partitions(partitions))
        self._settle()

    def _unassign(self) -> None:
        self._client.attempt("unassign")

    def _incremental_assign(self, partitions: tuple[tuple[int, int, int], ...]) -> None:
        self._client.attempt("incremental_assign", self._partitions(partitions))
        self._settle()

    def _incremental_unassign(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._client.attempt("incremental_unassign", self._partitions(partitions))

    def _seek(self, partition: tuple[int, int], offset: int) -> None:
        self._client.attempt("seek", self._partition(*partition, offset))

    def _pause(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._client.attempt("pause", self._partitions(partitions))

    def _resume(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._client.attempt("resume", self._partitions(partitions))

    def _commit(self, way: str) -> None:
        self._client.attempt("commit", asynchronous=way == "async")
        self._hear_of_commits(way)

    def _commit_offsets(self, partition: tuple[int, int], offset: int, way: str) -> None:
        self._client.attempt(
            "commit", offsets=[self._partition(*partition, offset)], asynchronous=way == "async"
        )
        self._hear_of_commits(way)

    def _commit_last(self, way: str) -> None:
        if self._client.messages:
            self._client.attempt("commit", message=self._last(), asynchronous=way == "async")
            self._hear_of_commits(way)

    def _last(self) -> Message:
        """Return the last message of the last partition: which partition's messages came last is chance."""
        last = {(message.topic(), message.partition()): message for message in self._client.messages}
        return last[max(last)]

    def _hear_of_commits(self, way: str) -> None:
        if way == "async":
            self._lab.admin.list_topics(timeout=10)  # by then the commit was sent

    def _store_last(self) -> None:
        if self._client.messages:
            self._client.attempt("store_offsets", message=self._last())

    def _store(self, partition: tuple[int, int], offset: int) -> None:
        self._client.attempt("store_offsets", offsets=[self._partition(*partition, offset)])

    def _position(self) -> None:
        self._client.attempt("position", self._all())

    def _committed(self) -> None:
        self._client.attempt("committed", self._all(), timeout=10)

    def _assignment(self) -> None:
        found = self._client.raw.assignment()
        self._lab.note(f"owns {len(found)} partitions")

    def _close(self) -> None:
        self._client.attempt("close")

    def _commit_and_close(self) -> None:
        self._client.attempt("commit")
        self._client.attempt("close")

    def _from_thread(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        thread = self._lab.spawn("worker", lambda: getattr(self, f"_{name}")(*arguments))
        thread.join(_PATIENCE)

    # --- The world ----------------------------------------------------------------------------------

    def _produce(self, partition: tuple[int, int], count: int) -> None:
        topic, number = partition
        self._lab.attempt("produce", lambda: self._lab.produce(self._topics[topic], count, number))

    def _second_joins(self) -> None:
        if self._second is None:
            self._second = self._member("c2", on_commit=record)
            self._second.subscribe(self._topics)
            self._together()

    def _second_leaves(self) -> None:
        if self._second is not None:
            second, self._second = self._second, None
            second.attempt("close")
            self._settle()

    def _together(self) -> None:
        """Poll both until neither hears of anything."""
        second = self._second
        assert second is not None
        deadline = time.monotonic() + _PATIENCE
        quiet_since = time.monotonic()
        before: object = None
        while time.monotonic() < min(deadline, quiet_since + 2.5):
            for client in (self._client, second):
                try:
                    client.poll(0.02)
                except (KafkaException, RuntimeError, ValueError):
                    time.sleep(0.05)
            now = (self._seen(self._client), len(second.messages), len(second.raw.assignment()))
            if now != before:
                before, quiet_since = now, time.monotonic()

    def _delete_topic(self, topic: int) -> None:
        self._lab.attempt("delete", lambda: self._lab.delete(self._topics[topic]))
        self._client.idle(2.5)

    def _grow_topic(self, topic: int) -> None:
        count = self._program.partitions[topic] + 1
        self._lab.attempt("grow", lambda: self._lab.grow(self._topics[topic], count))
        self._client.idle(3.0)

    def _outage(self, seconds: float) -> None:
        self._lab.link.cut()
        self._client.idle(seconds)
        self._lab.link.restore()
        self._lab.wait(lambda: self._lab.admin.list_topics(timeout=10), "the broker is back")
        self._client.idle(1.0)

    # --- Parts --------------------------------------------------------------------------------------

    def _partition(self, topic: int, partition: int, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self._topics[topic], partition, offset)

    def _partitions(self, given: tuple[tuple[int, ...], ...]) -> list[TopicPartition]:
        return [self._partition(*each) for each in given]

    def _all(self) -> list[TopicPartition]:
        return [
            self._partition(topic, partition)
            for topic, count in enumerate(self._program.partitions)
            for partition in range(count)
        ]
