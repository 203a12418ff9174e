"""Observers of members with the consumer's real code: what happens to them, as their applications see it."""

from typing import Protocol

from groupwright.core import TopicPartitionKey as Key
from integration_tests.simulation.records import Member


class Observer(Protocol):
    """Receives what happens to members, as their applications see it."""

    def assigned(self, member: Member, partitions: list[Key]) -> None:
        """`on_assign` is called."""

    def revoked(self, member: Member, partitions: list[Key], *, lost: bool) -> None:
        """`on_revoke` or `on_lost` has returned."""

    def delivered(
        self, member: Member, topic_id: int, key: Key, offset: int, *, paused: bool = False
    ) -> None:
        """A message was returned."""

    def reached_end(self, member: Member, key: Key, offset: int, *, paused: bool) -> None:
        """The end of a partition was returned."""

    def sought(self, member: Member, key: Key, offset: int) -> None:
        """The application has sought."""

    def moved(self, member: Member, key: Key, offset: int) -> None:
        """A late response to librdkafka's own ListOffsets has moved a partition."""

    def start_of(self, key: Key) -> int:
        """Return an offset below which everything was delivered, as an application may store it itself."""

    def asked(self, member: Member, offsets: dict[Key, int] | None = None) -> None:
        """The application asks for an asynchronous commit of these offsets, or of all consumed ones."""

    def committed_unknown(self, member: Member, error: str | None, duration: int) -> None:
        """A synchronous commit of a topic that does not exist has ended, after so many microseconds."""

    def committed(self, member: Member, offsets: dict[Key, int], error: str | None) -> None:
        """`on_commit` was called, or a synchronous commit has returned."""

    def stopped(self, member: Member, duration: int) -> None:
        """The member's process is stopped for so many microseconds from now on."""

    def was_busy(self, member: Member, since: int) -> None:
        """A member that commits automatically has not polled since then, for longer than its interval."""

    def is_replaced(self, member: Member) -> bool:
        """Return whether another process has taken the member's `group.instance.id`."""

    def broken(self, member: Member, guarantee: str, detail: str) -> None:
        """A call has broken a guarantee."""

    def must_return(self, member: Member, why: str, since: int | None = None) -> None:
        """The member must call `on_revoke` or `on_lost` before it gets a message of what it owns now.

        If the group has rebalanced `since` then, nothing is expected.
        """

    def call_never_ended(self, member: Member) -> None:
        """A call of another thread still waits, long after the consumer was closed."""

    def forked(self, member: Member, wrongs: str) -> None:
        """The process has forked, and its child has done these wrongs."""

    def said(self, member: Member, words: str) -> None:
        """Something else happened, for the story."""

    def closed(self, member: Member, error: str | None) -> None:
        """`close` has returned, or the application has ended with an error."""


class HandObserver(Observer, Protocol):
    """Also receives changes of the assignment."""

    def refusals(self, member: Member) -> int:
        """Return how many commits the coordinator has refused because it does not know the member."""

    def changed(self, member: Member, removed: list[Key], starts: dict[Key, int | None]) -> None:
        """The application has removed partitions, and then assigned some at these offsets.

        None is for the committed offset.
        """
