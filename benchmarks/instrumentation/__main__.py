"""`python -m benchmarks.instrumentation`: cost of the instrumentation on a real Kafka, against its limits."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from benchmarks.instrumentation.consumption import by_consume, by_poll, closing, compare, fill
from benchmarks.machine import describe
from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry, generate_latest

from groupwright.instrumentation import create_instrumented
from groupwright.testing import LocalKafka

PARTITIONS = 1000
LEAST_RATIO = 0.99
MOST_SCRAPE = 0.010
"""Seconds."""
MOST_MEMORY = 2 * 2**20
"""Bytes a consumer."""
_SCRAPES = 200
_CONSUMERS = 10
_ROOT = Path(__file__).parents[2]
_TOPIC = "benchmark"


def main(
    *,
    messages: Annotated[int, typer.Option(help="Messages a round.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="Rounds of consuming, each with and without.")] = 9,
    output: Annotated[Path | None, typer.Option(help="A file for the results, as JSON.")] = None,
) -> None:
    """Measure consuming, scraping and memory at 1,000 partitions; exit with 1 if a limit is exceeded."""
    results: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": describe()}
    with LocalKafka(heap="1g") as kafka:
        fill(kafka, _TOPIC, PARTITIONS, messages)
        registry = CollectorRegistry()
        config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        measured = {**config, "client.id": "measured", "statistics.interval.ms": 15_000}
        with (
            closing(Consumer(config)) as without,
            closing(
                create_instrumented(Consumer, measured, registry=registry, lag_by_partition=True)
            ) as with_it,
        ):
            for name, take in (("poll", by_poll), ("consume", by_consume)):
                rates = compare(without, with_it, _TOPIC, PARTITIONS, messages, rounds, take)
                results[name] = {
                    "ratio": round(rates.ratio, 4),
                    "messages a second without": round(median(rates.without)),
                    "messages a second with": round(median(rates.with_it)),
                    "microseconds of CPU a message without": round(median(rates.cpu_without), 3),
                    "microseconds of CPU a message with": round(median(rates.cpu_with_it), 3),
                }
        results["scrape"] = _scrape(kafka)
        results["memory"] = _memory(kafka)
    print(json.dumps(results, indent=2))
    if output is not None:
        output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    missed = list(_missed(results))
    print(*missed or ["All limits are kept."], sep="\n")
    raise typer.Exit(int(bool(missed)))


def _scrape(kafka: LocalKafka) -> dict[str, Any]:
    """Time the scrapes of a consumer that exports the lag of each partition."""
    registry = CollectorRegistry()
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "scraped",
        "client.id": "scraped",
        "statistics.interval.ms": 500,
    }
    with closing(create_instrumented(Consumer, config, registry=registry, lag_by_partition=True)) as consumer:
        consumer.assign([TopicPartition(_TOPIC, partition, 0) for partition in range(PARTITIONS)])
        series = 0
        while series < PARTITIONS:
            consumer.consume(10_000, 0.5)
            text = generate_latest(registry).decode()
            series = text.count("\ngroupwright_partition_lag{")
        seconds = []
        for _ in range(_SCRAPES):
            began = time.perf_counter()
            generate_latest(registry)
            seconds.append(time.perf_counter() - began)
    return {
        "partitions": series,
        "median ms": round(median(seconds) * 1000, 2),
        "best ms": round(min(seconds) * 1000, 2),
    }


def _memory(kafka: LocalKafka) -> dict[str, Any]:
    def held(consumers: int, which: str) -> int:
        command = [sys.executable, "-m", "benchmarks.instrumentation.memory", kafka.bootstrap_servers, _TOPIC]
        arguments = [str(PARTITIONS), str(consumers), which]
        ran = subprocess.run(  # noqa: S603 - this project's own program
            [*command, *arguments], capture_output=True, text=True, check=True, timeout=180, cwd=_ROOT
        )
        return int(ran.stdout)

    grown = {which: held(_CONSUMERS, which) - held(1, which) for which in ("with", "without")}
    return {"bytes a consumer": round((grown["with"] - grown["without"]) / (_CONSUMERS - 1))}


def _missed(results: dict[str, Any]) -> list[str]:
    missed = [
        f"{name}: {results[name]['ratio']} of the throughput is left, and {LEAST_RATIO} is the limit"
        for name in ("poll", "consume")
        if results[name]["ratio"] < LEAST_RATIO
    ]
    if results["scrape"]["median ms"] > MOST_SCRAPE * 1000:
        missed.append(
            f"a scrape takes {results['scrape']['median ms']} ms, and {MOST_SCRAPE * 1000:g} is the limit"
        )
    if results["memory"]["bytes a consumer"] > MOST_MEMORY:
        missed.append(
            f"a consumer takes {results['memory']['bytes a consumer']} bytes, and {MOST_MEMORY} is the limit"
        )
    return missed


if __name__ == "__main__":
    typer.run(main)
