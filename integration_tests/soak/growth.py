"""Growth of memory, threads and open files over a thousand rebalances.

One process runs two consumers of one group. The second one alternates between one topic and two, so that each
change rebalances both. The measurements are taken after a warm-up of some rebalances, and at the end. The
consumers are no members of `groupwright.testing.groups`, because its ledger grows with each rebalance.
"""

import argparse
import gc
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from groupwright.consumer import Consumer, Rebalance
from groupwright.core import RebalanceListener
from groupwright.testing import LocalKafka

PARTITIONS = 6
"""Of each of the two topics."""

_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0

_MOST_THREADS = 0
_MOST_FILES = 2
"""A connection may be closed and opened again while files are counted."""
_MOST_TRACED_PER_REBALANCE = 200
"""Bytes of Python objects: below that it is noise of caches, above it something is kept."""
_MOST_RESIDENT_PER_REBALANCE = 4096
"""Bytes of the process, librdkafka's and the allocators' fragments included."""
_MOMENTS = 5


@dataclass(frozen=True, slots=True)
class Footprint:
    """Resources of a process."""

    rebalances: int
    resident: int
    """Bytes."""
    traced: int
    """Bytes of Python objects, by `tracemalloc`."""
    threads: int
    files: int


@dataclass(frozen=True, slots=True)
class Growth:
    """Resources of a process before and after many rebalances."""

    before: Footprint
    after: Footprint
    seconds: float
    biggest: tuple[str, ...]
    """Largest increases of Python memory, by line."""

    @property
    def rebalances(self) -> int:
        """Number of rebalances in between."""
        return self.after.rebalances - self.before.rebalances

    def excess(self) -> list[str]:
        """Return in words what grew by more than it may; nothing if all is well."""
        limits = {
            "threads": _MOST_THREADS,
            "files": _MOST_FILES,
            "traced": _MOST_TRACED_PER_REBALANCE * self.rebalances,
            "resident": _MOST_RESIDENT_PER_REBALANCE * self.rebalances,
        }
        return [
            f"{name} grew by {gained} in {self.rebalances} rebalances; {limit} are allowed"
            for name, limit in limits.items()
            if (gained := getattr(self.after, name) - getattr(self.before, name)) > limit
        ]


class Pair:
    """Two members of one group, polled in turns by one thread."""

    def __init__(self, bootstrap_servers: str, assignor: str, topics: tuple[str, str]) -> None:
        """Make both; nothing is joined yet."""
        self.rebalances = 0
        """Of the first member."""
        self._topics = topics
        self._generations = [-1, -1]
        self._consumers: list[Consumer] = []
        for index in range(2):
            consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap_servers,
                    "group.id": "growth",
                    "client.id": f"growth-{index}",
                    "partition.assignment.strategy": assignor,
                    "auto.offset.reset": "earliest",
                    "heartbeat.interval.ms": 20,
                    "log_level": 0,
                }
            )
            consumer.add_listener(_CountingListener(self, index))
            self._consumers.append(consumer)

    def on_rebalance(self, index: int, rebalance: Rebalance) -> None:
        """Note a rebalance of one of them."""
        self._generations[index] = rebalance.generation
        self.rebalances += index == 0

    def settle(self) -> None:
        """Have both subscribe, and be in one generation."""
        for consumer in self._consumers:
            consumer.subscribe(list(self._topics))
        self._poll_until(lambda: len(set(self._generations)) == 1 and self._generations[0] > 0)

    def rebalance(self, times: int) -> None:
        """Go through at least so many rebalances."""
        until = self.rebalances + times
        wide = True
        while self.rebalances < until:
            wide = not wide
            before = self.rebalances
            self._consumers[1].subscribe(list(self._topics if wide else self._topics[:1]))
            self._poll_until(
                lambda: self.rebalances > before and len(set(self._generations)) == 1  # noqa: B023 - called at once
            )

    def close(self) -> None:
        """Close both."""
        for consumer in self._consumers:
            consumer.close()

    def _poll_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no rebalance within {_PATIENCE_SECONDS:.0f} s: {self._generations}")
            for consumer in self._consumers:
                consumer.poll(_POLL_SECONDS)


class _CountingListener(RebalanceListener):
    """A listener that counts the pair's rebalances."""

    def __init__(self, pair: Pair, index: int) -> None:
        self._pair = pair
        self._index = index

    def rebalanced(self, rebalance: Rebalance) -> None:
        self._pair.on_rebalance(self._index, rebalance)


def measure(
    bootstrap_servers: str, assignor: str, topics: tuple[str, str], rebalances: int, warm_up: int
) -> Growth:
    """Go through so many rebalances after the warm-up; return what this process holds before and after."""
    tracemalloc.start()  # before the first: what takes the place of something untraced would look like growth
    try:
        pair = Pair(bootstrap_servers, assignor, topics)
        try:
            pair.settle()
            pair.rebalance(warm_up)
            first = tracemalloc.take_snapshot()  # before the footprint: it is megabytes itself, and stays
            before = _footprint(pair)
            started = time.monotonic()
            pair.rebalance(rebalances)
            seconds = time.monotonic() - started
            after, last = _footprint(pair), tracemalloc.take_snapshot()
        finally:
            pair.close()
    finally:
        tracemalloc.stop()
    gains = last.compare_to(first, "lineno")[:5]
    return Growth(before, after, seconds, tuple(str(gain) for gain in gains))


def _footprint(pair: Pair) -> Footprint:
    """Measure at a few rebalances, and take the least of each: a response on its way is no growth."""
    process = psutil.Process(os.getpid())
    moments = []
    for _ in range(_MOMENTS):
        pair.rebalance(1)
        gc.collect()
        traced, _peak = tracemalloc.get_traced_memory()
        moments.append((process.memory_info().rss, traced, process.num_threads(), process.num_fds()))
    return Footprint(pair.rebalances, *(min(values) for values in zip(*moments, strict=True)))


def main() -> int:
    """Measure, and tell; return the exit status: 1 if something grows."""
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.soak.growth", description="A thousand rebalances."
    )
    parser.add_argument("--rebalances", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--assignor", default="sticky")
    options = parser.parse_args()
    console = Console()
    with LocalKafka() as kafka:
        topics = ("orders", "payments")
        for topic in topics:
            kafka.create_topic(topic, PARTITIONS)
        growth = measure(
            kafka.bootstrap_servers, options.assignor, topics, options.rebalances, options.warm_up
        )
    table = Table(
        "",
        "after the warm-up",
        "at the end",
        title=f"{growth.rebalances} rebalances in {growth.seconds:.0f} s",
    )
    for name in ("rebalances", "resident", "traced", "threads", "files"):
        table.add_row(name, f"{getattr(growth.before, name):,}", f"{getattr(growth.after, name):,}")
    console.print(table)
    for line in growth.biggest:
        console.print(line, highlight=False, soft_wrap=True)
    for line in growth.excess():
        console.print(f"[red]{line}[/]", highlight=False)
    left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    console.print(f"Threads left after close: {', '.join(left) or 'none'}", highlight=False)
    return 1 if growth.excess() or left else 0


if __name__ == "__main__":
    sys.exit(main())
