"""Polling: how `poll` and `consume` take messages, and serve what is due between native calls.

Each call is this loop:

1. Serve what is due: events of the membership, commits, threads that want the handle. While nothing is due
   (`AccessGuard.fast_path_until`), this step is skipped.
2. Take messages: prefetched ones, or those of one native call. That lasts for one slice at most, because what
   becomes due meanwhile waits for its end.
3. Return if there are enough messages, the time is over, or something is due that cannot wait for more.

The thread is inside (`access.exclusive`) for the whole call. If an exception ends it, such as one of a signal
handler, the next call returns what it had taken.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, Message

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._membership.access import SLICE, AccessGuard, exclusive, never
from groupwright.consumer._membership.group_membership import GroupMembership
from groupwright.consumer._membership.handle import Native
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.prefetch import PrefetchBuffer

CALM_SLICE = 0.2
"""As `SLICE`, while all is calm. confluent-kafka's `poll` wakes as often, to serve signals."""
_CALM_AFTER = 1.0
"""Seconds without anything due, in a settled group, after which all is calm."""
_ANSWERED_WITHIN = 0.01
"""Seconds after a heartbeat within which a coordinator nearby has answered it."""

_Fetch = Callable[[list[Message], int, float], None]
"""Takes messages into `PrefetchBuffer.taken` until it has so many, or for so many seconds."""


class Polling(confluent_kafka.Consumer):
    """The part of a `Consumer` that polls."""

    # Looked up once for each class: `super()` costs 100 ns a poll. A class with other bases gets their
    # methods.
    _native_poll: Callable[..., Message | None] = Native.poll
    _native_consume: Callable[..., list[Message]] = Native.consume
    _on_native_error: Callable[[KafkaError], None] | None = None
    """Called with the errors that librdkafka returns, if they may be about the membership."""

    _consumer_config: ConsumerConfig
    _guard: AccessGuard
    _interceptors: InterceptorChain
    _member: GroupMembership
    _prefetch: PrefetchBuffer
    _calm_from = 0.0
    """Monotonic time, in seconds, until which something was due lately."""

    @exclusive
    def _poll(self, deadline: float) -> Message | None:
        """Return the next message that there is before a monotonic time, in seconds."""
        return self._take(1, deadline, True)  # type: ignore[no-any-return] # noqa: FBT003 - a message or None

    @exclusive
    def _consume(self, num_messages: int, deadline: float) -> list[Message]:
        """Return up to `num_messages` messages that there are before a monotonic time, in seconds."""
        return self._take(num_messages, deadline, False)  # type: ignore[no-any-return] # noqa: FBT003 - a list

    def _take(self, most: int, deadline: float, is_poll: bool) -> Any:  # noqa: C901, FBT001 - a call saved is 50 ns
        """Return up to `most` messages as a list, or one or None for `poll`.

        Nothing is called once they are no longer kept here: a signal handler that raises after a call would
        lose them.
        """
        guard, prefetch = self._guard, self._prefetch
        taken: list[Message] = []
        if prefetch.taken:
            self._put_back_former()
        outer, prefetch.taken = prefetch.taken, taken
        append = fetch = self._fetch if is_poll else self._gather
        is_served = False
        try:
            while True:
                now, holds = monotonic(), False
                if taken or now >= guard.fast_path_until:
                    error = self._serve(taken)
                    if error is not None:
                        prefetch.error = None
                        return error if is_poll else [error]
                    now, append, is_served = monotonic(), fetch, True
                    holds = (taken and self._must_return()) or self._member.hold(min(SLICE, deadline - now))
                remaining, slice_ = deadline - now, min(CALM_SLICE, max(SLICE, guard.calm_until - now))
                if SLICE < slice_ > remaining - SLICE:
                    slice_ = min(
                        CALM_SLICE, remaining
                    )  # else a wake-up more, a moment before the end of each call
                if not holds:
                    append(taken, most, max(0.0, min(slice_, remaining)))
                    taken = prefetch.taken
                guard.last = ended = monotonic()
                guard.inside_seconds += ended - now
                if ended >= guard.fast_path_until and (
                    prefetch.pauses_changed or self._member.session_expired
                ):
                    # Messages that were held come first; or other members may own these partitions.
                    prefetch.put_back(taken)
                if not taken:
                    if ended >= guard.calm_until:
                        guard.calm_until = self._calm_until(ended)
                    append = self._fetch_one if is_poll else fetch
                over = remaining <= slice_ or (guard.abandoned is not never and guard.abandoned())
                if over or len(taken) >= most or (taken and self._must_return()):
                    # With interceptors, every call serves first.
                    shown = self._interceptors.on_consume(taken) if is_served else taken
                    if shown or over:
                        prefetch.taken = outer
                        return shown if not is_poll else shown[0] if shown else None
                    taken.clear()  # interceptors have removed them all
        except BaseException:
            guard.fast_path_until = 0.0  # without a call, before which another exception may come
            self._put_back(prefetch.taken)
            raise

    def _calm_until(self, now: float) -> float:
        """Return the monotonic time until which all is calm: native calls before it last for `CALM_SLICE`.

        A wake-up costs 70 to 300 us of processor time, since the caches are cold, and is most of what an idle
        member costs. The members of a calm group learn of a rebalance from the responses to heartbeats,
        seconds apart, so one call ends after each heartbeat, and one at what is due at a known time.
        """
        if now < self._calm_from:
            return 0.0
        return min(self._member.calm_until + _ANSWERED_WITHIN, self._guard.fast_path_until)

    def _must_return(self) -> bool:
        """Return whether to return the messages first: what is due may revoke their partitions, or raise."""
        guard = self._guard
        return guard.closing or guard.woken or guard.must_yield or self._member.ends_batch

    # --- Serving ------------------------------------------------------------------------------------

    def _serve(self, taken: list[Message]) -> Message | None:
        """Do what is due, except for what ends a batch if messages are taken already.

        Return an error that poll returns instead.
        """
        with self._guard.timed():
            if not taken:
                return self._serve_all()
            self._serve_within_batch()
            return None

    def _serve_all(self) -> Message | None:
        guard, prefetch = self._guard, self._prefetch
        was_woken = guard.fast_path_until == 0.0
        guard.wake()
        guard.last = now = monotonic()
        if was_woken:
            self._calm_from, guard.calm_until = now + _CALM_AFTER, 0.0
        guard.yield_to_waiters()
        guard.yield_exclusive()
        guard.check_not_closing()
        guard.check_not_woken()
        message = prefetch.error
        if message is None:
            message = self._member.serve(self)
        if prefetch.pauses_changed:
            prefetch.apply_pauses()
        self._seek_dropped()
        if message is None:
            self._open_fast_path()
        return message

    def _serve_within_batch(self) -> None:
        self._guard.yield_to_waiters()
        if monotonic() >= self._guard.fast_path_until:
            self._guard.wake()
            self._member.serve_within_batch(self)
            if self._prefetch.pauses_changed:
                self._prefetch.apply_pauses()
            self._open_fast_path()

    def _open_fast_path(self) -> None:
        if not self._interceptors:
            self._guard.open_fast_path(self._member.fast_path_until, self._is_due)

    def _is_due(self) -> bool:
        return self._member.due or self._prefetch.pauses_changed

    # --- Fetching -----------------------------------------------------------------------------------

    def _fetch(self, taken: list[Message], _most: int, timeout: float) -> None:
        """Append the next message, prefetched or not."""
        self._prefetch.next(taken, self._native_consume, self._guard.last)
        if not taken:
            self._fetch_one(taken, 1, timeout)

    def _fetch_one(self, taken: list[Message], _most: int, timeout: float) -> None:
        """Append librdkafka's next message, if there is one within `timeout` seconds."""
        polled: list[Any] = taken
        try:
            polled.extend(map(self._native_poll, (timeout,)))  # one call, as in `PrefetchBuffer._fill`
            if polled[0] is None:
                del polled[0]
                return
            self._prefetch.record(taken[0])
            if self._on_native_error is not None:
                self._report_native_errors(taken)
        except BaseException:
            if not polled:
                self._prefetch.cut_short = True
            elif polled[0] is None:
                del polled[0]
            raise

    def _gather(self, taken: list[Message], most: int, timeout: float) -> None:
        """Append messages until there are `most`, or for `timeout` seconds."""
        before = len(taken)
        self._prefetch.gather(most - before, self._native_consume, timeout)
        if self._on_native_error is not None:
            self._report_native_errors(self._prefetch.taken[before:])

    def _report_native_errors(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is not None and self._on_native_error is not None:
                self._on_native_error(error)

    # --- After an exception -------------------------------------------------------------------------

    def _put_back(self, messages: list[Message]) -> None:
        """Have the next call return these messages, because an exception or a cancellation ends this one."""
        if self._consumer_config.broker_assigned:
            # librdkafka's own membership may revoke their partitions, and has counted them as consumed.
            messages.clear()
        else:
            self._guard.wake()
            self._prefetch.put_back(messages)
            self._seek_dropped()

    def _put_back_former(self) -> None:
        """Put back what a call has taken that an exception has ended, and another one its `_put_back`."""
        if not self._consumer_config.broker_assigned:
            self._prefetch.put_back(self._prefetch.taken)

    def _seek_dropped(self) -> None:
        """Have messages fetched again that an interrupted native call dropped.

        If another exception interrupts this, the next call that is not on the fast path completes it.
        """
        if self._prefetch.cut_short:
            assigned = Native.assignment(self)
            positions = Native.position(self, assigned)
            targets = self._prefetch.seek_targets(positions)
            if any(partition.offset < 0 for partition in targets):
                # librdkafka cannot seek to a committed offset. One call, so that no exception of a signal
                # handler leaves partitions unassigned.
                Native.assign(self, self._prefetch.restarts(assigned, positions))
            else:
                for partition in targets:
                    Native.seek(self, partition)
            self._prefetch.cut_short = False
