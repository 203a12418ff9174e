"""`python -m benchmarks.cost.memory`: print the memory of a process with some consumers.

Arguments: bootstrap servers, topic, its partitions, number of consumers, "with" or "without" instrumentation.
"""

import gc
import sys
import time
from typing import Any

import psutil  # type: ignore[import-untyped]
from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from prometheus_client import CollectorRegistry, generate_latest

from groupwright.instrumentation import create_instrumented

_PATIENCE = 60.0


def main(servers: str, topic: str, partitions: int, consumers: int, *, measured: bool) -> int:
    """Return the resident memory in bytes, once each consumer has received its statistics twice."""
    registry = CollectorRegistry()
    taken: dict[int, int] = {}
    held: list[Any] = []
    for number in range(consumers):
        config = {
            "bootstrap.servers": servers,
            "group.id": "memory",
            "client.id": f"c-{number}",
            # Both have them, since librdkafka's own part of the cost is not the instrumentation's.
            "statistics.interval.ms": 1000,
            "stats_cb": lambda _, number=number: taken.update({number: taken.get(number, 0) + 1}),
        }
        held.append(
            create_instrumented(Consumer, config, registry=registry, lag_by_partition=True)
            if measured
            else Consumer(config)
        )
        held[-1].assign([TopicPartition(topic, partition, OFFSET_END) for partition in range(partitions)])
    deadline = time.monotonic() + _PATIENCE
    while any(taken.get(number, 0) <= 1 for number in range(consumers)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no statistics in {_PATIENCE} s")
        for consumer in held:
            consumer.poll(0.01)
    generate_latest(registry)
    gc.collect()
    memory: int = psutil.Process().memory_info().rss
    for consumer in held:
        consumer.close()
    return memory


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), measured=sys.argv[5] == "with"))
