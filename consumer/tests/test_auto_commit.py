"""Automatic commits while the application does not poll."""

import gc
import threading
from typing import Any

import pytest

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.auto_commit import OVERDUE_SECONDS, AutoCommitClock, BusyCommits
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")


class Committer:
    """Records the consumers that it has committed for, and the threads."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, str]] = []
        self.done = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def auto_commit(self, consumer: Any) -> None:
        self.made.append((consumer, threading.current_thread().name))
        self.done.set()
        assert self.may_end.wait(PATIENCE)


class Consumer:
    """Can be referred to weakly."""


class Scene:
    def __init__(self) -> None:
        self.clock = AutoCommitClock(5.0)
        self.clock.restart(100.0)
        self.committer = Committer()
        self.polling = AccessGuard()
        self.busy = BusyCommits(self.clock, self.committer, self.polling)
        self.consumer: Any = Consumer()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_what_is_due_is_left_to_the_polling_thread_for_a_moment(scene: Scene) -> None:
    scene.busy.set_handle(scene.consumer)
    assert scene.busy.check(104.0) == 105.0 + OVERDUE_SECONDS
    assert scene.busy.check(105.1) == 105.0 + OVERDUE_SECONDS
    assert scene.committer.made == []


def test_what_is_overdue_is_committed_by_a_thread_of_its_own(scene: Scene) -> None:
    scene.busy.set_handle(scene.consumer)
    assert scene.busy.check(105.0 + OVERDUE_SECONDS) == 105.0 + 2 * OVERDUE_SECONDS

    assert scene.committer.done.wait(PATIENCE)
    assert scene.committer.made == [(scene.consumer, "groupwright-commit")]


def test_one_thread_at_a_time_commits(scene: Scene) -> None:
    """One may have to wait for librdkafka's handle."""
    scene.busy.set_handle(scene.consumer)
    scene.committer.may_end.clear()
    scene.busy.check(106.0)
    assert scene.committer.done.wait(PATIENCE)
    scene.busy.check(107.0)
    assert len(scene.committer.made) == 1

    scene.committer.may_end.set()
    scene.busy.end(PATIENCE)
    assert scene.busy.check(108.0) == 168.0  # and none is due any more


def test_nothing_is_committed_for_a_consumer_that_never_polled_closes_or_is_gone(scene: Scene) -> None:
    scene.busy.check(106.0)
    scene.busy.set_handle(scene.consumer)
    scene.polling.closing = True
    scene.busy.check(106.0)
    scene.polling.closing = False
    del scene.consumer
    gc.collect()
    scene.busy.check(106.0)
    scene.busy.end(PATIENCE)

    assert scene.committer.made == []


def test_the_end_may_come_between_a_threads_making_and_its_start(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[BaseException] = []

    def end() -> None:
        try:
            scene.busy.end(PATIENCE)
        except RuntimeError as error:
            failed.append(error)

    ending = threading.Thread(target=end)

    class Started(threading.Thread):
        def start(self) -> None:
            monkeypatch.undo()
            ending.start()
            ending.join(0.2)  # it waits for this thread, or has failed by then
            super().start()

    monkeypatch.setattr(threading, "Thread", Started)
    scene.busy.set_handle(scene.consumer)
    scene.busy.check(105.0 + OVERDUE_SECONDS)
    ending.join(PATIENCE)

    assert failed == []
    assert len(scene.committer.made) == 1
