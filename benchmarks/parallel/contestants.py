"""One contestant in a process of its own: it processes a topic with four workers, and prints what that cost.

python -m benchmarks.parallel.contestants SERVERS TOPIC CONTESTANT FUNCTION MESSAGES
"""

import argparse
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import confluent_kafka
from confluent_kafka import Message

from groupwright.consumer import Consumer
from groupwright.consumer.parallel import ParallelConsumer
from integration_tests.harness.waiting import wait_until
from integration_tests.parallel.by_hand import Service

WORKERS = 4
FUNCTIONS: dict[str, Callable[[], object]] = {"nothing": lambda: None, "1 ms": lambda: time.sleep(0.001)}
_Work = Callable[[Message], None]


def loop(config: dict[str, Any], topic: str, process: _Work, is_done: Callable[[], bool]) -> None:
    """Process the messages in the thread that polls."""
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([topic])
    while not is_done():
        for message in consumer.consume(500, 0.1):
            process(message)
    consumer.close()


def thread_pool(config: dict[str, Any], topic: str, process: _Work, is_done: Callable[[], bool]) -> None:
    """Give each message to a thread pool: without order, limits, commits or failures."""
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([topic])
    with ThreadPoolExecutor(WORKERS) as pool:
        while not is_done():
            for message in consumer.consume(500, 0.1):
                pool.submit(process, message)
    consumer.close()


def by_hand(config: dict[str, Any], topic: str, process: _Work, is_done: Callable[[], bool]) -> None:
    """Order by key, and a commit of what is done: the service that is written by hand."""
    servers, group = config["bootstrap.servers"], config["group.id"]
    service = Service(argparse.Namespace(servers=servers, group=group, source=topic, failed="failed"))
    service.process = process  # type: ignore[method-assign,assignment]
    _run_until(is_done, service.run, lambda: setattr(service, "stopping", True))


def parallel(create: type, order: str) -> Callable[..., None]:
    """Return a contestant with `ParallelConsumer`."""

    def run(config: dict[str, Any], topic: str, process: _Work, is_done: Callable[[], bool]) -> None:
        consumer = ParallelConsumer(config, process, order=order, workers=WORKERS, create=create)
        _run_until(is_done, lambda: consumer.run([topic]), consumer.stop)

    return run


CONTESTANTS: dict[str, Callable[..., None]] = {
    "no workers": loop,
    "bare thread pool": thread_pool,
    "by hand, by key": by_hand,
    "by key": parallel(confluent_kafka.Consumer, "key"),
    "by partition": parallel(confluent_kafka.Consumer, "partition"),
    "no order": parallel(confluent_kafka.Consumer, "none"),
    "by partition, Groupwright's consumer": parallel(Consumer, "partition"),
}


def _run_until(is_done: Callable[[], bool], run: Callable[[], object], stop: Callable[[], object]) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(is_done, "all messages are processed")
    stop()
    thread.join()


def main(servers: str, topic: str, contestant: str, function: str, messages: int) -> None:
    """Run a contestant, and print seconds and processor seconds from the first message to the last."""
    config = {"bootstrap.servers": servers, "group.id": f"bench-{uuid.uuid4().hex}"}
    config |= {"auto.offset.reset": "earliest"}
    work, times, done = FUNCTIONS[function], list[tuple[float, float]](), [0]
    lock = threading.Lock()

    def process(_: Message) -> None:
        if not times:
            times.append((time.perf_counter(), time.process_time()))
        work()
        with lock:
            done[0] += 1
        if done[0] == messages:
            times.append((time.perf_counter(), time.process_time()))

    CONTESTANTS[contestant](config, topic, process, lambda: done[0] >= messages)
    (began, began_cpu), (ended, ended_cpu) = times[0], times[-1]
    sys.stdout.write(json.dumps({"seconds": ended - began, "cpu": ended_cpu - began_cpu}))


if __name__ == "__main__":
    _servers, _topic, _contestant, _function, _messages = sys.argv[1:]
    main(_servers, _topic, _contestant, _function, int(_messages))
