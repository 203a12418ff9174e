"""The handle: the client that fetches, what the consumer needs of it, and the facts that it relies on.

All calls of librdkafka go through this module: its functions, and ``Native.seek(handle, partition)``. (The
`Consumer` is itself the handle, and overrides these methods.) A client that is to fetch in librdkafka's place
implements `Fetcher`, as the one of integration_tests/simulation does.

With the classic protocol, partitions are assigned by hand, without a native subscription. So the handle is in
no group for the broker, commits nothing, and has no ``max.poll.interval.ms``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.core import TopicPartitionKey


class Fetcher(Protocol):
    """What fetches, without a group.

    One thread at a time is inside a call, and another one may starve beside a thread that polls. After
    `close`, each call raises RuntimeError. Calls are local and short unless they say more.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Create a handle; after `close`, in the same object again."""

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next message of any assigned partition, or an error.

        The configuration's callbacks run inside, on this thread. No message of a partition is returned that
        was removed, sought or paused before. Signal handlers run within 200 ms.
        """

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return so many messages, or those that have come within `timeout` seconds.

        As `poll`, but signal handlers run at its end. If one raises, the batch is dropped, and positions are
        after it.
        """

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Replace the assignment.

        Retained partitions are fetched again. A duplicate is refused, and leaves nothing assigned.
        """

    def unassign(self) -> None:
        """Remove all partitions."""

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Add partitions, or refuse all if one is assigned already; the others go on without a gap.

        A partition starts at its offset; without one, at the group's committed offset, and without that at
        ``auto.offset.reset``. A look-up of "beginning" or "end" may end late, and then undoes a seek.
        """

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Remove partitions, or refuse all if one is not assigned. Their positions can still be read."""

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions with the offsets that they were assigned with, not their positions."""

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the offset after the last message that `poll` or `consume` has returned; 0.3 ms for 1,000.

        It is OFFSET_INVALID between an assignment or a seek and the first message. The topics are known from
        then on.
        """

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Return no more messages, also after the partition was removed and added again.

        Without effect on a topic that is not known. What was fetched is fetched again.
        """

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Undo `pause`."""

    def seek(self, partition: TopicPartition) -> None:
        """Continue at another offset.

        It is refused with ``_STATE`` while a committed offset is looked up, or while a former fetch of the
        partition ends; with ``_UNKNOWN_PARTITION`` if it is not assigned; and to OFFSET_STORED.
        """

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Ask the coordinator for the group's committed offsets."""

    def get_watermark_offsets(
        self,
        partition: TopicPartition,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 - confluent-kafka's signature
    ) -> tuple[int, int]:
        """Return the first offset and the end; if `cached`, as of the last fetch, without a request."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Request metadata; with a timeout of 0 the request is sent, and ``_TIMED_OUT`` raised."""

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Look up offsets; with a timeout of 0, as `list_topics`, which also requests the leaders."""

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Authenticate new connections with these."""

    def close(self) -> None:
        """End all threads and connections; no group is left, and nothing is committed."""


class Handle(Fetcher, Protocol):
    """librdkafka's handle, which with ``group.protocol=consumer`` is the member of the group, too."""

    def subscribe(self, *args: Any, **kwargs: Any) -> None: ...
    def unsubscribe(self) -> None: ...
    def commit(self, *args: Any, **kwargs: Any) -> Any: ...
    def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> None: ...
    def memberid(self) -> str | None: ...
    def consumer_group_metadata(self) -> bytes: ...


Native = cast("type[Handle]", confluent_kafka.Consumer)
"""The handle's class: ``Native.seek(handle, partition)`` calls its method, which `Consumer` overrides."""


def assigned_keys(handle: Handle) -> set[TopicPartitionKey]:
    """Return the assigned partitions."""
    return {(p.topic, p.partition) for p in Native.assignment(handle)}


def request_metadata(handle: Handle, topic: str | None = None) -> bool:
    """Make librdkafka request the metadata of a topic, or of all, now; return whether it has a broker to ask.

    This does not wait for the response, which would import confluent_kafka.admin (0.4 MB).
    """
    try:
        Native.list_topics(handle, topic, timeout=0)
    except KafkaException as error:
        # _TIMED_OUT: the request was sent.
        return bool(error.args[0].code() != KafkaError._TRANSPORT)  # noqa: SLF001 - librdkafka's public code
    return True


def request_leaders(handle: Handle, partitions: list[TopicPartition]) -> bool:
    """Make librdkafka request the leaders of new topics now; by itself it does so once a second.

    Return whether the request was sent.
    """
    try:
        Native.offsets_for_times(handle, partitions, timeout=0)
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's public code
    return True


def close_within(close: Callable[[], None], seconds: float) -> bool:
    """Close a handle, on a thread of its own; return whether that has ended in so many seconds.

    librdkafka can wait for the thread of a broker forever, without any error (its issues 4362 and 4519). An
    exception of a signal handler ends the wait alone.

    Raises:
        BaseException: What a callback has raised that librdkafka called meanwhile.
    """
    pending, raised, ended = [close], list[BaseException](), list[bool]()

    def run() -> None:
        try:
            taken = pending.pop()
        except IndexError:  # another thread has it
            return
        try:
            taken()
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)
        ended.append(True)

    try:
        if not sys.is_finalizing():
            thread = threading.Thread(target=run, name="groupwright-close", daemon=True)
            thread.start()
            thread.join(seconds)
    except RuntimeError as error:
        if "new thread" not in str(
            error
        ):  # Python starts no more: the interpreter ends, or there are too many
            raise
    finally:
        run()  # here, if the thread has not begun
    if raised:
        raise raised.pop()
    return bool(ended)
