"""Traffic of a run: events and commits at a constant rate, transactions, and changes of the topic."""

import json
import threading
import uuid
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.pipeline_chaos.ledger import Event, Ledger

EVENTS = "groupwright.rebalances"
ORDERS = "orders"
FIRST_PARTITIONS = 2
MAX_PARTITIONS = 5
"""A job's sentence lists the positions of at most five partitions."""
GROUPS = 5
_PAUSE = 0.05
_COMMIT_EVERY = 4


class Traffic:
    """Writes events and commits in a thread of its own, and enters them in the ledger."""

    def __init__(self, kafka: LocalKafka) -> None:
        """Create the topics."""
        self.ledger = Ledger()
        self._kafka = kafka
        self._client: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._number = 0
        self._commit_number = 0
        self._partitions = 0
        self._producer: Producer
        kafka.create_topic(ORDERS, partitions=1)
        self._create()
        self._committers = [
            Consumer({**self._client, "group.id": f"group-{number}"}) for number in range(GROUPS)
        ]
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._transactions: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Commit once, so that `__consumer_offsets` exists, and start."""
        self._commit()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, end all transactions, and wait until all records are acknowledged."""
        self._stop.set()
        self._thread.join(PATIENCE)
        for thread in self._transactions:
            thread.join(PATIENCE)
        self._producer.flush(PATIENCE)
        for consumer in self._committers:
            consumer.close()

    def recreate(self) -> str:
        """Delete the events topic and create it again."""
        with self._lock:
            self._producer.flush(PATIENCE)
            admin = self._kafka.admin()
            admin.delete_topics([EVENTS])[EVENTS].result(PATIENCE)
            wait_until(lambda: EVENTS not in admin.list_topics(timeout=PATIENCE).topics, "deletion")
            self._create()
        return f"{EVENTS} has the id {self.ledger.topic_ids[-1]} now"

    def add_partition(self) -> str:
        """Add a partition to the events topic."""
        with self._lock:
            if self._partitions == MAX_PARTITIONS:
                return f"{EVENTS} has {MAX_PARTITIONS} partitions already"
            self._producer.flush(PATIENCE)
            self._partitions += 1
            grown = self._kafka.admin().create_partitions([NewPartitions(EVENTS, self._partitions)])
            grown[EVENTS].result(PATIENCE)
            wait_until(self._has_all_partitions, "the new partition is known")
            self._producer = self._new_producer()
        return f"{EVENTS} has {self._partitions} partitions now"

    def open_transaction(self, seconds: float, *, commit: bool) -> str:
        """Begin a transaction with events and an offset, which ends in the background."""
        thread = threading.Thread(target=self._transact, args=(seconds, commit), daemon=True)
        self._transactions.append(thread)
        thread.start()
        return f"open for {seconds:.0f} s, then {'committed' if commit else 'aborted'}"

    def _create(self) -> None:
        self._kafka.create_topic(EVENTS, partitions=FIRST_PARTITIONS)
        self._partitions = FIRST_PARTITIONS
        wait_until(self._has_all_partitions, "the topic is known")
        admin = self._kafka.admin()
        described = admin.describe_topics(TopicCollection([EVENTS]))[EVENTS].result(PATIENCE)
        # The jobs have ids as Kafka's tools print them, confluent-kafka has the other Base64 alphabet.
        self.ledger.topic_ids.append(str(described.topic_id).translate(str.maketrans("+/", "-_")))
        self._producer = self._new_producer()

    def _has_all_partitions(self) -> bool:
        topic = self._kafka.admin().list_topics(EVENTS, timeout=PATIENCE).topics[EVENTS]
        return len(topic.partitions) == self._partitions

    def _new_producer(self, **config: Any) -> Producer:
        return Producer({**self._client, "enable.idempotence": True, **config})

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            with self._lock:
                self._produce(self._producer, self._number % self._partitions)
                self._producer.poll(0)
                self._number += 1
            if self._number % _COMMIT_EVERY == 0:
                self._commit()

    def _produce(self, producer: Producer, partition: int, into: list[Event] | None = None) -> str:
        id_ = str(uuid.uuid4())
        incarnation = len(self.ledger.topic_ids) - 1
        events = self.ledger.events if into is None else into

        def delivered(error: object, message: Message) -> None:
            if error is None:
                events.append(Event(id_, incarnation, partition, message.offset() or 0))
            else:
                self.ledger.uncertain.add(id_)

        producer.produce(EVENTS, event_value(id_), partition=partition, on_delivery=delivered)
        return id_

    def _commit(self) -> None:
        self._commit_number += 1
        group = self._commit_number % GROUPS
        commit = (f"group-{group}", 0, self._commit_number)
        offsets = [TopicPartition(ORDERS, 0, self._commit_number)]
        try:
            self._committers[group].commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            self.ledger.uncertain.add(commit)
        else:
            self.ledger.commits.append(commit)

    def _transact(self, seconds: float, commit: bool) -> None:  # noqa: FBT001
        id_ = uuid.uuid4().hex[:8]
        producer = self._new_producer(**{"transactional.id": id_, "transaction.timeout.ms": 120_000})
        group = f"transactional-{id_}"
        consumer = Consumer({**self._client, "group.id": group})
        events: list[Event] = []
        ids = set[str]()
        offset = (group, 0, 7)
        try:
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
            with self._lock:
                ids = {self._produce(producer, 0, events) for _ in range(3)}
                producer.flush(PATIENCE)
            producer.send_offsets_to_transaction(
                [TopicPartition(ORDERS, 0, 7)], consumer.consumer_group_metadata(), PATIENCE
            )
            self._stop.wait(seconds)
            if commit:
                producer.commit_transaction(PATIENCE)
                self.ledger.events += events
                self.ledger.commits.append(offset)
            else:
                producer.abort_transaction(PATIENCE)
                self.ledger.hidden |= ids | {offset}
        except KafkaException:  # its topic was deleted meanwhile
            self.ledger.uncertain |= ids | {offset}
        finally:
            consumer.close()


def event_value(id_: str) -> bytes:
    """Return an event's JSON."""
    event = {"id": id_, "group": "billing", "ended_at": datetime.now(UTC).isoformat()}
    return json.dumps(event).encode()
