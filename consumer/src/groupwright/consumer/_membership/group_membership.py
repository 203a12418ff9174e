"""`GroupMembership`: the interface of both memberships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from confluent_kafka import Message, TopicPartition

from groupwright.consumer._membership.callbacks import Failures, RebalanceCallback
from groupwright.consumer._membership.handle import Handle
from groupwright.consumer._membership.listeners import Listeners
from groupwright.consumer._protocol.model import GroupMembershipOperation
from groupwright.core import MembershipSnapshot, TopicPartitionKey


class GroupMembership(Protocol):
    """A membership: Groupwright's own (`ClassicMembership`) or librdkafka's (`LibrdkafkaMembership`).

    Each call passes the handle, which is the consumer itself. The membership keeps no reference to it, so
    that a consumer that is dropped without `close` can be collected. Any thread may call `commit`,
    `store_offsets`, `pause` and `resume`, and read the properties. The rest is for the polling thread.
    """

    listeners: Listeners
    failures: Failures
    """Exceptions of callbacks; the next `serve` raises the oldest one."""

    @property
    def native_config(self) -> dict[str, Any]:
        """Configuration of librdkafka's handle. It may contain a password, so nothing keeps it."""

    @property
    def snapshot(self) -> MembershipSnapshot:
        """State of the membership at this moment; any thread may read it, which delays no poll."""

    @property
    def in_callback(self) -> bool:
        """True if a rebalance callback is running."""

    @property
    def session_expired(self) -> bool:
        """True if other members may own the partitions by now; read before messages are returned."""

    @property
    def calm_until(self) -> float:
        """Monotonic time in seconds until which no event is expected; past while one may come at any time."""

    @property
    def due(self) -> bool:
        """True if `serve` has anything to do; read before prefetched messages are returned."""

    @property
    def ends_batch(self) -> bool:
        """True if `serve` would revoke or assign partitions, return an error, or raise.

        `consume` first returns the messages that it has.
        """

    @property
    def fast_path_until(self) -> float:
        """Monotonic time in seconds until which `serve` has nothing to do, unless `due`."""

    def start(self, handle: Handle) -> Callable[[], None]:
        """Start, after the handle was created; return the finalizer of a consumer that is not closed.

        The finalizer must not refer to the consumer, not even indirectly.
        """

    def serve(self, handle: Handle) -> Message | None:
        """Apply events and due commits before messages are returned.

        Return an error that poll returns instead.
        """

    def serve_within_batch(self, handle: Handle) -> None:
        """Do what is due while `consume` has messages to return, except for what `ends_batch`."""

    def hold(self, seconds: float) -> bool:
        """Wait up to `seconds` instead of polling if no message may be returned now.

        Return whether it did.
        """

    def subscribe(
        self,
        handle: Handle,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Join the group with this subscription."""

    def enforce_rebalance(self, reason: str) -> None:
        """Have the next poll rejoin the group.

        Raises:
            ConsumerError: There is no subscription, or the membership cannot do it.
        """

    def unsubscribe(self, handle: Handle) -> None:
        """Leave the group."""

    def assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Replace the assignment."""

    def unassign(self, handle: Handle) -> None:
        """Remove all partitions."""

    def incremental_assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Add partitions."""

    def incremental_unassign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Remove partitions."""

    def assignment(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions; for any thread."""

    def pause(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Stop returning messages of partitions."""

    def resume(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Return messages of partitions again."""

    def paused(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions that are paused; for any thread."""

    def on_position_read(self, partitions: list[TopicPartition]) -> None:
        """Record that librdkafka was asked for positions; for any thread."""

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return the offset of the last seek of a partition since its assignment; None if unknown."""

    def seek(self, handle: Handle, partition: TopicPartition) -> None:
        """Continue at another offset."""

    def commit(
        self,
        handle: Handle,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit."""

    def measure_work(self, working: Callable[[], Sequence[Message]]) -> None:
        """Measure processing times of the messages that `working` returns, instead of those polled last."""

    def await_commits(self, seconds: float) -> None:
        """Wait until commits in flight have ended, for `seconds` at most; for any thread."""

    def store_offsets(
        self, handle: Handle, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store offsets for a later commit."""

    def member_id(self, handle: Handle) -> str | None:
        """Return the member id, None outside of a group."""

    def group_metadata(self, handle: Handle) -> bytes:
        """Return the metadata for a transaction."""

    def set_sasl_credentials(self, handle: Handle, username: str, password: str) -> None:
        """Authenticate with these credentials from now on."""

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Check that the membership can leave in this way.

        Raises:
            ConsumerError: It cannot.
        """

    def leave(self, handle: Handle, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, revoke all partitions, and leave the group or stay in it.

        It waits for `timeout` seconds at most, beside the time in callbacks.
        """

    def close_handle(self, close: Callable[[], None], seconds: float) -> bool:
        """Close librdkafka's handle, after `stop`; return False if that has not ended in so many seconds."""

    def stop(self) -> None:
        """End the background threads."""
