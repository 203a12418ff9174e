"""Three processes of a service with four workers each are deployed anew and killed: no order is lost.

The service is examples/parallel_service.py, on Groupwright's consumer and on confluent-kafka's, and the same
service written by hand.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.records import Tally
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.workers import Workers
from integration_tests.parallel.service import (
    NAMES,
    OTHERS,
    PARTITIONS,
    POISON_EVERY,
    SERVICES,
    Orders,
    charged,
)

pytestmark = pytest.mark.kafka


@pytest.fixture(params=["groupwright", *(pytest.param(each, marks=pytest.mark.endurance) for each in OTHERS)])
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


@pytest.mark.endurance
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

        def start(name: str, before: str = "") -> None:
            """Start a process, and wait until it works: before, SIGTERM would end it at once."""
            service.start(name)
            wait_until(lambda: "charged" in service.log(name)[len(before) :], f"{name} to charge orders")

        for name in NAMES:
            start(name)
        catch_up("at first")
        for name in NAMES:
            assert service.stop(name) == 0, service.log(name)[-2000:]
            start(name, service.log(name))
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
