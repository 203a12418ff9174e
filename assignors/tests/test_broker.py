"""The broker's assignors (KIP-848): cases by hand, and Kafka's own classes on random histories."""

import random
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from groupwright.assignors import (
    Assignment,
    BrokerAssignor,
    Group,
    Member,
    PartitionsByTopic,
    Topic,
    assign,
    builtin_assignors,
    by_name,
    simulate,
)
from groupwright.assignors._model.group import sorted_members
from groupwright.assignors.indexed import sorted_names
from groupwright.core.assignor_traits import BROKERS, is_cooperative
from groupwright.testing._java.java_programs import compile_java
from integration_tests.harness.patience import PATIENCE

COORDINATOR = "org.apache.kafka:kafka-group-coordinator:4.3.1"
"""Its assignors are the same as in 4.4.0."""


class BrokerJvm:
    """The assignors of Kafka's coordinator, in a running Java program (`jvm/BrokerDriver.java`)."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def assign(
        self, assignor: str, group: Group, ids: list[tuple[int, int]], *, in_order: bool
    ) -> Assignment:
        """Return the assignment.

        Args:
            assignor: The assignor's name in the broker.
            group: The group. Its members own what they claim.
            ids: The topics' ids, in the order of their names.
            in_order: Whether a member's partitions of a topic are in order, and not in that of a hash set.
        """
        body = b"?" + _string(assignor) + struct.pack(">?i", in_order, len(group.topics))
        for name, id_ in zip(sorted_names(group.topics), ids, strict=True):
            body += _string(name) + struct.pack(">qqi", *id_, group.topics[name].partitions)
        body += struct.pack(">i", len(group.members))
        for member in sorted_members(group.members):
            body += _string(member.id) + _string(member.instance_id or "")
            body += struct.pack(">i", len(member.topics)) + b"".join(map(_string, member.topics))
            owned = member.owned.as_tuples()
            body += struct.pack(">i", sum(map(len, owned.values())))
            for name, partitions in owned.items():
                body += b"".join(_string(name) + struct.pack(">i", each) for each in partitions)
        self._requests.write(body)
        self._requests.flush()
        assigned = {self._text(): self._partitions() for _ in range(self._number())}
        return Assignment(assigned, (member.id for member in group.members))

    def _partitions(self) -> dict[str, list[int]]:
        return {self._text(): [self._number() for _ in range(self._number())] for _ in range(self._number())}

    def _number(self) -> int:
        return int.from_bytes(self._answers.read(4), "big")

    def _text(self) -> str:
        return self._answers.read(int.from_bytes(self._answers.read(2), "big")).decode()


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


@pytest.fixture(scope="module")
def broker_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerJvm]:
    source = Path(__file__).parent / "jvm" / "BrokerDriver.java"
    program = compile_java(tmp_path_factory.mktemp("broker-jvm"), [source], COORDINATOR)
    command = program.command("BrokerDriver", "-Xmx512m", "-XX:TieredStopAtLevel=1")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield BrokerJvm(process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 0


def test_uniform_keeps_what_it_can_and_gives_one_more_to_the_owner_of_one_more() -> None:
    """The order of the hash map is a, b, c."""
    b = Member("b", ["orders"], owned={"orders": [0, 1, 2, 3]})
    group = Group([Member("a", ["orders"]), b, Member("c", ["orders"], owned={"orders": [4]})], {"orders": 5})

    assert assign(by_name("broker:uniform"), group) == {
        "a": {"orders": [2]},
        "b": {"orders": [0, 1]},
        "c": {"orders": [3, 4]},
    }


def test_uniform_gives_the_last_members_of_the_hash_map_one_more() -> None:
    group = Group([Member(id_, ["orders"]) for id_ in "abc"], {"orders": 5})

    assert assign(by_name("broker:uniform"), group) == {
        "a": {"orders": [0]},
        "b": {"orders": [1, 2]},
        "c": {"orders": [3, 4]},
    }


def test_a_topic_that_does_not_exist_makes_subscriptions_different() -> None:
    members = [Member("a", ["orders"]), Member("b", ["orders", "nowhere"])]

    def assigned(members: list[Member]) -> dict[str, int]:
        return counts(assign(by_name("broker:uniform"), Group(members, {"orders": 3})))

    assert assigned(members) == {"a": 2, "b": 1}
    assert assigned([members[0], Member("b", ["orders"])]) == {"a": 1, "b": 2}


def test_uniform_takes_a_chain_of_topics_for_balanced() -> None:
    """Each topic's subscribers differ by one, though 10 partitions for each were possible."""
    group = Group(
        [
            Member("a", ["orders"], owned={"orders": range(9)}),
            Member("b", ["orders", "audit"], owned={"orders": range(9, 15), "audit": range(4)}),
            Member("c", ["audit"], owned={"audit": range(4, 15)}),
        ],
        {"orders": 15, "audit": 15},
    )

    assert assign(by_name("broker:uniform"), group) == {member.id: member.owned for member in group.members}
    assert counts(assign(by_name("sticky"), group)) == {"a": 10, "b": 10, "c": 10}


def test_the_brokers_range_ignores_racks() -> None:
    topics = {"orders": Topic(4, racks=[["east"], ["west"], ["east"], ["west"]])}
    group = Group([Member("a", ["orders"], rack="west"), Member("b", ["orders"], rack="east")], topics)

    assert assign(by_name("broker:range"), group) == {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}
    assert assign(by_name("range"), group) == {"a": {"orders": [1, 3]}, "b": {"orders": [0, 2]}}


@pytest.mark.parametrize("assignor", BROKERS)
def test_the_broker_assigns_once_and_members_revoke_what_moves(assignor: str) -> None:
    def joins(group: Group) -> Group:
        return Group([*group.members, Member("b", ["orders"])], group.topics)

    start, joined = simulate(Group([Member("a", ["orders"])], {"orders": 4}), by_name(assignor), [joins])

    assert [len(each.rebalances) for each in (start, joined)] == [1, 1]
    assert joined.assignment == {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}
    assert joined.revoked == joined.moved == {"orders": [2, 3]}
    assert joined.group.members[0].owned == {"orders": [0, 1]}


def test_studies_know_the_brokers_assignors_and_members_do_not() -> None:
    made = [by_name(name) for name in BROKERS]

    assert [each.name for each in made] == list(BROKERS)
    assert all(isinstance(each, BrokerAssignor) and is_cooperative(each.name) for each in made)
    assert not set(BROKERS) & {each.name for each in builtin_assignors()}


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_broker_would_assign_the_same(
    broker_jvm: BrokerJvm, seeded: Callable[[int], random.Random], assignor: str
) -> None:
    """Topic ids are in the order of names, and so are their hashes."""
    for group, ours in histories(seeded(848), assignor):
        ids = [(0, number) for number in range(len(group.topics))]
        assert ours == broker_jvm.assign(assignor, group, ids, in_order=True), group


@pytest.mark.kafka
@pytest.mark.slow
def test_loads_and_moves_are_the_brokers_where_hashes_decide_which_partitions_move(
    broker_jvm: BrokerJvm, seeded: Callable[[int], random.Random]
) -> None:
    """Topic ids are random. They are in the order of names, since ids decide between equal topics."""
    rng = seeded(84)
    differ = 0
    for group, ours in histories(seeded(8488), "uniform"):
        ids = sorted((rng.randint(-(2**63), 2**63 - 1), rng.randint(0, 2**63 - 1)) for _ in group.topics)
        theirs = broker_jvm.assign("uniform", group, ids, in_order=False)
        assert counts(ours) == counts(theirs), group
        assert moves(group, ours) == moves(group, theirs), group
        if has_equal_subscriptions(group):
            differ += ours != theirs
        else:
            assert ours == theirs, group
    assert differ > 100


NAMES = ("audit", "orders", "orders.dlq", "payments", "Zahlungen", "\uffee")


def make_group(rng: random.Random) -> Group:
    """Return a small group, whose topics may not exist or have no partitions."""
    topics = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    in_common = rng.sample(NAMES, rng.randint(1, 4)) if rng.random() < 0.5 else None
    members = [make_member(rng, in_common) for _ in range(rng.randint(1, 14))]
    return Group(members, {name: rng.choice((0, 1, 2, 3, 5, 8, 20, 33)) for name in topics})


def make_member(rng: random.Random, topics: Iterable[str] | None) -> Member:
    number = rng.randrange(2**32)
    instance_id = f"host-{number}" if rng.random() < 0.3 else None
    subscribed = rng.sample(NAMES, rng.randint(0, len(NAMES))) if topics is None else topics
    return Member(f"app-{number:08x}", subscribed, instance_id=instance_id)


def changed(rng: random.Random, group: Group) -> Group:
    """Return the group after a random event."""
    members, topics = list(group.members), dict(group.topics)
    at = rng.randrange(len(members))
    match rng.randrange(6):
        case 0:
            members += [make_member(rng, members[at].topics) for _ in range(rng.randint(1, 3))]
        case 1 if len(members) > 1:
            del members[at]
        case 2:  # a static member restarts: it has another id, and what it owned
            members[at] = replace_id(members[at], f"app-{rng.randrange(2**32):08x}")
        case 3:
            topics[rng.choice(NAMES)] = Topic(40)
        case 4:
            subscribed = rng.sample(NAMES, rng.randint(0, len(NAMES)))
            members[at] = Member(members[at].id, subscribed, owned=members[at].owned)
        case _:  # everybody subscribes to the same topics
            members = [Member(each.id, members[at].topics, owned=each.owned) for each in members]
    return Group(members, topics)


def replace_id(member: Member, id_: str) -> Member:
    return Member(id_, member.topics, owned=member.owned, instance_id=member.instance_id)


def has_equal_subscriptions(group: Group) -> bool:
    return len({frozenset(member.topics) for member in group.members}) == 1


def counts(assignment: Assignment) -> dict[str, int]:
    return {id_: share.count for id_, share in assignment.items()}


def moves(group: Group, assignment: Assignment) -> int:
    """Return the number of partitions that a member owned and another one is assigned."""
    before = {key: member.id for member in group.members for key in keys(member.owned)}
    after = {key: id_ for id_, share in assignment.items() for key in keys(share)}
    return sum(key in after and after[key] != owner for key, owner in before.items())


def keys(partitions: PartitionsByTopic) -> list[tuple[str, int]]:
    return [(topic, each) for topic, listed in partitions.as_tuples().items() for each in listed]


def histories(rng: random.Random, assignor: str) -> Iterator[tuple[Group, Assignment]]:
    """Yield 2,000 groups with our assignment: 500, and each after three events.

    Members own what they were assigned before.
    """
    for _ in range(500):
        group = make_group(rng)
        for _ in range(4):
            assigned = assign(by_name(f"broker:{assignor}"), group)
            yield group, assigned
            owning = [replace(each, owned=assigned[each.id]) for each in group.members]
            group = changed(rng, Group(owning, group.topics))
