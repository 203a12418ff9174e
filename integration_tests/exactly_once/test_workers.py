"""Workers of examples/exactly_once.py are stopped, frozen and killed: each record is counted once."""

import random
import runpy
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import coordinator
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.records import Feed, Tally
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.workers import Workers

pytestmark = pytest.mark.kafka

PROGRAM = Path(__file__).parents[2] / "examples" / "exactly_once.py"
WORKERS = ("ada", "bob", "cyd")


def test_a_transaction_that_the_coordinator_has_not_begun_can_be_aborted(
    kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic
) -> None:
    """The one before is still being completed (librdkafka 4849, fatal in one of four aborts)."""
    target, servers = new_kafka_topic(partitions=6), kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group})
    producer.init_transactions(PATIENCE)
    with Consumer({"bootstrap.servers": servers, "group.id": group}) as consumer:
        consumer.subscribe([target])
        transaction = runpy.run_path(str(PROGRAM))["Transaction"](consumer, producer)
        for _ in range(40):
            for end in (transaction.commit, transaction.abort):
                transaction.write(target, None, b"value")
                end()
    with Tally(servers, target, partitions=6) as committed:
        assert committed.read_to_the_end().counts.total() == 40


@pytest.mark.endurance
def test_every_record_is_counted_once_whatever_happens_to_the_workers(
    kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic, tmp_path: Path
) -> None:
    """Three workers share six partitions; faults hit between, within and at the commit of transactions."""
    source, target = new_kafka_topic(partitions=6), new_kafka_topic(partitions=3)
    servers = kafka.bootstrap_servers
    workers = Workers(
        PROGRAM,
        [servers, *f"--group {group} --source {source} --target {target} --id {{name}}".split()],
        tmp_path,
    )
    rng = random.Random(447)  # noqa: S311 - moments, no secrets
    admin = kafka.admin()

    with workers, Feed(servers, source) as feed, Tally(servers, target, partitions=3) as tally:

        def catch_up(what: str) -> None:
            sent = feed.sent

            def caught_up() -> bool:
                workers.tend()
                return tally.read() >= sent

            wait_until(caught_up, f"the records to be counted {what}")

        def crash_at_a_random_moment(name: str) -> None:
            threading.Event().wait(rng.uniform(0, 0.5))
            workers.crash(name)

        def survivors_own_everything() -> bool:
            owned = coordinator.owned(admin, group)
            return "cyd" not in owned and sum(map(len, owned.values())) == 6

        for name in WORKERS:
            workers.start(name)
        catch_up("at first")

        for name in WORKERS:
            crash_at_a_random_moment(name)
        catch_up("after the crash of one after the other")

        tally.read_next()
        workers.crash(*WORKERS)  # of which one has just committed
        catch_up("after the crash of all")

        assert workers.stop("bob") == 0
        workers.start("bob")
        catch_up("after a worker was stopped and started again")

        workers.freeze("cyd")
        crash_at_a_random_moment("ada")
        wait_until(survivors_own_everything, "the others to take over from the frozen worker")
        workers.thaw("cyd")
        catch_up("after the zombie's return")

        total = feed.stop()
        catch_up("in the end")
        assert [workers.stop(name) for name in WORKERS] == [0, 0, 0]
    assert workers.ended == [], workers.log("cyd")[-4000:]

    expected: Counter[tuple[bytes | None, bytes | None]] = Counter(
        (str(number).encode(), f"RECORD {number}".encode()) for number in range(total)
    )
    with Tally(servers, target, partitions=3) as committed:
        counts = committed.read_to_the_end().counts
        assert counts - expected == Counter()
        assert expected - counts == Counter()
    with Tally(servers, target, partitions=3, isolation="read_uncommitted") as written:
        # Else no transaction was ever cut short, and nothing was put to the test.
        assert written.read_to_the_end().counts.total() > total
