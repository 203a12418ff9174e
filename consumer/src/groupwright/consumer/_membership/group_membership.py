"""What a `Consumer` asks of its membership, whichever of the two kinds it is."""

from collections.abc import Callable
from typing import Any, Protocol

import confluent_kafka
from confluent_kafka import Message, TopicPartition

from groupwright.consumer._membership.callbacks import RebalanceCallback
from groupwright.consumer._protocol.model import GroupMembershipOperation, TopicPartitionKey
from groupwright.consumer._protocol.rebalance import Listeners
from groupwright.core import MembershipSnapshot

Native = confluent_kafka.Consumer
"""The methods of librdkafka's handle, to be called with a consumer: those of its class are overridden."""


class GroupMembership(Protocol):
    """A membership: Groupwright's own (`ClassicMembership`) or librdkafka's (`LibrdkafkaMembership`).

    It is given the consumer with each call, and does not keep it, so that a consumer which is dropped can be collected.
    `commit`, `store_offsets`, `pause` and `resume` are for any thread, and so are the properties; the rest is for the one
    that polls.
    """

    listeners: Listeners

    @property
    def native_config(self) -> dict[str, Any]:
        """What librdkafka's handle is made with. It may hold a password: nothing keeps it."""

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership at this moment; any thread may ask, and no poll waits for it."""

    @property
    def in_callback(self) -> bool:
        """Whether a rebalance callback is running."""

    @property
    def session_expired(self) -> bool:
        """Whether other members may own this one's partitions by now; asked before messages are handed out."""

    @property
    def due(self) -> bool:
        """Whether anything waits to be served; asked while messages are in hand."""

    @property
    def fast_path_until(self) -> float:
        """Monotonic time until which nothing will have to be served, unless `due` says so."""

    def start(self) -> Callable[[], None]:
        """Begin, once the handle is made; return what ends it when the consumer was dropped without `close`.

        That may refer to nothing that refers to the consumer.
        """

    def serve(self, consumer: Any) -> Message | None:
        """Do what is due before messages are handed out; return an error to hand out instead."""

    def hold(self, seconds: float) -> bool:
        """Wait instead of polling, if nothing may be delivered now; return whether that is so."""

    def take_error(self) -> BaseException | None:
        """Return what a callback has raised, once."""

    def subscribe(
        self,
        consumer: Any,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Be a member with this subscription."""

    def enforce_rebalance(self, reason: str) -> None:
        """Have the next poll join the group anew.

        Raises:
            ConsumerError: There is no subscription, or the membership cannot do it.
        """

    def unsubscribe(self, consumer: Any) -> None:
        """Be no member."""

    def assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Replace the assignment."""

    def unassign(self, consumer: Any) -> None:
        """Give all up."""

    def incremental_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Add partitions."""

    def incremental_unassign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Take partitions out."""

    def assignment(self, consumer: Any) -> list[TopicPartition]:
        """Return what is assigned; any thread may ask."""

    def pause(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Stop delivering partitions."""

    def resume(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Deliver partitions again."""

    def paused(self, consumer: Any) -> list[TopicPartition]:
        """Return the assigned partitions that are paused; any thread may ask."""

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return where a partition was last sought since it was assigned; None if that is not known."""

    def seek(self, consumer: Any, partition: TopicPartition) -> None:
        """Go on at another offset."""

    def commit(
        self,
        consumer: Any,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit."""

    def await_commits(self, seconds: float) -> None:
        """Wait until commits under way have ended, at most so many seconds; for any thread."""

    def store_offsets(
        self, consumer: Any, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store offsets for a later commit."""

    def member_id(self, consumer: Any) -> str | None:
        """Return the member id, None outside of a group."""

    def group_metadata(self, consumer: Any) -> bytes:
        """Return the metadata for a transaction."""

    def set_sasl_credentials(self, consumer: Any, username: str, password: str) -> None:
        """Authenticate with these from now on."""

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Check that the member can close so.

        Raises:
            ConsumerError: It cannot.
        """

    def leave(self, consumer: Any, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, give everything up, and leave the group or stay in it; by `timeout` seconds."""

    def stop(self) -> None:
        """End all that runs in the background."""
