"""Virtual time: one scheduler for everything that happens in a simulation, and processes that can be stopped.

Times are integers in microseconds. Nothing here reads a clock, and all randomness comes from streams that are
derived from the seed by name. So a simulation with the same seed runs the same way, to the bit.
"""

import heapq
import random
from collections.abc import Callable

MS = 1_000
SECOND = 1_000_000

Action = Callable[[], object]


class Event:
    """An action at a time; `cancel` drops it."""

    __slots__ = ("action", "process", "when")

    def __init__(self, when: int, action: Action, process: "Process | None" = None) -> None:
        """Create an event that runs `action` at `when`, in a process or outside of all."""
        self.when = when
        self.process = process
        self.action: Action | None = action
        """None once it has run, or was dropped."""

    def cancel(self) -> None:
        """Drop the action; no effect if it has run."""
        self.action = None


class Scheduler:
    """Runs actions in order of their times; actions of the same time run in the order of their scheduling."""

    def __init__(self, seed: object) -> None:
        """Start at time 0."""
        self.now = 0
        """Present time in microseconds."""
        self.events_run = 0
        self.after_event: Action = _nothing
        """Called after each event, for checks."""
        self._seed = seed
        self._scheduled = 0
        self._heap: list[tuple[int, int, Event]] = []

    def stream(self, name: str) -> random.Random:
        """Return the random numbers of this name, which no other name's consumption changes."""
        return random.Random(f"{self._seed}/{name}")  # noqa: S311 - a simulation needs no secrets

    def call_at(self, when: int, action: Action, process: "Process | None" = None) -> Event:
        """Run `action` at `when`, or now if that has passed; see `Process.call_at` for a process."""
        when = max(when, self.now)
        event = Event(when, action, process)
        self._scheduled += 1
        heapq.heappush(self._heap, (when, self._scheduled, event))
        return event

    def repeat(self, event: Event) -> None:
        """Run an event that was held back."""
        self._scheduled += 1
        heapq.heappush(self._heap, (max(event.when, self.now), self._scheduled, event))

    def call_in(self, delay: int, action: Action) -> Event:
        """Run `action` after `delay` microseconds."""
        return self.call_at(self.now + delay, action)

    def run_until(self, end: int) -> None:
        """Run all events up to the time `end`, and end there."""
        heap = self._heap
        while heap and heap[0][0] <= end:
            when, _, event = heapq.heappop(heap)
            action, process = event.action, event.process
            if action is None or (process is not None and process.holds_back(event)):
                continue
            event.action = None
            self.now = when
            self.events_run += 1
            action()
            self.after_event()
        self.now = max(self.now, end)


class Process:
    """A process: its actions wait while it is stopped (SIGSTOP), and are dropped once it is dead."""

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        """Start a process that runs."""
        self.name = name
        self.scheduler = scheduler
        self.alive = True
        self.stopped = False
        self._waiting: list[Event] = []
        self._stops = 0

    def call_at(self, when: int, action: Action) -> Event:
        """Run `action` at `when`, or once the process runs again; never if it is dead by then."""
        return self.scheduler.call_at(when, action, self)

    def call_in(self, delay: int, action: Action) -> Event:
        """Run `action` after `delay` microseconds; see `call_at`."""
        return self.scheduler.call_at(self.scheduler.now + delay, action, self)

    def holds_back(self, event: Event) -> bool:
        """Return whether an event does not run now: the process is stopped, or dead."""
        if self.stopped:
            self._waiting.append(event)
        return self.stopped or not self.alive

    def stop(self, duration: int) -> None:
        """Stop the process for `duration` microseconds, counted anew if it is stopped already."""
        if not self.alive:
            return
        self.stopped = True
        self._stops += 1
        stop = self._stops
        self.scheduler.call_in(duration, lambda: self._resume(stop))

    def kill(self) -> None:
        """End the process at once, as SIGKILL does."""
        self.alive = self.stopped = False
        self._waiting.clear()

    def _resume(self, stop: int) -> None:
        if stop != self._stops or not self.alive:
            return  # another stop has begun meanwhile
        self.stopped = False
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self.scheduler.repeat(event)


def _nothing() -> None:
    """Do nothing."""
