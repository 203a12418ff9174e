"""Connections to the brokers of a cluster, and requests to any of them.

kafka-python's internal layers (`kafka.net`, `kafka.protocol`) implement version negotiation, TLS, SASL,
reconnects and backoff.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from confluent_kafka import KafkaError

from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._config.version import VERSION
from groupwright.consumer._network.codecs import MAX_VERSION
from groupwright.consumer._network.connection_errors import ConnectionClosedError, RefusedError
from groupwright.consumer._network.event_loop import Loop
from groupwright.consumer._network.kafka_python import MetadataRequest, kafka_errors
from groupwright.consumer._network.transport import Connections
from groupwright.consumer._protocol.model import DisconnectedError

_NOT_RETRIABLE = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)
_ATTEMPT_DELAY = 0.25  # seconds before the next bootstrap server is tried as well (RFC 8305, section 5)
_EARLY_CLOSES = 3  # consecutive closes at the first request, as of a listener that requires SASL


class RequestRefusedError(DisconnectedError):
    """A request that fails again unchanged.

    Credentials or authorization are wrong, or the broker is too old.
    """

    def __init__(self, code: int, message: str) -> None:
        """Create it with the broker's error `code`, or the one that librdkafka has for this failure."""
        super().__init__(message)
        self.code = code


class Brokers(Loop):
    """The network thread, with a connection to each broker that is sent a request.

    `send_to` and `send_anywhere` raise `RequestRefusedError` if a retry will not help, and its base class
    `DisconnectedError` for any other failure. Error codes in responses are returned. Timeouts are in seconds.
    """

    def __init__(self, config: NetworkConfig) -> None:
        """Prepare; nothing is connected before the first request."""
        super().__init__(config.client_id)
        self._config = config
        security = config.security
        self._manager = Connections(
            self._net,
            bootstrap_servers=config.bootstrap_servers,
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
            **config.transport,
        )
        self._bootstrapped = False
        self._bootstraps = 0  # requests that bootstrap now, or wait for a bootstrap server's response
        self._early_closes = 0

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
        """Timeout in seconds of a request that any broker answers at once.

        It is shorter than the session: a broker that does not respond may hang, and another one must be tried
        in time.
        """
        return min(self._config.request_timeout, self._config.session_timeout / 3)

    @asynccontextmanager
    async def _bootstrap_server(self) -> AsyncIterator[str]:
        """Bootstrap; while in the context, the server that responded stays connected.

        Several requests may bootstrap at the same time, over the same connections. The last one closes them.
        """
        self._bootstraps += 1
        try:
            yield await self._bootstrap()
        finally:
            self._bootstraps -= 1
            if not self._bootstraps:
                for server in self._manager.cluster.bootstrap_brokers():
                    self._manager.close(server.node_id)

    async def _bootstrap(self) -> str:
        """Fetch metadata from the bootstrap server that responds first; return its node id.

        As in RFC 8305 ("Happy Eyeballs"), the next server is tried when the one before has failed, or has not
        responded within `_ATTEMPT_DELAY`.
        """
        manager = self._manager
        servers: list[str] = [server.node_id for server in manager.cluster.bootstrap_brokers()]
        waiting = deque(sorted(servers, key=manager.connection_delay))
        failures: list[DisconnectedError] = []
        if not self._config.bootstrap_servers:
            raise DisconnectedError("there are no bootstrap.servers")
        answered = self.future()

        async def try_server(server: str) -> None:
            try:
                await self._await_connection(server)
                answer = await self._check_accepted(server)
            except DisconnectedError as error:
                failures.append(error)
                try_next()
                answer = None
            if not answered.is_done and (answer is not None or len(failures) == len(servers)):
                answered.success((server, answer))

        def try_next() -> None:
            if waiting and not answered.is_done:
                self.spawn(try_server(waiting.popleft()))
                self.call_at(time.monotonic() + _ATTEMPT_DELAY, try_next)

        try_next()
        first, answer = await answered
        if answer is None:
            raise next((error for error in failures if isinstance(error, RequestRefusedError)), failures[-1])
        manager.cluster.update_metadata(answer)
        self._bootstrapped = True
        return str(first)

    async def _check_accepted(self, server: str) -> Any:
        """Send Metadata, to which a broker responds only after authentication.

        A listener that requires SASL closes the connection of a client that does not authenticate.
        """
        request = MetadataRequest(topics=[], max_version=MAX_VERSION[MetadataRequest])
        try:
            answer = await self._await(lambda: self._request(request, server, self.any_broker_timeout))
        except DisconnectedError as error:
            self._early_closes += isinstance(error.__cause__, ConnectionClosedError)
            if self._early_closes < _EARLY_CLOSES:
                raise
            self._early_closes = 0
            raise RequestRefusedError(
                KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's public code
                f"the broker {self._address(server)} closes the connection at the first request: its "
                f"listener most likely wants another security.protocol than {self._config.security.protocol}",
            ) from error
        self._early_closes = 0
        return answer

    def _address(self, node: str) -> str:
        broker = self._manager.cluster.broker_metadata(node)
        return node if broker is None else f"{broker.host}:{broker.port}"

    async def send_anywhere(self, request: Any, timeout: float | None = None) -> Any:
        """Send a request to any broker; return its response."""
        async with self._any_broker() as node:
            return await self.send_to(request, node, timeout)

    @asynccontextmanager
    async def _any_broker(self) -> AsyncIterator[Any]:
        """Yield the node id of a broker, which stays connected while in the context."""
        node = self._manager.least_loaded_node() if self._bootstrapped else None
        if node is not None:
            yield node
        else:
            # No broker is known, or all are down. Also a broker that is starting, or that the controller has
            # fenced, answers a bootstrap without any broker, not even itself.
            async with self._bootstrap_server() as server:
                yield server

    async def send_to(self, request: Any, node: Any, timeout: float | None) -> Any:
        """Send a request to a broker; return its response."""
        return await self._await(lambda: self._request(request, node, timeout))

    async def send_to_broker(self, request: Any, broker: int, timeout: float) -> Any:
        """Send a request to the broker of an id; return its response."""
        if not self._bootstrapped:
            async with self._bootstrap_server():
                pass  # the addresses of the brokers are known now
        if self._manager.cluster.broker_metadata(broker) is None:
            raise DisconnectedError(f"broker {broker} is not in the cluster's metadata")
        return await self.send_to(request, broker, timeout)

    def learn_brokers(self, metadata: Any) -> None:
        """Use the brokers' addresses in a response to Metadata."""
        metadata.topics = []  # kafka-python needs the brokers only
        self._manager.cluster.update_metadata(metadata)

    def _request(self, request: Any, node: Any, timeout: float | None) -> Any:
        timeout_ms = None if timeout is None else milliseconds(timeout)
        return self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)

    async def _await_connection(self, node: str) -> None:
        await self.sleep(self._manager.connection_delay(node))
        await self._await(lambda: self._manager.get_connection(node))

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
        except Exception as error:  # internal layers may raise anything; the caller logs it and retries
            raise DisconnectedError(str(error) or type(error).__name__) from error

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


def milliseconds(seconds: float) -> int:
    """Return a duration in whole milliseconds."""
    return round(seconds * 1000)
