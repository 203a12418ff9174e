"""Connections to the brokers of a cluster, and requests to any of them.

kafka-python's internal layers (`kafka.net`, `kafka.protocol`) implement version negotiation, TLS, SASL,
reconnects and backoff.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError

from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._config.version import VERSION
from groupwright.consumer._network.any_broker import AnyBroker, RequestRefusedError, RequestTimedOutError
from groupwright.consumer._network.codecs import MAX_VERSION
from groupwright.consumer._network.connection_errors import ConnectionClosedError, RefusedError
from groupwright.consumer._network.event_loop import Loop
from groupwright.consumer._network.kafka_python import MetadataRequest, kafka_errors
from groupwright.consumer._network.transport import Connections
from groupwright.consumer._protocol.known_brokers import (
    Address,
    ConnectionBackoff,
    KnownBrokers,
    parse_addresses,
)
from groupwright.consumer._protocol.model import DisconnectedError

_NOT_RETRIABLE = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)
_TIMEOUTS = (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError)
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
        security, transport = config.security, dict(config.transport)
        first = transport.pop("reconnect_backoff_ms", 100) / 1000
        longest = max(first, _LONGEST_BACKOFF)
        longest = min(transport.pop("reconnect_backoff_max_ms", longest * 1000) / 1000, longest)
        self._resolves_names = transport.pop("resolves_canonical_names", False)
        self._configured = parse_addresses(config.bootstrap_servers)
        self._known = KnownBrokers(
            self._configured,
            ConnectionBackoff(first, longest),
            rebootstraps=transport.pop("rebootstraps", True),
        )
        self._manager = Connections(
            self._net,
            self._known,
            client_id=config.client_id,
            client_software_name="groupwright",
            client_software_version=VERSION,
            request_timeout_ms=milliseconds(config.request_timeout),
            security_protocol=security.protocol,
            ssl_context=security.tls,
            sasl_mechanism=security.mechanism,
            sasl_plain_username=security.escaped(security.username or ""),
            sasl_plain_password=security.password,
            sasl_kerberos_service_name=security.kerberos_service,
            tokens=security.tokens,
            kinit=security.kinit,
            **transport,
        )
        self._users: Counter[Address] = Counter()
        """Attempts that use the connection to an address."""
        self._early_closes = 0
        self._was_accepted = False

    def end(self) -> None:
        """Close all connections and end the thread; for the network thread."""
        self.ended = True
        self._manager.close()
        super().end()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these for new connections and reauthentication; callable from any thread."""
        self.call_soon(self._manager.set_sasl_credentials, self._config.security.escaped(username), password)

    @property
    def any_broker_timeout(self) -> float:
        """Timeout in seconds of the first request that any broker answers at once.

        It is shorter than the session: a broker that does not respond may hang, and another one must be tried
        in time.
        """
        return min(self._config.request_timeout, self._config.session_timeout / 3)

    # --- Requests that any broker answers

    async def ask_anywhere(self, request: Any, timeout: float | None = None) -> Any:
        """Send a request that changes nothing; return the first response.

        The next broker is asked as soon as one has failed, and also while one takes long.
        """
        return await self._first(lambda address: self._ask(address, request, timeout))

    async def send_anywhere(self, request: Any, timeout: float) -> Any:
        """Send a request to one broker, the first that accepts this client; return its response."""
        address = await self._first(self._hold, discard=self._release)
        try:
            return await self._send_at(address, request, timeout)
        finally:
            self._release(address)

    async def send_to_broker(self, request: Any, broker: int, timeout: float) -> Any:
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
        connected = {each for each in self._known.order(0.0) if self._manager.is_connected(str(each))}
        return await AnyBroker(self, self._known, attempt, connected=connected, discard=discard).result()

    async def _resolve_bootstrap(self) -> None:
        """Resolve the canonical names of the bootstrap servers, if `client.dns.lookup` asks for them.

        It is awaited only while no other broker is known: a name server may be down.
        """
        if not self._resolves_names:
            return

        async def resolve() -> None:
            self._known.set_bootstrap(await self._manager.canonical_names(self._configured))

        if self._known.has_metadata:
            self.spawn(resolve())
        else:
            await resolve()

    async def _ask(self, address: Address, request: Any, timeout: float | None = None) -> Any:
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

    async def _send_at(self, address: Address, request: Any, timeout: float | None) -> Any:
        response = await self.send_to(request, self._manager.node_at(address), timeout)
        if isinstance(request, MetadataRequest):
            self._learn(response, address)
        return response

    async def _hold(self, address: Address) -> Address:
        """Connect, if there is no connection that was accepted, and keep the connection until `_release`."""
        self._users[address] += 1
        try:
            connection = await self._await_connection(self._manager.node_at(address))
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
                self._manager.close_if_idle(self._manager.node_at(address))

    async def _check_accepted(self, address: Address) -> None:
        """Send Metadata, to which a broker responds only after authentication, and learn the brokers.

        A listener that requires SASL closes the connection of a client that does not authenticate.
        """
        request = MetadataRequest(topics=[], max_version=MAX_VERSION[MetadataRequest])
        timeout = self._known.timeout(address, self.any_broker_timeout, self._config.request_timeout)
        try:
            await self._send_at(address, request, timeout)
        except DisconnectedError as error:
            self._early_closes += isinstance(error.__cause__, ConnectionClosedError)
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

    def _learn(self, response: Any, source: Address) -> None:
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

    async def send_to(self, request: Any, node: Any, timeout: float | None) -> Any:
        """Send a request over the connection of a node id; return its response."""
        return await self._await(lambda: self._request(request, node, timeout))

    def _request(self, request: Any, node: Any, timeout: float | None) -> Any:
        timeout_ms = None if timeout is None else milliseconds(timeout)
        return self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)

    async def _await_connection(self, node: str, timeout: float | None = None) -> Any:
        """Return the connection of a node id once it is established; `timeout` is that of a new one."""
        await self.sleep(self._manager.connection_delay(node))
        timeout_ms = None if timeout is None else milliseconds(timeout)
        return await self._await(lambda: self._manager.get_connection(node, timeout_ms))

    async def _await(self, begin: Callable[[], Any]) -> Any:
        """Await what `begin` returns; convert exceptions to `RequestRefusedError` or `DisconnectedError`.

        `begin` is called here, so that its own exceptions are converted, too.
        """
        try:
            return await begin()
        except RefusedError as error:
            raise RequestRefusedError(error.code, str(error)) from error
        except _NOT_RETRIABLE as error:
            raise RequestRefusedError(
                error.errno, f"the broker refused the connection: {self._words(error)}"
            ) from error
        except kafka_errors.UnsupportedVersionError as error:
            message = f"the broker is too old for this consumer: {error}"
            raise RequestRefusedError(error.errno, message) from error
        except _TIMEOUTS as error:
            raise RequestTimedOutError(_words(error)) from error
        except Exception as error:  # internal layers may raise anything; the caller logs it and retries
            raise DisconnectedError(_words(error)) from error

    def _words(self, error: Any) -> str:
        """Return the broker's error message, or a hint if there is none."""
        said = str(error.args[0]).removeprefix(f"{type(error).__name__}: ") if error.args else ""
        security = self._config.security
        match error:
            case kafka_errors.UnsupportedSaslMechanismError():
                return said or f"it does not offer sasl.mechanism {security.mechanism}"
            case kafka_errors.IllegalSaslStateError():
                return f"its listener takes no SASL, so security.protocol {security.protocol} is wrong here"
        return said or type(error).__name__


def _words(error: Exception) -> str:
    """Return an error's message, without the name of its class that kafka-python puts before it."""
    return str(error).removeprefix(f"{type(error).__name__}: ") or type(error).__name__


def milliseconds(seconds: float) -> int:
    """Return a duration in whole milliseconds."""
    return round(seconds * 1000)
