"""Exactly once: read from one topic, transform, and write to another, each record exactly once.

    python examples/exactly_once.py localhost:9092 --group billing --source orders --target invoices --id
    billing-1

Run several of them, each with an id of its own, and kill any: a consumer of the target with
isolation.level=read_committed finds each record once. A transaction contains the written records *and* the
position in the source, so that both become visible, or neither does.
"""

import argparse
import logging
import signal
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Producer, TopicPartition

from groupwright.consumer import Consumer

TRANSACTION_SECONDS = 0.2
"""Time that a transaction stays open: a longer one costs less, and its records become visible later."""

FLUSH_SECONDS = 10
"""Time that an abort waits for records on their way, while brokers do not answer."""

log = logging.getLogger("exactly_once")


def transform(value: bytes | None) -> bytes | None:
    """Do the work on one record. It may run again for the same record; its result is visible once."""
    return value and value.upper()


class Transaction:
    """One transaction after the other, each with its written records and the position in the source."""

    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        """Start with none open."""
        self._consumer = consumer
        self._producer = producer
        self._began: float | None = None

    @property
    def due(self) -> bool:
        """True if the open transaction is old enough to be committed."""
        return self._began is not None and time.monotonic() - self._began >= TRANSACTION_SECONDS

    def write(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Write a record, in a new transaction if none is open."""
        if self._began is None:
            self._producer.begin_transaction()
            self._began = time.monotonic()
        try:
            self._producer.produce(topic, value, key)
        except KafkaException as error:
            # The transaction has failed already: commit() aborts it, and reads this record again.
            if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001 - librdkafka's public code
                raise

    def commit(self) -> None:
        """Commit, or else abort and read the same records again. Fatal errors are raised."""
        if self._began is None:
            return
        self._began = None
        consumer, producer = self._consumer, self._producer
        try:
            # The metadata carry the generation: the coordinator rejects a worker that it has removed.
            read = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata())
            producer.commit_transaction()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            log.warning("aborted: %s", error)
            producer.abort_transaction()
            self._rewind()

    def abort(self) -> None:
        """Abort: records written since the last commit stay invisible; the next owner repeats them."""
        if self._began is not None:
            self._began = None
            log.warning("aborted: the partitions were lost, or the work failed")
            # Else librdkafka fails for good where the coordinator has not begun the transaction yet.
            self._producer.flush(FLUSH_SECONDS)
            self._producer.abort_transaction()

    def _rewind(self) -> None:
        for partition in self._consumer.committed(self._consumer.assignment(), timeout=30):
            start = partition.offset if partition.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(TopicPartition(partition.topic, partition.partition, start))


def run(consumer: Consumer, producer: Producer, source: str, target: str) -> None:
    """Work until SIGTERM or Ctrl-C; an exception ends the process, and other members continue."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    producer.init_transactions()  # ends an open transaction of an earlier process with this id
    transaction = Transaction(consumer, producer)
    consumer.subscribe(
        [source],
        # This worker still owns them: the next owner starts at the offsets that are committed here.
        on_revoke=lambda _consumer, _partitions: transaction.commit(),
        # Others may own them already, and read again what is not committed.
        on_lost=lambda _consumer, _partitions: transaction.abort(),
    )
    try:
        while not stopping.is_set():
            for message in consumer.consume(500, timeout=TRANSACTION_SECONDS / 2):
                if error := message.error():
                    log.warning("%s", error.str())  # such as a poll that came too late; fatal ones are raised
                    continue
                transaction.write(target, message.key(), transform(message.value()))
            if transaction.due:
                transaction.commit()
        transaction.commit()
    except BaseException:
        transaction.abort()  # before close() revokes, which would commit half of what was read
        raise


def main() -> None:
    """Read the command line, and work."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", help="bootstrap.servers")
    for name in ("group", "source", "target"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument(
        "--id", required=True, help="one for each process that runs, the same when restarted"
    )
    options = arguments.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {options.id} %(message)s")

    producer = Producer({"bootstrap.servers": options.servers, "transactional.id": options.id})
    with Consumer(
        {
            "bootstrap.servers": options.servers,
            "group.id": options.group,
            "client.id": options.id,
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,  # the transactions commit
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,  # partitions of a killed worker wait that long
            "heartbeat.interval.ms": 500,
        }
    ) as consumer:
        run(consumer, producer, options.source, options.target)


if __name__ == "__main__":
    main()
