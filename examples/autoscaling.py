"""Autoscaling by lag: a controller starts and stops worker processes, and counts the rebalances.

    python examples/autoscaling.py

The controller looks at the group's lag twice a second, and wants one worker for each 400 messages. It adds
all missing workers at once, but stops one at a time. Each change is a rebalance of the whole group, so it
changes nothing before all workers have joined, while the group rebalances, or within the cool-down. In
Kubernetes, KEDA is the controller: see examples/README.md.
"""

import argparse
import json
import math
import multiprocessing
import signal
import tempfile
import threading
import time
import uuid
from pathlib import Path

from confluent_kafka import ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument, to_file
from groupwright.testing import LocalKafka

PARTITIONS = 6
MAX_WORKERS = 3
LAG_OF_WORKER = 400
WORK_SECONDS = 0.005


def work(servers: str, topic: str, events: Path) -> None:
    """Process messages until SIGTERM or the controller's end, and write each rebalance to a file."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller, which stops its workers
    controller = multiprocessing.parent_process()
    config = {
        "bootstrap.servers": servers,
        "group.id": topic,
        "client.id": events.stem,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",  # only partitions that move pause
        "auto.commit.interval.ms": 500,  # the controller sees committed offsets
        "heartbeat.interval.ms": 300,
    }
    with to_file(events) as file, Consumer(config) as consumer:
        instrument(consumer, events=[file])
        consumer.subscribe([topic])
        while not stopping.is_set() and controller is not None and controller.is_alive():
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                time.sleep(WORK_SECONDS)


def wanted(lag: int, workers: int) -> int:
    """Return the number of workers for this lag: up at once, down one at a time."""
    enough = min(MAX_WORKERS, max(1, math.ceil(lag / LAG_OF_WORKER)))
    return max(enough, workers - 1)


def lag_of(reader: Consumer, topic: str) -> int:
    """Return the messages that the group has not committed."""
    partitions = reader.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], timeout=10)
    ends = [reader.get_watermark_offsets(partition, timeout=10)[1] for partition in partitions]
    return sum(end - max(0, partition.offset) for end, partition in zip(ends, partitions, strict=True))


def is_settled(admin: AdminClient, group: str, workers: int) -> bool:
    """Return whether all workers have joined the group, and no rebalance is under way."""
    description = admin.describe_consumer_groups([group])[group].result(10)
    return bool(description.state == ConsumerGroupState.STABLE and len(description.members) == workers)


def control(servers: str, topic: str, cool_down: float, folder: Path) -> None:
    """Start with one worker, and scale until the lag is gone and one is left."""
    processes = multiprocessing.get_context("spawn")
    workers: list[multiprocessing.context.SpawnProcess] = []
    started = 0
    admin = AdminClient({"bootstrap.servers": servers})

    def scale(number: int) -> None:
        nonlocal started
        while len(workers) < number:
            started += 1
            worker = processes.Process(target=work, args=(servers, topic, folder / f"worker-{started}.jsonl"))
            worker.start()
            workers.append(worker)
        while len(workers) > number:
            worker = workers.pop()
            worker.terminate()  # SIGTERM: it commits, and leaves the group
            worker.join(30)

    # The reader joins no group, as it does not subscribe.
    with Consumer({"bootstrap.servers": servers, "group.id": topic}) as reader:
        try:
            scale(1)
            changed = -math.inf
            while (lag := lag_of(reader, topic)) or len(workers) > 1 or not is_settled(admin, topic, 1):
                number = wanted(lag, len(workers))
                cooled = time.monotonic() - changed >= cool_down
                if number != len(workers) and cooled and is_settled(admin, topic, len(workers)):
                    print(f"lag {lag}: {len(workers)} -> {number} workers", flush=True)
                    scale(number)
                    changed = time.monotonic()
                time.sleep(0.5)
        finally:
            scale(0)
    show_cost(folder)


def show_cost(folder: Path) -> None:
    """Print what the workers' events say."""
    events = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    generations = {event["generation"] for event in events}
    moved = sum(event["leader"]["moved"] for event in events if event["leader"])
    longest = max(event["duration_seconds"] or 0 for event in events)
    print(
        f"{len(generations)} rebalances, {moved} partitions moved, the longest rebalance took {longest:.1f} s"
    )


def run(servers: str, messages: int, cool_down: float) -> None:
    """Produce a burst, and scale the group that consumes it."""
    topic = f"burst-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(messages):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.flush(30)  # librdkafka's queue has a limit
    if left := producer.flush(30):
        raise TimeoutError(f"the brokers did not take {left} messages")
    with tempfile.TemporaryDirectory() as folder:
        control(servers, topic, cool_down, Path(folder))


def main() -> None:
    """Read the command line, and run."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", nargs="?", help="bootstrap.servers; by default a Kafka of its own")
    arguments.add_argument("--messages", type=int, default=3000, help="of the burst")
    arguments.add_argument("--cool-down", type=float, default=5, help="seconds between two changes")
    options = arguments.parse_args()
    if options.servers:
        run(options.servers, options.messages, options.cool_down)
    else:
        with LocalKafka() as kafka:
            run(kafka.bootstrap_servers, options.messages, options.cool_down)


if __name__ == "__main__":
    main()
