"""The producer of a group under load: which messages it produces again, and which errors end it."""

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups import load as load_module
from groupwright.testing.groups import Load, Produced, Span
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import holds_within

T = "t"


class Sent:
    """A message as on_delivery gets it."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset


class StubProducer:
    """Delivers messages with increasing offsets, except for those whose value is in `failures`."""

    made: ClassVar[list["StubProducer"]]
    failures: ClassVar[dict[str, int]]
    known: ClassVar[int]

    def __init__(self, _: dict[str, Any]) -> None:
        self.values: list[str] = []
        self._callbacks: list[Callable[[], None]] = []
        self.made.append(self)

    def produce(
        self, _: str, value: str, partition: int, on_delivery: Callable[..., None], **__: Any
    ) -> None:
        if partition >= self.known:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        self.values.append(value)
        code = self.failures.pop(value, None)
        error, sent = None if code is None else KafkaError(code), Sent(sum(len(p.values) for p in self.made))
        self._callbacks.append(lambda: on_delivery(error, sent))

    def list_topics(self, topic: str, timeout: float) -> None:
        assert topic == T
        assert timeout > 0
        type(self).known = 2

    def poll(self, _: float) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def flush(self, timeout: float) -> int:
        assert timeout > 0
        self.poll(0)
        return 0

    def purge(self) -> None: ...


@pytest.fixture
def stub() -> type[StubProducer]:
    class Stub(StubProducer):
        made: ClassVar[list[StubProducer]] = []
        failures: ClassVar[dict[str, int]] = {}
        known: ClassVar[int] = 2

    return Stub


def run(stub: type[StubProducer], *, until: int) -> tuple[list[Produced], Load]:
    """Produce at least this number of messages to two partitions."""
    recorded: list[Produced] = []
    partitions: list[TopicPartitionKey] = [(T, 0), (T, 1)]
    with Load(lambda: partitions, 1000, {}, recorded.append, stub, values=True) as load:
        while sum(len(producer.values) for producer in stub.made) < until and not load.ended:
            pass
        load.stop()
        load._thread.join()
    return recorded, load


def values(recorded: list[Produced]) -> set[str]:
    return {value for event in recorded for value in event.values}


@pytest.mark.parametrize("code", [KafkaError._MSG_TIMED_OUT, KafkaError.UNKNOWN])
def test_messages_that_may_be_lost_are_produced_again_by_a_new_producer(
    stub: type[StubProducer], code: int
) -> None:
    stub.failures.update({"3": code, "4": code})

    recorded, load = run(stub, until=20)

    load.raise_for_error()
    first, *others = stub.made
    assert others[0].values[:2] == ["3", "4"]
    assert len(others) == 1
    produced = {*first.values, *others[0].values}
    assert values(recorded) == produced == {str(number) for number in range(len(produced))}
    assert all(isinstance(span, Span) for event in recorded for span in event.spans)


def test_a_partition_that_the_producer_does_not_know_yet_is_awaited(stub: type[StubProducer]) -> None:
    stub.known = 1

    recorded, load = run(stub, until=10)

    load.raise_for_error()
    assert {span.partition for event in recorded for span in event.spans} == {0, 1}
    assert len(stub.made) == 1


def test_any_other_error_ends_it(stub: type[StubProducer]) -> None:
    stub.failures["3"] = KafkaError.MSG_SIZE_TOO_LARGE

    recorded, load = run(stub, until=1_000_000)

    assert load.error is not None
    assert "3" not in values(recorded)


def test_without_partitions_it_waits_for_some_and_does_not_make_up_for_the_time(
    stub: type[StubProducer], monkeypatch: pytest.MonkeyPatch
) -> None:
    time = [0.0]
    partitions: list[TopicPartitionKey] = []
    rounds: list[int] = []
    monkeypatch.setattr(load_module, "now", lambda: time[0])

    def present() -> list[TopicPartitionKey]:
        found = list(partitions)
        rounds.append(len(found))
        return found

    recorded: list[Produced] = []
    with Load(present, 100, {}, recorded.append, stub) as load:
        time[0] = 1000.0
        threading.Event().wait(0.2)
        before = len(rounds)
        assert before < 100
        assert holds_within(lambda: len(rounds) >= before + 2, PATIENCE)

        partitions.append((T, 0))
        assert holds_within(lambda: rounds[-1] == 1, PATIENCE)
        time[0] = 1000.25
        assert holds_within(lambda: len(stub.made[0].values) == 25, PATIENCE)

        partitions.clear()
        time[0] = 1000.5  # the message that was drawn before is produced
        assert holds_within(lambda: rounds[-1] == 0, PATIENCE)
        load.stop()
        load._thread.join(PATIENCE)
        assert load.ended
    assert stub.made[0].values == [str(number) for number in range(26)]
