"""Checks of guarantees about single calls of the consumer, which its application alone can see."""

from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_STORED, KafkaError, KafkaException, TopicPartition

from groupwright.core import RebalanceListener
from groupwright.testing._simulation.scheduler import SECOND
from integration_tests.simulation.records import CheckedMember

if TYPE_CHECKING:
    from groupwright.core.rebalance import Partitions

_SLACK = SECOND
"""Time in which the network thread, and the process, take note of an exceeded interval."""
_WITHOUT_PARTITIONS = frozenset({KafkaError._NO_OFFSET, KafkaError._ASSIGNMENT_LOST, KafkaError._FATAL})
"""Errors of a commit that has not begun."""


class Counts(RebalanceListener):
    """Counts partitions that were lost, for listeners and for callbacks."""

    def __init__(self) -> None:
        """Start with none."""
        self.heard = 0
        self.called = 0

    def partitions_lost(self, partitions: "Partitions", seconds: float) -> None:
        """Count them."""
        del seconds
        self.heard += sum(map(len, partitions.values()))


class CallChecks:
    """Checks of one member's calls."""

    def __init__(self, member: CheckedMember, max_poll_interval: int) -> None:
        """Begin before the first poll."""
        self.lost = Counts()
        self._member = member
        self._max_poll_interval = max_poll_interval
        self._left_at: int | None = None
        """When the last poll ended."""
        self._stops = 0
        self._stops_before = 0
        self.is_interrupted = False
        """True if an exception has ended the last poll, which may have left an assignment half applied."""
        self._was_stopped = False
        """True if the process was stopped within a poll since an interval was exceeded."""
        self._longest = 0
        """The longest time between two polls since an interval was exceeded."""

    @property
    def _now(self) -> int:
        return self._member.process.scheduler.now

    # --- Polls

    def poll_begins(self) -> None:
        """Check that a member that has not polled for too long owns nothing from before."""
        self._stops_before = self._member.process.stops
        # A poll that an exception has ended between both is completed by the next one.
        if self.lost.heard != self.lost.called and not self.is_interrupted:
            self._member.broken(
                "listeners get what callbacks get",
                f"{self.lost.heard} partitions lost for listeners, {self.lost.called} for on_lost",
            )
        if self._left_at is None:
            return
        idle = self._now - self._left_at
        self._longest = max(idle, self._longest)
        exceeded = idle > self._max_poll_interval + _SLACK and self._member.process.stops == self._stops
        # A rebalance restarts the interval. As in Java, it does not run while JoinGroup is under way.
        if exceeded and not self._member.is_in_round:
            self._member.must_return("max.poll.interval.ms is kept", self._left_at)

    def poll_ended(self) -> None:
        """Record the time, from which on the application is outside of polls."""
        self._left_at, self._stops = self._now, self._member.process.stops
        self._was_stopped |= self._stops != self._stops_before

    def poll_interval_exceeded(self) -> None:
        """Check that the application was outside of polls for so long."""
        if self._longest < self._max_poll_interval and not self._was_stopped:
            self._member.broken(
                "time in callbacks counts as polling",
                f"the interval counts as exceeded after {self._longest / SECOND:.3f} s without a poll",
            )
        self._longest, self._was_stopped = 0, False

    # --- Commits

    def commit_ended(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Check that a commit that has failed says of which partitions."""
        if error is None or error.code() in _WITHOUT_PARTITIONS or any(p.error for p in partitions):
            return
        self._member.broken(
            "a commit that fails names its partitions", f"{error.name()}, and no partition has an error"
        )

    def commit_returned(
        self, done: list[TopicPartition], before: set[tuple[str, int]], owned: set[tuple[str, int]]
    ) -> None:
        """Check that a synchronous commit without arguments returns all assigned partitions.

        Another thread that closes the consumer may have had some revoked meanwhile.
        """
        if not (self.is_interrupted or owned <= {(p.topic, p.partition) for p in done} <= before):
            self._member.broken(
                "a synchronous commit returns all assigned partitions", f"{done} of {sorted(owned)}"
            )

    def commit_lost(self, consumer: Any) -> None:
        """Commit in `on_lost`, and check the error."""
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            name = error.args[0].name()
        else:
            name = "no error"
        self.lost_commit_ended(name)

    def lost_commit_ended(self, name: str) -> None:
        """Check the error of a commit without arguments, made while the assignment is lost."""
        if name not in {"_ASSIGNMENT_LOST", "_FATAL"}:  # the latter if it was fenced
            self._member.broken("a commit of a lost assignment is refused as that", f"it ends with {name}")

    # --- The assignment

    def assignment_returned(self, assigned: list[TopicPartition], owned: set[tuple[str, int]]) -> None:
        """Check that `assignment` returns what is owned, at no other offsets than the application chose."""
        found = {(p.topic, p.partition): p.offset for p in assigned}
        if found != dict.fromkeys(owned, OFFSET_STORED) and not self.is_interrupted:
            self._member.broken("assignment() returns what the application has chosen", f"{found}")

    def change_wrongly(self, consumer: Any, owned: list[tuple[str, int]], *, cooperative: bool) -> None:
        """Call what only members of the other rebalance protocol may call."""
        partitions = [TopicPartition(*key) for key in owned]
        call = consumer.assign if cooperative else consumer.incremental_unassign
        try:
            call(partitions)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._STATE:
                return
            raise
        if not consumer._member.membership.fenced:  # a fenced member has no protocol any more
            self._member.broken(
                "calls of the other rebalance protocol are refused", f"{call.__name__} is not"
            )
