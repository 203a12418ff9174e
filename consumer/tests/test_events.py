"""The queue between the membership's thread and the polling one."""

import threading
import time

from groupwright.consumer.events import Closed, Inbox, PollExceeded, Revoke


def revoke(ticket: int) -> Revoke:
    return Revoke(ticket, {"t": (0,)}, lost=False)


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
    inbox.put(PollExceeded("why"))
    inbox.put(revoke(1))
    inbox.put(revoke(2))
    assert inbox.take() == PollExceeded("why")

    assert inbox.withdraw(1)
    assert not inbox.withdraw(1)
    inbox.done(PollExceeded("another"))
    assert inbox.take() == PollExceeded("why")
    inbox.done(inbox.events[0])
    assert inbox.take() == revoke(2)
    assert not inbox.withdraw(2)


def test_waiting_ends_with_an_event() -> None:
    inbox = Inbox()
    waiting = threading.Thread(target=lambda: inbox.wait(30.0))
    waiting.start()
    inbox.put(Closed())
    waiting.join(10.0)

    assert not waiting.is_alive()


def test_waiting_ends_with_its_time() -> None:
    inbox = Inbox()
    started = time.monotonic()
    inbox.wait(0.01)
    inbox.wait(-1.0)

    assert 0.01 <= time.monotonic() - started < 5.0
