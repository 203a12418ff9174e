"""A service with four workers: a customer's orders come in order, failed ones are kept, SIGTERM drains.

python examples/parallel_service.py localhost:9092 --group billing --source orders --failed orders-failed
"""

import argparse
import json
import logging
import signal

import confluent_kafka
from confluent_kafka import KafkaError, Message, Producer

from groupwright.consumer import Consumer
from groupwright.consumer.parallel import ParallelConsumer, Retry

log = logging.getLogger("orders")


def main() -> None:
    """Process orders until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers")
    for name in ("--group", "--source", "--failed"):
        parser.add_argument(name, required=True)
    parser.add_argument("--plain", action="store_true", help="use confluent-kafka's own consumer")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    producer = Producer({"bootstrap.servers": options.servers, "enable.idempotence": True})

    def process(message: Message) -> None:
        order = json.loads(message.value() or b"")
        log.info("charged %s", order["id"])

    def keep_failed(message: Message, error: BaseException) -> None:
        origin = f"{message.topic()} [{message.partition()}] at offset {message.offset()}"
        outcome: list[KafkaError | None] = []
        producer.produce(
            options.failed,
            message.value(),
            message.key(),
            headers={"error": repr(error), "origin": origin},
            on_delivery=lambda refused, _: outcome.append(refused),
        )
        if producer.flush(30) or any(outcome):
            raise RuntimeError(f"{options.failed} does not take failed orders: {outcome}")

    consumer = ParallelConsumer(
        {
            "bootstrap.servers": options.servers,
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
        },
        process,
        order="key",
        workers=4,
        retry=Retry(attempts=2),
        dead_letter=keep_failed,
        create=confluent_kafka.Consumer if options.plain else Consumer,
    )
    signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
    consumer.run([options.source])


if __name__ == "__main__":
    main()
