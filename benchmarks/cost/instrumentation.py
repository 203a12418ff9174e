"""The instrumentation on a real Kafka: its throughput, its scrapes and its memory."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.cost.consumption import METHODS, Method, Rates, closing, compare, fill
from benchmarks.cost.instrumentation_results import Results, Scrape
from groupwright import consumer as groupwright
from groupwright.instrumentation import create_instrumented
from groupwright.instrumentation._librdkafka.statistics import read_consumer
from groupwright.instrumentation._tracking.lag_tracker import LagTracker
from groupwright.testing import LocalKafka

PARTITIONS = 1000
_SCRAPES = 200
_CONSUMERS = 10
_ROOT = Path(__file__).parents[2]
_TOPIC = "benchmark"
_CLIENTS: dict[str, type[Consumer]] = {"": Consumer, ", Groupwright's Consumer": groupwright.Consumer}
"""Classes of consumers, by what a method's name ends with."""


def measure(kafka: LocalKafka, messages: int, seconds: float, origin: Mapping[str, Any]) -> Results:
    """Measure consuming, scraping and memory at 1,000 partitions.

    Args:
        kafka: The broker.
        messages: Messages of a turn.
        seconds: The longest time for each method of consuming.
        origin: Command, date and machine.
    """
    fill(kafka, _TOPIC, PARTITIONS, 2 * messages)  # so that no turn waits for the last ones
    rates = _throughput(kafka, messages, seconds)
    scrapes, text = zip(*(_scrape(kafka, by_partition=each) for each in (False, True)), strict=True)
    return Results(
        **origin,
        partitions=PARTITIONS,
        messages=messages,
        rates=rates,
        scrapes=list(scrapes),
        statistics_ms=_statistics(text[-1]),
        statistics_bytes=len(text[-1]),
        memory=_memory(kafka),
    )


def _throughput(kafka: LocalKafka, messages: int, seconds: float) -> dict[str, Rates]:
    return {
        name + suffix: _compare(kafka, client, method, messages, seconds)
        for suffix, client in _CLIENTS.items()
        for name, method in METHODS.items()
    }


def _compare(
    kafka: LocalKafka, client: type[Consumer], method: Method, messages: int, seconds: float
) -> Rates:
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "g",
        "enable.auto.commit": False,
        # By default, librdkafka pauses for a second once its queue is full: by chance, in some turns and not
        # in others.
        "fetch.queue.backoff.ms": 10,
    }
    measured = {**config, "client.id": "measured", "statistics.interval.ms": 15_000}
    with (
        closing(client(config)) as without,
        closing(
            create_instrumented(client, measured, registry=CollectorRegistry(), lag_by_partition=True)
        ) as with_it,
    ):
        turn = int(messages * method.share)
        return compare(without, with_it, _TOPIC, PARTITIONS, turn, seconds, method.take)


def _scrape(kafka: LocalKafka, *, by_partition: bool) -> tuple[Scrape, str]:
    """Time the scrapes of a consumer of all partitions; return its statistics, too."""
    registry = CollectorRegistry()
    received: list[str] = []
    config: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "scraped",
        "client.id": "scraped",
        "statistics.interval.ms": 500,
        "stats_cb": received.append,
    }
    lag = "\ngroupwright_partition_lag{" if by_partition else "\ngroupwright_lag{"
    wanted = PARTITIONS if by_partition else 1
    with closing(
        create_instrumented(Consumer, config, registry=registry, lag_by_partition=by_partition)
    ) as consumer:
        consumer.assign([TopicPartition(_TOPIC, partition, 0) for partition in range(PARTITIONS)])
        page = ""
        while page.count(lag) < wanted:
            consumer.consume(10_000, 0.5)
            page = generate_latest(registry).decode()
        milliseconds = []
        for _ in range(_SCRAPES):
            began = time.perf_counter()
            generate_latest(registry)
            milliseconds.append(round((time.perf_counter() - began) * 1000, 3))
    series = sum(not line.startswith("#") for line in page.splitlines())
    return Scrape(by_partition, series, page.count("_bucket{"), milliseconds), received[-1]


def _statistics(text: str) -> float:
    """Return the best time, in milliseconds, to parse statistics and to compute the lag."""
    tracker = LagTracker({})
    times = []
    for _ in range(20):
        began = time.perf_counter()
        tracker.update(read_consumer(text), 0.0, {})
        times.append(time.perf_counter() - began)
    return round(min(times) * 1000, 2)


def _memory(kafka: LocalKafka) -> int:
    """Return the bytes that the instrumentation of a consumer takes."""

    def held(consumers: int, which: str) -> int:
        command = [sys.executable, "-m", "benchmarks.cost.memory", kafka.bootstrap_servers, _TOPIC]
        arguments = [str(PARTITIONS), str(consumers), which]
        ran = subprocess.run(  # noqa: S603 - this project's own program
            [*command, *arguments], capture_output=True, text=True, check=True, timeout=180, cwd=_ROOT
        )
        return int(ran.stdout)

    grown = {which: held(_CONSUMERS, which) - held(1, which) for which in ("with", "without")}
    return round((grown["with"] - grown["without"]) / (_CONSUMERS - 1))
