"""Callbacks about a consumer's rebalances, commits and load checks."""

from __future__ import annotations

from groupwright.core.load import LoadCheckResult
from groupwright.core.rebalance import Partitions, Rebalance


class RebalanceListener:
    """Receives a consumer's rebalances, commits and load checks. Subclass it, and override methods.

    The consumer calls it on the polling thread. A plain confluent-kafka consumer that is instrumented also
    calls `rebalanced` on a thread that reads its `membership_snapshot`, such as one that serves a scrape. An
    exception that a method raises is logged, and does not propagate.
    """

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were assigned; `seconds` is the duration of the application's callback, or 0."""

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were revoked; `seconds` as in `partitions_assigned`."""

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were lost, and may have other owners already; `seconds` as in `partitions_assigned`."""

    def rebalanced(self, rebalance: Rebalance) -> None:
        """A rebalance has ended."""

    def load_checked(self, result: LoadCheckResult) -> None:
        """This member, as the group's leader, has checked the load (``load.check.interval.ms``).

        If the outcome is REBALANCED, the rebalance follows. A check that another rebalance overtakes is not
        reported.
        """

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit has ended. A synchronous commit calls this on its own thread.

        Args:
            seconds: Its duration; None if unknown.
            error: The name of its error; None if it succeeded.
        """
