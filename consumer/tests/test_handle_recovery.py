"""librdkafka's handle without brokers: told apart from one that is slow, and started anew where the application is.

Here the handle is a real one, to a port where nobody listens: it has no broker either.
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

PATIENCE = 25.0
CONFIG: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "enable.auto.commit": False,
    "log_level": 0,
}


class Scene:
    """One handle, what watches over it, and a clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reachable = True
        self.made = 0
        self.offsets, self.ahead, self.polling = OffsetTracker(by_hand=False), PrefetchBuffer(), AccessGuard()
        self.handle = confluent_kafka.Consumer(CONFIG)
        self.revival = HandleRecovery(
            lambda: self.reachable,
            self.offsets,
            self.ahead,
            self.polling,
            logging.LoggerAdapter(logging.getLogger("revival")),
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
        """Wait for the next look, and have it."""
        self.now = self.revival.next_check
        self.revival.check(self.handle, self.config)

    def starts(self) -> list[int]:
        return [p.offset for p in sorted(self.handle.assignment(), key=lambda p: p.partition)]


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.handle.close()


def test_nothing_is_looked_at_before_the_coordinator_was_found(scene: Scene) -> None:
    assert scene.revival.next_check == float("inf")

    scene.polling.fast_path_until = 1e9
    scene.revival.schedule_check()

    assert scene.revival.next_check == scene.now + PATIENCE
    assert scene.polling.fast_path_until == 0.0


def test_a_handle_that_has_no_broker_at_three_looks_is_started_anew(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.assign(7, 8, 9)
    scene.offsets.seek(("t", 1), 80, TopicPartition("t", 1))
    scene.ahead.pause([("t", 2)])
    scene.revival.schedule_check()

    scene.look()
    scene.look()
    assert scene.made == 0
    scene.look()

    assert scene.made == 1
    assert scene.starts() == [7, 80, 9]
    assert scene.revival.next_check == scene.now + 2 * PATIENCE  # in case that it did not help
    assert "continues with 3 partitions" in caplog.text


def test_without_a_coordinator_librdkafka_is_not_to_blame(scene: Scene) -> None:
    scene.assign(7)
    scene.revival.schedule_check()
    scene.look()
    scene.look()
    scene.reachable = False
    scene.look()

    assert scene.made == 0
    assert scene.revival.next_check == float("inf")


def test_a_handle_that_fetches_nothing_is_looked_at_later(scene: Scene) -> None:
    scene.revival.schedule_check()
    for _ in range(4):
        scene.look()

    assert scene.made == 0
    assert scene.revival.next_check == scene.now + PATIENCE


def test_the_handle_is_not_taken_from_under_another_thread(scene: Scene) -> None:
    scene.assign(7)
    scene.revival.schedule_check()
    scene.look()
    scene.look()
    inside, leave = threading.Event(), threading.Event()

    def use() -> None:
        with scene.polling.shared():
            inside.set()
            leave.wait(60)

    user = threading.Thread(target=use)
    user.start()
    inside.wait(60)
    try:
        scene.look()
        assert scene.made == 0
    finally:
        leave.set()
        user.join()
    scene.look()

    assert scene.made == 1


def test_other_threads_wait_for_the_new_handle(scene: Scene) -> None:
    scene.assign(7)
    found: list[int] = []

    def ask() -> None:
        with scene.polling.shared():
            found.extend(scene.starts())

    user = threading.Thread(target=ask)
    with scene.polling.exclusive(1.0) as alone:
        assert alone
        user.start()
        user.join(0.05)
        assert user.is_alive()
    user.join()

    assert found == [7]


def test_a_handle_that_cannot_be_made_is_tried_again(scene: Scene) -> None:
    scene.assign(7)
    scene.revival.schedule_check()
    scene.look()
    scene.look()

    def broken() -> dict[str, Any]:
        return {**CONFIG, "no.such.key": 1}

    scene.now = scene.revival.next_check
    with pytest.raises(confluent_kafka.KafkaException):
        scene.revival.check(scene.handle, broken)
    assert scene.revival.next_check <= scene.now
    scene.look()

    assert scene.starts() == [7]


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
