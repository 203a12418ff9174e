"""Processing meter: seconds that the application takes for a message of each partition.

The network thread samples, some fifty times a second, which message the application is working on: the last
one that `poll` has returned, until its next call. So measuring costs `poll` nothing but a count for each
native call, however fast messages are. An application with workers tells which messages they work on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from confluent_kafka import Message

from groupwright.core import TopicPartitionKey

_INTERVAL = 0.02
"""Average seconds between two samples."""
_LONGEST = 1.0
"""The longest time in seconds that a sample counts for: if the thread was stopped, so was the application."""
_WINDOW = 300.0
"""Time constant in seconds over which times are averaged."""
_DECAY_INTERVAL = 1.0
_PRIOR_SECONDS = 0.1
"""Seconds of average work that are added for each partition, so that few samples change its time little."""


class ProcessingMeter:
    """Measures processing times. The polling thread reports messages to it, the network thread samples."""

    def __init__(self, is_polling: Callable[[], bool], randomness: random.Random | None = None) -> None:
        """Create a meter without measurements.

        Args:
            is_polling: Whether a thread is inside `poll` or `consume`, where the application does not work.
            randomness: Source of the random times of samples.
        """
        self._is_polling = is_polling
        self._random = random.Random() if randomness is None else randomness  # noqa: S311 - no secret
        self._returned: Sequence[Message] = ()
        """The messages of the last native call, and what the same `consume` has gathered before it."""
        self._waiting: Sequence[Message] | None = None
        """Those of them that the next polls will return; None if the application has them all."""
        self._consumed: dict[TopicPartitionKey, int] = {}
        """Returned messages of each partition since the beginning. Only the polling thread changes it."""
        self._counted: dict[TopicPartitionKey, int] = {}
        """Messages of each partition that the application had taken when `_messages` was last updated."""
        self._messages: dict[TopicPartitionKey, float] = {}
        """Messages of each partition that the application has taken, with exponential decay."""
        self._seconds: dict[TopicPartitionKey, float] = {}
        """Seconds that the application has worked on them, with exponential decay."""
        self._working: Callable[[], Sequence[Message]] | None = None
        self._sampled_at = math.nan
        self._decayed_at = -math.inf

    def measure(self, working: Callable[[], Sequence[Message]]) -> None:
        """Measure what workers do: from now on, `working` returns the messages that are worked on."""
        self._working = working

    # --- For the polling thread ---------------------------------------------------------------------

    def returned(self, messages: Sequence[Message], begin: int, *, waits: bool) -> None:
        """Record the messages that a native call has returned.

        Args:
            messages: These messages, after those that the same `consume` has gathered before.
            begin: Index of the first message of this call.
            waits: Whether `messages` is the buffer from which polls take one message each.
        """
        first, last, number = messages[begin], messages[-1], len(messages) - begin
        key = _key(last)
        start, end = first.offset(), last.offset()
        is_run = start is not None and end is not None and end - start == number - 1 and _key(first) == key
        for found, count in (
            [(key, number)] if is_run else [(_key(m), 1) for m in islice(messages, begin, None)]
        ):
            if found is not None:
                self._consumed[found] = self._consumed.get(found, 0) + count
        # In this order, so that the network thread counts a message before it sees it.
        self._returned = ()
        self._waiting = messages if waits else None
        self._returned = tuple(messages)

    def nothing_returned(self) -> None:
        """Record that the application has no message to work on, or that it is not known which."""
        self._returned = ()

    # --- For the network thread ---------------------------------------------------------------------

    def sample(self, now: float) -> float:
        """Sample which message the application is working on; return the time of the next sample."""
        elapsed, self._sampled_at = now - self._sampled_at, now
        for message in self._worked_on() if elapsed > 0 else ():
            key = _key(message)
            if key is not None:
                self._seconds[key] = self._seconds.get(key, 0.0) + min(elapsed, _LONGEST)
        if now - self._decayed_at >= _DECAY_INTERVAL:
            self._decay(now)
        # At random: an application that works periodically might never be seen at some of its work.
        return now + _INTERVAL * (0.5 + self._random.random())

    def times(self) -> Mapping[str, Mapping[int, float]]:
        """Return seconds per message, by topic and partition; nothing until some work was seen."""
        if math.isnan(self._sampled_at):
            return {}
        self._decay(self._sampled_at)
        seconds, messages = sum(self._seconds.values()), sum(self._messages.values())
        if not seconds or not messages:
            return {}
        prior = _PRIOR_SECONDS * messages / seconds  # messages in these seconds, on average
        found: dict[str, dict[int, float]] = {}
        for (topic, number), count in self._messages.items():
            worked = self._seconds.get((topic, number), 0.0)
            found.setdefault(topic, {})[number] = (worked + _PRIOR_SECONDS) / (count + prior)
        return found

    def _worked_on(self) -> Sequence[Message]:
        if self._working is not None:
            return self._working()
        message = None if self._is_polling() else self._current()
        return () if message is None else (message,)

    def _current(self) -> Message | None:
        """Return the message that the application works on: a random one, if it has several."""
        returned, waiting = self._returned, self._waiting
        if not returned:
            return None
        if waiting is None:
            return self._random.choice(returned)
        index = len(returned) - len(waiting) - 1
        return returned[index] if index >= 0 else None

    def _taken(self) -> dict[TopicPartitionKey, int]:
        """Return the number of messages of each partition that the application has taken so far."""
        returned, waiting = self._returned, self._waiting
        taken = self._consumed.copy()
        left = 0 if waiting is None else len(waiting)
        for message in islice(returned, max(0, len(returned) - left), None):
            key = _key(message)
            if key is not None:
                taken[key] -= 1
        return taken

    def _decay(self, now: float) -> None:
        """Count the new messages, and let older messages and times decay exponentially."""
        kept = math.exp(-(now - self._decayed_at) / _WINDOW)
        self._decayed_at = now
        consumed = self._taken()
        for key, count in consumed.items():
            new = count - self._counted.get(key, 0)
            # The next messages may have been counted already, while the former ones were seen to wait.
            self._messages[key] = max(0.0, self._messages.get(key, 0.0) * kept + new)
            self._seconds[key] = self._seconds.get(key, 0.0) * kept
        self._counted = consumed


def _key(message: Message) -> TopicPartitionKey | None:
    topic, partition = message.topic(), message.partition()
    return None if topic is None or partition is None or message.error() is not None else (topic, partition)
