"""Functions shared by the contestants in Python; the one in Java follows the same protocol.

Each contestant is a separate process. Its arguments are settings of the form `name=value`. It prints one line
for each of: `ready` once its clients exist; `result` and its measurement as JSON; `lacks` and the name of a
missing feature; or `failed` and the error. Some contestants read orders from standard input, and end when it
is closed. All times are wall-clock times in microseconds, which are comparable between processes.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import confluent_kafka

GROUP_TIMEOUT = 30.0
"""Seconds within which a lone member must have its partitions."""

_speaking = threading.Lock()


def settings() -> dict[str, str]:
    """Return the settings given as arguments."""
    pairs = (argument.partition("=") for argument in sys.argv[1:])
    return {name: value for name, _, value in pairs}


def consumer_class(client: str) -> "type[confluent_kafka.Consumer]":
    """Import a client, Groupwright or confluent-kafka, and no other; return its consumer's class."""
    if client == "Groupwright":
        import groupwright.consumer

        return groupwright.consumer.Consumer
    import confluent_kafka

    return confluent_kafka.Consumer


def say(*words: object) -> None:
    """Print a line; thread-safe."""
    line = " ".join(map(str, words)).replace("\n", " ")
    with _speaking:
        print(line, flush=True)


def report(result: Mapping[str, object]) -> None:
    """Print the measurement."""
    say("result", json.dumps(result))


def now() -> int:
    """Return the time, in microseconds."""
    return time.time_ns() // 1000


@contextmanager
def telling_failures() -> Iterator[None]:
    """Print any exception that the body raises."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a contestant raises is its result
        say("failed", f"{type(error).__name__}: {error}")
