"""Connections to a cluster's brokers for requests of Kafka's protocol, by a confluent-kafka configuration.

For tools that need requests which confluent-kafka does not offer. The connections are those of the consumer's
membership: the same settings, TLS and SASL, and the same error messages.

Examples:
    >>> from groupwright.core.wire_format import INT16, INT32, STRING, Api, Array
    >>> LIST_GROUPS = Api(
    ...     "ListGroups",
    ...     key=16,
    ...     versions=(1, 2),
    ...     request={},
    ...     response={
    ...         "throttle_time_ms": INT32,
    ...         "error_code": INT16,
    ...         "groups": Array({"group_id": STRING, "protocol_type": STRING}),
    ...     },
    ... )
    >>> def group_ids(config):
    ...     with ClusterConnection(config) as cluster:
    ...         responses = cluster.send_all({id: LIST_GROUPS() for id in cluster.brokers()}).values()
    ...     return [group.group_id for response in responses for group in response.groups]
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from groupwright.consumer._config.config import read_connection
from groupwright.consumer._network.brokers import Brokers
from groupwright.consumer._network.connection_errors import RequestRefusedError
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.core import GroupwrightError
from groupwright.core.kafka_apis import METADATA
from groupwright.core.locking import locked
from groupwright.core.wire_format import Message, Request

__all__ = ["Broker", "ClusterConnection", "ClusterConnectionError"]

_BrokerId = TypeVar("_BrokerId", int, int | None)
"""The id of a broker; None for any broker."""

_MARGIN = 5.0  # seconds beyond a request's timeout, for the connection and the queue of the network thread


class ClusterConnectionError(GroupwrightError):
    """A broker did not respond, or refused the connection.

    Attributes:
        is_refused: Whether the same request fails again: credentials or authorization are wrong, the listener
            wants another security protocol, or the broker does not support the request.
    """

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        """Create it."""
        super().__init__(message)
        self.is_refused = is_refused


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of a cluster."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        """Return the id and the address."""
        return f"{self.id} ({self.host}:{self.port})"


class ClusterConnection:
    """Connections to the brokers of a cluster. Any thread may use it; close it in the end.

    Its methods raise `ClusterConnectionError`; error codes in responses are returned.
    """

    def __init__(self, config: Mapping[str, Any], *, timeout: float = 10.0) -> None:
        """Start the network thread; nothing is connected before the first request.

        Args:
            config: A confluent-kafka configuration. Settings of consumers and groups are ignored.
            timeout: Seconds for each request.

        Raises:
            groupwright.consumer.ConfigurationError: A property is missing, out of range, or not supported.
        """
        network = read_connection(config, timeout=timeout)
        self._timeout = timeout
        self._tokens = network.security.tokens
        self._token_config = str(config.get("sasl.oauthbearer.config", ""))
        self._token_expiry = 0.0
        self._lock = threading.RLock()
        self._is_closed = False
        self._network = Brokers(network)
        self._network.start()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close all connections; requests in flight fail."""
        self._is_closed = True
        self._network.call_soon(self._network.end)
        self._network.join_thread(_MARGIN)

    def brokers(self) -> dict[int, Broker]:
        """Return the brokers of the cluster by their ids, from Metadata."""
        response = self.send(METADATA(topics=[]))
        return {row.node_id: Broker(row.node_id, row.host, row.port, row.rack) for row in response.brokers}

    def send(self, request: Request, broker: int | None = None) -> Message:
        """Send a request and return its response.

        Args:
            request: The request, which is sent in the newest version that the broker also has.
            broker: The broker's id, or None for any broker.
        """
        response: Message | ClusterConnectionError = self._send_each({broker: request})[broker]
        if isinstance(response, ClusterConnectionError):
            raise response
        return response

    def send_all(self, requests: Mapping[int, Request]) -> dict[int, Any]:
        """Send requests to several brokers at once.

        Args:
            requests: Requests by the ids of their brokers.

        Returns:
            The responses by the ids of the brokers; for a broker that did not respond or refused the
            connection, the `ClusterConnectionError`, which is not raised.
        """
        return self._send_each(requests)

    def _send_each(self, requests: Mapping[_BrokerId, Request]) -> dict[_BrokerId, Any]:
        if self._is_closed:
            raise ClusterConnectionError("the connection is closed")
        self._refresh_token()
        responses: dict[_BrokerId, Any] = {}
        done = Wakeup()

        async def send(broker: _BrokerId, request: Request) -> None:
            response: Message | ClusterConnectionError
            try:
                if broker is None:
                    response = await self._network.send_anywhere(request, self._timeout)
                else:
                    response = await self._network.send_to_broker(request, broker, self._timeout)
            except RequestRefusedError as error:
                response = ClusterConnectionError(str(error), is_refused=True)
            except DisconnectedError as error:
                response = ClusterConnectionError(str(error))
            responses[broker] = response
            if len(responses) == len(requests):
                done.notify()

        def start() -> None:
            for broker, request in requests.items():
                self._network.spawn(send(broker, request))

        self._network.call_soon(start)
        if requests:
            done.wait(self._timeout + _MARGIN)
        late = ClusterConnectionError(f"no response within {self._timeout:g} s")
        return {broker: responses.get(broker, late) for broker in requests}

    @locked
    def _refresh_token(self) -> None:
        """Get a token for SASL/OAUTHBEARER, which a consumer's handle of librdkafka would get."""
        if self._tokens is None or time.time() < self._token_expiry:
            return
        try:
            self._tokens.refresh(self._token_config)
            expiry = self._tokens.current().expiry
        except Exception as error:
            raise ClusterConnectionError(
                f"there is no token for SASL/OAUTHBEARER: {error}", is_refused=True
            ) from error
        self._token_expiry = time.time() + 0.8 * (expiry - time.time())
