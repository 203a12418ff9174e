"""Pace of a member: a set time for each message."""

import time
from collections.abc import Callable


class Pacer:
    """Spends a set time on each message, however long the client takes to deliver it.

    The time of a message begins at the end of the previous one, so that it includes the client's own work and
    sleeps that are too long. After a wait for a message, it begins up to `slack` before the message arrived.
    """

    def __init__(
        self,
        service: float,
        slack: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create a pacer.

        Args:
            service: Seconds for each message.
            slack: Seconds that a member may catch up.
            clock: Returns the time in seconds.
            sleep: Waits for some seconds.
        """
        self._service = service
        self._slack = slack
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0

    def serve(self) -> None:
        """Return when the time of the message is over."""
        self._free_at = max(self._free_at, self._clock() - self._slack) + self._service
        left = self._free_at - self._clock()
        if left > 0:
            self._sleep(left)
