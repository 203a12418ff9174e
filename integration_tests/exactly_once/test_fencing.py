"""A worker that was expelled commits nothing; its successor resumes at the last committed transaction."""

import contextlib
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Producer, TopicPartition

from groupwright.consumer import Consumer
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until, take
from integration_tests.harness.records import Tally
from integration_tests.harness.waiting import stays_so, wait_until

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]
MakeProducer = Callable[[], Producer]

SECONDS_OF_DOUBT = 1.0


@pytest.fixture
def make_producer(kafka: Kafka, group: str) -> Iterator[MakeProducer]:
    """Create the worker's producer, with a transaction open; it is aborted if the test does not end it."""
    made: list[Producer] = []

    def make() -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "transactional.id": f"worker-of-{group}",
                "transaction.timeout.ms": 900_000,
            }
        )
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        made.append(producer)
        return producer

    yield make
    for producer in made:
        with contextlib.suppress(KafkaException):  # it has been ended
            producer.abort_transaction(PATIENCE)


def test_what_a_member_of_the_present_generation_sends_is_stored(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    make_producer: MakeProducer,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    source, target = new_kafka_topic(), new_kafka_topic()
    produce(source, 1, 3)
    worker = make_consumer(enable_auto_commit=False)
    worker.subscribe([source])
    take(worker, 3)
    producer = make_producer()

    producer.produce(target, b"of a member")
    producer.send_offsets_to_transaction(
        worker.position(worker.assignment()), worker.consumer_group_metadata()
    )
    producer.commit_transaction()

    assert committed(worker, source) == 3
    assert visible(kafka, target) == [b"of a member"]


def test_a_zombie_that_was_expelled_is_refused_and_nothing_of_it_is_seen(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    make_producer: MakeProducer,
    join: Join,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    """The worker stalls with an open transaction, another member takes over, and the worker resumes."""
    source, target = new_kafka_topic(), new_kafka_topic()
    produce(source, 1, 5)
    zombie = make_consumer(max_poll_interval_ms=6000, enable_auto_commit=False)
    zombie.subscribe([source])
    take(zombie, 5)
    producer = make_producer()
    producer.produce(target, b"of a zombie")

    successor = join("successor", [source])
    wait_until(lambda: len(successor.consumed) == 5, "the other member to take over")
    refused = refused_offsets(producer, zombie)

    assert refused.code() == KafkaError.UNKNOWN_MEMBER_ID
    assert refused.txn_requires_abort()
    producer.abort_transaction()
    successor.close()
    assert committed(zombie, source) == 5  # the successor's
    assert visible(kafka, target) == []


def test_a_generation_that_has_ended_is_refused_and_nothing_of_it_is_seen(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    make_producer: MakeProducer,
    join: Join,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    """A worker without on_revoke: other members may own its partitions while it remains a member."""
    source, target = new_kafka_topic(partitions=2), new_kafka_topic()
    produce(source, 2, 3)
    assigned: list[int] = []
    worker = make_consumer(enable_auto_commit=False)
    worker.subscribe([source], on_assign=lambda _, partitions: assigned.append(len(partitions)))
    take(worker, 6)
    producer = make_producer()
    producer.produce(target, b"of an old generation")
    read, metadata = worker.position(worker.assignment()), worker.consumer_group_metadata()

    join("other", [source])
    poll_until(worker, lambda _: assigned == [2, 1], "the other member to get a partition")
    refused = refused_offsets(producer, worker, read, metadata)

    assert refused.code() == KafkaError.ILLEGAL_GENERATION
    assert refused.txn_requires_abort()
    producer.abort_transaction()
    assert visible(kafka, target) == []


def test_a_static_member_whose_place_was_taken_is_refused_and_nothing_of_it_is_seen(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    make_producer: MakeProducer,
    join: Join,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    """A second process uses the same instance id, and the first one continues its open transaction."""
    source, target = new_kafka_topic(), new_kafka_topic()
    produce(source, 1, 3)
    first = make_consumer(group_instance_id="worker-1", enable_auto_commit=False)
    first.subscribe([source])
    take(first, 3)
    producer = make_producer()
    producer.produce(target, b"of the first")
    read, metadata = first.position(first.assignment()), first.consumer_group_metadata()

    second = join("second", [source], group_instance_id="worker-1")
    wait_until(lambda: len(second.consumed) == 3, "the second process to take the place")
    refused = refused_offsets(producer, first, read, metadata)

    assert refused.code() == KafkaError.FENCED_INSTANCE_ID
    assert refused.txn_requires_abort()
    producer.abort_transaction()
    assert visible(kafka, target) == []


@pytest.mark.endurance
def test_a_transaction_that_outlived_its_timeout_is_undone_and_its_offsets_with_it(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    group: str,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    """The worker exceeds ``transaction.timeout.ms``: the broker aborts, and its successor reads again."""
    source, target = new_kafka_topic(), new_kafka_topic()
    produce(source, 1, 3)
    worker = make_consumer(enable_auto_commit=False)
    worker.subscribe([source])
    take(worker, 3)
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "transactional.id": f"slow-worker-of-{group}",
            "transaction.timeout.ms": 5000,
        }
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(target, b"too late")
    producer.send_offsets_to_transaction(
        worker.position(worker.assignment()), worker.consumer_group_metadata()
    )
    assert producer.flush(PATIENCE) == 0

    wait_until(lambda: not under_way(kafka, producer_of=target), "the broker to end the transaction")
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(PATIENCE)

    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()
    assert committed(worker, source) == OFFSET_INVALID
    assert visible(kafka, target) == []
    worker.close()
    successor = make_consumer()
    successor.subscribe([source])
    assert [message.offset() for message in take(successor, 3)] == [0, 1, 2]


@pytest.mark.parametrize(("end", "expected"), [("commit", [3, 4]), ("abort", [0, 1, 2, 3, 4])])
def test_an_heir_waits_until_the_transaction_of_the_dead_has_ended(
    make_consumer: MakeConsumer,
    make_producer: MakeProducer,
    join: Join,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
    end: str,
    expected: list[int],
) -> None:
    """The offsets are sent but undecided: any guess would lose or repeat records."""
    source = new_kafka_topic()
    produce(source, 1, 5)
    dead = make_consumer(enable_auto_commit=False)
    dead.subscribe([source])
    take(dead, 3)
    producer = make_producer()
    producer.send_offsets_to_transaction([TopicPartition(source, 0, 3)], dead.consumer_group_metadata())
    dead.close()

    successor = join("successor", [source])
    stays_so(lambda: successor.consumed == [], SECONDS_OF_DOUBT, "the successor waits")
    if end == "commit":
        producer.commit_transaction()
    else:
        producer.abort_transaction()

    wait_until(lambda: len(successor.consumed) == len(expected), "the successor to go on")
    assert [offset for _, _, offset in successor.consumed] == expected


def refused_offsets(
    producer: Producer,
    consumer: Consumer,
    read: list[TopicPartition] | None = None,
    metadata: object | None = None,
) -> KafkaError:
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction(
            read or consumer.position(consumer.assignment()), metadata or consumer.consumer_group_metadata()
        )
    error = refused.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def under_way(kafka: Kafka, *, producer_of: str) -> bool:
    """Return whether a transaction is open in the topic's only partition, blocking committed reads."""
    return end(kafka, producer_of, "read_committed") < end(kafka, producer_of, "read_uncommitted")


def end(kafka: Kafka, topic: str, isolation: str) -> int:
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "none",
        "isolation.level": isolation,
    }
    with confluent_kafka.Consumer(config) as reader:
        return int(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE)[1])


def committed(consumer: Consumer, topic: str) -> int:
    return int(consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset)


def visible(kafka: Kafka, topic: str) -> list[bytes | None]:
    with Tally(kafka.bootstrap_servers, topic, partitions=1) as tally:
        return [value for (_, value), count in tally.read_to_the_end().counts.items() for _ in range(count)]
