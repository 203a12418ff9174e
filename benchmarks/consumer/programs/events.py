"""Waiting time of an event in Groupwright's inbox while the member waits in poll(10) on an empty topic.

An event arrives when the coordinator thread calls `Inbox.put`, and is delivered when its callback begins. A
second member, of confluent-kafka, joins and leaves, so that partitions are revoked and assigned.
"""

import threading
import time

import confluent_kafka

import groupwright.consumer
from benchmarks.consumer.programs.harness import GROUP_TIMEOUT, report, say, settings, telling_failures
from groupwright.consumer._coordinator.inbox import Inbox
from groupwright.consumer._protocol.events import Assign, Event, Revoke

_POLL_SECONDS = 10.0
# Arrivals at whole periods of poll's slices would always find it at the same place.
_PAUSES = (0.31, 0.27, 0.23, 0.19, 0.13)


class Arrivals:
    """Arrival time of the last event of each kind."""

    def __init__(self) -> None:
        """Record arrivals in any inbox from now on."""
        self._at: dict[type[Event], float] = {}
        put = Inbox.put

        def noted(inbox: Inbox, event: Event) -> None:
            self._at[type(event)] = time.perf_counter()
            put(inbox, event)

        setattr(Inbox, "put", noted)  # noqa: B010 - the one place where an arrival can be seen

    def waited(self, kind: type[Event]) -> float:
        """Return the seconds since the last event of this kind arrived."""
        return time.perf_counter() - self._at[kind]


def disturb(config: dict[str, str], topic: str, times: int, over: threading.Event) -> None:
    """Let another member join and leave."""
    with telling_failures():
        for turn in range(times):
            other = confluent_kafka.Consumer(config)
            owns = threading.Event()
            other.subscribe([topic], on_assign=lambda *_, owns=owns: owns.set())
            deadline = time.monotonic() + GROUP_TIMEOUT
            while not owns.is_set():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the other member got no partitions in {GROUP_TIMEOUT} s")
                other.poll(0.1)
            time.sleep(_PAUSES[turn % len(_PAUSES)])
            other.close()
            time.sleep(_PAUSES[turn % len(_PAUSES)])
    over.set()


def main() -> None:
    """Wait for events, and print their waiting times."""
    given = settings()
    config = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "latest",
        "heartbeat.interval.ms": given["heartbeat.interval.ms"],
    }
    arrivals, waits, owns, over = Arrivals(), [], threading.Event(), threading.Event()

    def on_assign(*_: object) -> None:
        waits.append(("assign", arrivals.waited(Assign)))
        owns.set()

    def on_revoke(*_: object) -> None:
        waits.append(("revoke", arrivals.waited(Revoke)))

    consumer = groupwright.consumer.Consumer(config)
    try:
        consumer.subscribe([given["topic"]], on_assign=on_assign, on_revoke=on_revoke)
        say("ready")
        while not owns.is_set():
            consumer.poll(_POLL_SECONDS)
        times = int(given["disturbances"])
        threading.Thread(target=disturb, args=(config, given["topic"], times, over), daemon=True).start()
        while not over.is_set():
            consumer.poll(_POLL_SECONDS)
    finally:
        consumer.close()
    report({"revokes": _of(waits, "revoke"), "assigns": _of(waits, "assign")})


def _of(waits: list[tuple[str, float]], kind: str) -> list[float]:
    return [seconds for each, seconds in waits if each == kind]


if __name__ == "__main__":
    with telling_failures():
        main()
