"""Members that crash, misbehave, or join all at once: the others continue."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.assignors import Assignor, Group, RangeAssignor
from groupwright.consumer import AssignorFailedError, Consumer
from groupwright.testing import KafkaContainers
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.loaded_group import NewFaultyGroup
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import OK, WireMember

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka(cluster: KafkaContainers) -> KafkaContainers:
    """A cluster without faults."""
    return cluster


YEAR_SECONDS = 365 * 86_400.0


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_leader_that_dies_between_joining_and_its_plan_holds_the_group_up_for_its_session(
    kafka: KafkaContainers, new_loaded: NewFaultyGroup, strategy: str
) -> None:
    """The others own no partitions until the leader is expelled; then they join again."""
    loaded = new_loaded()
    leader = WireMember(
        kafka.bootstrap_servers, loaded.group_id, "leader", topics=[loaded.topic], protocols=[strategy]
    )
    leader.settle()
    members = [loaded.join(name, partition_assignment_strategy=strategy) for name in ("a", "b")]
    # It joins whenever the others have made the coordinator ask for it, until it has the lead of all three.
    while len(leader.members) < 1 + len(members):
        wait_until(lambda: leader.heartbeat() == "REBALANCE_IN_PROGRESS", "a rebalance")
        leader.send_join()
        assert leader.joined() == OK
    assert leader.leads

    leader.close()

    loaded.wait_until_settled()
    loaded.wait_until_progress()
    assert [member.generation > leader.generation for member in members] == [True, True]
    loaded.finish()


def test_a_hundred_members_that_join_at_once_share_a_hundred_partitions(
    kafka: KafkaContainers, group: str, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=100)
    with Crowd(kafka.bootstrap_servers, group, topic, size=100) as crowd:
        wait_until(lambda: [len(owned) for owned in crowd.owned] == [1] * 100, "a partition for each")

        assert sorted(number for owned in crowd.owned for number in owned) == list(range(100))
        assert crowd.errors == []
    described = kafka.admin().describe_consumer_groups([group], request_timeout=PATIENCE)[group].result()
    assert list(described.members) == []


def test_a_member_whose_callback_raises_is_told_and_the_group_does_not_suffer(
    new_loaded: NewFaultyGroup,
) -> None:
    loaded = new_loaded()
    clumsy = loaded.join("clumsy")
    loaded.wait_until_settled()
    failures = [
        KafkaException(KafkaError(KafkaError._APPLICATION, words)) for words in ("no room", "none left")
    ]
    coming = iter(failures)

    def fail_twice(_: list[TopicPartition]) -> None:
        if (failure := next(coming, None)) is not None:
            raise failure

    clumsy.hooks.on_revoke = fail_twice
    for name in ("a", "b", "c"):
        loaded.join(name)
        loaded.wait_until_settled()
        loaded.wait_until_progress()

    assert clumsy.errors == failures
    clumsy.errors.clear()
    loaded.finish()


Plan = Mapping[str, Mapping[str, Iterable[int]]]


class Unreliable(Assignor):
    """Runs a given function once instead of assigning."""

    name = "range"

    def __init__(self) -> None:
        self.faults: list[Callable[[Group], Plan]] = []

    def assign(self, group: Group) -> Plan:
        return self.faults.pop()(group) if self.faults else RangeAssignor().assign(group)


def _raise(_group: Group) -> Plan:
    raise ArithmeticError("divided by zero members")


def _give_twice(group: Group) -> Plan:
    (topic,) = group.topics
    return {member.id: {topic: [0]} for member in group.members}


def test_a_leader_whose_assignor_fails_is_told_why_and_its_group_is_assigned_at_the_next_attempt(
    new_loaded: NewFaultyGroup,
) -> None:
    """No member receives an assignment that failed or that has a partition twice."""
    loaded = new_loaded()
    assignor = Unreliable()
    leader = loaded.join("leader", partition_assignment_strategy=assignor)
    loaded.wait_until_settled()

    for fault, words in ((_raise, "divided by zero members"), (_give_twice, "partition 0")):
        assignor.faults.append(fault)
        loaded.join(f"after {fault.__name__}", partition_assignment_strategy="range")
        wait_until(lambda: bool(leader.errors), "the leader's error")
        error = leader.errors.pop()
        assert isinstance(error, AssignorFailedError)
        assert words in str(error)
        loaded.wait_until_settled()
        loaded.wait_until_progress()

    loaded.finish()


@pytest.mark.parametrize("jump", [YEAR_SECONDS, -YEAR_SECONDS], ids=["into the future", "into the past"])
def test_a_clock_that_jumps_expels_nobody_and_loses_nothing(
    new_loaded: NewFaultyGroup, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """The wall clock may be adjusted at any time, so sessions are measured on the monotonic clock."""
    loaded = new_loaded()
    for name in ("a", "b"):
        loaded.join(name)
    loaded.wait_until_settled()
    loaded.wait_until_progress()
    generation = loaded.threads[0].generation
    right = time.time

    monkeypatch.setattr(time, "time", lambda: right() + jump)
    loaded.wait_until_progress()
    loaded.join("c")
    loaded.wait_until_settled()
    loaded.wait_until_progress()

    assert loaded.threads[0].generation == generation + 1
    assert sum(member.losses for member in loaded.threads) == 0
    loaded.finish()


class Crowd:
    """Many consumers, polled in turn by a few threads."""

    _THREADS = 8

    def __init__(self, servers: str, group: str, topic: str, size: int) -> None:
        self.errors: list[KafkaException] = []
        self.owned: list[set[int]] = [set() for _ in range(size)]
        self._stop = threading.Event()
        self._consumers = [
            Consumer(
                {
                    "bootstrap.servers": servers,
                    "group.id": group,
                    "client.id": f"member-{number}",
                    "partition.assignment.strategy": "cooperative-sticky",
                    "log_level": 0,
                }
            )
            for number in range(size)
        ]
        for consumer, owned in zip(self._consumers, self.owned, strict=True):
            consumer.subscribe([topic], **_keeping(owned))
        self._threads = [
            threading.Thread(target=self._run, args=(self._consumers[first :: self._THREADS],), daemon=True)
            for first in range(self._THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, consumers: list[Consumer]) -> None:
        while not self._stop.is_set():
            for consumer in consumers:
                try:
                    message = consumer.poll(0.005)
                except KafkaException as error:
                    self.errors.append(error)
                else:
                    cause = None if message is None else message.error()
                    self.errors += [] if cause is None else [KafkaException(cause)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        with ThreadPoolExecutor(self._THREADS) as pool:
            list(pool.map(Consumer.close, self._consumers))


def _keeping(owned: set[int]) -> dict[str, Callable[[Consumer, list[TopicPartition]], None]]:
    def numbers(partitions: list[TopicPartition]) -> Iterator[int]:
        return (each.partition for each in partitions)

    return {
        "on_assign": lambda _, partitions: owned.update(numbers(partitions)),
        "on_revoke": lambda _, partitions: owned.difference_update(numbers(partitions)),
        "on_lost": lambda _, partitions: owned.difference_update(numbers(partitions)),
    }
