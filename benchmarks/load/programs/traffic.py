"""Writer of the traffic: messages at a set rate for each partition.

It first writes a backlog, with the number of messages of each partition in its settings, and prints `ready`.
It obeys `rates` with the messages per second of each partition, separated by commas, and `stop`. At the end
it writes three int64 for each tick and partition: time in microseconds, partition, number of messages.
"""

import queue
import sys
import threading
import time
from array import array
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.consumer.programs.harness import now, say, settings, telling_failures

_TICK_SECONDS = 0.1
"""Short beside all that is measured; shorter ones would be more requests, for which the broker needs CPU."""

_FLUSH_SECONDS = 10.0
_VALUE = b"x" * 100


class Writer:
    """Writes what is due."""

    def __init__(self, given: dict[str, str]) -> None:
        """Create a writer that writes nothing yet."""
        self.written = array("q")
        self._topic = given["topic"]
        self._producer = Producer({"bootstrap.servers": given["servers"], "linger.ms": 5})
        self._rates: list[float] = []
        self._due: list[float] = []

    def fill(self, backlog: list[int]) -> None:
        """Write so many messages to each partition.

        Raises:
            TimeoutError: The broker does not take them.
        """
        for partition, messages in enumerate(backlog):
            for _ in range(messages):
                self._producer.produce(self._topic, _VALUE, partition=partition)
        self.flush()

    def set_rates(self, rates: list[float]) -> None:
        """Set the messages per second of each partition."""
        self._rates = rates
        # Partitions of equal rates are not due in the same tick.
        self._due = self._due or [number / len(rates) for number in range(len(rates))]

    def write(self, seconds: float) -> None:
        """Write the messages of so many seconds."""
        for partition, rate in enumerate(self._rates):
            self._due[partition] += rate * seconds
            count = int(self._due[partition])
            self._due[partition] -= count
            for _ in range(count):
                self._producer.produce(self._topic, _VALUE, partition=partition)
            if count:
                self.written.extend((now(), partition, count))
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has all messages.

        Raises:
            TimeoutError: The broker does not take them.
        """
        if left := self._producer.flush(_FLUSH_SECONDS):
            raise TimeoutError(f"the broker did not take {left} messages in {_FLUSH_SECONDS} s")


def main() -> None:
    """Execute the orders."""
    given = settings()
    orders: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(orders,), daemon=True).start()
    writer = Writer(given)
    writer.fill([int(messages) for messages in given["backlog"].split(",")])
    say("ready")
    last = time.monotonic()
    while True:
        time.sleep(max(0.0, last + _TICK_SECONDS - time.monotonic()))
        before, last = last, time.monotonic()
        while not orders.empty():
            match orders.get():
                case ["rates", rates]:
                    writer.set_rates([float(rate) for rate in rates.split(",")])
                case ["stop"]:
                    writer.flush()
                    (Path(given["folder"]) / "written").write_bytes(writer.written.tobytes())
                    say("done")
                    return
                case []:
                    return
        writer.write(last - before)


def _read(orders: "queue.SimpleQueue[list[str]]") -> None:
    for line in sys.stdin:
        orders.put(line.split())
    orders.put([])


if __name__ == "__main__":
    with telling_failures():
        main()
