"""Writes numbered messages to all partitions, those that are added later too, until SIGTERM."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from soak import events
from soak.events import HistoryWriter, now

_FLUSH_SECONDS = 60.0


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
    """Produce; return the exit status, which is 1 if a message was not acknowledged."""
    parser = argparse.ArgumentParser(prog="python -m soak.producer", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("topics", nargs="+")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    history = HistoryWriter(options.history)
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": int(_FLUSH_SECONDS * 1000),
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2000,
            "log_level": 0,
        }
    )

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        value = (message.value() or b"").decode()
        if error is not None or topic is None or partition is None or offset is None:
            history.write(events.Failed(now(), "produce", f"{value}: {error}"))
        else:
            history.write(events.Produced(now(), (topic, partition), offset, value))

    number = 0
    while not stop.wait(1 / options.rate):
        topic = options.topics[number % len(options.topics)]
        producer.produce(topic, str(number), key=str(number), on_delivery=acknowledged)
        producer.poll(0)
        number += 1
    left = producer.flush(_FLUSH_SECONDS)
    history.write(events.Ended(now()))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
