"""Costs of a member with partitions: of its start, its memory, and its processor time while it idles."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from benchmarks.consumer.programs.harness import (
    GROUP_TIMEOUT,
    consumer_class,
    report,
    say,
    settings,
    telling_failures,
)
from benchmarks.consumer.programs.stopwatch import cpu_seconds

if TYPE_CHECKING:
    import confluent_kafka

_POLL_SECONDS = 1.0
_SETTLING_SECONDS = 2.0


def main() -> None:
    """Start, idle, and print what it took; all Python and native threads included."""
    given = settings()
    config = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "latest",
    }
    cpu = cpu_seconds()
    consumer = consumer_class(given["client"])(config)
    started = cpu_seconds() - cpu
    try:
        consumer.subscribe([given["topic"]])
        say("ready")
        deadline = time.monotonic() + GROUP_TIMEOUT
        while not consumer.assignment():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no partitions in {GROUP_TIMEOUT} s")
            consumer.poll(0.1)
        _idle(consumer, _SETTLING_SECONDS)
        began, cpu = time.monotonic(), cpu_seconds()
        _idle(consumer, float(given["seconds"]))
        used = {"seconds": time.monotonic() - began, "cpu_seconds": cpu_seconds() - cpu}
        gc.collect()
        objects = len(gc.get_objects())
        report({**used, "start_cpu_seconds": started, "objects": objects, "resident": _resident_bytes()})
    finally:
        consumer.close()


def _idle(consumer: confluent_kafka.Consumer, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (message := consumer.poll(_POLL_SECONDS)) is not None:
            raise RuntimeError(f"a message came to an idle member: {message.error() or message.value()!r}")


def _resident_bytes() -> int:
    import psutil  # type: ignore[import-untyped]  # last, since it takes memory too

    resident: int = psutil.Process().memory_info().rss
    return resident


if __name__ == "__main__":
    with telling_failures():
        main()
