"""Processor time of an idle member with partitions, including all Python and native threads."""

import time

import confluent_kafka

import groupwright.consumer
from benchmarks.consumer.programs.harness import GROUP_TIMEOUT, report, say, settings, telling_failures
from benchmarks.consumer.programs.stopwatch import cpu_seconds

_POLL_SECONDS = 1.0
_SETTLING_SECONDS = 2.0


def main() -> None:
    """Idle, and print the processor time used."""
    given = settings()
    config = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "latest",
    }
    make = groupwright.consumer.Consumer if given["client"] == "Groupwright" else confluent_kafka.Consumer
    consumer = make(config)
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
        report({"seconds": time.monotonic() - began, "cpu_seconds": cpu_seconds() - cpu})
    finally:
        consumer.close()


def _idle(consumer: confluent_kafka.Consumer, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (message := consumer.poll(_POLL_SECONDS)) is not None:
            raise RuntimeError(f"a message came to an idle member: {message.error() or message.value()!r}")


if __name__ == "__main__":
    with telling_failures():
        main()
