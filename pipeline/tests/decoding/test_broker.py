"""Bytes of a real broker: what it wrote of groups is what its admin client says of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import Consumer as NativeConsumer
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from groupwright.consumer import Consumer
from groupwright.core.offsets_topic import partition_for
from groupwright.pipeline._decoding import decode_batch
from groupwright.pipeline._decoding.messages import RECORD_KINDS
from groupwright.pipeline._transforms.consumer_groups import consumer_generations
from groupwright.pipeline._transforms.group_epochs import epoch_rows
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.streams import join_streams_group
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

_OFFSETS = "__consumer_offsets"
_PARTITIONS = 6
_NOTE = "n" * 200  # a length that takes two bytes in a compact string

MakeBatch = Callable[..., pa.RecordBatch]


def _records(kafka: LocalKafka, batch: MakeBatch, group: str) -> list[dict[str, Any]]:
    """Return what the group's partition of the topic has of it, decoded, in the order of writing."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    reader = NativeConsumer(config)
    try:
        partitions = reader.list_topics(_OFFSETS, timeout=PATIENCE).topics[_OFFSETS].partitions
        number = partition_for(group, len(partitions))
        end = reader.get_watermark_offsets(TopicPartition(_OFFSETS, number), timeout=PATIENCE)[1]
        reader.assign([TopicPartition(_OFFSETS, number, 0)])
        found: list[tuple[int, bytes | None, bytes | None]] = []

        def is_read() -> bool:
            for message in reader.consume(1000, 0.2):
                assert message.error() is None
                found.append((message.timestamp()[1], message.key(), message.value()))
            (position,) = reader.position([TopicPartition(_OFFSETS, number)])
            return position.offset >= end

        wait_until(is_read, "the end of the topic")
    finally:
        reader.close()
    decoded = decode_batch(batch([(key, value) for _, key, value in found])).to_pylist()
    rows = [row for row in decoded if row["group_id"] == group]
    assert [row["error"] for row in rows if row["error"]] == []
    return rows


def _of_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return decoded rows with a column for each kind of record, as tables have them."""
    return [{**row, row["record_kind"]: row[RECORD_KINDS[row["key_version"]].column]} for row in rows]


@contextmanager
def _two_members(
    kafka: LocalKafka, group: str, topic: str, make: type, **settings: str
) -> Iterator[list[Any]]:
    """Two members that own half of the topic each, and have committed it; left as they are."""
    with ExitStack() as stack:
        members = []
        for name in ("one", "two"):
            config = {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
            member = make(config)
            stack.callback(member.close)
            member.subscribe([topic])
            members.append(member)
            share = _PARTITIONS // len(members)

            def is_even(share: int = share) -> bool:
                for member in members:
                    member.poll(0.05)
                return all(len(member.assignment()) == share for member in members)

            wait_until(is_even, "an even assignment")
        for member in members:
            owned = member.assignment()
            offsets = [TopicPartition(topic, p.partition, 10 + p.partition, metadata=_NOTE) for p in owned]
            member.commit(offsets=offsets, asynchronous=False)
        yield members


def _described(kafka: LocalKafka, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    return admin.describe_consumer_groups([group])[group].result(PATIENCE)


def _assert_offsets(kafka: LocalKafka, group: str, rows: list[dict[str, Any]]) -> None:
    commits = [row["offset_commit"] for row in rows if row["offset_commit"]]
    last = {(commit["topic"], commit["partition"]): commit["committed_offset"] for commit in commits}
    with NativeConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group}) as asker:
        committed = asker.committed([TopicPartition(*key) for key in last], timeout=PATIENCE)
    assert last == {(p.topic, p.partition): p.offset for p in committed}
    assert len(last) == _PARTITIONS
    # confluent-kafka commits metadata with the zero that ends its string, and reads as far as the next zero.
    assert {commit["metadata"].removesuffix("\0") for commit in commits} == {_NOTE}


@pytest.mark.parametrize(
    ("strategy", "make"),
    [("range", NativeConsumer), ("cooperative-sticky", NativeConsumer), ("sticky", Consumer)],
)
def test_a_classic_groups_last_generation_is_what_the_broker_describes(
    local_kafka: LocalKafka,
    new_kafka_topic: Callable[..., str],
    batch: MakeBatch,
    strategy: str,
    make: type,
) -> None:
    topic = new_kafka_topic(partitions=_PARTITIONS)
    group = f"{topic}-group"
    with _two_members(
        local_kafka, group, topic, make, partition_assignment_strategy=strategy, heartbeat_interval_ms="200"
    ):
        described = _described(local_kafka, group)
        rows = _records(local_kafka, batch, group)
    _assert_offsets(local_kafka, group, rows)
    last = [row["group_metadata"] for row in rows if row["record_kind"] == "group_metadata"][-1]
    assert (
        (last["protocol_type"], last["protocol"])
        == ("consumer", described.partition_assignor)
        == ("consumer", strategy)
    )
    found = {
        member["member_id"]: (
            member["client_id"],
            member["client_host"],
            member["subscription"]["topics"],
            sorted(
                (each["topic"], number)
                for each in member["assignment"]["partitions"]
                for number in each["partitions"]
            ),
        )
        for member in last["members"]
    }
    assert found == {
        member.member_id: (
            member.client_id,
            member.host,
            [topic],
            sorted((p.topic, p.partition) for p in member.assignment.topic_partitions),
        )
        for member in described.members
    }
    assert last["leader"] in found
    said = [member["subscription"] for member in last["members"]]
    if strategy == "sticky":
        # The first member joined again with what it had, and says so in the assignor's user data.
        assert any(each["sticky_owned"] and each["sticky_generation"] for each in said)
    assert [(each["error"], each["version"] <= 3) for each in said] == [(None, True)] * 2


@pytest.mark.slow
def test_share_and_streams_groups_have_the_epochs_that_their_members_reached(
    local_kafka: LocalKafka, new_kafka_topic: Callable[..., str], batch: MakeBatch
) -> None:
    topic = new_kafka_topic(partitions=_PARTITIONS)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    share, streams = f"{topic}-share", f"{topic}-streams"
    consumer = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": local_kafka.bootstrap_servers, "group.id": share, "client.id": "one"}
    )
    try:
        consumer.subscribe([topic])

        def has_consumed() -> bool:
            producer.produce(topic, b"message")
            assert producer.flush(PATIENCE) == 0
            return any(message.error() is None for message in consumer.poll(0.1) or ())

        wait_until(has_consumed, "the share group has a message")
    finally:
        consumer.close()
    join_streams_group(local_kafka.bootstrap_servers, streams, topic)
    rows = list(epoch_rows(_of_table(_records(local_kafka, batch, share))))
    everything = [{"topic": topic, "partitions": list(range(_PARTITIONS))}]
    joined = next(row for row in rows if row["partitions"])
    assert [(each["client_id"], each["assigned"]) for each in joined["members"]] == [("one", everything)]
    assert rows[0]["cause"] == "first"
    assert (rows[-1]["cause"], rows[-1]["members_after"]) == ("leave", 0)
    assert [len(rows[-1]["left"]), rows[-1]["previous_generation"]] == [1, rows[-2]["generation"]]
    (*_, last) = epoch_rows(_of_table(_records(local_kafka, batch, streams)))
    tasks = [{"topic": "0", "partitions": list(range(_PARTITIONS))}]
    assert [each["assigned"] for each in last["members"]] == [tasks]
    assert last["duration_seconds"] >= 0


@pytest.mark.slow
def test_a_group_of_the_new_protocol_is_what_the_broker_describes(
    local_kafka: LocalKafka, new_kafka_topic: Callable[..., str], batch: MakeBatch
) -> None:
    topic = new_kafka_topic(partitions=_PARTITIONS)
    group = f"{topic}-group"
    with _two_members(local_kafka, group, topic, NativeConsumer, group_protocol="consumer"):
        described = _described(local_kafka, group)
        rows = _records(local_kafka, batch, group)
    _assert_offsets(local_kafka, group, rows)
    ids = {m.member_id: {p.partition for p in m.assignment.topic_partitions} for m in described.members}
    clients = {
        row["consumer_member"]["member_id"]: row["consumer_member"] for row in rows if row["consumer_member"]
    }
    assert {name: (each["client_id"], each["topics"]) for name, each in clients.items()} == {
        member.member_id: (member.client_id, [topic]) for member in described.members
    }
    for kind, column in (("target_member", "partitions"), ("current_member", "assigned")):
        last = {row[kind]["member_id"]: row[kind] for row in rows if row[kind]}
        found = {
            name: {n for part in each[column] for n in part["partitions"]} for name, each in last.items()
        }
        assert found == ids
        assert len({part["topic_id"] for each in last.values() for part in each[column]}) == 1
    epochs = [row["consumer_group"]["epoch"] for row in rows if row["consumer_group"]]
    assert epochs == sorted(epochs)
    current = [row["current_member"] for row in rows if row["current_member"]]
    assert {each["epoch"] for each in current[-2:]} == {epochs[-1]}
    assert {each["state"] for each in current[-2:]} == {"stable"}
    if tuple(map(int, local_kafka.version.split(".")[:2])) >= (4, 3):
        for part in (part for each in current[-2:] for part in each["assigned"]):
            assert len(part["assignment_epochs"]) == len(part["partitions"])
            assert set(part["assignment_epochs"]) <= set(epochs)

    # They have left now: their records are ended by tombstones that still say whose they were.
    wanted = {(kind, name) for kind in ("consumer_member", "current_member") for name in ids}

    def has_ended() -> bool:
        gone = [row for row in _records(local_kafka, batch, group) if row["tombstone"]]
        return wanted <= {
            (row["record_kind"], (row[row["record_kind"]] or {}).get("member_id")) for row in gone
        }

    wait_until(has_ended, "the tombstones of both members")
    records = _of_table(_records(local_kafka, batch, group))
    full, *after = (each for each in consumer_generations(records, {}) if each.number >= epochs[-1])
    assert (len(full.members), {each.cause for each in after}) == (2, {"leave"})
    assert [len(each.members) for each in after] in ([0], [1, 0]), "the group is left empty once"
