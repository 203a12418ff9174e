"""Contents of a log: ends, sizes, headers, codecs, gaps, truncation, aborted transactions, batches."""

import time
from functools import partial
from typing import Any

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined] # as documented

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks, partitions, values
from integration_tests.parity.scenarios import scenario


def _producer(lab: Lab, **settings: Any) -> Producer:
    config = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": lab.bootstrap_servers, "linger.ms": 5, "log_level": 0, **config})


def _assigned(lab: Lab, *given: TopicPartition, **settings: Any) -> Client:
    consumer = lab.consumer(**{"enable_auto_commit": False, **settings})
    consumer.assign([*given])
    return consumer


def _ends(client: Client) -> int:
    return len(client.errors)


# --- Ends -------------------------------------------------------------------------------------------


@scenario()
def the_end_of_each_partition_is_told(lab: Lab) -> None:
    """With enable.partition.eof the end is an event, once until there is more."""
    topic = lab.topic(2, messages=3)
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.subscribe([topic], **callbacks())
    consumer.until(lambda: _ends(consumer) == 2, "both ends")
    consumer.idle(0.5)
    lab.produce(topic, 2, 1)
    consumer.until(lambda: _ends(consumer) == 3, "the new end")
    consumer.idle(0.3)
    consumer.close()


@scenario()
def the_end_of_an_empty_partition_is_told(lab: Lab) -> None:
    """An empty partition ends at once."""
    topic = lab.topic()
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.subscribe([topic])
    consumer.until(lambda: _ends(consumer) == 1, "the end")
    consumer.idle(0.3)
    consumer.close()


@scenario()
def the_end_is_told_again_after_a_seek(lab: Lab) -> None:
    """A replay ends where the partition does."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.subscribe([topic])
    consumer.until(lambda: _ends(consumer) == 1, "the end")
    consumer.seek(TopicPartition(topic, 0, 4))
    consumer.until(lambda: _ends(consumer) == 2, "the end again")
    consumer.seek(TopicPartition(topic, 0, 10))
    consumer.until(lambda: _ends(consumer) == 3, "the end for the third time")
    consumer.close()


@scenario()
def a_seek_before_the_end_was_taken(lab: Lab) -> None:
    """An end that was prefetched is not delivered after a seek."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.subscribe([topic])
    consumer.read(1)
    time.sleep(0.5)  # the rest and the end are prefetched meanwhile
    consumer.read(4)
    consumer.seek(TopicPartition(topic, 0, 0))
    consumer.until(lambda: _ends(consumer) == 1, "the end")
    consumer.idle(0.3)
    consumer.close()


@scenario()
def a_pause_before_the_end_was_taken(lab: Lab) -> None:
    """An end that was prefetched is not delivered while its partition is paused."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.subscribe([topic])
    consumer.read(1)
    time.sleep(0.5)  # the rest and the end are prefetched meanwhile
    consumer.pause([TopicPartition(topic, 0)])
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.until(lambda: _ends(consumer) == 1, "the end")
    consumer.close()


@scenario()
def an_unassign_before_the_end_was_taken(lab: Lab) -> None:
    """Nothing more comes of a partition that is no longer assigned."""
    topic = lab.topic(2, messages=5)
    consumer = _assigned(lab, *partitions(topic, 0, 0), enable_partition_eof=True)
    consumer.read(1)
    time.sleep(0.5)  # the rest and the ends are prefetched meanwhile
    consumer.incremental_unassign([TopicPartition(topic, 1)])
    consumer.until(lambda: _ends(consumer) == 1, "an end")
    consumer.idle(0.3)
    consumer.close()


@scenario()
def the_end_is_told_again_after_a_rebalance(lab: Lab) -> None:
    """A partition that is assigned again ends again."""
    topic = lab.topic(2, messages=3)
    settings = {"partition_assignment_strategy": "range"}
    consumer = lab.consumer(client_id="a", enable_partition_eof=True, **settings)
    consumer.subscribe([topic], **callbacks())
    consumer.until(lambda: _ends(consumer) == 2, "both ends")
    other = lab.other_member(client_id="b", **settings)
    other.subscribe([topic])
    lab.together(
        consumer,
        other,
        until=lambda: _ends(consumer) == 3 and len(other.raw.assignment()) == 1,
        what="the end of what is left",
    )
    consumer.idle(0.3)
    consumer.close()


@scenario()
def the_end_of_a_kept_partition_after_a_cooperative_rebalance(lab: Lab) -> None:
    """A partition that stays assigned, and of which nothing new came, ends once."""
    kept, revoked = lab.topic(messages=3), lab.topic(messages=3)
    consumer = lab.consumer(enable_partition_eof=True, partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([kept, revoked])
    consumer.until(lambda: _ends(consumer) == 2, "both ends")
    consumer.subscribe([kept])
    consumer.until_assigned(1)
    consumer.idle(1.5)
    lab.produce(kept, 2)
    consumer.read(8)
    consumer.idle(0.5)
    consumer.close()


@scenario()
def ends_come_in_batches(lab: Lab) -> None:
    """consume returns ends among the messages."""
    topic = lab.topic(2, messages=3)
    consumer = _assigned(lab, *partitions(topic, 0, 0), enable_partition_eof=True)
    # In one loop: an end may come after the batch that has the last message.
    consumer.until(lambda: _ends(consumer) == 2, "both ends", batch=100)
    consumer.close()


@scenario()
def no_ends_without_being_asked_for(lab: Lab) -> None:
    """enable.partition.eof is off by default."""
    topic = lab.topic(messages=3)
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.read(3)
    consumer.idle(0.5)
    consumer.close()


# --- Messages ---------------------------------------------------------------------------------------


def _note_message(lab: Lab, message: Message) -> None:
    kind, moment = message.timestamp()
    lab.note(
        f"{message.offset()}: key {message.key()!r}, value {message.value()!r}, headers {message.headers()}, "
        f"time {kind} {moment}, {len(message)} bytes, epoch {message.leader_epoch()}"
    )


@scenario()
def keys_values_headers_and_times(lab: Lab) -> None:
    """A message is delivered as it was written: null is not empty, headers keep their order."""
    topic = lab.topic()
    moment = 1_700_000_000_123
    lab.producer.produce(topic, value=None, key=None, timestamp=moment)
    lab.producer.produce(topic, value=b"", key=b"", timestamp=moment)
    lab.producer.produce(topic, value=None, key=b"tombstone", timestamp=moment)
    headers: list[tuple[str, str | bytes | None]] = [("b", b"1"), ("a", b"2"), ("b", None), ("empty", b"")]
    lab.producer.produce(topic, value="ü€", key="ß", headers=headers, timestamp=moment)
    lab.producer.flush(10)
    consumer = _assigned(lab, *partitions(topic, 0))
    for message in consumer.read(4):
        _note_message(lab, message)
    consumer.close()


@scenario()
def times_of_the_broker(lab: Lab) -> None:
    """A topic may have its messages stamped by the broker."""
    topic = lab.topic(message_timestamp_type="LogAppendTime")
    lab.producer.produce(topic, value=b"x", timestamp=1000)
    lab.producer.flush(10)
    consumer = _assigned(lab, *partitions(topic, 0))
    (message,) = consumer.read(1)
    kind, moment = message.timestamp()
    lab.note(f"time {kind}, {abs(moment / 1000 - time.time()) < 60}")
    consumer.close()


@scenario()
def every_codec(lab: Lab) -> None:
    """Messages compressed by any codec are delivered."""
    topic = lab.topic()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = _producer(lab, compression_type=codec)
        for number in range(50):
            producer.produce(topic, f"{codec} {number} " * 20, partition=0)
        producer.flush(10)
    consumer = _assigned(lab, *partitions(topic, 0))
    messages = consumer.read(250, batch=100)
    lab.note(f"{[bytes(value or b'')[:10] for value in values(messages)][::50]}")
    consumer.close()


@scenario()
def messages_larger_than_a_fetch(lab: Lab) -> None:
    """A message that is larger than a fetch's limits is delivered all the same."""
    topic = lab.topic(max_message_bytes="6000000")
    producer = _producer(lab, message_max_bytes=6_000_000)
    for size in (5_000_000, 10, 3_000_000):
        producer.produce(topic, b"x" * size, partition=0)
        producer.flush(30)
    consumer = lab.consumer(max_partition_fetch_bytes=1000, fetch_max_bytes=1000, message_max_bytes=1000)
    consumer.subscribe([topic])
    lab.note(f"{[len(value or b'') for value in values(consumer.read(3))]}")
    consumer.close()


@scenario()
def a_small_queue_of_large_messages(lab: Lab) -> None:
    """queued.max.messages.kbytes bounds what is prefetched, not what is delivered."""
    topic = lab.topic(2)
    for partition in range(2):
        lab.produce(topic, 20, partition, size=100_000)
    consumer = lab.consumer(queued_max_messages_kbytes=50, queued_min_messages=1, enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(40)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=120)
def a_compacted_log(lab: Lab) -> None:
    """Offsets have gaps where messages were compacted away; positions and commits count offsets."""
    topic = lab.topic(
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="0",
    )
    for _ in range(3):
        for key in ("a", "b"):
            lab.producer.produce(topic, b"x", key=key, partition=0)
        lab.producer.flush(10)
        time.sleep(0.15)  # a new segment begins with the next message
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.read(6)
    consumer.position(partitions(topic, -1001))
    consumer.commit(asynchronous=False)
    consumer.seek(TopicPartition(topic, 0, 0))
    consumer.read(6)
    consumer.close()


@scenario()
def a_log_with_gaps(lab: Lab) -> None:
    """Markers of transactions take offsets: positions and commits count them, messages do not."""
    topic = lab.topic()
    for number in range(3):
        _transaction(lab, topic, number, commit=number != 1)
    consumer = _assigned(lab, *partitions(topic, 0), enable_partition_eof=True)
    consumer.until(lambda: _ends(consumer) == 1, "the end")
    consumer.position(partitions(topic, -1001))
    consumer.commit(asynchronous=False)
    consumer.seek(TopicPartition(topic, 0, 4))
    consumer.until(lambda: _ends(consumer) == 2, "the end")
    consumer.close()


def _transaction(lab: Lab, topic: str, number: int, *, commit: bool) -> None:
    producer = _producer(lab, transactional_id=f"{lab.id}.{number}")
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in range(3):
        producer.produce(topic, f"{number} {each}", partition=0)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


@scenario()
def aborted_messages_are_read_uncommitted(lab: Lab) -> None:
    """isolation.level=read_uncommitted delivers all."""
    topic = lab.topic()
    _transaction(lab, topic, 0, commit=True)
    _transaction(lab, topic, 1, commit=False)
    consumer = lab.consumer(isolation_level="read_uncommitted")
    consumer.subscribe([topic])
    consumer.read(6)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def aborted_messages_at_the_end_are_passed(lab: Lab) -> None:
    """The commit after the last message is its offset + 1, although aborted records follow in the log."""
    topic = lab.topic()
    _transaction(lab, topic, 0, commit=True)
    _transaction(lab, topic, 1, commit=False)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(3)
    consumer.idle(0.5)
    consumer.position(partitions(topic, -1001))
    consumer.close()


@scenario()
def an_open_transaction_holds_delivery_up(lab: Lab) -> None:
    """With read_committed, messages come when the transaction before them has ended."""
    topic = lab.topic()
    producer = _producer(lab, transactional_id=f"{lab.id}.open")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush(10)
    lab.produce(topic, 2)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.until_assigned()
    consumer.idle(0.5)
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    producer.commit_transaction(30)
    consumer.read(3)
    consumer.close()


@scenario()
def records_are_deleted_before_they_are_read(lab: Lab) -> None:
    """A position before the log's start is reset as auto.offset.reset says."""
    topic = lab.topic(messages=10)
    consumer = _assigned(lab, *partitions(topic, 0), auto_offset_reset="earliest")
    consumer.read(10)
    lab.delete_records(topic, before=6)
    consumer.seek(TopicPartition(topic, 0, 2))
    consumer.read(4)
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.close()


@scenario()
def a_group_s_offset_is_before_the_log_s_start(lab: Lab) -> None:
    """A committed offset that was deleted is reset."""
    topic = lab.topic(messages=10)
    lab.other_member().commit(offsets=partitions(topic, 2), asynchronous=False)
    lab.delete_records(topic, before=6)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(4)
    consumer.close()


@scenario()
def a_group_s_offset_is_before_the_log_s_start_and_reset_to_the_end(lab: Lab) -> None:
    """The same with latest."""
    topic = lab.topic(messages=10)
    lab.other_member().commit(offsets=partitions(topic, 2), asynchronous=False)
    lab.delete_records(topic, before=6)
    consumer = lab.consumer(auto_offset_reset="latest")
    consumer.subscribe([topic])
    consumer.until_assigned()
    consumer.idle(0.7)
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.close()


@scenario()
def a_group_s_offset_is_before_the_log_s_start_and_an_error(lab: Lab) -> None:
    """The same with error."""
    topic = lab.topic(messages=10)
    lab.other_member().commit(offsets=partitions(topic, 2), asynchronous=False)
    lab.delete_records(topic, before=6)
    consumer = lab.consumer(auto_offset_reset="error")
    consumer.subscribe([topic])
    consumer.until(lambda: consumer.errors, "an error")
    consumer.close()


# --- Portions ---------------------------------------------------------------------------------------


@scenario()
def portions_of_consume(lab: Lab) -> None:
    """consume returns as many messages as were asked for, if there are so many."""
    topic = lab.topic(messages=100)
    consumer = _assigned(lab, *partitions(topic, 0))
    for wanted in (1, 2, 7, 40, 50):
        lab.note(f"{wanted}: {len(consumer.consume(wanted, 10))}")
    consumer.close()


@scenario()
def consume_returns_less_when_its_time_is_over(lab: Lab) -> None:
    """Fewer messages than asked for come after the timeout, none lost."""
    topic = lab.topic(messages=5)
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.read(1)
    began = time.monotonic()
    lab.note(f"{len(consumer.consume(100, 1.0))}")
    lab.note(f"waited {time.monotonic() - began > 0.9}")
    lab.produce(topic, 3)
    lab.note(f"{len(consumer.consume(3, 10))}")
    consumer.close()


@scenario()
def consume_returns_nothing_for_nothing(lab: Lab) -> None:
    """consume(0) returns at once; numbers out of range are refused."""
    topic = lab.topic(messages=5)
    consumer = _assigned(lab, *partitions(topic, 0))
    lab.note(f"{consumer.attempt('consume', 0, 1.0)}")
    lab.note(f"{consumer.attempt('consume', -1, 1.0)}")
    lab.note(f"{consumer.attempt('consume', 1_000_001, 1.0)}")
    consumer.read(5)
    consumer.close()


@scenario()
def consume_across_partitions(lab: Lab) -> None:
    """Batches mix partitions; each partition's messages are in order."""
    topic = lab.topic(4, messages=50)
    consumer = _assigned(lab, *partitions(topic, 0, 0, 0, 0))
    consumer.read(200, batch=33)
    consumer.close()


@scenario()
def poll_and_consume_in_turn(lab: Lab) -> None:
    """Neither skips what the other has prefetched."""
    topic = lab.topic(messages=100)
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.read(1)
    for _ in range(9):
        consumer.poll(5)
        consumer.consume(10, 5)
    lab.note(f"{[message.offset() for message in consumer.messages] == list(range(100))}")
    consumer.close()


@scenario()
def polls_without_waiting(lab: Lab) -> None:
    """poll(0) returns at once, and messages come in a loop of it."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    lab.note(f"{consumer.poll(0)}")
    deadline = time.monotonic() + 20
    while len(consumer.messages) < 20 and time.monotonic() < deadline:
        consumer.poll(0)
        time.sleep(0.001)
    consumer.close()


def _produce_later(lab: Lab, topic: str) -> None:
    time.sleep(0.3)  # so that the poll waits
    lab.produce(topic, 1)


@scenario()
def polls_that_wait_for_ever(lab: Lab) -> None:
    """poll(-1) and poll() wait until there is something."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    for arguments in ((), (-1,), (-1.0,)):
        consumer.poll(*arguments)
    thread = lab.spawn("later", partial(_produce_later, lab, topic))
    consumer.poll()
    thread.join()
    lab.produce(topic, 4)
    consumer.consume(2)
    consumer.consume(2, -1)
    consumer.close()


@scenario()
def a_poll_returns_when_a_message_comes(lab: Lab) -> None:
    """A long poll does not wait for its end."""
    topic = lab.topic()
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.poll(0.3)
    began = time.monotonic()
    thread = lab.spawn("later", partial(_produce_later, lab, topic))
    consumer.poll(10)
    lab.note(f"at once {time.monotonic() - began < 5}")
    thread.join()
    consumer.close()


@scenario()
def polls_without_partitions(lab: Lab) -> None:
    """A consumer that has neither subscribed nor been assigned anything polls in vain."""
    consumer = lab.consumer()
    began = time.monotonic()
    lab.note(f"{consumer.poll(0.5)} {consumer.consume(5, 0.5)}")
    lab.note(f"waited {time.monotonic() - began > 0.9}")
    consumer.assign([])
    lab.note(f"{consumer.poll(0.2)}")
    consumer.close()


@scenario()
def settings_of_a_topic_change_while_it_is_read(lab: Lab) -> None:
    """A topic that grows beyond its limits by configuration is read on."""
    topic = lab.topic(messages=5)
    consumer = _assigned(lab, *partitions(topic, 0))
    consumer.read(5)
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"max.message.bytes": "3000000"})
    for found in lab.admin.alter_configs([resource]).values():
        found.result(30)
    producer = _producer(lab, message_max_bytes=3_000_000)
    written: list[Message] = []

    def on_delivery(error: object, message: Message) -> None:
        if error is None:
            written.append(message)

    while not written:  # until the broker has the new limit
        producer.produce(topic, b"x" * 2_000_000, partition=0, on_delivery=on_delivery)
        producer.flush(30)
    consumer.read(1)
    consumer.close()
