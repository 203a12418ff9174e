"""The timeouts that the members run with, and that the checker holds them to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; short ones, so that two minutes show much."""

    session: float = 4.0
    """``session.timeout.ms``. The broker must allow so little: `BROKER_SETTINGS`."""
    heartbeat: float = 0.3
    """``heartbeat.interval.ms``."""
    max_poll: float = 6.0
    """``max.poll.interval.ms``, which is also the time that the coordinator gives a rebalance."""
    silence: float = 7.5
    """How long a busy application does not poll."""
    poll: float = 0.2
    """The longest that a member's poll waits."""
    commit: float = 0.3
    """How often a member commits."""
    grace: float = 1.0
    """By how much clocks, scheduling and answers under way may shift what one process says of another."""

    @property
    def forgotten_after(self) -> float:
        """The least time after a process stops in which the coordinator may give its partitions away.

        The session runs from the last heartbeat, which was sent up to one interval before the stop.
        """
        return self.session - self.heartbeat - self.grace

    @property
    def expelled_after(self) -> float:
        """The least time without a poll after which a member may have left, or a rebalance gone on without it."""
        return self.max_poll - self.poll - self.heartbeat - self.grace


BROKER_SETTINGS = {"group.min.session.timeout.ms": 1000}
