"""Connections of a simulated client: one to any broker, for metadata, and one to the group's coordinator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from groupwright.core import ErrorCode
from groupwright.testing._simulation.broker_messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from groupwright.testing._simulation.cluster import AnyRequest, AnyResponse, Cluster, Connection
from groupwright.testing._simulation.scheduler import Event, Process

Done = Callable[[AnyResponse | None], object]
"""Receives the response, or None if the connection was lost or the request timed out."""


@dataclass(slots=True)
class _Sent:
    """A request without a response so far."""

    done: Done
    timeout: Event


class Link:
    """A connection, and its requests in flight. It is not opened again once it is closed."""

    def __init__(self, cluster: Cluster, process: Process, broker: int, on_end: Callable[[], object]) -> None:
        """Connect to a broker; requests wait until it is connected."""
        self._process = process
        self._on_end = on_end
        self._in_flight: dict[int, _Sent] = {}
        self._waiting: list[tuple[int, AnyRequest]] = []
        self._connection: Connection | None = None
        self._sent = 0
        self._open = True
        cluster.connect(process, broker, self._connected, self.close, self.close)

    def send(self, request: AnyRequest, done: Done, timeout: int) -> None:
        """Send a request. One that times out closes the connection, as in Kafka's clients."""
        self._sent += 1
        number = self._sent
        self._in_flight[number] = _Sent(done, self._process.call_in(timeout, self.close))
        if self._connection is None:
            self._waiting.append((number, request))
        else:
            self._connection.send(request, partial(self._answered, number))

    def close(self) -> None:
        """Close the connection; all requests in flight fail."""
        if not self._open:
            return
        self._open = False
        if self._connection is not None:
            self._connection.close()
        failed, self._in_flight = list(self._in_flight.values()), {}
        self._on_end()
        for sent in failed:
            sent.timeout.cancel()
            sent.done(None)

    def _connected(self, connection: Connection) -> None:
        if not self._open:
            connection.close()
            return
        self._connection = connection
        waiting, self._waiting = self._waiting, []
        for number, request in waiting:
            connection.send(request, partial(self._answered, number))

    def _answered(self, number: int, response: AnyResponse) -> None:
        sent = self._in_flight.pop(number, None)
        if sent is not None:
            sent.timeout.cancel()
            sent.done(response)


class ModelClient:
    """Finds the coordinator of a group, again and again until it is found, and sends it requests."""

    def __init__(
        self,
        cluster: Cluster,
        process: Process,
        group_id: str,
        *,
        retry_backoff: int,
        request_timeout: int,
        on_coordinator: Callable[[], object],
    ) -> None:
        """Create a client without connections.

        Args:
            cluster: The cluster.
            process: The client's process.
            group_id: The group.
            retry_backoff: `retry.backoff.ms`, in microseconds.
            request_timeout: `request.timeout.ms`, in microseconds.
            on_coordinator: Called when the coordinator is found.
        """
        self._cluster = cluster
        self._process = process
        self._group_id = group_id
        self._retry_backoff = retry_backoff
        self._request_timeout = request_timeout
        self._on_coordinator = on_coordinator
        self._random = process.scheduler.stream(f"{process.name}/bootstrap")
        self._brokers = tuple(range(len(cluster.brokers)))
        self._any: Link | None = None
        self._coordinator: Link | None = None
        self._is_searching = False
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """True if the coordinator is known."""
        return self._coordinator is not None

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self.forget_coordinator()
        if self._any is not None:
            self._any.close()

    def find_coordinator(self) -> None:
        """Look the coordinator up, unless it is known or being looked up."""
        if self._coordinator is None and not self._is_searching and not self._is_closed:
            self._is_searching = True
            self._to_any(FindCoordinatorRequest(self._group_id), self._found)

    def forget_coordinator(self) -> None:
        """Close the connection to the coordinator, which is unknown from now on."""
        if self._coordinator is not None:
            self._coordinator.close()

    def send(self, request: AnyRequest, done: Done, timeout: int | None = None) -> None:
        """Send a request to the coordinator, which must be known."""
        if self._coordinator is None:
            raise AssertionError("the coordinator is not known")
        self._coordinator.send(request, done, timeout or self._request_timeout)

    def fetch_metadata(
        self, topics: frozenset[str], done: Callable[[MetadataResponse | None], object]
    ) -> None:
        """Fetch the metadata of topics from any broker; None if that fails."""

        def received(response: AnyResponse | None) -> None:
            found = response if isinstance(response, MetadataResponse) else None
            self._brokers = found.brokers if found and found.brokers else self._brokers
            done(found)

        self._to_any(MetadataRequest(topics), received)

    def _to_any(self, request: AnyRequest, done: Done) -> None:
        if self._any is None:
            self._any = Link(
                self._cluster, self._process, self._random.choice(self._brokers), self._any_ended
            )
        self._any.send(request, done, self._request_timeout)

    def _any_ended(self) -> None:
        self._any = None
        self._brokers = tuple(range(len(self._cluster.brokers)))  # `bootstrap.servers` again

    def _found(self, response: AnyResponse | None) -> None:
        self._is_searching = False
        if self._is_closed:
            return
        if isinstance(response, FindCoordinatorResponse) and response.error is ErrorCode.NONE:
            self._coordinator = Link(self._cluster, self._process, response.broker, self._coordinator_ended)
            self._on_coordinator()
        else:
            self._process.call_in(self._retry_backoff, self.find_coordinator)

    def _coordinator_ended(self) -> None:
        self._coordinator = None
        if not self._is_closed:
            self._process.call_in(self._retry_backoff, self.find_coordinator)
