"""Offsets of a simulated member: it fetches committed offsets, and commits positions with its generation."""

from collections.abc import Callable, Sequence
from functools import partial

from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import AnyResponse
from groupwright.testing._simulation.messages import CommittedOffset
from groupwright.testing._simulation.model_client import ModelClient
from groupwright.testing._simulation.model_fetcher import ModelFetcher, Position
from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.observer import Observer
from groupwright.testing._simulation.scheduler import Process

Offsets = tuple[tuple[TopicPartitionKey, CommittedOffset], ...]

COORDINATOR_MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
RETRIED = {*COORDINATOR_MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class ModelOffsets:
    """Commits, and fetches of committed offsets."""

    def __init__(
        self,
        process: Process,
        client: ModelClient,
        fetcher: ModelFetcher,
        settings: MemberSettings,
        observer: Observer,
        *,
        identity: Callable[[], tuple[str, int]],
        on_error: Callable[[ErrorCode, int], object],
        on_fetched: Callable[[], object],
    ) -> None:
        """Create it without requests in flight.

        Args:
            process: The member's process.
            client: The member's connections.
            fetcher: The member's partitions.
            settings: The member's settings.
            observer: Receives accepted commits.
            identity: Returns the present member id and generation.
            on_error: Called with each error, and the generation of its request, or -1.
            on_fetched: Called when partitions have positions.
        """
        self._process = process
        self._client = client
        self._fetcher = fetcher
        self._settings = settings
        self._observer = observer
        self._identity = identity
        self._on_error = on_error
        self._on_fetched = on_fetched
        self._is_fetching = self._is_stopped = False

    def stop(self) -> None:
        """Fetch no longer."""
        self._is_stopped = True

    def fetch(self) -> None:
        """Fetch the committed offsets of new partitions, as often as it takes."""
        unknown = self._fetcher.unknown()
        if not unknown or self._is_fetching or self._is_stopped:
            return
        self._is_fetching = True
        if self._client.is_ready:
            partitions = tuple(position.partition for position in unknown)
            request = msg.OffsetFetchRequest(self._settings.group_id, partitions)
            self._client.send(request, partial(self._fetched, unknown))
        else:
            self._fetched(unknown, None)

    def _fetched(self, asked: Sequence[Position], response: AnyResponse | None) -> None:
        if isinstance(response, msg.OffsetFetchResponse) and response.error is ErrorCode.NONE:
            self._is_fetching = False
            self._fetcher.start(asked, [committed.offset for _, committed in response.partitions])
            self.fetch()
            self._on_fetched()
            return
        if isinstance(response, msg.OffsetFetchResponse):
            self._on_error(response.error, -1)

        def again() -> None:
            self._is_fetching = False
            self.fetch()

        self._process.call_in(self._settings.retry_backoff, again)

    def commit(self, offsets: Offsets, done: Callable[[ErrorCode], object]) -> None:
        """Commit once; a lost connection counts as COORDINATOR_NOT_AVAILABLE."""
        member_id, generation = self._identity()
        request = msg.OffsetCommitRequest(
            self._settings.group_id, offsets, member_id, generation, self._settings.group_instance_id
        )
        if self._client.is_ready:
            self._client.send(request, lambda response: done(self._committed(request, response)))
        else:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def commit_until(
        self, offsets: Offsets, deadline: int, is_wanted: Callable[[], bool], then: Callable[[], object]
    ) -> None:
        """Commit, and again while the coordinator cannot be reached, until `deadline`; then go on.

        Args:
            offsets: The offsets; `then` is called at once if there are none, or if the member commits none.
            deadline: The last time to try again.
            is_wanted: Whether to try again, and to go on.
            then: What follows, unless an error makes it unwanted.
        """

        def attempt() -> None:
            if is_wanted():
                self.commit(offsets, done)

        def done(error: ErrorCode) -> None:
            if not is_wanted():
                return
            if error in RETRIED and self._process.scheduler.now < deadline:
                self._process.call_in(self._settings.retry_backoff, attempt)
            else:
                then()

        if offsets and self._settings.auto_commit_interval is not None:
            attempt()
        else:
            then()

    def _committed(self, request: msg.OffsetCommitRequest, response: AnyResponse | None) -> ErrorCode:
        if not isinstance(response, msg.OffsetCommitResponse):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = response.partitions[0][1]
        if error is ErrorCode.NONE:
            for partition, committed in request.offsets:
                self._fetcher.on_committed(partition, committed.offset)
                self._observer.committed(self._process.name, partition, committed.offset)
        else:
            self._on_error(error, request.generation_id)
        return error
