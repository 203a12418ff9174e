"""Timeouts configured in the members and assumed by the checker."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; short, so that two minutes cover many rebalances."""

    session: float = 4.0
    """``session.timeout.ms``. The broker must allow a value this low: see `BROKER_SETTINGS`."""
    heartbeat: float = 0.3
    """``heartbeat.interval.ms``."""
    max_poll: float = 6.0
    """``max.poll.interval.ms``, which is also the rebalance timeout."""
    silence: float = 7.5
    """The time for which a busy application does not poll."""
    poll: float = 0.1
    """The timeout of each poll of a member of `groupwright.testing.groups`."""
    commit: float = 0.3
    """The interval between commits."""
    grace: float = 1.0
    """Tolerance for clocks, scheduling and responses in flight when two histories are compared."""

    @property
    def forgotten_after(self) -> float:
        """The shortest time after a process stops at which the coordinator may reassign its partitions.

        The session runs from the last heartbeat, which was sent up to one interval before the stop.
        """
        return self.session - self.heartbeat - self.grace

    @property
    def expelled_after(self) -> float:
        """The shortest time without a poll after which a member may have left or missed a rebalance."""
        return self.max_poll - self.poll - self.heartbeat - self.grace


BROKER_SETTINGS = {"group.min.session.timeout.ms": 1000}
