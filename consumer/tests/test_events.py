"""The queue between the membership's thread and the polling one."""

import threading
import time

from groupwright.consumer._coordinator.inbox import Inbox
from groupwright.consumer._protocol.events import Assign, Closed, MaxPollExceeded, Revoke
from groupwright.consumer._protocol.model import MemberIdentity
from integration_tests.harness.patience import PATIENCE


def revoke(ticket: int) -> Revoke:
    return Revoke(ticket, {"t": (0,)}, lost=False)


def gain(ticket: int) -> Assign:
    return Assign(ticket, {"t": (0,)}, {"t": (0,)}, {}, MemberIdentity(1, "m-1", "range"), None)


def test_events_come_out_in_order() -> None:
    inbox = Inbox()
    assert not inbox
    inbox.put(revoke(1))
    inbox.put(Closed())

    assert inbox
    for expected in (revoke(1), Closed()):
        event = inbox.take()
        assert event == expected
        inbox.done(event)
    assert inbox.take() is None
    assert not inbox


def test_an_event_stays_until_it_was_dealt_with() -> None:
    """Ctrl-C came between the taking and the applying: the event was gone, and the member waited for ever."""
    inbox = Inbox()
    inbox.put(revoke(1))
    inbox.put(Closed())
    first = inbox.take()

    assert first is not None
    assert inbox.take() is first
    assert inbox
    inbox.done(first)
    inbox.done(first)
    assert inbox.take() == Closed()


def test_an_event_can_be_taken_back_until_it_is_taken() -> None:
    inbox = Inbox()
    inbox.put(MaxPollExceeded("why"))
    inbox.put(revoke(1))
    inbox.put(revoke(2))
    assert inbox.take() == MaxPollExceeded("why")

    assert inbox.withdraw(1)
    assert not inbox.withdraw(1)
    inbox.done(MaxPollExceeded("another"))
    assert inbox.take() == MaxPollExceeded("why")
    inbox.done(inbox.events[0])
    assert inbox.take() == revoke(2)
    assert not inbox.withdraw(2)


def test_waiting_ends_with_an_event() -> None:
    inbox = Inbox()
    waiting = threading.Thread(target=lambda: inbox.wait(2 * PATIENCE), daemon=True)
    waiting.start()
    inbox.put(Closed())
    waiting.join(PATIENCE)

    assert not waiting.is_alive()


def test_waiting_ends_with_its_time() -> None:
    inbox = Inbox()
    started = time.monotonic()
    inbox.wait(0.01)
    inbox.wait(-1.0)

    assert time.monotonic() - started >= 0.01


def test_what_gains_can_be_told_before_it_is_taken() -> None:
    """A process that slept over its session must look at what waits, and leave an assignment where it is."""
    inbox = Inbox()
    assert inbox.next_assignment is None
    inbox.put(gain(1))
    inbox.put(revoke(2))
    assert inbox.next_assignment == gain(1)

    assert inbox.withdraw(1)
    assert inbox.next_assignment is None


def test_waiting_for_anything_but_a_gain_goes_on_while_a_gain_waits() -> None:
    inbox = Inbox()
    inbox.put(gain(1))
    woken = threading.Event()

    def wait() -> None:
        inbox.wait(2 * PATIENCE, ignore_assignments=True)
        woken.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert not woken.wait(0.05)
    assert inbox.withdraw(1)
    inbox.put(revoke(2))
    waiting.join(PATIENCE)

    assert woken.is_set()
