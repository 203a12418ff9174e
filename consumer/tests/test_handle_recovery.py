"""librdkafka's handle without brokers: how it is detected, and recreated at the application's positions.

The handle is a real one, connected to a closed port, so it has no broker either.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from integration_tests.harness.patience import PATIENCE

CONFIG: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "enable.auto.commit": False,
    "log_level": 0,
}


class Environment:
    """One handle, its recovery, and a clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reachable = True
        self.made = 0
        self.offsets, self.prefetch, self.polling = (
            OffsetTracker(by_hand=False),
            PrefetchBuffer(),
            AccessGuard(),
        )
        self.handle = confluent_kafka.Consumer(CONFIG)
        self.recovery = HandleRecovery(
            lambda: self.reachable,
            self.offsets,
            self.prefetch,
            self.polling,
            logging.LoggerAdapter(logging.getLogger("recovery")),
            delay=PATIENCE,
            clock=lambda: self.now,
        )

    def config(self) -> dict[str, Any]:
        self.made += 1
        return CONFIG

    def assign(self, *starts: int) -> None:
        partitions = [TopicPartition("t", number, start) for number, start in enumerate(starts)]
        self.handle.incremental_assign(partitions)
        self.offsets.assigned({("t", number) for number in range(len(starts))}, {})

    def look(self) -> None:
        """Advance the clock to the next check, and run it."""
        self.now = self.recovery.next_check
        self.recovery.check(self.handle, self.config)

    def starts(self) -> list[int]:
        return [p.offset for p in sorted(self.handle.assignment(), key=lambda p: p.partition)]


@pytest.fixture
def environment() -> Iterator[Environment]:
    made = Environment()
    yield made
    made.handle.close()


def test_the_handle_is_not_checked_before_the_coordinator_was_found(environment: Environment) -> None:
    assert environment.recovery.next_check == float("inf")

    environment.polling.fast_path_until = 1e9
    environment.recovery.schedule_check()

    assert environment.recovery.next_check == environment.now + PATIENCE
    assert environment.polling.fast_path_until == 0.0


def test_a_handle_without_a_broker_at_three_checks_is_recreated(
    environment: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    environment.assign(7, 8, 9)
    environment.offsets.seek(("t", 1), 80, TopicPartition("t", 1))
    environment.prefetch.pause([("t", 2)])
    environment.recovery.schedule_check()

    environment.look()
    environment.look()
    assert environment.made == 0
    environment.look()

    assert environment.made == 1
    assert environment.starts() == [7, 80, 9]
    assert environment.recovery.next_check == environment.now + 2 * PATIENCE  # in case that it did not help
    assert "continues with 3 partitions" in caplog.text


def test_without_a_coordinator_librdkafka_is_not_to_blame(environment: Environment) -> None:
    environment.assign(7)
    environment.recovery.schedule_check()
    environment.look()
    environment.look()
    environment.reachable = False
    environment.look()

    assert environment.made == 0
    assert environment.recovery.next_check == float("inf")


def test_a_handle_that_fetches_nothing_is_checked_later(environment: Environment) -> None:
    environment.recovery.schedule_check()
    for _ in range(4):
        environment.look()

    assert environment.made == 0
    assert environment.recovery.next_check == environment.now + PATIENCE


@pytest.mark.medium
def test_the_handle_is_not_taken_from_under_another_thread(environment: Environment) -> None:
    environment.assign(7)
    environment.recovery.schedule_check()
    environment.look()
    environment.look()
    inside, leave = threading.Event(), threading.Event()

    def use() -> None:
        with environment.polling.shared():
            inside.set()
            leave.wait(PATIENCE)

    user = threading.Thread(target=use)
    user.start()
    assert inside.wait(PATIENCE)
    try:
        environment.look()
        assert environment.made == 0
    finally:
        leave.set()
        user.join()
    environment.look()

    assert environment.made == 1


def test_other_threads_wait_for_the_new_handle(environment: Environment) -> None:
    environment.assign(7)
    found: list[int] = []

    def ask() -> None:
        with environment.polling.shared():
            found.extend(environment.starts())

    user = threading.Thread(target=ask)
    with environment.polling.exclusive(1.0) as alone:
        assert alone
        user.start()
        user.join(0.05)
        assert user.is_alive()
    user.join()

    assert found == [7]


def test_a_handle_that_cannot_be_made_is_tried_again(environment: Environment) -> None:
    environment.assign(7)
    environment.recovery.schedule_check()
    environment.look()
    environment.look()

    def broken() -> dict[str, Any]:
        return {**CONFIG, "no.such.key": 1}

    environment.now = environment.recovery.next_check
    with pytest.raises(confluent_kafka.KafkaException):
        environment.recovery.check(environment.handle, broken)
    assert environment.recovery.next_check <= environment.now
    environment.look()

    assert environment.starts() == [7]


@pytest.mark.parametrize("forget", ["assigned", "dropped"])
def test_a_seek_counts_for_one_assignment(forget: str) -> None:
    offsets = OffsetTracker(by_hand=False)
    offsets.assigned({("t", 0)}, {})
    offsets.seek(("t", 0), 5, TopicPartition("t", 0))
    assert offsets.sought(("t", 0)) == 5

    act: dict[str, Callable[[], None]] = {
        "assigned": lambda: offsets.assigned({("t", 0)}, {}),
        "dropped": lambda: offsets.dropped({("t", 0)}),
    }
    act[forget]()

    assert offsets.sought(("t", 0)) is None
