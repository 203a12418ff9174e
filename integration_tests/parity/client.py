"""A recording consumer: its calls, callbacks and messages go to a trace."""

import builtins
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from integration_tests.parity.trace import Recorder, ranges

_LOGICAL = {-1: "@end", -2: "@beginning", -1000: "@stored", -1001: ""}
_CALLBACKS = ("on_assign", "on_revoke", "on_lost")
PATIENCE = 20.0
"""Seconds until a wait ends in vain; a scenario may take longer, so its trace names what did not come."""


def record(*_: object) -> None:
    """Do nothing: only the call is recorded."""


def show(lab: Recorder, value: object) -> str:  # noqa: PLR0911 - a case for each type
    """Return a comparable form of a value: short topic names, sorted partitions, no ids."""
    match value:
        case TopicPartition():
            return _partition(lab, value)
        case list() if value and all(isinstance(each, TopicPartition) for each in value):
            return "[" + ", ".join(sorted(_partition(lab, each) for each in value)) + "]"
        case list() | tuple():
            return "[" + ", ".join(show(lab, each) for each in value) + "]"
        case Message():
            error = value.error()
            words = f"{_short(lab, value.topic())}[{value.partition()}]@{value.offset()}"
            return f"message {words}" if error is None else f"error {error.name()}"
        case KafkaError():
            return value.name() + (" fatal" if value.fatal() else "")
        case BaseException():
            return f"raises {failure(value)}"
        case bytes():
            return "bytes"
        case str():
            return repr(_short(lab, value)) if lab.id in value else "text"
        case None | bool() | int() | float():
            return repr(value)
    return type(value).__name__


def failure(error: BaseException) -> str:
    """Return an exception as an application can catch it: its class, or confluent-kafka's, and its code."""
    if isinstance(error, KafkaException):
        cause = error.args[0] if error.args else None
        if isinstance(cause, KafkaError):
            return f"KafkaException({cause.name()}{' fatal' if cause.fatal() else ''})"
        return "KafkaException"
    own = builtins.__name__, confluent_kafka.__name__
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in own)


def _short(lab: Recorder, topic: str | None) -> str:
    return "" if topic is None else topic.replace(f"{lab.id}.", "").replace(f"{lab.id}[.]", "")


def _partition(lab: Recorder, partition: TopicPartition) -> str:
    offset = _LOGICAL.get(partition.offset, f"@{partition.offset}")
    error = "" if partition.error is None else f" {partition.error.name()}"
    return f"{_short(lab, partition.topic)}[{partition.partition}]{offset}{error}"


def _owned(lab: Recorder, partitions: list[TopicPartition]) -> str:
    topics: dict[str, list[int | str]] = {}
    for partition in sorted(partitions):
        topics.setdefault(_short(lab, partition.topic), []).append(partition.partition)
    return " ".join(f"{topic}[{ranges(numbers)}]" for topic, numbers in topics.items()) or "nothing"


class Client:
    """The consumer of a scenario. Methods not defined here are delegated, and recorded with their outcome."""

    def __init__(self, lab: Recorder, raw: Any, name: str) -> None:
        """Wrap a consumer."""
        self.raw = raw
        self.name = name
        self.closed = False
        self.messages: list[Message] = []
        """All that was returned, errors left out."""
        self.errors: list[KafkaError] = []
        self.revoked: list[str] = []
        """Partitions passed to on_revoke and on_lost."""
        self.unended: set[tuple[str | None, int | None]] = set()
        """Partitions whose end was not returned since their last message."""
        self._lab = lab
        self._unread = 0

    # --- The consumer's own methods -----------------------------------------------------------------

    def __getattr__(self, method: str) -> Callable[..., Any]:
        function = getattr(self.raw, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(method, function, *args, **kwargs)

        return call

    def _call(self, method: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self._written(method, args, kwargs) as results:
            results.append(function(*args, **kwargs))
        return results[0]

    @contextmanager
    def _written(self, method: str, args: Any, kwargs: Any) -> Iterator[list[Any]]:
        """Record a call with its outcome: the result that the body appends to the list, or its exception."""
        given = [show(self._lab, each) for each in args]
        given += [f"{key}={show(self._lab, each)}" for key, each in kwargs.items() if key not in _CALLBACKS]
        words = f"{method}({', '.join(given)})"
        began = time.monotonic()
        results: list[Any] = []
        try:
            yield results
        except BaseException as error:
            self._line(f"{words} {show(self._lab, error)}", time.monotonic() - began)
            raise
        shown = show(self._lab, results[0]) if method != "memberid" else type(results[0]).__name__
        self._line(f"{words} = {shown}", time.monotonic() - began)

    def attempt(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method that may raise: the trace records the exception, and the scenario continues."""
        try:
            return getattr(self, method)(*args, **kwargs)
        except Exception:  # noqa: BLE001 - it is in the trace
            return None

    def subscribe(self, topics: list[str], **given: Callable[..., object]) -> None:
        """Subscribe, with recording callbacks."""
        wrapped = {name: self._recorded(name, callback) for name, callback in given.items()}
        self._call("subscribe", self.raw.subscribe, topics, **wrapped)

    def _recorded(self, name: str, callback: Any) -> Any:
        def call(_: object, partitions: list[TopicPartition]) -> None:
            words = _owned(self._lab, partitions)
            self._line(f"{name} {words}")
            if name != "on_assign":
                self.revoked.append(words)
            callback(self, partitions)

        return call if callable(callback) else callback

    def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close."""
        result = self._call("close", self.raw.close, *args, **kwargs)
        self.closed = True
        return result

    def __enter__(self) -> Self:
        self.raw.__enter__()
        return self

    def __exit__(self, *given: object) -> None:
        self._call("__exit__", lambda *_: self.raw.__exit__(*given))
        self.closed = True

    def poll(self, *args: Any, **kwargs: Any) -> Message | None:
        """Poll; only a message is recorded."""
        with self._taking("poll") as taken:
            message: Message | None = self.raw.poll(*args, **kwargs)
            taken.append(message)
        return message

    def consume(self, *args: Any, **kwargs: Any) -> list[Message]:
        """Consume; an empty list is not recorded."""
        with self._taking("consume") as taken:
            messages: list[Message] = self.raw.consume(*args, **kwargs)
            taken.extend(messages)
        return messages

    @contextmanager
    def _taking(self, method: str) -> Iterator[list[Message | None]]:
        """Record the messages that the body appends to the list, or its exception."""
        taken: list[Message | None] = []
        try:
            yield taken
        except BaseException as error:
            self._line(f"{method} {show(self._lab, error)}")
            raise
        for message in taken:
            if message is not None:
                self._take(message)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            partition = f"{_short(self._lab, message.topic())}[{message.partition()}]"
            offset = message.offset()
            self.messages.append(message)
            self.unended.add((message.topic(), message.partition()))
            self._unread += 1
            self._lab.trace.add_message(self._timeline, partition, -1 if offset is None else offset)
        elif error.code() == KafkaError._PARTITION_EOF:
            partition = f"{_short(self._lab, message.topic())}[{message.partition()}]"
            self._lab.trace.add_message(self._timeline, partition, f"EOF@{message.offset()}")
            self.unended.discard((message.topic(), message.partition()))
            self.errors.append(error)
        else:
            self.errors.append(error)
            topic = _short(self._lab, message.topic())
            self._line(f"error {show(self._lab, error)}{topic and f' of {topic}'}")

    # --- Loops that scenarios share -----------------------------------------------------------------

    def read(self, count: int, *, timeout: float = PATIENCE, batch: int = 0) -> list[Message]:
        """Poll, or consume batches, until so many messages have been received since the last read."""
        self._loop(lambda: self._unread >= count, f"read {count}", timeout, batch)
        return self._next(count)

    def _next(self, count: int) -> list[Message]:
        """Return up to so many messages that no read has returned yet."""
        before = len(self.messages) - self._unread
        self._unread -= min(count, self._unread)
        return self.messages[before : before + count]

    def until(
        self,
        condition: Callable[[], object],
        what: str,
        *,
        timeout: float = PATIENCE,
        batch: int = 0,
        pause: float = 0.0,
    ) -> bool:
        """Poll, or consume batches, until a condition holds; the trace records the duration, as a class.

        With a `pause`, polls return at once, and so many seconds pass between two.
        """
        return self._loop(condition, f"until {what}", timeout, batch, pause)

    def until_assigned(self, count: int = 1, *, timeout: float = PATIENCE) -> list[TopicPartition]:
        """Poll until so many partitions are assigned."""
        self._loop(
            lambda: len(self.raw.assignment()) == count, f"until {count} assigned", timeout, pause=0.01
        )
        found: list[TopicPartition] = self.raw.assignment()
        self._line(f"assigned {_owned(self._lab, found)}")
        self._lab.trace.defer_messages(self._timeline, 2)
        return found

    def idle(self, seconds: float = 1.0) -> None:
        """Poll for a while in which no further messages are expected."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._poll_once(0.1, 0)

    def _loop(
        self,
        condition: Callable[[], object],
        what: str,
        timeout: float,
        batch: int = 0,
        pause: float = 0.0,
    ) -> bool:
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > timeout:
                self._line(f"{what} = not within {timeout:.0f} s")
                return False
            self._poll_once(0.0 if pause else 0.1, batch)
            if pause:
                time.sleep(pause)
        self._line(f"{what} = done", time.monotonic() - began)
        return True

    def _poll_once(self, timeout: float, batch: int) -> None:
        try:
            if batch:
                self.consume(batch, timeout)
            else:
                self.poll(timeout)
        except Exception:  # noqa: BLE001 - it is in the trace; a loop goes on, as an application's does
            time.sleep(0.05)

    # --- Parts --------------------------------------------------------------------------------------

    @property
    def _timeline(self) -> str:
        thread = threading.current_thread()
        return self.name if thread is threading.main_thread() else f"{self.name}@{thread.name}"

    def _line(self, text: str, seconds: float | None = None) -> None:
        self._lab.trace.add(self._timeline, text, seconds)
