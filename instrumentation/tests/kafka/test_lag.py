"""Lag in scripted situations, for each kind of client: log end minus position, asked from outside.

Where the member has no position yet, the script knows it. Each situation also collects every value that was
shown in it: besides the right ones, there may be none, but never a wrong one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from instrumentation.tests.kafka.conftest import Client, Member, ScenarioRun

pytestmark = pytest.mark.kafka

ONLY = (
    "groupwright-range",
    "groupwright-cooperative",
    "groupwright-kip848",
    "plain-range",
    "plain-cooperative",
    "plain-kip848",
    "plain-asyncio",
)

_INTERVAL = 0.2
"""Seconds between statistics; those that are served first may have been made in the situation before."""

Lags = Mapping[int, float]
"""Lag by partition."""

SITUATIONS = (
    "started at the beginning",
    "paused while the log grows",
    "sought back",
    "read to the end",
    "handed over at the end",
    "regained at the end",
    "reset to the log's start",
    "compacted",
    "transactions, one of them open",
    "assigned by hand",
    "started at the end",
)


@dataclass
class Situation:
    """The lag that was shown in a situation."""

    true: Lags
    """Log ends minus positions."""
    last: Lags
    others: set[tuple[int, float]] = field(default_factory=set)
    """Wrong values: shown by statistics of this situation, and not true in this one or the one before."""


class Script:
    """One client's run of all situations."""

    def __init__(self, run: "ScenarioRun") -> None:
        self.run = run
        self.table: dict[str, Situation] = {}

    def member(self, topic: str, client_id: str, **settings: Any) -> "Member":
        """Create a member of the topic's group."""
        config: Any = {"lag_by_partition": True, "enable.partition.eof": True, **settings}
        return self.run.member(topic, client_id, **config)

    def take(self, member: "Member", messages: int) -> None:
        """Consume so many messages, and pause all partitions."""
        taken = 0

        def is_taken() -> bool:
            nonlocal taken
            taken += member.poll() is not None
            return taken >= messages

        self.run.until(is_taken)
        self.pause(member)

    def pause(self, member: "Member") -> None:
        member.do("pause", member.do("assignment"))

    def settle(self, name: str, topic: str, starts: Mapping[int, int], *members: "Member") -> None:
        """Record a situation in which nothing more is consumed.

        Args:
            name: Its name in the table.
            topic: The topic, all partitions of which are owned.
            starts: Positions of partitions without a message.
            members: The members that own them.
        """
        positions = dict(starts)
        for member in members:
            for each in member.do("position", member.do("assignment")):
                if each.topic == topic and each.offset >= 0:
                    positions[each.partition] = each.offset
        ends = self.run.ends(topic, len(positions))
        true = {number: ends[number] - position for number, position in positions.items()}
        situation = Situation(true, {})
        # Until the end of a paused log has been looked up again, the lag is that of the look-up before.
        before = next(reversed(self.table.values())).true if self.table else {}
        self.table[name] = situation
        began = time.monotonic()

        def is_shown() -> bool:
            shown = [
                (int(partition), value)
                for member in members
                for (partition, shown_topic), value in member.values("partition_lag").items()
                if shown_topic == topic
            ]
            situation.last = dict(shown)
            ages = [member.value("statistics_age_seconds") or 0.0 for member in members]
            if max(ages) < time.monotonic() - began - _INTERVAL:
                situation.others |= set(shown) - set(true.items()) - set(before.items())
            return len(shown) == len(true) and situation.last == true

        try:
            self.run.until(is_shown, *members)
        except TimeoutError as error:
            raise TimeoutError(f"{name}: {situation}") from error
        # The next statistics must not show anything else.
        deadline = time.monotonic() + 0.6
        self.run.until(lambda: not is_shown() or time.monotonic() > deadline, *members)

    def play_reading(self) -> None:
        """Start, pause, seek, read to the end; hand a partition over, and regain it."""
        run, topic = self.run, self.run.topic(partitions=2, messages=10)
        first = self.member(topic, "first")
        first.join(topic)
        self.take(first, 5)
        self.settle("started at the beginning", topic, {0: 0, 1: 0}, first)
        run.produce(topic, range(2), 3)
        self.settle("paused while the log grows", topic, {0: 0, 1: 0}, first)
        first.do("seek", TopicPartition(topic, 0, 2))
        self.settle("sought back", topic, {0: 2, 1: 0}, first)
        first.do("resume", first.do("assignment"))
        run.until(lambda: remaining(first, run, topic) == 0, first)
        self.settle("read to the end", topic, {}, first)
        first.do("commit", asynchronous=False)
        second = self.member(topic, "second")
        second.join(topic)
        run.until(lambda: first.owned == second.owned == 1, first, second)
        self.settle("handed over at the end", topic, {0: 13, 1: 13}, first, second)
        second.close()
        run.until(lambda: first.owned == 2, first)
        self.settle("regained at the end", topic, {0: 13, 1: 13}, first)
        first.close()

    def play_logs(self) -> None:
        """Start at a log whose beginning was deleted, a compacted one, and one with transactions."""
        run, topic = self.run, self.run.topic("-reset", partitions=1, messages=20)
        commit(run, topic, 5)
        run.kafka.delete_records(topic, before=8)
        member = self.member(topic, "reset")
        member.join(topic)
        self.take(member, 1)
        self.settle("reset to the log's start", topic, {}, member)
        assert member.do("position", member.do("assignment"))[0].offset > 8
        member.close()

        compaction = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
        topic = run.topic("-compacted", partitions=1, messages=9, config=compaction)
        compact(run, topic)
        member = self.member(topic, "compacted")
        member.join(topic)
        self.take(member, 1)
        self.settle("compacted", topic, {}, member)
        member.close()

        topic = run.topic("-transactions", partitions=1)
        producer = transactions(run, topic)
        member = self.member(topic, "transactions")
        member.join(topic)
        # The position passes the aborted messages and the markers, and stops before the open transaction.
        run.until(lambda: member.owned == 1 and remaining(member, run, topic) == 0, member)
        assert member.do("position", member.do("assignment"))[0].offset == 7
        self.settle("transactions, one of them open", topic, {}, member)
        producer.abort_transaction(PATIENCE)
        member.close()

    def play_starts(self) -> None:
        """Assign by hand, and join a group that starts at the end."""
        run, topic = self.run, self.run.topic("-starts", messages=10, partitions=2)
        member = self.member(topic, "manual")
        member.do("assign", [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, OFFSET_END)])
        self.take(member, 2)
        self.settle("assigned by hand", topic, {1: 10}, member)
        member.close()
        member = self.member(topic, "latest", **{"auto.offset.reset": "latest"})
        member.join(topic)
        run.until(lambda: member.owned == 2, member)
        self.settle("started at the end", topic, {0: 10, 1: 10}, member)
        member.close()


def truth_table(run: "ScenarioRun") -> dict[str, Situation]:
    script = Script(run)
    script.play_reading()
    script.play_logs()
    script.play_starts()
    return script.table


def remaining(member: "Member", run: "ScenarioRun", topic: str) -> int:
    """Return the number of offsets between the member's positions and the ends."""
    positions = member.do("position", member.do("assignment"))
    ends = run.ends(topic, len(positions))
    return sum(ends[each.partition] - max(0, each.offset) for each in positions)


def commit(run: "ScenarioRun", topic: str, offset: int) -> None:
    """Commit an offset of partition 0 for the topic's group."""
    consumer = Consumer({"bootstrap.servers": run.kafka.bootstrap_servers, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def compact(run: "ScenarioRun", topic: str) -> None:
    """Wait until of the messages with one key only the last ones are left."""
    deadline = time.monotonic() + PATIENCE
    while True:
        run.produce(topic, [0], 1)  # rolls the segment; the active one is not compacted
        consumer = Consumer(
            {
                "bootstrap.servers": run.kafka.bootstrap_servers,
                "group.id": f"{topic}-reader",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(PATIENCE)
        consumer.close()
        assert message is not None
        if (message.offset() or 0) > 0:
            return
        assert time.monotonic() < deadline, "the log is not compacted"
        time.sleep(0.2)


def transactions(run: "ScenarioRun", topic: str) -> Producer:
    """Commit 3 messages, abort 2, and leave a transaction of 2 open."""
    producer = Producer({"bootstrap.servers": run.kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(PATIENCE)
    endings: list[Callable[[float], None]] = [producer.commit_transaction, producer.abort_transaction]
    for messages, end in zip((3, 2), endings, strict=True):
        producer.begin_transaction()
        for _ in range(messages):
            producer.produce(topic, b"x", partition=0)
        producer.flush(PATIENCE)
        end(PATIENCE)
    producer.begin_transaction()
    for _ in range(2):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(PATIENCE) == 0
    return producer


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.slow
def test_lag_is_the_logs_end_minus_the_position(
    situation: str, client: "Client", outcome_of: Callable[..., Any]
) -> None:
    found = outcome_of(truth_table, client)[situation]

    assert found.last == found.true
    assert found.others == set()
