"""The application of a simulated consumer: it polls, processes for a while, and polls again."""

from collections.abc import Callable

from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.scheduler import Event, Process

Action = Callable[[], object]


class ModelApplication:
    """An application, which stays in `poll` until it has messages to process."""

    def __init__(
        self, process: Process, settings: MemberSettings, *, on_poll: Action, on_poll_timeout: Action
    ) -> None:
        """Create an application that polls.

        Args:
            process: Its process.
            settings: The consumer's settings.
            on_poll: Called at each poll; it calls `run_waiting`, unless the consumer closes.
            on_poll_timeout: Called when `max.poll.interval.ms` has passed without a poll.
        """
        self.is_polling = True
        self._process = process
        self._settings = settings
        self._on_poll = on_poll
        self._on_poll_timeout = on_poll_timeout
        self._random = process.scheduler.stream(f"{process.name}/processing")
        self._next_poll: Event | None = None
        self._last_poll = 0
        self._waiting: list[Action] = []

    def process_batch(self) -> None:
        """Process the messages that `poll` has returned."""
        low, high = self._settings.processing
        self.process_for(low + int(self._random.random() * (high - low)))

    def process_for(self, duration: int) -> None:
        """Process for `duration` microseconds from now on, without a poll."""
        if self._next_poll is not None:
            self._next_poll.cancel()
        self.is_polling = False
        self._last_poll = self._process.scheduler.now
        poll = self._next_poll = self._process.call_in(duration, self._poll)
        limit = self._settings.max_poll_interval
        if duration > limit:
            self._process.call_in(limit, lambda: self._next_poll is poll and self._on_poll_timeout())

    def when_polling(self, action: Action) -> None:
        """Do something now if the application polls, or at its next poll."""
        if self.is_polling:
            action()
        else:
            self._waiting.append(action)

    def stop(self) -> None:
        """Poll no longer, and drop what waits for a poll."""
        self._waiting.clear()
        if self._next_poll is not None:
            self._next_poll.cancel()

    def _poll(self) -> None:
        self._next_poll = None
        if self._process.scheduler.now - self._last_poll > self._settings.max_poll_interval:
            self._on_poll_timeout()  # the process was stopped meanwhile, or has processed for too long
        self.is_polling = True
        self._on_poll()

    def run_waiting(self) -> None:
        """Do what waits for a poll."""
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()
