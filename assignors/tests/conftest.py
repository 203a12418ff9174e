"""Kafka's own assignors in a JVM, and random groups to compare with them."""

import random
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from groupwright.assignors import (
    Group,
    JoinedMember,
    Member,
    PartitionsByTopic,
    Subscription,
    Topic,
    encode_subscription,
)
from groupwright.testing._java.java_programs import compile_java
from integration_tests.harness.patience import PATIENCE

KAFKA_CLIENTS = "org.apache.kafka:kafka-clients:4.3.1"

NAMES = (
    *(f"orders-{number}" for number in range(12)),
    "orders.dlq",
    "Zahlungen_EU",
    # Not names that a broker would create, but strings whose order differs between Python and Java.
    "\uffee-halfwidth",
    "\U0001f600-grinning",
    "é-accent",
)


class Body:
    """What the driver reads and writes: numbers, strings and lists, one after the other."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self._at = 0

    def put(self, kind: str, number: int) -> None:
        self.data += struct.pack(f">{kind}", number)

    def put_bytes(self, data: bytes | None) -> None:
        self.data += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    def put_string(self, text: str | None) -> None:
        self.put_bytes(None if text is None else text.encode())

    def put_strings(self, texts: Sequence[str]) -> None:
        self.put("i", len(texts))
        for text in texts:
            self.put_string(text)

    def put_partitions(self, partitions: Sequence[tuple[str, int]]) -> None:
        self.put("i", len(partitions))
        for topic, partition in partitions:
            self.put_string(topic)
            self.put("i", partition)

    def put_topic(self, name: str, topic: Topic) -> None:
        self.put_string(name)
        self.put("i", topic.partitions)
        self.put("b", topic.racks is not None)
        for racks in topic.racks or ():
            self.put_strings(sorted(racks))

    def number(self) -> int:
        (number,) = struct.unpack_from(">i", self.data, self._at)
        self._at += 4
        return int(number)

    def nullable_bytes(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        self._at += length
        return self.data[self._at - length : self._at]

    def string(self) -> str:
        return (self.nullable_bytes() or b"").decode()

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.number()))

    def partitions(self) -> PartitionsByTopic:
        by_topic: dict[str, list[int]] = {}
        for _ in range(self.number()):
            by_topic.setdefault(self.string(), []).append(self.number())
        return PartitionsByTopic(by_topic)


class JvmRefusedError(Exception):
    """Kafka's code threw an exception."""


class Jvm:
    """Kafka's assignors and ConsumerProtocol, in a running Java program (`jvm/Driver.java`)."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def perform_assignment(
        self, assignor: str, joined: Iterable[JoinedMember], topics: Mapping[str, int | Topic]
    ) -> dict[str, bytes]:
        """Return what a Java leader would send in SyncGroup."""
        members = list(joined)
        body = Body()
        body.put_string(assignor)
        body.put("i", len(members))
        for member in members:
            body.put_string(member.id)
            body.put_string(member.instance_id)
            body.put_bytes(member.metadata)
        body.put("i", len(topics))
        for name, topic in topics.items():
            body.put_topic(name, topic if isinstance(topic, Topic) else Topic(topic))
        answer = self._ask(b"L", body)
        return {answer.string(): answer.nullable_bytes() or b"" for _ in range(answer.number())}

    def write_subscription(
        self, subscription: Subscription, owned: Sequence[tuple[str, int]], version: int
    ) -> bytes:
        """Return the bytes of a subscription that owns the partitions, in the order given."""
        body = Body()
        body.put("h", version)
        body.put_strings(subscription.topics)
        body.put_bytes(subscription.user_data)
        body.put_partitions(owned)
        body.put("i", subscription.generation)
        body.put_string(subscription.rack)
        return self._ask(b"S", body).nullable_bytes() or b""

    def read_subscription(self, data: bytes) -> Subscription:
        body = Body()
        body.put_bytes(data)
        answer = self._ask(b"s", body)
        return Subscription(
            topics=answer.strings(),
            user_data=answer.nullable_bytes(),
            owned=answer.partitions(),
            generation=answer.number(),
            rack=answer.string() or None,
        )

    def refuses_subscription(self, data: bytes) -> bool:
        try:
            self.read_subscription(data)
        except JvmRefusedError:
            return True
        return False

    def write_assignment(
        self, partitions: Sequence[tuple[str, int]], user_data: bytes | None, version: int
    ) -> bytes:
        """Return the bytes of an assignment of the partitions, in the order given."""
        body = Body()
        body.put("h", version)
        body.put_partitions(partitions)
        body.put_bytes(user_data)
        return self._ask(b"A", body).nullable_bytes() or b""

    def read_assignment(self, data: bytes) -> tuple[PartitionsByTopic, bytes | None]:
        body = Body()
        body.put_bytes(data)
        answer = self._ask(b"a", body)
        return answer.partitions(), answer.nullable_bytes()

    def _ask(self, what: bytes, body: Body) -> Body:
        self._requests.write(what + struct.pack(">i", len(body.data)) + body.data)
        self._requests.flush()
        refused, length = struct.unpack(">bi", self._answers.read(5))
        answer = self._answers.read(length)
        if refused:
            raise JvmRefusedError(answer.decode())
        return Body(answer)


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """Compile and start the driver, on whichever Java there is."""
    source = Path(__file__).parent / "jvm" / "Driver.java"
    program = compile_java(tmp_path_factory.mktemp("jvm"), [source], KAFKA_CLIENTS)
    command = program.command("Driver", "-Xmx512m", "-XX:TieredStopAtLevel=1")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Jvm(process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 0


def make_random_group(rng: random.Random) -> Group:
    """Return a small group: topics with no subscriber, with no partitions and unknown ones come up too."""
    letters = ("app", "App", "é", "\uffee", "\U0001f600")
    ids = rng.sample([f"{letter}-{number}" for letter in letters for number in range(8)], rng.randint(1, 12))
    in_common = rng.sample(NAMES, rng.randint(0, 8)) if rng.random() < 0.4 else None

    def member(id_: str) -> Member:
        topics = in_common or rng.sample(NAMES, rng.randint(0, 8))
        is_static = rng.random() < 0.4
        return Member(id_, topics, instance_id=f"{rng.choice(letters)}-of-{id_}" if is_static else None)

    exist = rng.sample(NAMES, rng.randint(0, 8))
    return Group(map(member, ids), {name: rng.choice((0, 1, 1, 2, 3, 7, 16, 40)) for name in exist})


@pytest.fixture
def seeded() -> Callable[[int], random.Random]:
    """A function that returns random numbers, the same in every run."""
    return random.Random


@pytest.fixture
def random_groups(seeded: Callable[[int], random.Random]) -> Callable[[int, int], Iterator[Group]]:
    """Return a function of a seed and a count: groups with mixed subscriptions, static members, odd names."""

    def groups(seed: int, count: int) -> Iterator[Group]:
        rng = seeded(seed)
        return (make_random_group(rng) for _ in range(count))

    return groups


def make_random_group_with_racks(rng: random.Random) -> Group:
    """Return a small group in which racks matter more often than not, and topics of one size are common."""
    racks = tuple("abcde"[: rng.randint(1, 5)])
    names = NAMES[: rng.randint(1, 6)]
    few_sizes = rng.sample((1, 2, 3, 5, 8, 13, 30), rng.randint(1, 3))
    replicas = rng.randint(1, len(racks))

    def racks_of_partition() -> list[str]:
        return (
            rng.sample(racks, replicas)
            if rng.random() < 0.95
            else rng.sample(racks, rng.randint(0, len(racks)))
        )

    def topic() -> Topic:
        partitions = rng.choice(few_sizes)
        match rng.randrange(6):
            case 0:
                return Topic(partitions)
            case 1:
                return Topic(partitions, racks=[racks] * partitions)
            case _:
                return Topic(partitions, racks=[racks_of_partition() for _ in range(partitions)])

    def member(number: int) -> Member:
        rack = rng.choice((*racks, *racks, None, "elsewhere"))
        instance_id = f"host-{rng.randrange(1000)}-{number}" if rng.random() < 0.3 else None
        topics = names if everyone or rng.random() < 0.5 else rng.sample(names, rng.randint(0, len(names)))
        return Member(f"app-{rng.randrange(1000)}-{number}", topics, instance_id=instance_id, rack=rack)

    everyone = rng.random() < 0.5
    members = [member(number) for number in range(rng.randint(1, 12))]
    return Group(members, {name: topic() for name in names})


@pytest.fixture
def groups_with_racks(seeded: Callable[[int], random.Random]) -> Callable[[int, int], Iterator[Group]]:
    """A function of a seed and a count, for groups whose members and partitions have racks."""

    def groups(seed: int, count: int) -> Iterator[Group]:
        rng = seeded(seed)
        return (make_random_group_with_racks(rng) for _ in range(count))

    return groups


@pytest.fixture
def joined() -> Callable[[Group], list[JoinedMember]]:
    """A function that returns a group's members as JoinGroup's response has them."""

    def join(group: Group) -> list[JoinedMember]:
        return [
            JoinedMember(
                member.id,
                member.instance_id,
                encode_subscription(
                    Subscription(
                        member.topics, member.user_data, member.owned, member.generation, member.rack
                    )
                ),
            )
            for member in group.members
        ]

    return join


@pytest.fixture
def damage() -> Callable[[random.Random, bytes], bytes]:
    """A function that returns bytes as a broken or hostile writer might leave them."""

    def damaged(rng: random.Random, data: bytes) -> bytes:
        altered = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(altered) + 1)
            match rng.randrange(5):
                case 0:
                    altered[at : at + 1] = rng.randbytes(1)
                case 1:
                    del altered[at:]
                case 2:
                    altered[at:at] = rng.randbytes(rng.randint(1, 8))
                case 3:
                    altered[at : at + 4] = rng.choice(
                        (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00")
                    )
                case _:
                    del altered[at : at + rng.randint(1, 4)]
        return bytes(altered)

    return damaged
