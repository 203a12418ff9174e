"""Producer process of a soak: writes numbered messages to all partitions, including new ones, until SIGTERM.

After a failed delivery it creates a new client and writes the messages again, because librdkafka may not
reconnect to a single broker that restarts. A message written twice counts as two messages.
"""

import argparse
import signal
import sys
import threading
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from soak import events
from soak.events import HistoryWriter, now

_DELIVERY_SECONDS = 20.0
"""Longer than any outage of the broker."""
_FLUSH_SECONDS = 60.0
_FINISH_SECONDS = 180.0
"""Time limit of retries at the end: on a loaded machine the broker takes a minute to restart."""


def command(bootstrap_servers: str, topics: list[str], rate: int, history: Path) -> list[str]:
    """Return the command line that starts the producer, of `rate` messages a second."""
    return [
        sys.executable,
        "-m",
        "soak.producer",
        "--bootstrap-servers",
        bootstrap_servers,
        "--rate",
        str(rate),
        "--history",
        str(history),
        *topics,
    ]


def main() -> int:
    """Run the producer; return exit status 1 if a message could not be written."""
    parser = argparse.ArgumentParser(prog="python -m soak.producer", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("topics", nargs="+")
    options = parser.parse_args()
    stopping: list[int] = []
    # The handler sets no Event: if it interrupts Event.wait, it would deadlock on the lock.
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    pause = threading.Event()
    history = HistoryWriter(options.history)
    writer = Writer(options.bootstrap_servers, options.topics, history)
    number = 0
    while not stopping:
        pause.wait(1 / options.rate)
        writer.write(str(number))
        number += 1
    lost = writer.finish()
    for value in lost:
        history.write(events.Failed(now(), "produce", value))
    history.write(events.Ended(now()))
    return 1 if lost else 0


class Writer:
    """Writes messages, and retries each until it is acknowledged."""

    def __init__(self, bootstrap_servers: str, topics: list[str], history: HistoryWriter) -> None:
        """Create the client."""
        self._servers = bootstrap_servers
        self._topics = topics
        self._history = history
        self._undelivered: list[str] = []
        self._producer = self._new_producer()

    def write(self, value: str) -> None:
        """Write a message, and retry the undelivered ones."""
        self._produce(value)
        self._producer.poll(0)
        if self._undelivered:
            self._write_again()

    def finish(self) -> list[str]:
        """Wait for all messages; return those not delivered after all retries."""
        deadline = now() + _FINISH_SECONDS
        self._producer.flush(_FLUSH_SECONDS)
        while (self._undelivered or len(self._producer)) and now() < deadline:
            self._write_again()
            self._producer.flush(_FLUSH_SECONDS)
        self._producer.purge()
        self._producer.flush(_FLUSH_SECONDS)
        return self._undelivered

    def _write_again(self) -> None:
        self._producer.purge()
        self._producer.flush(_FLUSH_SECONDS)
        self._producer = self._new_producer()
        values, self._undelivered = self._undelivered, []
        for value in values:
            self._produce(value)

    def _produce(self, value: str) -> None:
        topic = self._topics[int(value) % len(self._topics)]
        self._producer.produce(topic, value, key=value, on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        value = (message.value() or b"").decode()
        if error is not None or topic is None or partition is None or offset is None:
            self._undelivered.append(value)
        else:
            self._history.write(events.Produced(now(), (topic, partition), offset, value))

    def _new_producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(_DELIVERY_SECONDS * 1000),
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2000,
                "log_level": 0,
            }
        )


if __name__ == "__main__":
    sys.exit(main())
