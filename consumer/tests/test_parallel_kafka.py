"""Work in parallel on a real broker, by threads and by asyncio's tasks, over either client."""

import asyncio
import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer import ConfigurationError, Consumer, DeserializingConsumer
from groupwright.consumer.parallel import (
    AIOParallelConsumer,
    MessageFailedError,
    ParallelConsumer,
    Retry,
)
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]

Process = Callable[[Message], threading.Event | None]
"""Processes a message; it is done when the event that is returned is set."""

PARTITIONS = 3
POISON = b"7"


class Service:
    """A parallel consumer that runs in a thread, and what it has processed."""

    def __init__(self, scene: "Scene", kind: type, topic: str, process: Process, **options: Any) -> None:
        self.offsets: dict[int, list[int]] = defaultdict(list)
        self.error: BaseException | None = None
        self._process = process
        config = {
            "bootstrap.servers": scene.kafka.bootstrap_servers,
            "group.id": scene.group,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "heartbeat.interval.ms": 100,
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 0,
        }
        called = self._awaited if kind is AIOParallelConsumer else self._called
        self.parallel = kind(config, called, **options)
        self.thread = threading.Thread(target=self._run, args=([topic],))
        self.thread.start()

    def _called(self, message: Message) -> None:
        awaited = self._process(message)
        assert awaited is None or awaited.wait(PATIENCE)
        self._record(message)

    async def _awaited(self, message: Message) -> None:
        awaited = self._process(message)
        while awaited is not None and not awaited.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        self._record(message)

    def _record(self, message: Message) -> None:
        self.offsets[message.partition() or 0].append(message.offset() or 0)

    def _run(self, topics: list[str]) -> None:
        try:
            if isinstance(self.parallel, AIOParallelConsumer):
                asyncio.run(self.parallel.run(topics))
            else:
                self.parallel.run(topics)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    @property
    def count(self) -> int:
        return sum(map(len, self.offsets.values()))

    def stop(self) -> None:
        """Stop, and raise what ended it."""
        self.parallel.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error


@pytest.fixture(params=[ParallelConsumer, AIOParallelConsumer], ids=["threads", "asyncio"])
def start(scene: "Scene", request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    """Start a service; it is stopped after the test."""
    with contextlib.ExitStack() as stack:

        def start(topic: str, process: Process, **options: Any) -> Service:
            service = Service(scene, request.param, topic, process, **options)
            stack.callback(service.thread.join, PATIENCE)
            stack.callback(service.parallel.stop)
            return service

        yield start


def committed(scene: "Scene", topic: str) -> list[int]:
    """Return the committed offset of each partition; -1001 where there is none."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group, "log_level": 0}
    )
    try:
        wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [each.offset for each in consumer.committed(wanted, timeout=PATIENCE)]
    finally:
        consumer.close()


def nothing(_: Message) -> None:
    """Process a message at once."""


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize("create", [Consumer, confluent_kafka.Consumer])
def test_everything_is_processed_once_and_committed(
    scene: "Scene", start: Callable[..., Service], order: str, create: type
) -> None:
    topic = scene.topic(PARTITIONS, 500)
    service = start(topic, nothing, order=order, create=create, max_in_flight=50)
    wait_until(lambda: service.count == 500 * PARTITIONS, "all are processed")
    service.stop()
    assert committed(scene, topic) == [500] * PARTITIONS
    for offsets in service.offsets.values():
        assert sorted(offsets) == list(range(500))
        assert order != "partition" or offsets == list(range(500))
    assert service.parallel.statistics().done == 500 * PARTITIONS


def test_a_call_that_is_cancelled_twice_ends_as_one_that_is_cancelled_once(scene: "Scene") -> None:
    """What is at work is finished and committed, and the consumer is closed when the call ends."""
    topic = scene.topic(1, 2)
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group, "log_level": 0}

    async def cancel_thrice() -> AIOParallelConsumer:
        goes_on, has_begun = asyncio.Event(), asyncio.Event()

        async def process(_: Message) -> None:
            has_begun.set()
            await goes_on.wait()

        parallel = AIOParallelConsumer(config | {"auto.offset.reset": "earliest"}, process)
        running = asyncio.create_task(parallel.run([topic]))
        await asyncio.wait_for(has_begun.wait(), PATIENCE)
        for _ in range(3):
            running.cancel()
            assert not (await asyncio.wait([running], timeout=0.1))[0]
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, PATIENCE)
        return parallel

    parallel = asyncio.run(cancel_thrice())
    assert committed(scene, topic)[0] == 1
    with pytest.raises(RuntimeError, match="closed"):
        parallel.consumer.poll(0)


@pytest.mark.parametrize("raises", [True, False])
def test_a_coroutine_may_end_as_it_likes_when_it_is_cancelled(scene: "Scene", raises: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Its only worker goes on, and tries to process what comes; a message that fails is a dead letter."""
    topic = scene.topic(1, 10)
    config = {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100,
        "partition.assignment.strategy": "range",
        "log_level": 0,
    }
    calls: list[int] = []
    letters: list[int | None] = []
    was_cancelled = threading.Event()

    async def process(message: Message) -> None:
        calls.append(message.offset() or 0)
        if len(calls) == 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                was_cancelled.set()
                if raises:
                    raise RuntimeError("the rollback failed") from None
        elif message.value() == POISON:
            raise ValueError("poison")

    def join_and_leave() -> None:
        other = confluent_kafka.Consumer(config)
        other.subscribe([topic])
        wait_until(lambda: bool(other.poll(0.05)) or was_cancelled.is_set(), "the coroutine is cancelled")
        other.close()

    async def consume() -> None:
        parallel = AIOParallelConsumer(
            config,
            process,
            workers=1,
            drain_timeout=0.1,
            dead_letter=lambda message, _: letters.append(message.offset()),
        )
        running = asyncio.create_task(parallel.run([topic]))
        await asyncio.to_thread(wait_until, lambda: bool(calls), "it processes a message")
        await asyncio.to_thread(join_and_leave)
        await asyncio.to_thread(wait_until, lambda: 9 in calls, "it has processed all others")
        parallel.stop()
        await asyncio.wait_for(running, PATIENCE)

    asyncio.run(consume())
    assert letters == [7]
    assert committed(scene, topic)[0] == 10


def test_the_call_ends_when_all_tasks_of_the_event_loop_are_cancelled(scene: "Scene") -> None:
    """Nobody processes what is left, so there is nothing to wait for."""
    topic = scene.topic(1, 2)
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group, "log_level": 0}

    async def cancel_all() -> AIOParallelConsumer:
        has_begun = asyncio.Event()

        async def process(_: Message) -> None:
            has_begun.set()
            await asyncio.Event().wait()

        patient = {"auto.offset.reset": "earliest", "max.poll.interval.ms": 86_400_000}
        parallel = AIOParallelConsumer(config | patient, process, drain_timeout=100 * PATIENCE)
        running = asyncio.create_task(parallel.run([topic]))
        await asyncio.wait_for(has_begun.wait(), PATIENCE)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        assert (await asyncio.wait([running], timeout=PATIENCE))[0]
        return parallel

    parallel = asyncio.run(cancel_all())
    assert committed(scene, topic)[0] <= 0
    with pytest.raises(RuntimeError, match="closed"):
        parallel.consumer.poll(0)


def test_coroutines_that_never_wait_leave_turns_to_other_tasks(scene: "Scene") -> None:
    topic = scene.topic(1, 1000)
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group, "log_level": 0}
    turns: list[int] = []

    async def consume() -> None:
        turn = 0

        async def process(_: Message) -> None:
            if not turns:  # the loop stands still, and the polling thread goes on
                wait_until(lambda: sum(parallel.statistics().in_flight.values()) >= 500, "many have come")
            turns.append(turn)

        parallel = AIOParallelConsumer(
            config | {"auto.offset.reset": "earliest"}, process, max_in_flight=1000
        )
        running = asyncio.create_task(parallel.run([topic]))
        while len(turns) < 1000:
            turn += 1
            await asyncio.sleep(0)
        parallel.stop()
        await asyncio.wait_for(running, PATIENCE)

    asyncio.run(consume())
    assert len(set(turns[:500])) > 1


@pytest.mark.parametrize("create", [Consumer, confluent_kafka.Consumer])
def test_partitions_that_come_and_go_are_logged(
    scene: "Scene", start: Callable[..., Service], create: type, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="groupwright.parallel")
    topic = scene.topic(PARTITIONS, 1)
    service = start(topic, nothing, create=create)
    wait_until(lambda: service.count == PARTITIONS, "all are processed")
    service.stop()
    assert caplog.messages == [f"assigned: {topic} [0, 1, 2]", f"given up: {topic} [0, 1, 2]"]


def test_a_message_that_fails_stops_the_service_and_nothing_behind_it_is_committed(
    scene: "Scene", start: Callable[..., Service]
) -> None:
    topic = scene.topic(PARTITIONS, 10)

    def fail(message: Message) -> None:
        if message.partition() == 1 and message.value() == POISON:
            raise ValueError("poison")

    service = start(topic, fail, order="none")
    service.thread.join(PATIENCE)
    with pytest.raises(MessageFailedError, match=rf"{topic} \[1\] at offset 7 could not") as caught:
        service.stop()
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.message.value() == POISON
    assert committed(scene, topic)[1] == 7, "what comes before it was done, and is committed"


@pytest.mark.parametrize("order", ["partition", "none"])
def test_a_message_is_tried_again_and_then_given_to_the_dead_letter_function(
    scene: "Scene", start: Callable[..., Service], order: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "groupwright.parallel")
    topic = scene.topic(PARTITIONS, 10)
    calls, letters = [], []

    def fail(message: Message) -> None:
        if message.partition() == 1 and message.value() == POISON:
            calls.append(service.count)
            raise ValueError("poison")

    service = start(
        topic,
        fail,
        order=order,
        retry=Retry(2, backoff=0.01),
        dead_letter=lambda message, error: letters.append((message.value(), str(error))),
    )
    wait_until(lambda: service.count == 10 * PARTITIONS - 1, "all others are processed")
    service.stop()
    assert len(calls) == 3
    assert letters == [(POISON, "poison")]
    again = [record.message for record in caplog.records if "is tried again" in record.message]
    assert again == [f"{topic} [1] at offset 7 is tried again: ValueError('poison')"] * 2
    assert committed(scene, topic) == [10] * PARTITIONS
    statistics = service.parallel.statistics()
    assert (statistics.retries, statistics.dead_letters) == (2, 1)


def test_a_dead_letter_function_that_raises_stops_the_service(
    scene: "Scene", start: Callable[..., Service]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such topic")

    service = start(scene.topic(PARTITIONS, 1), fail, dead_letter=fail)
    service.thread.join(PATIENCE)
    with pytest.raises(MessageFailedError):
        service.stop()


def test_a_slow_partition_is_paused_and_starves_no_other(
    scene: "Scene", start: Callable[..., Service]
) -> None:
    topic = scene.topic(PARTITIONS, 300)
    release = threading.Event()

    def wait(message: Message) -> threading.Event | None:
        return release if message.partition() == 1 else None

    service = start(topic, wait, workers=2, max_in_flight=3 * PARTITIONS)
    try:
        wait_until(
            lambda: len(service.offsets[0]) == len(service.offsets[2]) == 300, "the others are processed"
        )
        in_flight = service.parallel.statistics().in_flight
        assert in_flight[topic, 0] == in_flight[topic, 2] == 0
        assert 0 < in_flight[topic, 1] < 300
    finally:
        release.set()
    wait_until(lambda: service.count == 300 * PARTITIONS, "all are processed")


def test_a_partition_alone_with_messages_is_not_paused_at_every_step(
    scene: "Scene", start: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pause discards what librdkafka has fetched."""
    seconds = 0.1
    monkeypatch.setattr("groupwright.consumer._parallel.engine._TURN_SECONDS", seconds)
    topic = scene.topic(PARTITIONS, 0)
    pauses: list[float] = []

    class Counting(Consumer):
        def pause(self, partitions: list[TopicPartition]) -> None:
            pauses.append(time.monotonic())
            super().pause(partitions)

    began = time.monotonic()
    # No partition is ever full, which would pause it, too.
    service = start(topic, nothing, create=Counting, max_in_flight=PARTITIONS * 40_000)
    scene.produce(topic, 30_000, 1)
    wait_until(lambda: service.count == 30_000, "all are processed")
    assert len(pauses) <= (time.monotonic() - began) / seconds + 1


def test_what_is_not_done_is_read_again_when_the_position_jumps_back_behind_it(
    scene: "Scene", start: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    """As librdkafka does with a log that was cut off: nothing that waits is committed unprocessed."""
    topic = scene.topic(PARTITIONS, 10)
    release = threading.Event()

    def hold(message: Message) -> threading.Event | None:
        return release if message.partition() == 1 and message.value() == b"2" else None

    service = start(topic, hold, workers=PARTITIONS)
    try:
        wait_until(lambda: service.parallel.statistics().in_flight.get((topic, 1)) == 8, "8 wait")
        service.parallel.consumer.seek(TopicPartition(topic, 1, 8))
        wait_until(lambda: "is read again from offset 2" in caplog.text, "it goes back")
    finally:
        release.set()
    wait_until(lambda: set(service.offsets[1]) == set(range(10)), "all are processed")
    service.stop()
    assert committed(scene, topic) == [10] * PARTITIONS


def test_a_coroutine_is_cancelled_when_the_position_jumps_back_behind_its_message(scene: "Scene") -> None:
    """Its message comes again, and would be processed twice at once."""
    topic = scene.topic(1, 10)
    calls: list[int | None] = []
    cancelled: list[int | None] = []

    async def process(message: Message) -> None:
        offset = message.offset()
        calls.append(offset)
        if offset == 2 and not cancelled:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(offset)

    async def consume() -> None:
        config = {
            "bootstrap.servers": scene.kafka.bootstrap_servers,
            "group.id": scene.group,
            "auto.offset.reset": "earliest",
        }
        parallel = AIOParallelConsumer(config, process, workers=1)
        running = asyncio.create_task(parallel.run([topic]))

        def waiting() -> int | None:
            return parallel.statistics().in_flight.get((topic, 0))

        await asyncio.to_thread(wait_until, lambda: waiting() == 8, "8 wait")
        parallel.consumer.seek(TopicPartition(topic, 0, 8))
        await asyncio.to_thread(wait_until, lambda: 9 in calls, "all are processed")
        parallel.stop()
        await asyncio.wait_for(running, PATIENCE)

    asyncio.run(consume())
    assert cancelled == [2]
    assert calls == [0, 1, 2, *range(2, 10)]


def test_a_rebalance_waits_for_what_is_processed_and_nothing_comes_twice(
    scene: "Scene", start: Callable[..., Service]
) -> None:
    topic = scene.topic(PARTITIONS, 100)

    def work(_: Message) -> None:
        threading.Event().wait(0.002)

    services = [start(topic, work, workers=2, order="none")]
    wait_until(lambda: services[0].count > 20, "the first works")
    services.append(start(topic, work, workers=2, order="none"))
    wait_until(lambda: all(each.parallel.statistics().in_flight for each in services), "both have some")
    scene.produce(topic, 300, PARTITIONS, first=100)
    wait_until(lambda: services[1].count > 20, "the second works")
    services[1].stop()
    wait_until(lambda: sum(each.count for each in services) >= 400 * PARTITIONS, "all are processed")
    services[0].stop()
    for number in range(PARTITIONS):
        assert sorted(offset for each in services for offset in each.offsets[number]) == list(range(400))
    assert committed(scene, topic) == [400] * PARTITIONS


def test_a_partition_that_was_paused_when_it_was_revoked_is_resumed_when_it_comes_back(
    scene: "Scene", start: Callable[..., Service]
) -> None:
    """The client itself keeps it paused."""
    topic = scene.topic(PARTITIONS, 100)
    release = threading.Event()
    first = start(topic, lambda _: release, order="none", max_in_flight=PARTITIONS, drain_timeout=0.1)
    engine = first.parallel._engine
    try:
        wait_until(lambda: len(engine._paused) == PARTITIONS, "all are paused")
        second = start(
            topic, lambda message: release if message.value() == b"50" else None, drain_timeout=0.1
        )
        wait_until(lambda: second.count >= 50, "the second has done half of a partition")
        second.stop()
    finally:
        release.set()

    def done() -> set[tuple[int, int]]:
        return {
            (number, each) for of in (first, second) for number in of.offsets for each in of.offsets[number]
        }

    wait_until(lambda: len(done()) == 100 * PARTITIONS, "all are processed")


def test_a_message_that_takes_too_long_is_given_up_by_name_and_processed_elsewhere(
    scene: "Scene", start: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    topic = scene.topic(PARTITIONS, 5)
    release, held = threading.Event(), threading.Event()

    def hold(message: Message) -> threading.Event | None:
        if message.value() != b"2":
            return None
        held.set()
        return release

    service = start(topic, hold, drain_timeout=0.2)
    try:
        assert held.wait(PATIENCE)
        wait_until(lambda: len(service.offsets) == PARTITIONS, "each partition has begun")
        with caplog.at_level(logging.WARNING, "groupwright.parallel"):
            service.stop()
        assert f"{topic} [1]: given up while messages were still processed" in caplog.text
        assert committed(scene, topic) == [2] * PARTITIONS
    finally:
        release.set()
    other = start(topic, nothing)
    wait_until(lambda: other.count == 3 * PARTITIONS, "the others are processed")
    assert sorted(other.offsets[1]) == [2, 3, 4]


def test_after_a_restart_it_is_told_how_many_messages_come_twice(
    scene: "Scene", start: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    topic = scene.topic(PARTITIONS, 10)
    release = threading.Event()

    def hold(message: Message) -> threading.Event | None:
        return release if message.partition() == 1 and message.value() == b"3" else None

    service = start(topic, hold, order="none", drain_timeout=0.0)
    wait_until(lambda: service.count == 10 * PARTITIONS - 1, "all others are processed")
    try:
        with caplog.at_level(logging.WARNING, "groupwright.parallel"):
            service.stop()
            assert "with offset 3 not done, and 6 later messages done" in caplog.text
            caplog.clear()
            other = start(topic, nothing, order="none")
            wait_until(lambda: other.count == 7, "the rest is processed")
            wait_until(lambda: "come a second time" in caplog.text, "it is told")
            assert f"{topic} [1]: begins at offset 3, and at least 6 messages behind it" in caplog.text
    finally:
        release.set()


@pytest.mark.parametrize("create", [Consumer, confluent_kafka.Consumer])
def test_a_partition_of_which_nothing_more_comes_stops_the_service(
    scene: "Scene", caplog: pytest.LogCaptureFixture, create: type
) -> None:
    """Its others would hide it: with `auto.offset.reset=error`, librdkafka returns the error once."""
    topic = scene.topic(PARTITIONS, 1)
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group, "log_level": 0}
    committer = confluent_kafka.Consumer(config)
    committer.commit(offsets=[TopicPartition(topic, number, 0) for number in (0, 2)], asynchronous=False)
    committer.close()
    parallel = ParallelConsumer(config | {"auto.offset.reset": "error"}, nothing, create=create)
    late = threading.Timer(PATIENCE, parallel.stop)
    late.start()
    with pytest.raises(KafkaException) as caught:
        parallel.run([topic])
    late.cancel()
    late.join()
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    assert f"{topic} [1]: " in caplog.text


@pytest.mark.parametrize("create", [DeserializingConsumer, confluent_kafka.DeserializingConsumer])
def test_a_consumer_that_deserializes_is_refused(scene: "Scene", create: type) -> None:
    """A message that it cannot deserialize could be neither tried again nor a dead letter."""
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group}
    with pytest.raises(TypeError, match="deserialize in the function"):
        ParallelConsumer(config, nothing, create=create)


def test_the_client_must_not_commit_by_itself(scene: "Scene") -> None:
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group}
    with pytest.raises(ConfigurationError, match=r"enable\.auto\.commit must be false or absent"):
        ParallelConsumer(config | {"enable.auto.commit": True}, nothing)
    with pytest.raises(
        ConfigurationError, match=r"drain_timeout .* must be less than max\.poll\.interval\.ms"
    ):
        ParallelConsumer(config, nothing, drain_timeout=300)
    with pytest.raises(ValueError, match="workers"):
        ParallelConsumer(config, nothing, workers=0)
    with pytest.raises(TypeError, match=r"a Retry, such as Retry\(attempts=3\)"):
        ParallelConsumer(config, nothing, retry=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dead_letter must be a function"):
        ParallelConsumer(config, nothing, dead_letter="orders-failed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'partition', 'key', 'none', not 'keys'"):
        ParallelConsumer(config, nothing, order="keys")
    with pytest.raises(TypeError, match=r"a list: \['orders'\]"):
        ParallelConsumer(config, nothing).run("orders")


def test_a_coroutine_function_is_refused_by_threads(scene: "Scene") -> None:
    async def process(_: Message) -> None:
        """Never run."""

    topic = scene.topic(1, 1)
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group}
    with pytest.raises(TypeError, match="need AIOParallelConsumer"):
        ParallelConsumer(config, process)

    def begin(message: Message) -> Any:
        return process(message)

    consumer = ParallelConsumer(config | {"auto.offset.reset": "earliest"}, begin)
    with pytest.raises(MessageFailedError) as caught:
        consumer.run([topic])
    assert "use AIOParallelConsumer" in str(caught.value.__cause__)
