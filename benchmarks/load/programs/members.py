"""A group member with Groupwright's consumer that spends a set time on each message.

It obeys `join`, `rebalance` (member 0 enforces one) and `stop`. It prints `gained` or `gave` with its number,
the time and partitions for each callback, and `consumed` with its number and the number of messages that it
has processed. At the end it writes three int64 for each message: time of the end, partition, offset.
"""

import sys
import threading
from array import array
from pathlib import Path

from confluent_kafka import TopicPartition

from benchmarks.consumer.programs.harness import now, say, settings, telling_failures
from benchmarks.load.programs.pacer import Pacer
from groupwright.assignors import Assignor, Lag, LoadAwareAssignor, ProcessingTime, Throughput
from groupwright.consumer import Consumer

_WAIT = 0.05
_STOP_SECONDS = 10.0
_REPORT_MICROSECONDS = 250_000


class Member:
    """A group member that consumes from `join` to `stop`."""

    def __init__(self, given: dict[str, str]) -> None:
        """Create the member, without a subscription."""
        self.number = int(given["first"])
        self.received = array("q")
        self._topic = given["topic"]
        self._pacer = Pacer(float(given["service"]), float(given["slack"]))
        self._consumer = Consumer(_config(given))
        self._wants_rebalance = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def join(self) -> None:
        """Subscribe and start consuming."""
        self._thread.start()

    def rebalance(self) -> None:
        """Have the group rebalance."""
        self._wants_rebalance.set()

    def stop(self) -> None:
        """Stop consuming, without leaving the group, which is not used again."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        reported = now()
        with telling_failures():
            self._consumer.subscribe(
                [self._topic], on_assign=self._gained, on_revoke=self._gave, on_lost=self._gave
            )
            while not self._stopping.is_set():
                if self._wants_rebalance.is_set():
                    self._wants_rebalance.clear()
                    self._consumer.enforce_rebalance("benchmark")
                self._process_one()
                if now() > reported + _REPORT_MICROSECONDS:
                    reported = now()
                    say("consumed", self.number, len(self.received) // 3)

    def _process_one(self) -> None:
        message = self._consumer.poll(_WAIT)
        if message is None:
            return
        if error := message.error():
            raise RuntimeError(error.str())
        partition, offset = message.partition(), message.offset()
        assert partition is not None  # noqa: S101 - only errors have none
        assert offset is not None  # noqa: S101 - as above
        self._pacer.serve()
        self.received.extend((now(), partition, offset))

    def _gained(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._say("gained", partitions)

    def _gave(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._say("gave", partitions)

    def _say(self, word: str, partitions: list[TopicPartition]) -> None:
        if partitions:
            say(word, self.number, now(), ",".join(str(each.partition) for each in partitions))


def _config(given: dict[str, str]) -> dict[str, object]:
    assignor: str | Assignor = given["assignor"]
    rates = Throughput(window=float(given["window"])) + Lag(horizon=float(given["horizon"]))
    if assignor == "load-aware":
        assignor = LoadAwareAssignor(weights=rates)
    elif assignor == "load-aware/time":
        assignor = LoadAwareAssignor(weights=ProcessingTime(rate=rates))
    return {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": assignor,
        **{name: int(value) for name, value in given.items() if name.endswith(".ms")},
    }


def main() -> None:
    """Execute the orders."""
    given = settings()
    member = Member(given)
    say("ready")
    for line in sys.stdin:
        match line.split():
            case ["join"]:
                member.join()
            case ["rebalance"] if member.number == 0:
                member.rebalance()
            case ["stop"]:
                break
    else:
        return
    member.stop()
    (Path(given["folder"]) / f"{member.number}.received").write_bytes(member.received.tobytes())
    say("done")


if __name__ == "__main__":
    with telling_failures():
        main()
