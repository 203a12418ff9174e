"""Comparison with Kafka's own code: Java's assignors and ConsumerProtocol on the same input."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Group,
    JoinedMember,
    MalformedBytesError,
    PartitionsByTopic,
    Subscription,
    Topic,
    by_name,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    perform_assignment,
)
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.conftest import Jvm

pytestmark = pytest.mark.kafka

VERSIONS = (0, 1, 2, 3)
TOPICS = ("a", "orders", "orders.dlq", "é", "\uffee", "\U0001f600")


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
@pytest.mark.parametrize(("assignor", "seed"), [("range", 881), ("roundrobin", 2000)])
def test_a_java_leader_would_assign_the_same(
    jvm: "Jvm",
    random_groups: Callable[[int, int], Iterator[Group]],
    joined: Callable[[Group], list[JoinedMember]],
    assignor: str,
    seed: int,
    block: int,
) -> None:
    given = 0
    for group in random_groups(seed + block, 500):
        members = joined(group)
        counts = {name: topic.partitions for name, topic in group.topics.items()}
        ours = {
            id_: decode_assignment(data)
            for id_, data in perform_assignment(by_name(assignor), members, counts).items()
        }
        javas = {
            id_: decode_assignment(data)
            for id_, data in jvm.perform_assignment(assignor, members, counts).items()
        }
        assert ours == javas, group
        given += sum(share.partitions.count for share in ours.values())
    assert given > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
def test_a_java_leader_would_assign_the_same_where_racks_matter(
    jvm: "Jvm",
    groups_with_racks: Callable[[int, int], Iterator[Group]],
    joined: Callable[[Group], list[JoinedMember]],
    block: int,
) -> None:
    changed_by_racks = 0
    for group in groups_with_racks(881 + block, 750):
        members = joined(group)
        ours = perform_assignment(by_name("range"), members, group.topics)
        assert ours == in_order(jvm.perform_assignment("range", members, group.topics)), group
        counts = {name: topic.partitions for name, topic in group.topics.items()}
        changed_by_racks += ours != perform_assignment(by_name("range"), members, counts)
    assert changed_by_racks > 250


@pytest.mark.slow
@pytest.mark.parametrize("racks", [[], ["a", "b", "c"]], ids=["no racks", "racks"])
def test_a_thousand_members_get_what_a_java_leader_would_give_them(
    jvm: "Jvm", seeded: Callable[[int], random.Random], racks: list[str]
) -> None:
    rng = seeded(4)
    names = [f"topic-{number}" for number in range(50)]
    members = [
        JoinedMember(
            f"member-{number}",
            f"instance-{number}" if number % 3 else None,
            encode_subscription(
                Subscription(tuple(rng.sample(names, 25)), rack=rng.choice(racks) if racks else None)
            ),
        )
        for number in range(1000)
    ]
    sizes = {name: rng.randint(1, 200 if racks else 1500) for name in names}
    topics = {
        name: Topic(size, racks=[rng.sample(racks, 2) for _ in range(size)] if racks else None)
        for name, size in sizes.items()
    }
    for assignor in ("range", "roundrobin"):
        ours = perform_assignment(by_name(assignor), members, topics)
        assert ours == in_order(jvm.perform_assignment(assignor, members, topics))


@pytest.mark.parametrize("version", VERSIONS)
def test_subscriptions_are_written_and_read_as_java_does(
    jvm: "Jvm", seeded: Callable[[int], random.Random], version: int
) -> None:
    rng = seeded(version)
    for _ in range(300):
        subscription = random_subscription(rng)
        owned = shuffled(rng, subscription.owned)
        written = jvm.write_subscription(subscription, owned, version)
        assert encode_subscription(subscription, version) == written
        assert decode_subscription(written) == jvm.read_subscription(written)
        read = decode_subscription(written)
        assert set(read.topics) == set(subscription.topics)
        assert read.user_data == subscription.user_data
        assert read.owned == (subscription.owned if version >= 1 else {})
        assert read.generation == (subscription.generation if version >= 2 else -1)
        assert read.rack == (subscription.rack if version >= 3 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_assignments_are_written_and_read_as_java_does(
    jvm: "Jvm", seeded: Callable[[int], random.Random], version: int
) -> None:
    rng = seeded(version)
    for _ in range(300):
        partitions, user_data = random_partitions(rng), random_user_data(rng)
        in_order = [(topic, int(partition)) for topic in partitions for partition in partitions[topic]]
        assert encode_assignment(partitions, user_data, version) == jvm.write_assignment(
            in_order, user_data, version
        )
        # Java's leader writes topics and partitions in the order that its assignor left them in.
        written = jvm.write_assignment(shuffled(rng, partitions), user_data, version)
        read = decode_assignment(written)
        assert (read.partitions, read.user_data) == (partitions, user_data)
        assert jvm.read_assignment(encode_assignment(partitions, user_data, version)) == (
            partitions,
            user_data,
        )


def test_what_is_read_from_damaged_bytes_is_what_java_reads(
    jvm: "Jvm", seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    """Java reads a little more: it repairs what is not UTF-8, and takes every negative length for null."""
    rng = seeded(12898)
    read = refused = 0
    for _ in range(4000):
        data = damage(rng, encode_subscription(random_subscription(rng), rng.choice(VERSIONS)))
        ours = outcome(data)
        if isinstance(ours, Subscription):
            assert ours == jvm.read_subscription(data), data
            read += 1
        else:
            java_is_laxer = ours.expected.startswith("UTF-8") or ours.found.startswith("-")
            assert java_is_laxer or jvm.refuses_subscription(data), data
            refused += 1
    assert read > 300
    assert refused > 300


def in_order(assignments: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same with topics and partitions in our order: Java leaves them in the one of its assignor."""
    decoded = {id_: decode_assignment(data) for id_, data in assignments.items()}
    return {id_: encode_assignment(share.partitions, share.user_data) for id_, share in decoded.items()}


def outcome(data: bytes) -> Subscription | MalformedBytesError:
    try:
        return decode_subscription(data)
    except MalformedBytesError as error:
        return error


def random_subscription(rng: random.Random) -> Subscription:
    return Subscription(
        topics=tuple(rng.sample(TOPICS, rng.randint(0, len(TOPICS)))),
        user_data=random_user_data(rng),
        owned=random_partitions(rng),
        generation=rng.choice((-1, 0, 7, 2**31 - 1)),
        rack=rng.choice((None, "eu-west-1a", "é")),
    )


def random_partitions(rng: random.Random) -> PartitionsByTopic:
    return PartitionsByTopic(
        {topic: rng.sample(range(100), rng.randint(0, 5)) for topic in rng.sample(TOPICS, rng.randint(0, 4))}
    )


def random_user_data(rng: random.Random) -> bytes | None:
    return rng.choice((None, b"", b"\x00\x00\x00\x07", rng.randbytes(20)))


def shuffled(rng: random.Random, partitions: PartitionsByTopic) -> list[tuple[str, int]]:
    listed = [(topic, int(partition)) for topic in partitions for partition in partitions[topic]]
    return rng.sample(listed, len(listed))
