"""Three processes of a service with four workers each are deployed anew and killed: no order is lost.

The service is examples/parallel_service.py, on Groupwright's consumer and on confluent-kafka's, and the same
service written by hand.
"""

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Producer

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.records import Tally
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.workers import Workers

pytestmark = pytest.mark.kafka

EXAMPLE = Path(__file__).parents[2] / "examples" / "parallel_service.py"
SERVICES = {
    "groupwright": (EXAMPLE, []),
    "confluent-kafka": (EXAMPLE, ["--plain"]),
    "by hand": (Path(__file__).with_name("by_hand.py"), []),
}
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


@pytest.fixture(params=SERVICES)
def workers(
    request: pytest.FixtureRequest, kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic, tmp_path: Path
) -> Iterator[tuple[Workers, str, str]]:
    """The service's processes, the topic of orders, and that of failed ones."""
    source, failed = new_kafka_topic(partitions=PARTITIONS), new_kafka_topic()
    program, options = SERVICES[request.param]
    words = [
        kafka.bootstrap_servers,
        *f"--group {group} --source {source} --failed {failed}".split(),
        *options,
    ]
    with Workers(program, words, tmp_path) as found:
        yield found, source, failed


def charged(workers: Workers) -> Counter[int]:
    """Return how often each order was processed; a line that a kill has cut off does not count."""
    logs = (workers.log(name) for name in NAMES)
    return Counter(
        int(number) for log in logs for number in re.findall(r"^charged (\d+)$", log, re.MULTILINE)
    )


def test_no_order_is_lost_and_a_deploy_charges_none_twice(
    workers: tuple[Workers, str, str], kafka: Kafka, request: pytest.FixtureRequest
) -> None:
    """Written by hand, a deploy does charge some twice: those behind an order that was not begun."""
    service, source, failed = workers
    with (
        Orders(kafka.bootstrap_servers, source) as orders,
        Tally(kafka.bootstrap_servers, failed, 1) as tally,
    ):

        def catch_up(what: str) -> None:
            sent = max(orders.sent, 300)
            wait_until(
                lambda: sum(1 for number in charged(service) if number < sent) >= sent - sent // POISON_EVERY,
                f"all orders to be charged {what}",
            )

        for name in NAMES:
            service.start(name)
        catch_up("at first")
        for name in NAMES:
            assert service.stop(name) == 0
            service.start(name)
        catch_up("after a deploy")
        twice = sum(times - 1 for times in charged(service).values())
        assert twice == 0 or "by hand" in request.node.name
        for name in NAMES:
            service.crash(name)
            catch_up(f"after {name} was killed")
        orders.stop()
        catch_up("in the end")
        wait_until(
            lambda: bool(tally.read()) and {value for _, value in tally.counts} == orders.poisoned,
            "failed orders to be kept",
        )
    again = sum(times - 1 for times in charged(service).values()) - twice
    sys.stdout.write(f"{orders.sent} orders, {twice} twice after a deploy, {again} after three kills\n")
    assert [service.stop(name) for name in NAMES] == [0, 0, 0]
