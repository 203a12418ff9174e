"""What the contestants in Python have in common; the one in Java does the same.

A contestant is a process of its own. Its arguments are settings, `name=value` each. It says on standard output, a
line each: `ready` when it has its clients; `result` and what it measured, as JSON; `lacks` and what, if it has no
such thing; or `failed` and why. Orders, where it takes any, come on standard input; their end is its end. All times
are wall-clock time in microseconds, which processes share.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

GROUP_TIMEOUT = 30.0
"""Seconds within which a lone member must have its partitions."""

_speaking = threading.Lock()


def settings() -> dict[str, str]:
    """Return the settings that this process was started with."""
    pairs = (argument.partition("=") for argument in sys.argv[1:])
    return {name: value for name, _, value in pairs}


def say(*words: object) -> None:
    """Say a line; from any thread."""
    line = " ".join(map(str, words)).replace("\n", " ")
    with _speaking:
        print(line, flush=True)


def report(result: Mapping[str, object]) -> None:
    """Say what was measured."""
    say("result", json.dumps(result))


def now() -> int:
    """Return the time, in microseconds."""
    return time.time_ns() // 1000


@contextmanager
def telling_failures() -> Iterator[None]:
    """Say what is raised inside."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a contestant raises is its result
        say("failed", f"{type(error).__name__}: {error}")
