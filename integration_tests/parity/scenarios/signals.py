"""Signal handlers that raise during poll, consume, commit, close and callbacks."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


class _StoppedError(Exception):
    """Raised by an application's signal handler."""


@contextmanager
def _handler(signum: int, error: type[BaseException]) -> Iterator[None]:
    """Have a signal raise an exception on the main thread."""

    def raises(*_: object) -> None:
        raise error

    before = signal.signal(signum, raises)
    try:
        yield
    finally:
        signal.signal(signum, before)


@dataclass
class _Alarms:
    """Switch for the exceptions of a timer's signals.

    The signal handler turns it off before it raises, so no signal raises inside an `except` block.
    """

    raise_now: bool = False


@contextmanager
def _alarms(seconds: float) -> Iterator[_Alarms]:
    """Have a timer raise an exception on the main thread, again and again, where the block allows it."""
    alarms = _Alarms()

    def raises(*_: object) -> None:
        if alarms.raise_now:
            alarms.raise_now = False
            raise _StoppedError

    before = signal.signal(signal.SIGALRM, raises)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield alarms
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _send(signum: int, seconds: float = 0.3) -> threading.Timer:
    """Send this process a signal in a while."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(seconds, signal.pthread_kill, (main, signum))
    timer.start()
    return timer


def _interrupted(
    lab: Lab, signum: int, error: type[BaseException], call: Callable[[Client], Any], *, messages: int = 3
) -> None:
    """Interrupt a call that has nothing to return, go on, and close."""
    topic = lab.topic(messages=messages)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(messages)
    with _handler(signum, error):
        timer = _send(signum)
        try:
            lab.attempt("call", lambda: call(consumer))
            lab.note("the call returned")
        except BaseException as raised:  # noqa: BLE001 - part of what is compared
            lab.note(f"leaves by {type(raised).__name__}")
        timer.join()
    lab.produce(topic, 3)
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=20)
def ctrl_c_in_poll(lab: Lab) -> None:
    """Ctrl-C leaves poll as KeyboardInterrupt, and the consumer can go on."""
    _interrupted(lab, signal.SIGINT, KeyboardInterrupt, lambda consumer: consumer.raw.poll(2))


@scenario(seconds=20)
def sigterm_with_system_exit_in_poll(lab: Lab) -> None:
    """A SIGTERM handler that calls sys.exit leaves poll as SystemExit."""
    _interrupted(lab, signal.SIGTERM, SystemExit, lambda consumer: consumer.raw.poll(2))


@scenario(seconds=20)
def a_handlers_own_exception_in_poll(lab: Lab) -> None:
    """An exception of the application's own leaves poll."""
    _interrupted(lab, signal.SIGUSR1, _StoppedError, lambda consumer: consumer.raw.poll(2))


@scenario(seconds=20)
def ctrl_c_in_consume(lab: Lab) -> None:
    """Ctrl-C leaves consume as KeyboardInterrupt, and the consumer can go on."""
    _interrupted(lab, signal.SIGINT, KeyboardInterrupt, lambda consumer: consumer.raw.consume(10, 2))


@scenario(seconds=20)
def ctrl_c_in_a_poll_without_a_timeout(lab: Lab) -> None:
    """Ctrl-C leaves a poll that waits for ever."""
    _interrupted(lab, signal.SIGINT, KeyboardInterrupt, lambda consumer: consumer.raw.poll())


@scenario(seconds=20)
def a_handler_that_does_not_raise(lab: Lab) -> None:
    """A handler that only sets a flag runs during poll, and poll goes on to its end."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(3)
    flags: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: flags.append(number))
    try:
        timer = _send(signal.SIGTERM)
        lab.attempt("poll", lambda: consumer.raw.poll(1))
        timer.join()
        lab.note(f"flags {len(flags)}")
    finally:
        signal.signal(signal.SIGTERM, before)
    consumer.close()


@scenario(seconds=20)
def a_signal_before_the_first_poll_has_joined(lab: Lab) -> None:
    """A signal during the join: the next polls join."""
    topic = lab.topic(messages=3)
    for _ in range(3):
        consumer = lab.consumer(enable_auto_commit=False)
        consumer.subscribe([topic], **callbacks())
        with _handler(signal.SIGINT, KeyboardInterrupt):
            timer = _send(signal.SIGINT, 0.02)
            try:
                while True:
                    consumer.raw.assignment()
                    timer.join(0.001)
            except KeyboardInterrupt:
                lab.note("interrupted")
        consumer.read(3)
        consumer.close()


@scenario(seconds=20)
def ctrl_c_in_on_assign(lab: Lab) -> None:
    """Ctrl-C while on_assign runs."""
    _in_callback(lab, "on_assign")


@scenario(seconds=20)
def ctrl_c_in_on_revoke(lab: Lab) -> None:
    """Ctrl-C while on_revoke runs, which close has called."""
    _in_callback(lab, "on_revoke")


def _in_callback(lab: Lab, name: str) -> None:
    topic = lab.topic(messages=3)
    consumer = lab.consumer(enable_auto_commit=False)
    waiting = threading.Event()

    def waits(_client: Client, _owned: list[TopicPartition]) -> None:
        timer = _send(signal.SIGINT, 0.1)
        try:
            waiting.wait(3)
        finally:
            timer.join()

    consumer.subscribe([topic], **{name: waits})
    with _handler(signal.SIGINT, KeyboardInterrupt):
        try:
            consumer.read(3)
            consumer.close()
        except KeyboardInterrupt:
            lab.note("interrupted")
    if name == "on_assign":
        consumer.read(3)
        consumer.close()
    consumer.attempt("close")
    lab.note_members(0)


@scenario(seconds=30)
def a_handler_that_raises_while_messages_flow(lab: Lab) -> None:
    """Signals during fast polls lose at most the message that poll was about to return."""
    topic = lab.topic(messages=20_000)
    consumer = lab.consumer(enable_auto_commit=False)
    interrupted = since = most = 0
    with _alarms(0.003) as alarms:
        while interrupted < 30:
            consumer.raw.assign(partitions(topic, 0))
            last, since = -1, 0
            while last < 19_900:
                try:
                    alarms.raise_now = True
                    message = consumer.raw.poll(1)
                    alarms.raise_now = False
                except _StoppedError:
                    interrupted += 1
                    since += 1
                    continue
                if message is not None:
                    offset = message.offset() or 0
                    most = max(most, offset - last - 1 - since)
                    last, since = offset, 0
    lab.note(f"lost at most one message an interruption: {most <= 0}")
    consumer.close()


@scenario(seconds=20)
def ctrl_c_in_a_synchronous_commit(lab: Lab) -> None:
    """Signals during synchronous commits: the consumer continues, and the last commit is stored."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(3)
    interrupted = 0
    with _alarms(0.005) as alarms:
        while interrupted < 20:
            try:
                alarms.raise_now = True
                consumer.raw.commit(offsets=partitions(topic, 1), asynchronous=False)
                alarms.raise_now = False
            except _StoppedError:
                interrupted += 1
    consumer.commit(offsets=partitions(topic, 3), asynchronous=False)
    consumer.close()


@scenario(seconds=20)
def ctrl_c_ends_a_service(lab: Lab) -> None:
    """The loop that every example has: Ctrl-C, then close in finally. What was returned is committed."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer()
    consumer.subscribe([topic], **callbacks())
    with _handler(signal.SIGINT, KeyboardInterrupt):
        consumer.read(10)
        timer = _send(signal.SIGINT)
        try:
            while True:
                consumer.poll(1.0)
        except KeyboardInterrupt:
            lab.note("stopped")
        finally:
            consumer.close()
        timer.join()
    lab.note_members(0)


@scenario(seconds=20)
def sigterm_ends_a_service_in_with(lab: Lab) -> None:
    """SIGTERM with sys.exit inside `with`: the consumer is closed, and the exit goes on."""
    topic = lab.topic(messages=10)
    with _handler(signal.SIGTERM, SystemExit):
        try:
            with lab.consumer() as consumer:
                consumer.subscribe([topic], **callbacks())
                consumer.read(10)
                timer = _send(signal.SIGTERM)
                while True:
                    consumer.consume(100, 0.5)
        except SystemExit:
            lab.note("exits")
        timer.join()
    lab.note_members(0)


@scenario(seconds=20)
def a_signal_during_close(lab: Lab) -> None:
    """A second Ctrl-C while close waits in on_revoke: the consumer is closed nevertheless, or can be."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    waiting = threading.Event()

    def on_revoke(_client: Client, _owned: list[TopicPartition]) -> None:
        waiting.wait(1)

    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(3)
    with _handler(signal.SIGINT, KeyboardInterrupt):
        timer = _send(signal.SIGINT)
        try:
            consumer.close()
        except KeyboardInterrupt:
            lab.note("interrupted")
        timer.join()
    consumer.attempt("close")
    lab.note_members(0)
