"""librdkafka's own membership (``group.protocol=consumer``, KIP-848): the broker assigns, librdkafka does the rest."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer.callbacks import Failures, RebalanceCallback, guard_native_callbacks, guarded
from groupwright.consumer.config import ConsumerConfig
from groupwright.consumer.interceptors import Interceptors
from groupwright.consumer.log import GroupLog
from groupwright.consumer.member import Native
from groupwright.consumer.polling_thread import PollingThread
from groupwright.consumer.rebalance import Listener

_FOREVER = float("inf")


class NativeMember:
    """A `Member` that is librdkafka's. What librdkafka does not tell (phases, generations) no listener hears."""

    def __init__(
        self,
        config: ConsumerConfig,
        polling: PollingThread,
        interceptors: Interceptors,
        log: GroupLog,
    ) -> None:
        """Prepare the configuration of the handle."""
        self.listeners: list[Listener] = []
        self.in_callback = False
        self._failures = Failures()
        self._polling = polling
        self._interceptors = interceptors
        self._log = log
        self._on_commit = config.on_commit
        native = guard_native_callbacks(config.native, self._note)
        if self._on_commit is not None or interceptors:
            native["on_commit"] = guarded(self._committed, self._note)
        self.native_config = native

    # --- Running ------------------------------------------------------------------------------------

    def start(self) -> Callable[[], None]:
        """Start nothing: librdkafka's threads run, and end with its handle."""
        return _nothing

    def stop(self) -> None:
        """End nothing: closing the handle does."""

    @property
    def due(self) -> bool:
        """Whether what a callback raised waits to be raised."""
        return self._failures.error is not None

    @property
    def quiet_until(self) -> float:
        """All is served inside librdkafka's poll."""
        return _FOREVER

    def serve(self, _consumer: Any) -> Message | None:
        """Raise what a callback raised."""
        error = self.take_error()
        if error is not None:
            raise error
        return None

    def hold(self, _seconds: float) -> bool:
        """Hold nothing back."""
        return False

    def take_error(self) -> BaseException | None:
        """Return what a callback has raised, once."""
        return self._failures.take()

    def _note(self, error: BaseException) -> None:
        self._failures.note(error)
        self._polling.disturb()

    # --- The application's wishes -------------------------------------------------------------------

    def subscribe(
        self,
        consumer: Any,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Subscribe natively, with the listeners told beside the callbacks."""
        assigned = self._told(on_assign, lambda listener: listener.partitions_assigned)
        revoked = self._told(on_revoke, lambda listener: listener.partitions_revoked)
        # As in librdkafka: without on_lost, on_revoke hears of lost partitions too.
        lost = self._told(on_lost or on_revoke, lambda listener: listener.partitions_lost)
        Native.subscribe(consumer, topics, on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def unsubscribe(self, consumer: Any) -> None:
        """Unsubscribe natively."""
        Native.unsubscribe(consumer)

    def assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Assign natively."""
        Native.assign(consumer, partitions)

    def unassign(self, consumer: Any) -> None:
        """Unassign natively."""
        Native.unassign(consumer)

    def incremental_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Add natively."""
        Native.incremental_assign(consumer, partitions)

    def incremental_unassign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Take out natively."""
        Native.incremental_unassign(consumer, partitions)

    def pause(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Pause natively."""
        with self._polling.beside():
            Native.pause(consumer, partitions)

    def resume(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Resume natively."""
        with self._polling.beside():
            Native.resume(consumer, partitions)

    def commit(
        self,
        consumer: Any,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit natively, with the member's epoch."""
        given = {"message": message, "offsets": offsets}
        wanted: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        with self._polling.beside():
            commit: Callable[..., list[TopicPartition] | None] = Native.commit
            committed = commit(consumer, asynchronous=asynchronous, **wanted)
        if committed and self._interceptors:
            self._interceptors.on_commit(_stored(committed))
        return committed

    def store_offsets(
        self, consumer: Any, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store natively."""
        given = {"message": message, "offsets": offsets}
        wanted: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        with self._polling.beside():
            Native.store_offsets(consumer, **wanted)

    def member_id(self, consumer: Any) -> str | None:
        """Return the id that librdkafka chose."""
        with self._polling.beside():
            return Native.memberid(consumer)

    def group_metadata(self, consumer: Any) -> bytes:
        """Return librdkafka's metadata."""
        with self._polling.beside():
            metadata: bytes = Native.consumer_group_metadata(consumer)
            return metadata

    def set_sasl_credentials(self, consumer: Any, username: str, password: str) -> None:
        """Hand them to librdkafka."""
        with self._polling.beside():
            Native.set_sasl_credentials(consumer, username, password)

    def leave(self, _consumer: Any, _timeout: float) -> None:
        """Leave it to the handle's close."""

    # --- What librdkafka calls ----------------------------------------------------------------------

    def _told(
        self, callback: RebalanceCallback | None, hears: Callable[[Listener], Callable[..., None]]
    ) -> Callable[[Any, list[TopicPartition]], None]:
        def call(consumer: Any, partitions: list[TopicPartition]) -> None:
            started = time.monotonic()
            if callback is not None:
                self.in_callback = True
                try:
                    callback(consumer, partitions)
                except BaseException as error:  # noqa: BLE001 - inside a native call it would lose a message
                    self._note(error)
                finally:
                    self.in_callback = False
            seconds = time.monotonic() - started
            numbers = _numbers(partitions)
            for listener in tuple(self.listeners):
                try:
                    hears(listener)(numbers, seconds)
                except Exception:  # noqa: BLE001 - a listener's failure is not the consumer's
                    self._log.exception("the listener %r raised; the consumer goes on", listener)

        return call

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None:
            self._interceptors.on_commit(_stored(partitions))
        if self._on_commit is not None:
            self._on_commit(error, partitions)


def _stored(partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    return [p for p in partitions if p.error is None and p.offset >= 0]


def _numbers(partitions: Sequence[TopicPartition]) -> dict[str, tuple[int, ...]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return {topic: tuple(sorted(numbers)) for topic, numbers in topics.items()}


def _nothing() -> None:
    """End nothing."""
