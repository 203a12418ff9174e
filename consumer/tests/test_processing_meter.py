"""Processing times of messages, measured by samples. Time is simulated."""

import random
from collections import deque
from collections.abc import Callable, Iterable

import pytest
from confluent_kafka import KafkaError, Message

from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.processing_meter import ProcessingMeter

COSTS = {0: 0.001, 1: 0.004, 2: 0.010}
"""Seconds per message, by partition."""


class Application:
    """An application that works on messages for as long as their partition costs."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.costs = COSTS
        self.is_polling = False
        self.meter = ProcessingMeter(lambda: self.is_polling, random.Random(seed))  # noqa: S311 - no secret
        self._samples_at = self.meter.sample(0.0)
        self._offsets = dict.fromkeys(COSTS, 0)

    def messages(self, partitions: Iterable[int]) -> list[Message]:
        found = []
        for number in partitions:
            found.append(new_message(topic="t", partition=number, offset=self._offsets[number]))
            self._offsets[number] += 1
        return found

    def passes(self, seconds: float) -> None:
        end = self.now + seconds
        while self._samples_at < end:
            self._samples_at = self.meter.sample(self._samples_at)
        self.now = end

    def polls(self, partitions: Iterable[int]) -> None:
        """Take each message of a batch by a poll of its own."""
        waiting = deque(self.messages(partitions))
        self.meter.returned(waiting, 0, waits=True)
        while waiting:
            self.passes(self.costs[waiting.popleft().partition() or 0])

    def consumes(self, *slices: Iterable[int]) -> None:
        """Take all messages at once, which several native calls have returned."""
        gathered: list[Message] = []
        for partitions in slices:
            before = len(gathered)
            gathered += self.messages(partitions)
            self.meter.returned(gathered, before, waits=False)
        for message in gathered:
            self.passes(self.costs[message.partition() or 0])

    def idles(self, seconds: float) -> None:
        self.meter.nothing_returned()
        self.passes(seconds)


def alternating(app: Application) -> None:
    app.polls([0, 1, 2] * 40)


def by_runs(app: Application) -> None:
    app.polls([0] * 128)
    app.polls([1] * 64 + [2] * 64)


def one_by_one(app: Application) -> None:
    for number in COSTS:
        app.polls([number])


def at_once(app: Application) -> None:
    for number in COSTS:
        app.consumes([number] * 50, [number] * 30)


@pytest.mark.medium
@pytest.mark.parametrize("works", [alternating, by_runs, one_by_one, at_once])
def test_times_are_those_of_the_application_however_it_takes_its_messages(
    works: Callable[[Application], None],
) -> None:
    app = Application()
    while app.now < 600:
        works(app)
        app.idles(0.1)
    assert app.meter.times() == {"t": pytest.approx(COSTS, rel=0.1)}


def test_messages_that_are_consumed_together_share_the_time() -> None:
    app = Application()
    while app.now < 600:
        app.consumes([0] * 50, [1] * 25, [2, 1] * 25)
        app.idles(0.1)
    average = (50 * COSTS[0] + 50 * COSTS[1] + 25 * COSTS[2]) / 125
    assert app.meter.times() == {"t": pytest.approx(dict.fromkeys(COSTS, average), rel=0.1)}


def test_the_last_messages_are_counted_with_the_time_they_took() -> None:
    app = Application()
    app.polls([1] * 250)
    app.polls([0] * 250)
    app.idles(0.05)
    assert app.meter.times()["t"] == pytest.approx({1: COSTS[1], 0: COSTS[0]}, rel=0.4)


def test_messages_that_still_wait_are_not_counted() -> None:
    app = Application()
    waiting = deque(app.messages([2] * 128))
    app.meter.returned(waiting, 0, waits=True)
    for _ in range(50):
        waiting.popleft()
        app.passes(COSTS[2])
    app.passes(1)
    assert app.meter.times()["t"][2] == pytest.approx((50 * COSTS[2] + 1) / 50, rel=0.1)


def test_waiting_for_messages_is_no_work() -> None:
    app = Application()
    while app.now < 120:
        app.polls([1])
        app.idles(0.5)
        app.polls([1])
        app.is_polling = True
        app.passes(0.5)
        app.is_polling = False
    assert app.meter.times() == {"t": pytest.approx({1: COSTS[1]}, rel=0.3)}


@pytest.mark.medium
def test_messages_that_get_slower_are_noticed() -> None:
    app = Application()
    while app.now < 600:
        app.polls([0, 1])
    app.costs = {0: 0.020, 1: 0.004}
    while app.now < 2400:
        app.polls([0, 1])
    assert app.meter.times() == {"t": pytest.approx(app.costs, rel=0.1)}


def test_nothing_is_told_before_the_application_has_worked() -> None:
    app = Application()
    assert app.meter.times() == {}
    app.idles(10)
    assert app.meter.times() == {}


def test_a_partition_with_few_messages_is_taken_for_average() -> None:
    app = Application()
    app.polls([2])
    while app.now < 60:
        app.polls([1])
    times = app.meter.times()["t"]
    assert times[1] == pytest.approx(COSTS[1], rel=0.1)
    assert times[2] == pytest.approx(COSTS[1], rel=0.5)


def test_a_stopped_process_does_not_work() -> None:
    app = Application()
    while app.now < 60:
        app.polls([1])
    app.meter.returned(app.messages([1]), 0, waits=False)
    app.meter.sample(app.now + 3600)
    assert app.meter.times()["t"][1] < 2 * COSTS[1]


def test_the_time_of_workers_is_counted_also_while_the_application_polls() -> None:
    app = Application()
    app.consumes([0] * 100, [1] * 100)
    app.is_polling = True
    app.meter.measure(lambda: app.messages([1, 1]))  # two workers, both on this partition
    app.passes(10.0)
    after = app.meter.times()["t"]
    assert after[0] < 0.01
    assert after[1] == pytest.approx(20 / 100, rel=0.2)


def test_errors_are_no_messages() -> None:
    app = Application()
    end = new_message(topic="t", partition=0, error=KafkaError(KafkaError._PARTITION_EOF))
    app.meter.returned([end], 0, waits=False)
    app.passes(10)
    assert app.meter.times() == {}
