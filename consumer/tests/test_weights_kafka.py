"""A leader that finds the weights of partitions on the brokers."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest
from confluent_kafka import Message, Producer, TopicPartition

from groupwright.assignors import (
    Assignment,
    CoPartitionedStickyAssignor,
    Group,
    GroupMeasurements,
    Lag,
    LoadAwareAssignor,
    ProcessingTime,
    Throughput,
    Topic,
    WeightFunction,
    WeightSource,
)
from groupwright.consumer import Consumer, LoadCheckOutcome, LoadCheckResult, Rebalance, RebalanceListener
from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._coordinator.group_measurements import LeaderMeasurements
from groupwright.consumer._network.connections import Network
from groupwright.consumer.parallel import ParallelConsumer
from integration_tests.harness import coordinator
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = pytest.mark.kafka

_Result = TypeVar("_Result")


class Switched(WeightSource):
    """Weights that a test changes, or an error."""

    def __init__(self, *weights: float) -> None:
        self.weights = weights
        self.error: Exception | None = None
        self.asked = 0

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> dict[str, list[float]]:  # noqa: ARG002 - part of the interface
        self.asked += 1
        if self.error is not None:
            raise self.error
        return {name: list(self.weights) for name in topics}


def write(scene: "Scene", topic: str, *messages: int) -> None:
    """Write so many messages to each partition."""
    producer = Producer({"bootstrap.servers": scene.kafka.bootstrap_servers, "log_level": 0})
    for partition, count in enumerate(messages):
        for number in range(count):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(PATIENCE) == 0


def numbers(consumer: Consumer) -> list[int]:
    return sorted(each.partition for each in consumer.assignment())


def members(scene: "Scene", weights: WeightSource, count: int = 2) -> list[Consumer]:
    strategy = LoadAwareAssignor(weights=weights)
    return [scene.consumer(partition_assignment_strategy=strategy) for _ in range(count)]


def shares(scene: "Scene", polled: list[Consumer], partitions: int, *others: Consumer) -> list[list[int]]:
    """Poll until each member owns what it has at the coordinator, and all together own all partitions.

    Return the numbers of their partitions, sorted. The members' own assignments are not enough: a member
    that has yet to revoke a partition owns more than it was assigned. Others are polled elsewhere.
    """
    consumers = [*polled, *others]

    def at_rest() -> bool:
        owned = {
            consumer.client_id: {(each.topic, each.partition) for each in consumer.assignment()}
            for consumer in consumers
        }
        if not all(owned.values()) or sum(map(len, owned.values())) != partitions:
            return False
        return owned == coordinator.owned(scene.kafka.admin(), scene.group)

    scene.poll_until(at_rest, *polled, what="the members to own what they were assigned")
    return sorted(map(numbers, consumers))


def test_throughput_decides_who_owns_what(scene: "Scene", caplog: pytest.LogCaptureFixture) -> None:
    """By number, the busiest member would read twice as much as the other one."""
    caplog.set_level(logging.INFO, logger="groupwright.consumer")
    topic = scene.topic(partitions=6)
    write(scene, topic, 500, 100, 100, 100, 100, 100)
    consumers = members(scene, Throughput(window=300))
    for consumer in consumers:
        consumer.subscribe([topic])

    assert shares(scene, consumers, 6) == [[0], [1, 2, 3, 4, 5]]
    assert "Throughput(window=300.0) knows the weights of 1 topics of 1" in caplog.text


def test_joined_topics_are_balanced_by_their_throughput_together(scene: "Scene") -> None:
    """Bundle 0 has half of the messages, and by number, its owner would have another bundle."""
    joined = [scene.topic(partitions=4), scene.topic(partitions=4)]
    write(scene, joined[0], 500, 100, 100, 100)
    write(scene, joined[1], 100, 100, 100, 100)
    by_load = LoadAwareAssignor(weights=Throughput(window=300))
    strategy = CoPartitionedStickyAssignor([joined], by_load=by_load)
    consumers = [scene.consumer(partition_assignment_strategy=strategy) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe(joined)

    assert shares(scene, consumers, 8) == [[0, 0], [1, 1, 2, 2, 3, 3]]


def work_on(message: Message) -> None:
    """Take five times as long for a message of partition 2, also on a busy machine."""
    for _ in range(5 if message.partition() == 2 else 1):
        time.sleep(0.006)


def test_processing_time_decides_who_owns_what(scene: "Scene", caplog: pytest.LogCaptureFixture) -> None:
    """All partitions have as many messages, and those of one take the application five times as long."""
    caplog.set_level(logging.INFO, logger="groupwright.consumer")
    topic = scene.topic(partitions=4)
    write(scene, topic, 50, 50, 50, 50)
    first, second = (
        scene.consumer(partition_assignment_strategy=LoadAwareAssignor(weights=ProcessingTime()))
        for _ in range(2)
    )
    first.subscribe([topic])
    left = 200
    while left:
        message = first.poll(PATIENCE)
        assert message is not None
        assert message.error() is None
        left -= 1
        work_on(message)
    second.subscribe([topic])

    assert shares(scene, [first, second], 4) == [[0, 1, 3], [2]], scene.member_of(first).meter.times()
    assert "ProcessingTime(rate=Throughput(window=300.0)) knows the weights of 1 topics of 1" in caplog.text


def test_the_time_of_workers_decides_who_owns_what(scene: "Scene") -> None:
    """A poll of `ParallelConsumer` hands messages over at once: the time is its workers'."""
    topic = scene.topic(partitions=4)
    write(scene, topic, 50, 50, 50, 50)
    by_time = LoadAwareAssignor(weights=ProcessingTime())
    parallel = ParallelConsumer({}, work_on, create=lambda config: scene.consumer(
        partition_assignment_strategy=by_time,
        **{key.replace(".", "_"): value for key, value in config.items()},
    ))  # fmt: skip
    with ThreadPoolExecutor() as pool:
        running = pool.submit(parallel.run, [topic])
        try:
            wait_until(lambda: parallel.statistics().done == 200, "all are processed")
            second = scene.consumer(partition_assignment_strategy=by_time)
            second.subscribe([topic])
            assert shares(scene, [second], 4, parallel.consumer) == [[0, 1, 3], [2]]
        finally:
            parallel.stop()
            running.result(PATIENCE)


def test_a_new_group_learns_what_its_messages_cost(scene: "Scene", caplog: pytest.LogCaptureFixture) -> None:
    """No member has measured anything when it joins: the first load check has them tell."""
    caplog.set_level(logging.INFO, logger="groupwright.consumer")
    topic = scene.topic(partitions=4)
    consumers = [
        scene.consumer(
            partition_assignment_strategy=LoadAwareAssignor(weights=ProcessingTime()),
            load_check_interval_ms=3000,
        )
        for _ in range(2)
    ]
    for consumer in consumers:
        consumer.subscribe([topic])
    assert [len(share) for share in shares(scene, consumers, 4)] == [2, 2]
    write(scene, topic, 300, 300, 300, 300)

    owned: list[list[int]] = [[], []]
    is_learned, deadline = threading.Event(), time.monotonic() + PATIENCE

    def work(index: int) -> None:
        while not is_learned.is_set() and time.monotonic() < deadline:
            message = consumers[index].poll(0.1)
            owned[index] = numbers(consumers[index])
            if sorted(owned) == [[0, 1, 3], [2]]:
                is_learned.set()
            if message is not None and message.error() is None:
                work_on(message)

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, range(2)))
    assert is_learned.is_set(), [scene.member_of(each).meter.times() for each in consumers]
    assert caplog.text.count("the members rebalance to send how long they take for messages") == 1


def test_lag_decides_who_owns_what(scene: "Scene") -> None:
    """Two partitions lag; the others have been consumed."""
    topic = scene.topic(partitions=6)
    write(scene, topic, 600, 600, 600, 600, 600, 600)
    consumers = members(scene, Lag(horizon=60))
    committed = [TopicPartition(topic, number, 0 if number < 2 else 600) for number in range(6)]
    consumers[0].commit(offsets=committed, asynchronous=False)
    for consumer in consumers:
        consumer.subscribe([topic])

    one, other = shares(scene, consumers, 6)
    assert 0 in one
    assert 1 in other


def test_what_a_source_raises_costs_the_weights_and_not_the_assignment(
    scene: "Scene", caplog: pytest.LogCaptureFixture
) -> None:
    source = Switched()
    source.error = OSError("the service of weights is away")
    topic = scene.topic(partitions=4)
    consumers = members(scene, source)
    for consumer in consumers:
        consumer.subscribe([topic])

    assert [len(share) for share in shares(scene, consumers, 4)] == [2, 2]
    assert "the service of weights is away" in caplog.text
    assert "assigning with no weights" in caplog.text


def test_a_source_that_fails_later_leaves_the_last_weights(
    scene: "Scene", caplog: pytest.LogCaptureFixture
) -> None:
    """Without any weights, the group would move partitions that have not changed, and then back."""
    source = Switched(3, 1, 1, 1)
    topic = scene.topic(partitions=4)
    leader, follower = members(scene, source)
    leader.subscribe([topic])
    scene.own(leader, 4)
    follower.subscribe([topic])
    assert shares(scene, [leader, follower], 4) == [[0], [1, 2, 3]]

    def generation() -> int:
        return scene.member_of(follower).membership.identity.generation

    before, asked = generation(), source.asked
    # The last rebalance completed the one before, with the same weights.
    assert asked < before
    source.error = OSError("the service of weights is away")
    leader.enforce_rebalance("the test")
    scene.poll_until(lambda: generation() > before and source.asked > asked, leader, follower)
    assert shares(scene, [leader, follower], 4) == [[0], [1, 2, 3]]
    assert "assigning with the last weights" in caplog.text


def test_a_function_weighs_for_a_real_group(scene: "Scene") -> None:
    topic = scene.topic(partitions=4)
    consumers = members(scene, WeightFunction(lambda _, partition: 3.0 if partition == 2 else 1.0))
    for consumer in consumers:
        consumer.subscribe([topic])

    assert shares(scene, consumers, 4) == [[0, 1, 3], [2]]


def test_a_load_check_moves_what_has_become_too_heavy_and_then_rests(
    scene: "Scene", caplog: pytest.LogCaptureFixture
) -> None:
    """No member joins or leaves: the leader checks the load, and a moved partition goes on where it was."""
    caplog.set_level(logging.INFO, logger="groupwright.consumer")
    topic = scene.topic(partitions=4)
    source = Switched(1, 1, 1, 1)
    strategy = LoadAwareAssignor(weights=source)
    settings = {"partition_assignment_strategy": strategy, "load_check_interval_ms": 300}
    consumers = [scene.consumer(**settings) for _ in range(2)]
    rebalances: list[Rebalance] = []

    class Listener(RebalanceListener):
        def rebalanced(self, rebalance: Rebalance) -> None:
            rebalances.append(rebalance)

    for consumer in consumers:
        consumer.add_listener(Listener())
        consumer.subscribe([topic])
    before = shares(scene, consumers, 4)
    scene.produce(topic, 5, partitions=4)
    assert [len(share) for share in before] == [2, 2]
    heavy = before[0]

    def generation() -> int:
        return scene.member_of(consumers[0]).membership.identity.generation

    checks = source.asked + 3
    settled = generation()
    came = scene.poll_until(lambda: source.asked >= checks, *consumers, what="three checks")
    assert generation() == settled, "equal loads are no reason to rebalance"

    source.weights = tuple(10.0 if number in heavy else 1.0 for number in range(4))
    came += scene.poll_until(
        lambda: all(len(set(heavy).intersection(numbers(consumer))) == 1 for consumer in consumers),
        *consumers,
        what="each member to own one of the heavy partitions",
    )
    # The weights are averaged with the former ones.
    reported = r"load check: busiest member at 1\.[1-9]\d of average, 2 of 4 partitions move, expected 1\.00"
    assert re.search(reported, caplog.text)
    came += scene.poll_until(lambda: sum(len(numbers(each)) for each in consumers) == 4, *consumers)
    settled, checks = generation(), source.asked + 3
    came += scene.poll_until(lambda: source.asked >= checks, *consumers, what="three checks")
    assert generation() == settled, "it rests once the loads are even"
    (led,) = (each for each in rebalances if each.reason == "load check")
    assert led.leadership is not None
    assert led.leadership.load is not None
    assert led.leadership.moved == 2
    assert led.leadership.load.bound == pytest.approx(1, abs=0.01)
    came += scene.poll_until(lambda: len(seen(came)) == 20, *consumers, what="all messages")
    assert sorted(seen(came)) == sorted({(number, offset) for number in range(4) for offset in range(5)})


def test_in_a_rollout_loads_count_once_the_last_old_member_has_gone(scene: "Scene") -> None:
    """Old members know `cooperative-sticky` alone, so the group votes for that while there is one."""
    topic = scene.topic(partitions=4)
    load_aware = LoadAwareAssignor(weights=Switched(3, 1, 1, 1), tolerance=0.1)
    old = scene.consumer(partition_assignment_strategy="cooperative-sticky")
    first, second = (
        scene.consumer(partition_assignment_strategy=[load_aware, "cooperative-sticky"]) for _ in range(2)
    )
    for consumer in (old, first):
        consumer.subscribe([topic])
    assert [len(share) for share in shares(scene, [old, first], 4)] == [2, 2]

    old.close()
    second.subscribe([topic])
    assert shares(scene, [first, second], 4) == [[0], [1, 2, 3]]


def test_an_eager_group_keeps_its_assignment_within_the_tolerance(scene: "Scene") -> None:
    """From scratch, partitions 2 and 3 would have one owner. The eager `sticky` makes the members eager."""
    topic = scene.topic(partitions=4)
    source = Switched(6, 5, 5, 4)
    consumers = [
        scene.consumer(
            partition_assignment_strategy=[LoadAwareAssignor(weights=source), "sticky"],
            load_check_interval_ms=0,
        )
        for _ in range(2)
    ]
    for consumer in consumers:
        consumer.subscribe([topic])
    assert shares(scene, consumers, 4) == [[0, 3], [1, 2]]
    before = list(map(numbers, consumers))

    def rejoin(*weights: float) -> list[list[int]]:
        source.weights = weights
        asked, generations = source.asked, list(map(generation, consumers))
        consumers[1].enforce_rebalance("the test")
        scene.poll_until(
            lambda: (
                source.asked > asked
                and all(generation(each) > last for each, last in zip(consumers, generations, strict=True))
            ),
            *consumers,
        )
        shares(scene, consumers, 4)
        return list(map(numbers, consumers))

    def generation(consumer: Consumer) -> int:
        return scene.member_of(consumer).membership.identity.generation

    assert rejoin(5, 5, 6, 4.3) == before
    assert sorted(rejoin(2, 6, 3, 1)) == [[0, 2, 3], [1]], "partition 2 alone moves"


class FailsChecks(LoadAwareAssignor):
    """Raises an exception once that is enabled."""

    broken = False

    def assign(self, group: Group) -> Assignment:
        if self.broken:
            raise OSError("the assignor has no disk")
        return super().assign(group)


def test_a_check_that_fails_is_reported_and_does_not_end_the_checks(
    scene: "Scene", caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[LoadCheckResult] = []

    class Listener(RebalanceListener):
        def load_checked(self, result: LoadCheckResult) -> None:
            reported.append(result)

    strategy = FailsChecks(weights=Switched(1, 1))
    consumer = scene.consumer(partition_assignment_strategy=strategy, load_check_interval_ms=100)
    consumer.add_listener(Listener())
    consumer.subscribe([scene.topic(partitions=2)])
    scene.own(consumer, 2)

    strategy.broken = True
    scene.poll_until(
        lambda: reported[-1:] != [] and reported[-1].outcome is LoadCheckOutcome.FAILED, consumer
    )
    assert (reported[-1].peak, reported[-1].moves, reported[-1].generation) == (None, None, 1)
    assert "the assignor has no disk" in caplog.text
    strategy.broken = False
    scene.poll_until(lambda: reported[-1].outcome is LoadCheckOutcome.UNCHANGED, consumer)
    assert (reported[-1].peak, reported[-1].bound, reported[-1].expected, reported[-1].moves) == (1, 1, 1, 0)
    assert (reported[-1].group, reported[-1].client_id, reported[-1].partitions) == (scene.group, "c-0", 2)


def test_commits_and_messages_go_on_while_load_checks_move_partitions(scene: "Scene") -> None:
    """Each message is committed by itself until partitions have moved three times: none fails or repeats."""
    topic = scene.topic(partitions=4)
    source = Switched(1, 1, 1, 1)
    strategy = LoadAwareAssignor(weights=source)
    consumers = [
        scene.consumer(partition_assignment_strategy=strategy, load_check_interval_ms=200) for _ in range(2)
    ]
    for consumer in consumers:
        consumer.subscribe([topic])
    owned = shares(scene, consumers, 4)
    is_over = threading.Event()
    with ThreadPoolExecutor() as pool:
        works = [pool.submit(consume_and_commit, consumer, is_over) for consumer in consumers]
        try:
            moves = move_partitions(scene, topic, source, consumers, owned)
        finally:
            is_over.set()
        came = [message for work in works for message in work.result()]
    assert moves == 3
    for number in range(4):
        offsets = [message.offset() for message in came if message.partition() == number]
        assert set(offsets) == set(range(len(offsets)))
        assert offsets


def consume_and_commit(consumer: Consumer, is_over: threading.Event) -> list[Message]:
    came: list[Message] = []
    while not is_over.is_set():
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None
            came.append(message)
            committed = consumer.commit(message, asynchronous=False)
            offset = message.offset()
            assert committed
            assert offset is not None
            assert (committed[0].error, committed[0].offset) == (None, offset + 1)
    return came


def move_partitions(
    scene: "Scene", topic: str, source: Switched, consumers: list[Consumer], owned: list[list[int]]
) -> int:
    """Produce, and make what the member with most partitions owns heavy until some moves: three times."""
    producer = Producer({"bootstrap.servers": scene.kafka.bootstrap_servers, "log_level": 0})
    moves, deadline = 0, time.monotonic() + PATIENCE
    while moves < 3 and time.monotonic() < deadline:
        heavy = max(owned, key=len)
        source.weights = tuple(100.0 if number in heavy else 1.0 for number in range(4))
        for number in range(4):
            producer.produce(topic, b"x", partition=number)
        producer.flush(PATIENCE)
        shared = [numbers(consumer) for consumer in consumers]
        if sorted(shared) != sorted(owned) and sorted([*shared[0], *shared[1]]) == [0, 1, 2, 3]:
            owned, moves = shared, moves + 1
    return moves


def test_no_load_is_checked_where_that_is_turned_off(scene: "Scene") -> None:
    source = Switched(1, 1)
    strategy = LoadAwareAssignor(weights=source)
    consumer = scene.consumer(partition_assignment_strategy=strategy, load_check_interval_ms=0)
    consumer.subscribe([scene.topic(partitions=2)])
    scene.own(consumer, 2)
    until = time.monotonic() + 1
    scene.poll_until(lambda: time.monotonic() > until, consumer)
    assert source.asked == 1


def seen(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    return [(message.partition(), message.offset()) for message in messages if message.error() is None]


def asked(
    scene: "Scene",
    topics: Mapping[str, Topic],
    question: Callable[[LeaderMeasurements], _Result],
    seconds: float,
) -> _Result:
    """Ask a broker as a leader does."""
    network = Network(NetworkConfig(scene.kafka.bootstrap_servers, "the test", scene.group))
    known = threading.Event()

    async def find() -> None:
        await network.find_coordinator()
        known.set()

    network.start()
    try:
        network.call_soon(lambda: network.spawn(find()))
        assert known.wait(PATIENCE)
        return question(LeaderMeasurements(network, [], topics, seconds))
    finally:
        network.call_soon(network.end)
        network.join_thread(PATIENCE)


def test_offsets_are_those_of_the_log(scene: "Scene") -> None:
    topic = scene.topic(partitions=3)
    write(scene, topic, 7, 0, 2)
    topics = {topic: Topic(4), "of no such name": Topic(1)}
    consumer = scene.consumer()
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)

    ends, hour, now, committed = asked(
        scene,
        topics,
        lambda offsets: (offsets.log_ends(), offsets.at(3600), offsets.at(-3600), offsets.committed()),
        PATIENCE,
    )

    nan = np.nan
    assert ends[topic] == pytest.approx([7, 0, 2, nan], nan_ok=True)
    assert hour[topic] == pytest.approx([0, 0, 0, nan], nan_ok=True)
    assert now[topic] == pytest.approx([7, 0, 2, nan], nan_ok=True)
    assert committed[topic] == pytest.approx([5, nan, nan, nan], nan_ok=True)
    assert np.isnan(ends["of no such name"]).all()


def test_what_is_not_answered_in_time_is_unknown(scene: "Scene") -> None:
    topic = scene.topic(partitions=2)
    began = time.monotonic()

    ends, committed = asked(
        scene, {topic: Topic(2)}, lambda offsets: (offsets.log_ends(), offsets.committed()), 0.0
    )

    assert np.isnan(ends[topic]).all()
    assert np.isnan(committed[topic]).all()
    assert time.monotonic() - began < PATIENCE
