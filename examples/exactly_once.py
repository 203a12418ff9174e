"""Exactly once: read from one topic, transform, and write to another, each record exactly once.

    python examples/exactly_once.py localhost:9092 --group billing --source orders --target invoices --id
    billing-1

Run as many of them as you like, each with an id of its own, and kill them as you like: whoever reads the
target with isolation.level=read_committed finds each record once. A transaction holds what was written *and*
how far was read, so that both become visible, or neither does.
"""

import argparse
import logging
import signal
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Producer, TopicPartition

from groupwright.consumer import Consumer

TRANSACTION_SECONDS = 0.2
"""How long a transaction stays open: longer is cheaper, and what was written is seen later."""

log = logging.getLogger("exactly_once")


def transform(value: bytes | None) -> bytes | None:
    """Do the work on one record. It may run again for the same record; its result is visible once."""
    return value and value.upper()


class Transaction:
    """One transaction after the other: what was written since the last one, and how far was read for it."""

    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        """Start with none open."""
        self._consumer = consumer
        self._producer = producer
        self._began: float | None = None

    @property
    def due(self) -> bool:
        """Whether the open transaction is old enough to be committed."""
        return self._began is not None and time.monotonic() - self._began >= TRANSACTION_SECONDS

    def write(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Write a record, in a new transaction if none is open."""
        if self._began is None:
            self._producer.begin_transaction()
            self._began = time.monotonic()
        try:
            self._producer.produce(topic, value, key)
        except KafkaException as error:
            # The transaction has failed already; commit() will be told why, abort, and read this record
            # again.
            if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001 - librdkafka's public code
                raise

    def commit(self) -> None:
        """Commit, or else abort and read the same records again. Fatal errors are raised."""
        if self._began is None:
            return
        self._began = None
        consumer, producer = self._consumer, self._producer
        try:
            # The metadata carry the member's generation: a worker that the group has given up is refused
            # here.
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
            self._producer.abort_transaction()

    def _rewind(self) -> None:
        for partition in self._consumer.committed(self._consumer.assignment(), timeout=30):
            start = partition.offset if partition.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(TopicPartition(partition.topic, partition.partition, start))


def run(consumer: Consumer, producer: Producer, source: str, target: str) -> None:
    """Work until SIGTERM or Ctrl-C; whatever is raised ends the process, and another one takes over."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    producer.init_transactions()  # ends what an earlier process of the same id left open
    transaction = Transaction(consumer, producer)
    consumer.subscribe(
        [source],
        # Still ours: the next owner goes on behind what is committed here.
        on_revoke=lambda _consumer, _partitions: transaction.commit(),
        # Others' already: what is not committed is theirs to do.
        on_lost=lambda _consumer, _partitions: transaction.abort(),
    )
    try:
        while not stopping.is_set():
            for message in consumer.consume(500, timeout=TRANSACTION_SECONDS / 2):
                if error := message.error():
                    log.warning("%s", error.str())  # as of max.poll.interval.ms; fatal ones are raised
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
            "session.timeout.ms": 6000,  # a worker that was killed is missed for so long
            "heartbeat.interval.ms": 500,
        }
    ) as consumer:
        run(consumer, producer, options.source, options.target)


if __name__ == "__main__":
    main()
