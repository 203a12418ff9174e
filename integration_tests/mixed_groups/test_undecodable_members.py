"""Members whose subscriptions cannot be decoded join a group that Groupwright leads."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Self

import pytest

from groupwright.assignors import (
    MalformedBytesError,
    PartitionsByTopic,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.foreign import ForeignMember
from integration_tests.harness.members import RunningMember
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import OK, WireMember

pytestmark = pytest.mark.kafka

OTHERS = {"range": "librdkafka", "cooperative-sticky": "librdkafka", "sticky": "java"}
"""The client of the third member, by assignor."""
BAD_MEMBERS = 100
PARTITIONS = 6
MESSAGES = 10
NOTHING = encode_assignment({})


@pytest.mark.parametrize(
    "assignor",
    [
        pytest.param(name, marks=pytest.mark.slow) if other == "java" else name
        for name, other in OTHERS.items()
    ],
)
def test_members_that_cannot_be_decoded_are_assigned_nothing_and_the_group_goes_on(
    kafka: Kafka,
    group: str,
    new_kafka_topic: NewKafkaTopic,
    produce: Callable[[str, int, int], None],
    start_member: Callable[[str, str, str, list[str]], RunningMember | ForeignMember],
    caplog: pytest.LogCaptureFixture,
    assignor: str,
) -> None:
    topic = new_kafka_topic(partitions=PARTITIONS)
    leader = start_member("groupwright", "leader", assignor, [topic])
    assert isinstance(leader, RunningMember)
    wait_until(lambda: len(leader.owned) == PARTITIONS, "the leader to own all partitions")
    good = [
        leader,
        start_member("groupwright", "second", assignor, [topic]),
        start_member(OTHERS[assignor], "third", assignor, [topic]),
    ]

    with BadMembers(kafka.bootstrap_servers, group, assignor, undecodable_subscriptions(topic)) as bad:
        wait_until(lambda: bad.assignments() == {NOTHING: BAD_MEMBERS}, "answers to all of them")
        wait_until(lambda: all(member.owned for member in good), "the others to own partitions")
        produce(topic, PARTITIONS, MESSAGES)
        wait_until(
            lambda: sum(len(member.consumed) for member in good) >= PARTITIONS * MESSAGES, "all messages"
        )
        ids = bad.ids()
        wait_until(
            lambda: ids <= {id_ for each in leader.rebalances for id_ in each.undecodable},
            "the leader to report them",
        )

    assert leader.errors == []
    consumed = Counter(entry for member in good for entry in member.consumed)
    assert consumed == {
        (topic, number, offset): 1 for number in range(PARTITIONS) for offset in range(MESSAGES)
    }
    warnings = [line for line in caplog.messages if "is assigned nothing: malformed subscription" in line]
    assert len(warnings) == BAD_MEMBERS, "one for each, in however many rebalances"
    assert {id_ for id_ in ids for line in warnings if f"member '{id_}' (client.id 'bad' at " in line} == ids


def undecodable_subscriptions(topic: str) -> list[bytes]:
    """Return bytes that are no subscriptions: truncated anywhere, with claims that lie, of no version.

    The coordinator of Kafka 4 decodes topics and user data, too. A length there that exceeds the bytes makes
    it fail to complete the rebalance, whatever its clients, so those are left out.
    """
    claims = PartitionsByTopic({topic: range(PARTITIONS)})
    said = Subscription((topic,), b"data", claims, 1, "rack")
    whole = [encode_subscription(said, version) for version in range(4)]
    damaged = [data[:end] for data in whole for end in range(len(data))]
    for lie in (2**31 - 1, -(2**31), 2**16, -2):
        number = lie.to_bytes(4, "big", signed=True)
        damaged += [
            data[:at] + number + data[at + 4 :]
            for data in whole[1:]
            for at in range(len(whole[0]), len(data) - 3)
        ]
    damaged += [version.to_bytes(2, "big", signed=True) + whole[3][2:] for version in range(-100, 0)]
    undecodable = [data for data in dict.fromkeys(damaged) if _is_undecodable(data)]
    return undecodable[:: len(undecodable) // BAD_MEMBERS][:BAD_MEMBERS]


def _is_undecodable(data: bytes) -> bool:
    try:
        decode_subscription(data)
    except MalformedBytesError as error:
        return error.expected not in {"a count in topics", "a length in topics", "a length in user data"}
    return False


class BadMembers:
    """Members that join with these subscriptions, each on a thread, and stay until the end of the context."""

    def __init__(self, servers: str, group: str, assignor: str, subscriptions: list[bytes]) -> None:
        self._members = [
            WireMember(servers, group, "bad", protocols=[assignor], subscription=data)
            for data in subscriptions
        ]
        self._ends = threading.Event()
        self._pool = ThreadPoolExecutor(len(self._members))
        self._running = [self._pool.submit(self._stay, member) for member in self._members]

    def _stay(self, member: WireMember) -> None:
        while not self._ends.is_set():
            assert member.join() == OK
            member.send_sync()
            error = member.synced()
            while error == OK and not self._ends.wait(0.2):
                error = member.heartbeat()
            assert error in {OK, "REBALANCE_IN_PROGRESS"}
        member.leave()

    def ids(self) -> set[str]:
        """Return their member ids."""
        return {member.id for member in self._members}

    def assignments(self) -> Counter[bytes]:
        """Return how many have each assignment; empty bytes are none yet."""
        for running in self._running:
            if running.done():
                running.result()
        return Counter(member.assignment for member in self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        wait(self._running)
        self._pool.shutdown()
        for member in self._members:
            member.close()
        for running in self._running:
            running.result()
