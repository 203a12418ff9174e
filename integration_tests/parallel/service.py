"""The service that is killed: its programs, the orders that it gets, and what it has made of them."""

import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Self

from confluent_kafka import Producer

from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.workers import Workers

EXAMPLE = Path(__file__).parents[2] / "examples" / "parallel_service.py"
SERVICES = {
    "groupwright": (EXAMPLE, []),
    "confluent-kafka": (EXAMPLE, ["--plain"]),
    "by hand": (Path(__file__).with_name("by_hand.py"), []),
}
OTHERS = ("confluent-kafka", "by hand")
"""Those to compare with, which `make endure` runs: they change with their libraries alone."""
NAMES = ("ada", "bob", "cyd")
PARTITIONS = 6
POISON_EVERY = 200
CUSTOMERS = 40


class Orders:
    """Writes orders, each with its number; now and then one that is no order."""

    def __init__(self, servers: str, topic: str) -> None:
        self.sent = 0
        self.poisoned: set[bytes] = set()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            for number in range(self.sent, self.sent + 3):
                value = json.dumps({"id": number}).encode()
                if number % POISON_EVERY == POISON_EVERY - 1:
                    value = f"no order {number}".encode()
                    self.poisoned.add(value)
                self._producer.produce(self._topic, value, f"customer {number % CUSTOMERS}")
            self._producer.poll(0)
            self.sent += 3

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def charged(workers: Workers) -> Counter[int]:
    """Return how often each order was processed; a line that a kill has cut off does not count."""
    logs = (workers.log(name) for name in NAMES)
    return Counter(
        int(number) for log in logs for number in re.findall(r"^charged (\d+)$", log, re.MULTILINE)
    )
