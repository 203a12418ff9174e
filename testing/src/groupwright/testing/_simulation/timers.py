"""Timers by name: setting one again replaces it. Time is a number of milliseconds that callers pass."""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Timers(Generic[Name]):
    """Deadlines by name. Timers with the same deadline end in the order in which they were started."""

    __slots__ = ("_heap", "_running", "_started")

    def __init__(self) -> None:
        """Start without timers."""
        self._started = 0
        self._running: dict[Name, int] = {}
        # (deadline, order of start, name); an entry whose timer was cancelled or replaced is skipped.
        self._heap: list[tuple[int, int, Name]] = []

    def start(self, name: Name, deadline: int) -> None:
        """Start a timer, in place of the one with this name."""
        self._started += 1
        self._running[name] = self._started
        heapq.heappush(self._heap, (deadline, self._started, name))

    def cancel(self, name: Name) -> None:
        """Cancel a timer, if there is one."""
        self._running.pop(name, None)

    def next_deadline(self) -> int | None:
        """Return the earliest deadline."""
        while self._heap:
            deadline, started, name = self._heap[0]
            if self._running.get(name) == started:
                return deadline
            heapq.heappop(self._heap)
        return None

    def pop(self, now: int) -> tuple[Name, int] | None:
        """Remove the earliest timer that has ended by `now`, and return it with its deadline."""
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return None
        name = heapq.heappop(self._heap)[2]
        del self._running[name]
        return name, deadline
