"""Callbacks about a consumer's rebalances and commits."""

from groupwright.core.rebalance import Partitions, Rebalance


class RebalanceListener:
    """Receives a consumer's rebalances and commits. Subclass it, and override the methods of interest.

    The consumer calls it on the thread that polls. An exception that a method raises is logged and goes no further.
    """

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were assigned; `seconds` is the time that the application's callback took, 0 without one."""

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were revoked; `seconds` as in `partitions_assigned`."""

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were lost, so that other members may own them already; `seconds` as in `partitions_assigned`."""

    def rebalanced(self, rebalance: Rebalance) -> None:
        """A rebalance has ended."""

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit has ended. A synchronous commit calls this on its own thread.

        Args:
            seconds: How long it took; None if not known.
            error: Name of the error that it failed with; None if it succeeded.
        """
