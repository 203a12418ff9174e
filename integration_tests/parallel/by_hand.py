"""The service of examples/parallel_service.py without `parallel`: what a careful team writes by hand."""

import argparse
import json
import logging
import signal
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

WORKERS, MOST_IN_FLIGHT, COMMIT_SECONDS, DRAIN_SECONDS = 4, 1000, 5.0, 30.0

Partition = tuple[str, int]

log = logging.getLogger("orders")


class Service:
    """One thread a key's hash, futures in the order of offsets, and a commit of what is done in front."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stopping = False
        self.failure: BaseException | None = None
        self.lanes = [ThreadPoolExecutor(1) for _ in range(WORKERS)]
        self.pending: dict[Partition, deque[tuple[int, Future[None]]]] = {}
        self.done: dict[Partition, int] = {}
        self.producer = Producer({"bootstrap.servers": options.servers, "enable.idempotence": True})
        config: dict[str, str | int] = {"bootstrap.servers": options.servers, "group.id": options.group}
        config |= {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "session.timeout.ms": 10_000,
        }
        self.consumer = Consumer(config)

    def process(self, message: Message) -> None:
        for attempt in range(3):
            try:
                log.info("charged %s", json.loads(message.value() or b"")["id"])
            except Exception as error:  # noqa: BLE001 - whatever the application raises
                time.sleep(0.1 * 2**attempt)
                last = error
            else:
                return
        outcome: list[KafkaError | None] = []
        self.producer.produce(
            self.options.failed,
            message.value(),
            message.key(),
            headers={"error": repr(last)},
            on_delivery=lambda refused, _: outcome.append(refused),
        )
        if self.producer.flush(30) or any(outcome):
            raise RuntimeError(f"failed orders are not taken: {outcome}")

    def receive(self, message: Message) -> None:
        key = (message.topic() or "", message.partition() or 0)
        lane = self.lanes[hash(message.key()) % WORKERS]
        self.pending.setdefault(key, deque()).append(
            (message.offset() or 0, lane.submit(self.process, message))
        )

    def collect(self) -> None:
        for key, pending in self.pending.items():
            while pending and pending[0][1].done() and not pending[0][1].cancelled():
                pending[0][1].result()  # before it is taken away: a failure must stay in front
                self.done[key] = pending.popleft()[0] + 1

    def commit(self, keys: list[Partition], *, waits: bool) -> None:
        self.collect()
        offsets = [TopicPartition(*key, self.done.pop(key)) for key in keys if key in self.done]
        if offsets and waits:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:  # the group has given the partitions to another member already
                log.warning("not committed: %s", error)
        elif offsets:
            self.consumer.commit(offsets=offsets, asynchronous=True)

    def revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        keys = [(each.topic, each.partition) for each in partitions]
        end = time.monotonic() + DRAIN_SECONDS
        for key in keys:
            for _offset, future in self.pending.get(key, ()):
                if not future.cancel():
                    future.exception(timeout=max(0.0, end - time.monotonic()))
        self.commit(keys, waits=True)
        for key in keys:
            self.pending.pop(key, None)

    def run(self) -> None:
        self.consumer.subscribe([self.options.source], on_revoke=self.revoke)
        next_commit = time.monotonic() + COMMIT_SECONDS
        while not self.stopping:
            if sum(map(len, self.pending.values())) < MOST_IN_FLIGHT:
                for message in self.consumer.consume(100, 0.1):
                    if message.error() is None:
                        self.receive(message)
            else:
                time.sleep(0.01)
            self.collect()
            if time.monotonic() >= next_commit:
                self.commit(list(self.pending), waits=False)
                next_commit = time.monotonic() + COMMIT_SECONDS
        self.consumer.close()


def main() -> None:
    """Process orders until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers")
    for name in ("--group", "--source", "--failed"):
        parser.add_argument(name, required=True)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    service = Service(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: setattr(service, "stopping", True))
    service.run()


if __name__ == "__main__":
    main()
