"""Consume, transform, produce: offsets committed in transactions."""

from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions, values
from integration_tests.parity.scenarios import scenario


def _producer(lab: Lab, name: str = "transactions") -> Producer:
    settings = {"bootstrap.servers": lab.bootstrap_servers, "linger.ms": 5, "log_level": 0}
    producer = Producer({**settings, "transactional.id": f"{lab.id}.{name}"})
    producer.init_transactions(30)
    return producer


def _consumer(lab: Lab, *topics: str, **settings: Any) -> Client:
    consumer = lab.consumer(
        **{"enable_auto_commit": False, "partition_assignment_strategy": "range", **settings}
    )
    consumer.subscribe([*topics], **callbacks())
    return consumer


def _share(lab: Lab, consumer: Client, other: Client) -> None:
    """Poll both until each has one partition."""
    lab.together(
        consumer,
        other,
        until=lambda: len(consumer.raw.assignment()) == len(other.raw.assignment()) == 1,
        what="one and one are assigned",
    )


def _send(lab: Lab, producer: Producer, consumer: Client, metadata: object = None) -> None:
    """Add the consumer's positions to the transaction, as documented by send_offsets_to_transaction."""
    positions = consumer.raw.position(consumer.raw.assignment())
    group = consumer.raw.consumer_group_metadata() if metadata is None else metadata
    lab.attempt("send offsets", lambda: producer.send_offsets_to_transaction(positions, group, 30))


@scenario()
def a_transaction_commits_offsets(lab: Lab) -> None:
    """Consumed offsets and produced messages become visible together."""
    source, target = lab.topic(2, messages=5), lab.topic()
    consumer, producer = _consumer(lab, source), _producer(lab)
    producer.begin_transaction()
    for message in consumer.read(10):
        producer.produce(target, message.value())
    _send(lab, producer, consumer)
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    lab.note(f"stored {lab.stored(source, partitions=2)}")
    reader = lab.consumer(group_id=f"{lab.group}2")
    reader.subscribe([target])
    lab.note(f"{len(values(reader.read(10)))}")
    consumer.close()


@scenario()
def a_transaction_is_aborted(lab: Lab) -> None:
    """An aborted transaction leaves no offsets and no messages; the next one starts at the old offsets."""
    source, target = lab.topic(messages=10), lab.topic()
    consumer, producer = _consumer(lab, source), _producer(lab)
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for message in consumer.read(3):
            producer.produce(target, f"{number} {message.offset()}")
        _send(lab, producer, consumer)
        if commit:
            lab.attempt("commit", lambda: producer.commit_transaction(30))
        else:
            producer.flush(30)  # an abort purges what was not sent yet, and offsets would be left to chance
            lab.attempt("abort", lambda: producer.abort_transaction(30))
            (committed,) = consumer.committed(partitions(source, -1001), timeout=30)
            consumer.seek(committed)
    reader = lab.consumer(group_id=f"{lab.group}2")
    reader.subscribe([target])
    lab.note(f"{values(reader.read(6))}")
    consumer.close()


@scenario()
def a_transaction_of_a_member_that_was_expelled(lab: Lab) -> None:
    """The broker refuses offsets of a member that is no longer one, and the transaction must be aborted."""
    source, target = lab.topic(messages=5), lab.topic()
    consumer, producer = _consumer(lab, source), _producer(lab)
    producer.begin_transaction()
    for message in consumer.read(5):
        producer.produce(target, message.value())
    metadata = consumer.raw.consumer_group_metadata()
    lab.expel(consumer)
    _send(lab, producer, consumer, metadata)
    lab.attempt("abort", lambda: producer.abort_transaction(30))
    producer.begin_transaction()
    for message in consumer.read(5):
        producer.produce(target, message.value())
    _send(lab, producer, consumer)
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    consumer.close()


@scenario()
def a_transaction_over_a_rebalance(lab: Lab) -> None:
    """Offsets of the generation before a rebalance are refused."""
    source = lab.topic(2, messages=5)
    consumer, producer = _consumer(lab, source, client_id="a"), _producer(lab)
    producer.begin_transaction()
    consumer.read(10)
    metadata = consumer.raw.consumer_group_metadata()
    other = lab.other_member(client_id="b", partition_assignment_strategy="range", enable_auto_commit=False)
    other.subscribe([source])
    _share(lab, consumer, other)
    consumer.read(5)  # nothing is committed, so its partition begins again
    lab.attempt(
        "send offsets", lambda: producer.send_offsets_to_transaction(partitions(source, 5, 5), metadata, 30)
    )
    lab.attempt("abort", lambda: producer.abort_transaction(30))
    consumer.close()


@scenario(seconds=25)
def a_transaction_beside_one_that_a_former_member_left_open(lab: Lab) -> None:
    """Partitions that a cooperative member keeps are committed in the generation in which others wait."""
    source = lab.topic(2, messages=5)
    settings = {"partition_assignment_strategy": "cooperative-sticky", "enable_auto_commit": False}
    consumer = lab.consumer(client_id="a", **settings)
    other = lab.other_member(client_id="b", **settings)
    consumer.subscribe([source])
    consumer.read(10)
    other.subscribe([source])
    _share(lab, consumer, other)
    open_one = _producer(lab, "open")
    open_one.begin_transaction()
    (theirs,) = other.raw.assignment()
    theirs.offset = 5
    metadata = other.raw.consumer_group_metadata()
    lab.attempt("send offsets", lambda: open_one.send_offsets_to_transaction([theirs], metadata, 30))
    (kept,) = consumer.raw.assignment()
    kept.offset = 5
    before = consumer.raw.consumer_group_metadata()
    other.close()
    consumer.until(lambda: consumer.raw.consumer_group_metadata() != before, "the next generation")
    producer = _producer(lab)
    producer.begin_transaction()
    metadata = consumer.raw.consumer_group_metadata()
    lab.attempt("send offsets", lambda: producer.send_offsets_to_transaction([kept], metadata, 30))
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    lab.attempt("commit", lambda: open_one.commit_transaction(30))
    consumer.until_assigned(2)
    consumer.close()


@scenario()
def a_transaction_committed_in_on_revoke(lab: Lab) -> None:
    """A processor that ends its transaction in on_revoke hands over what it has done."""
    source, target = lab.topic(2, messages=5), lab.topic()
    producer = _producer(lab)
    consumer = lab.consumer(enable_auto_commit=False, client_id="a", partition_assignment_strategy="range")

    def on_revoke(client: Client, given: list[TopicPartition]) -> None:
        found = client.raw.position(given)
        metadata = client.raw.consumer_group_metadata()
        lab.attempt("send offsets", lambda: producer.send_offsets_to_transaction(found, metadata, 30))
        lab.attempt("commit", lambda: producer.commit_transaction(30))
        producer.begin_transaction()

    producer.begin_transaction()
    consumer.subscribe([source], on_assign=record, on_revoke=on_revoke)
    for message in consumer.read(10):
        producer.produce(target, message.value())
    other = lab.other_member(client_id="b", partition_assignment_strategy="range", enable_auto_commit=False)
    other.subscribe([source])
    _share(lab, consumer, other)
    other.idle(0.3)
    lab.note(f"stored {lab.stored(source, partitions=2)}")
    consumer.subscribe([source])  # without the callback: the transaction that is open has nothing in it
    consumer.raw.close()


@scenario()
def a_second_producer_fences_the_first(lab: Lab) -> None:
    """A zombie cannot commit offsets by its transaction."""
    source = lab.topic(messages=5)
    consumer, producer = _consumer(lab, source), _producer(lab)
    producer.begin_transaction()
    consumer.read(3)
    successor = _producer(lab)
    positions = partitions(source, 3)
    metadata = consumer.raw.consumer_group_metadata()
    fenced = False
    try:
        producer.send_offsets_to_transaction(positions, metadata, 30)
    except KafkaException as error:
        fenced = bool(error.args[0].fatal())
    lab.note(f"fenced {fenced}")
    successor.begin_transaction()
    lab.attempt("send offsets", lambda: successor.send_offsets_to_transaction(positions, metadata, 30))
    lab.attempt("commit", lambda: successor.commit_transaction(30))
    consumer.close()


@scenario()
def a_group_s_metadata_before_it_is_joined_and_after(lab: Lab) -> None:
    """Metadata is there at any time; that of a consumer without membership fences nothing."""
    source = lab.topic(messages=5)
    producer = _producer(lab)
    consumer = lab.consumer(enable_auto_commit=False)
    before = consumer.raw.consumer_group_metadata()
    producer.begin_transaction()
    lab.attempt(
        "send offsets", lambda: producer.send_offsets_to_transaction(partitions(source, 1), before, 30)
    )
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    consumer.subscribe([source])
    consumer.read(4)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.wait(lambda: not lab.members(), "the member has left")
    after = consumer.raw.consumer_group_metadata()
    producer.begin_transaction()
    lab.attempt(
        "send offsets", lambda: producer.send_offsets_to_transaction(partitions(source, 2), after, 30)
    )
    lab.attempt("abort", lambda: producer.abort_transaction(30))
    consumer.close()
    consumer.attempt("consumer_group_metadata")


@scenario()
def a_transaction_by_hand(lab: Lab) -> None:
    """A consumer whose partitions are assigned by hand can take part too."""
    source = lab.topic(messages=5)
    producer = _producer(lab)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.assign(partitions(source, 0))
    consumer.read(5)
    producer.begin_transaction()
    _send(lab, producer, consumer)
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    consumer.committed(partitions(source, -1001), timeout=30)
    consumer.close()


@scenario()
def a_member_waits_for_pending_offsets(lab: Lab) -> None:
    """Offsets of a transaction that is open are not handed out: the next owner waits for its end."""
    source = lab.topic(messages=5)
    producer = _producer(lab)
    consumer = _consumer(lab, source)
    consumer.read(3)
    producer.begin_transaction()
    _send(lab, producer, consumer)
    consumer.close()
    second = lab.consumer(enable_auto_commit=False)
    second.subscribe([source])
    second.idle(0.8)
    lab.attempt("commit", lambda: producer.commit_transaction(30))
    second.read(2)
    second.close()
