"""Signal handlers that raise while the polling thread waits, enters or yields: no other thread may block."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from groupwright.consumer._coordinator.inbox import Inbox
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._protocol.commit_queue import CommitResult, PendingCommit
from groupwright.consumer._protocol.events import Closed, Revoke
from integration_tests.harness.patience import PATIENCE

Interrupted = Callable[[int, Callable[[], Any]], tuple[bool, Any]]


def _on_another_thread(call: Callable[[], object]) -> None:
    """Have another thread do this, and check that it is not held up."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "a lock was left held"


def _everywhere(interrupted: Interrupted, *, make: Callable[[], Any], use: Callable[[Any], Any]) -> list[Any]:
    """Interrupt `use` at each place; return what it was given each time."""
    made = []
    while True:
        made.append(make())
        if not interrupted(len(made), lambda: use(made[-1]))[0]:
            break
    return made


def _filled() -> Inbox:
    inbox = Inbox()
    inbox.put(Revoke(1, {"t": (0,)}, lost=False))
    return inbox


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda inbox: inbox.take(), id="take"),
        pytest.param(lambda inbox: inbox.next_assignment, id="look"),
        pytest.param(lambda inbox: inbox.done(inbox.take()), id="done"),
        pytest.param(lambda inbox: inbox.wait(0.001), id="wait"),
        pytest.param(lambda inbox: inbox.wait(0.001, ignore_assignments=True), id="wait for none"),
    ],
)
def test_an_inbox_takes_events_afterwards(interrupted: Interrupted, use: Callable[[Inbox], Any]) -> None:
    for inbox in _everywhere(interrupted, make=_filled, use=use):
        _on_another_thread(lambda: inbox.put(Closed()))  # noqa: B023 - called at once
        assert inbox.events[-1] == Closed()
        inbox.wait(PATIENCE)


def test_an_empty_inbox_wakes_later_waiters(interrupted: Interrupted) -> None:
    for inbox in _everywhere(interrupted, make=Inbox, use=lambda inbox: inbox.wait(0.001)):
        _on_another_thread(lambda: inbox.put(Closed()))  # noqa: B023 - called at once
        _on_another_thread(lambda: inbox.wait(2 * PATIENCE))  # noqa: B023 - called at once


def test_a_commit_is_settled_afterwards(interrupted: Interrupted) -> None:
    def wait(pending: PendingCommit) -> None:
        pending.wait(0.001)

    for pending in _everywhere(interrupted, make=lambda: PendingCommit({}, 1e9, lambda: 0.0), use=wait):
        _on_another_thread(lambda: pending.complete(CommitResult({}, "settled")))  # noqa: B023 - called at once
        assert pending.ready
        assert pending.wait().message == "settled"


@pytest.mark.parametrize("what", ["beside", "alone", "give_way"])
def test_the_handle_can_be_had_afterwards(interrupted: Interrupted, what: str) -> None:
    def use(polling: AccessGuard) -> None:
        if what == "beside":
            with polling.shared():
                pass
        elif what == "alone":
            with polling.exclusive(0.001):
                pass
        else:
            polling._wanting.add(None)
            try:
                polling.yield_to_waiters()
            finally:
                polling._wanting.clear()

    def have(polling: AccessGuard) -> None:
        with polling.shared():
            pass
        with polling.exclusive(PATIENCE) as alone:
            assert alone

    for polling in _everywhere(interrupted, make=AccessGuard, use=use):
        _on_another_thread(lambda: have(polling))  # noqa: B023 - called at once
        assert not polling.has_waiters
