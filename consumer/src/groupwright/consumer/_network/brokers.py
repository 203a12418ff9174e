"""Connections to the brokers of a cluster, and requests to any of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaError

from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._network.any_broker import AnyBroker
from groupwright.consumer._network.connection import Connection, ConnectionSettings
from groupwright.consumer._network.connection_errors import ConnectionClosedError, RequestRefusedError
from groupwright.consumer._network.event_loop import Loop
from groupwright.consumer._network.stream import canonical_names
from groupwright.consumer._protocol.known_brokers import (
    Address,
    ConnectionBackoff,
    KnownBrokers,
    parse_addresses,
)
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.core.kafka_apis import METADATA
from groupwright.core.wire_format import Message, Request

_EARLY_CLOSES = 3  # consecutive closes at the first request, as of a listener that requires SASL
_LONGEST_BACKOFF = 0.25
"""Longest pause between two connections to a broker, in seconds. In an outage librdkafka connects up to 20
times a second, whatever reconnect.backoff.max.ms is; with a longer pause the first heartbeat after one would
be late."""

_Result = TypeVar("_Result")


class Brokers(Loop):
    """The network thread, with a connection to each broker that is sent a request.

    Requests raise `RequestRefusedError` if a retry will not help, and its base class `DisconnectedError` for
    any other failure. Error codes in responses are returned. Timeouts are in seconds.
    """

    def __init__(self, config: NetworkConfig) -> None:
        """Prepare; nothing is connected before the first request."""
        super().__init__(config.client_id)
        self._config = config
        security, transport = config.security, config.transport
        if security.mechanism is not None:
            # On this thread: a fork while another one imports leaves the child without the import's lock.
            import_module("groupwright.consumer._network.sasl")
        first = transport.reconnect_backoff
        longest = min(transport.reconnect_backoff_max, max(first, _LONGEST_BACKOFF))
        self._configured = parse_addresses(config.bootstrap_servers)
        self._known = KnownBrokers(
            self._configured, ConnectionBackoff(first, longest), rebootstraps=transport.rebootstraps
        )
        self._settings = ConnectionSettings(
            config.client_id,
            security,
            config.request_timeout,
            transport,
            username=security.escaped(security.username or ""),
            password=security.password or "",
        )
        self._connections: dict[Node, Connection] = {}
        self._users: Counter[Address] = Counter()
        """Attempts that use the connection to an address."""
        self._early_closes = 0
        self._was_accepted = False

    def end(self) -> None:
        """Close all connections and end the thread; for the network thread."""
        super().end()
        for connection in list(self._connections.values()):
            connection.close()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these for new connections, and when open ones authenticate again; callable from any thread."""

        def change() -> None:
            self._settings.username = self._config.security.escaped(username)
            self._settings.password = password
            self._known.retry_now()

        self.call_soon(change)

    @property
    def any_broker_timeout(self) -> float:
        """Timeout in seconds of the first request that any broker answers at once.

        It is shorter than the session: a broker that does not respond may hang, and another one must be tried
        in time.
        """
        return min(self._config.request_timeout, self._config.session_timeout / 3)

    # --- Requests that any broker answers

    async def ask_anywhere(self, request: Request, timeout: float | None = None) -> Message:
        """Send a request that changes nothing; return the first response.

        The next broker is asked as soon as one has failed, and also while one takes long.
        """
        response: Message = await self._first(lambda address: self._ask(address, request, timeout))
        return response

    async def send_anywhere(self, request: Request, timeout: float) -> Message:
        """Send a request to one broker, the first that accepts this client; return its response."""
        address = await self._first(self._hold, discard=self._release)
        try:
            return await self._send_at(address, request, timeout)
        finally:
            self._release(address)

    async def send_to_broker(self, request: Request, broker: int, timeout: float) -> Message:
        """Send a request to the broker of an id; return its response."""
        if not self._known.has_metadata:
            self._release(await self._first(self._hold, discard=self._release))
        address = self._known.address_of(broker)
        if address is None:
            raise DisconnectedError(f"broker {broker} is not in the cluster's metadata")
        return await self._send_at(address, request, timeout)

    async def _first(
        self,
        attempt: Callable[[Address], Awaitable[_Result]],
        discard: Callable[[_Result], object] = lambda _: None,
    ) -> _Result:
        """Return the result of the first attempt that succeeds; later results are discarded."""
        await self._resolve_bootstrap()
        connected = {
            node.address for node, each in self._connections.items() if each.is_open and not node.purpose
        }
        return await AnyBroker(self, self._known, attempt, connected=connected, discard=discard).result()

    async def _resolve_bootstrap(self) -> None:
        """Resolve the canonical names of the bootstrap servers, if `client.dns.lookup` asks for them.

        It is awaited only while no other broker is known: a name server may be down.
        """
        if not self._config.transport.resolves_canonical_names:
            return

        async def resolve() -> None:
            transport = self._config.transport
            deadline, family = time.monotonic() + transport.setup_timeout, transport.address_family
            self._known.set_bootstrap(await canonical_names(self, self._configured, deadline, family))

        if self._known.has_metadata:
            self.spawn(resolve())
        else:
            await resolve()

    async def _ask(self, address: Address, request: Request, timeout: float | None = None) -> Message:
        """Send a request over a connection that has been accepted; return the response."""
        await self._hold(address)
        try:
            # A connection that is half open must not hold a look-up for longer than the session.
            longest = min(self._config.request_timeout, self._config.session_timeout)
            longest = longest if timeout is None else min(timeout, longest)
            first = min(longest, self.any_broker_timeout)
            return await self._send_at(address, request, self._known.timeout(address, first, longest))
        finally:
            self._release(address)

    async def _send_at(self, address: Address, request: Request, timeout: float | None) -> Message:
        response = await self.send_to(request, Node(address), timeout)
        if request.api is METADATA:
            self._learn(response, address)
        return response

    async def _hold(self, address: Address) -> Address:
        """Connect, if there is no connection that was accepted, and keep the connection until `_release`."""
        self._users[address] += 1
        try:
            connection = await self._await_connection(Node(address))
            if not connection.has_answered:
                await self._check_accepted(address)
                connection.has_answered = True
        except BaseException:
            self._release(address)
            raise
        return address

    def _release(self, address: Address) -> None:
        """Close the connection if nobody uses it, unless it is one to a broker of the newest metadata."""
        self._users[address] -= 1
        if self._users[address] <= 0:
            del self._users[address]
            if not self._known.is_named(address):
                connection = self._connections.get(Node(address))
                if connection is not None and connection.is_idle:
                    connection.close()

    async def _check_accepted(self, address: Address) -> None:
        """Send Metadata, to which a broker responds only after authentication, and learn the brokers.

        A listener that requires SASL closes the connection of a client that does not authenticate.
        """
        request = METADATA(topics=[])
        timeout = self._known.timeout(address, self.any_broker_timeout, self._config.request_timeout)
        try:
            await self._send_at(address, request, timeout)
        except DisconnectedError as error:
            self._early_closes += isinstance(error, ConnectionClosedError)
            # Once a broker has accepted this client, a closed connection is that of a broker that stops.
            if self._was_accepted or self._early_closes < _EARLY_CLOSES:
                raise
            self._early_closes = 0
            raise RequestRefusedError(
                KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's public code
                f"the broker {address} closes the connection at the first request: its "
                f"listener most likely wants another security.protocol than {self._config.security.protocol}",
            ) from error
        self._early_closes, self._was_accepted = 0, True

    def _learn(self, response: Message, source: Address) -> None:
        """Take the brokers' addresses in a response to Metadata.

        Raises:
            DisconnectedError: The broker belongs to another cluster.
        """
        brokers = {int(row.node_id): Address(row.host, int(row.port)) for row in response.brokers}
        if not self._known.learn(brokers, response.cluster_id, source):
            raise DisconnectedError(
                f"the broker at {source} belongs to the cluster {response.cluster_id!r} now"
            )

    # --- Requests to one broker

    async def send_to(self, request: Request, node: Node, timeout: float | None) -> Message:
        """Send a request over the connection to a node, a new one if there is none; return its response."""
        return await self._connection(node).send(request, timeout)

    async def _await_connection(self, node: Node, timeout: float | None = None) -> Connection:
        """Return the connection to a node once it is open; `timeout` is that of a new one."""
        await self.sleep(self._known.delay(node.address, time.monotonic()))
        connection = self._connection(node, timeout)
        await connection.opened()
        return connection

    def _connection(self, node: Node, timeout: float | None = None) -> Connection:
        """Return the connection to a node; open one if there is none.

        Raises:
            DisconnectedError: It must not be opened yet.
        """
        found = self._connections.get(node)
        if found is not None and not found.is_closed:
            return found
        now = time.monotonic()
        if self._known.delay(node.address, now) > 0:
            raise DisconnectedError(f"{node.address} is not connected")
        deadline = now + (self._config.transport.setup_timeout if timeout is None else timeout)
        self._connections[node] = Connection(self, node.address, self._settings, self._known, deadline)
        return self._connections[node]


class Node(NamedTuple):
    """Address of a connection, and its purpose if it is not for all requests."""

    address: Address
    purpose: str = ""


def milliseconds(seconds: float) -> int:
    """Return a duration in whole milliseconds."""
    return round(seconds * 1000)
