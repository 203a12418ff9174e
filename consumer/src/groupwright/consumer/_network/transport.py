"""Transports: connections that report why they fail, and keep secrets out of the log.

They change kafka-python's connections in these points:

- The last response of a broker is processed, even if the broker closes the connection right after it.
  Otherwise a wrong password would look like a lost connection, and be retried forever.
- A failed TLS handshake reports its cause, and ends within ``socket.connection.setup.timeout.ms``.
- Names are resolved, and Kerberos tickets fetched, on separate threads, so that a slow server does not delay
  heartbeats.
- Passwords and tokens are not logged; kafka-python logs them at DEBUG.

All of it runs on the network thread, except these blocking calls.
"""

import contextlib
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from groupwright.consumer._config.kerberos import (
    KdcUnreachableError,
    NotLoggedInError,
    TicketError,
    fetch_ticket,
)
from groupwright.consumer._config.log import Redacted
from groupwright.consumer._config.tokens import Tokens, TokenUnavailableError
from groupwright.consumer._network.connection_errors import (
    ConnectionClosedError,
    RefusedError,
    alert_error,
    certificate_error,
    openssl_reason,
    text_of,
)
from groupwright.consumer._network.kafka_python import (
    AbstractTokenProvider,
    Future,
    KafkaConnection,
    KafkaConnectionManager,
    KafkaNetSocket,
    KafkaProtocol,
    KafkaSSLTransport,
    KafkaTCPTransport,
    SaslAuthenticateRequest,
    SaslReauthenticator,
    kafka_errors,
)
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers

_LOGIN_RETRY_INTERVAL = 0.1  # seconds between two checks for a ticket or a token
_TLS_ALERT = b"\x15\x03"  # no Kafka response begins so: as a length it would mean 350 MB


@dataclass(frozen=True, slots=True)
class _Node:
    """A broker as kafka-python connects to it."""

    node_id: str
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Connections(KafkaConnectionManager):  # type: ignore[misc] # kafka-python has no types
    """The connections of one member, by node id: an address and what the connection is for."""

    def __init__(
        self,
        net: Any,
        known: KnownBrokers,
        *,
        address_family: int = socket.AF_UNSPEC,
        tokens: Tokens | None = None,
        kinit: bool = False,
        **settings: Any,
    ) -> None:
        """Create it without connections.

        Args:
            net: kafka-python's event loop.
            known: Receives each success and failure to connect, and says when to try again.
            address_family: The address family to connect with, or ``AF_UNSPEC`` for any.
            tokens: The tokens of SASL/OAUTHBEARER.
            kinit: Whether librdkafka runs kinit, so that a missing ticket may come soon.
            settings: Settings of `KafkaConnectionManager`, by its names.
        """
        self._family = address_family
        self._kinit = kinit
        self._tokens = tokens
        self._known = known
        self._nodes: dict[str, _Node] = {}
        provider = None if tokens is None else _TokenProvider(tokens)
        super().__init__(net, bootstrap_servers=[], sasl_oauth_token_provider=provider, **settings)

    def node_at(self, address: Address, purpose: str = "") -> str:
        """Return the node id of the connection to an address; each purpose has a connection of its own."""
        node_id = f"{purpose} {address}" if purpose else str(address)
        self._nodes[node_id] = _Node(node_id, address.host, address.port)
        return node_id

    def is_connected(self, node_id: str) -> bool:
        """Return whether there is a connection that sends requests at once."""
        connection = self._conns.get(node_id)
        return connection is not None and connection.connected and not connection.paused

    def close_if_idle(self, node_id: str) -> None:
        """Close a connection on which no request waits for a response."""
        connection = self._conns.get(node_id)
        if connection is not None and not connection.in_flight_requests:
            connection.close()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these for new connections, and when established ones reauthenticate (KIP-368)."""
        for config in (self.config, *(connection.config for connection in self._conns.values())):
            config.update(sasl_plain_username=username, sasl_plain_password=password)
        self._known.retry_now()

    def maybe_raise_auth_failure(self, node_id: str) -> None:
        """Raise nothing.

        After one rejection, kafka-python would fail forever, even if the cause was removed.
        """

    def reset_backoff(self, node_id: str) -> None:
        """Reset the backoff, except of a rejected connection, which counts as failed.

        Otherwise it is retried at once.
        """
        connection = self._conns.get(node_id)
        if connection is None or not connection.connected:
            self.update_backoff(node_id)
        else:
            self._known.connected(self._nodes[node_id].address)

    def update_backoff(self, node_id: str) -> float:
        """Record that a connection failed; return the milliseconds until the next one."""
        return self._known.not_connected(self._nodes[node_id].address, time.monotonic()) * 1000

    def connection_delay(self, node_id: str) -> float:
        """Return the seconds until a connection may be made."""
        return self._known.delay(self._nodes[node_id].address, time.monotonic())

    def least_used_connections(self) -> list[Any]:
        """Return idle connections without those that await a response: a parked JoinGroup takes minutes."""
        return [each for each in super().least_used_connections() if not each.in_flight_requests]

    def get_connection(
        self,
        node_id: str | None,
        timeout_ms: float | None = None,
        pop_on_close: bool = True,  # noqa: FBT001, FBT002 - kafka-python's signature
        refresh_metadata_on_err: bool = True,  # noqa: ARG002, FBT001, FBT002 - as above; see below
        reset_backoff_on_connect: bool = True,  # noqa: FBT001, FBT002 - as above
    ) -> Any:
        """Return the connection to a node, a new one if there is none; it connects on the loop.

        `refresh_metadata_on_err` is ignored: kafka-python would bootstrap by itself after an error, and close
        the connection to a bootstrap server while it is used.
        """
        if node_id is None or self.connection_delay(node_id) > 0:
            raise kafka_errors.NodeNotReadyError(node_id)
        if node_id in self._conns:
            return self._conns[node_id]
        node = self._nodes[node_id]
        settings = {"broker_version_data": self.broker_version_data, **self.config}
        connection = self._conns[node_id] = _Connection(self._net, node_id=node_id, **settings)
        if self._needs_ticket:
            connection.reauthenticate_with(
                lambda: self._fetch_ticket(node.host, self._set_up_deadline(node_id))
            )
        if pop_on_close:
            connection.close_future.add_both(lambda _: self._forget(node_id, connection))
        deadline = (
            self._set_up_deadline(node_id) if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        )
        self._net.call_soon(
            lambda: self._connect(
                node, connection, reset_backoff_on_connect=reset_backoff_on_connect, timeout_at=deadline
            )
        )
        return connection

    def _set_up_deadline(self, node_id: str) -> float:
        limit: float = self.socket_connection_setup_timeout_ms(node_id)
        return time.monotonic() + limit / 1000

    @property
    def _needs_ticket(self) -> bool:
        return self.config["sasl_mechanism"] == "GSSAPI" and os.name == "posix"

    def _forget(self, node_id: str, connection: Any) -> None:
        if self._conns.get(node_id) is connection:
            del self._conns[node_id]

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        deadline = (
            time.monotonic() + self.config["request_timeout_ms"] / 1000 if timeout_at is None else timeout_at
        )
        if self._needs_ticket:
            await self._fetch_ticket(node.host, deadline)
        # Before 2.13, confluent-kafka calls oauth_cb inside `poll` first, and not while the consumer is
        # created.
        while self._tokens is not None and not self._tokens.was_called and time.monotonic() < deadline:
            await self._net.sleep(_LOGIN_RETRY_INTERVAL)
        sock = await self._connect_socket(node.host, node.port, deadline)
        try:
            if not self.ssl_enabled:
                return _PlainTransport(self._net, sock, host=node.host)
            transport = _TlsTransport(self._net, sock, host=node.host, ssl_context=self.config["ssl_context"])
            sock = transport._sock  # noqa: SLF001 - the TLS socket, which has replaced the TCP one
            await transport.handshake_until(deadline, f"{node.host}:{node.port}")
        except BaseException:
            sock.close()
            raise
        return transport

    async def _fetch_ticket(self, host: str, deadline: float) -> None:
        """Put the broker's ticket into the credential cache, where kafka-python finds it."""
        service = self.config["sasl_kerberos_service_name"]
        while True:
            try:
                await self._in_thread(f"ticket-{host}", lambda: fetch_ticket(service, host), deadline)
            except (KdcUnreachableError, kafka_errors.KafkaTimeoutError) as error:
                raise kafka_errors.KafkaConnectionError(f"Kerberos does not answer: {error}") from error
            except TicketError as error:
                is_retriable = isinstance(error, NotLoggedInError) and self._kinit
                if is_retriable:
                    await self._net.sleep(_LOGIN_RETRY_INTERVAL)
                if not is_retriable or time.monotonic() > deadline:
                    code = KafkaError._AUTHENTICATION  # noqa: SLF001 - public
                    raise RefusedError(code, str(error)) from error
            else:
                return

    async def _connect_socket(self, host: str, port: int, deadline: float) -> socket.socket:
        """Connect to the first of a name's addresses that accepts."""
        failure: Exception | None = None
        found = await self._resolve(host, port, deadline)
        for index, (family, kind, protocol, _, address) in enumerate(found):
            # An address that drops packets leaves the others their share of the time.
            now = time.monotonic()
            share = now + (deadline - now) / (len(found) - index)
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)  # noqa: FBT003 - the socket module's own way
                for option in self.config["socket_options"]:
                    sock.setsockopt(*option)
                await KafkaNetSocket().sock_connect(self._net, sock, address, timeout_at=share)
            except (OSError, kafka_errors.KafkaConnectionError, kafka_errors.KafkaTimeoutError) as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise kafka_errors.KafkaConnectionError(f"{host}:{port} cannot be reached: {failure}") from failure

    async def canonical_names(self, addresses: Iterable[Address]) -> list[Address]:
        """Return the addresses with the canonical names of their hosts; a name without one stays as it is."""
        found: list[Address] = []
        for host, port in addresses:
            name = host

            def look_up(name: str = name) -> str:
                rows = socket.getaddrinfo(
                    name, None, self._family, socket.SOCK_STREAM, 0, socket.AI_CANONNAME
                )
                return next((row[3] for row in rows if row[3]), name)

            if not _is_address(host):
                deadline = time.monotonic() + self.config["socket_connection_setup_timeout_ms"] / 1000
                with contextlib.suppress(OSError, kafka_errors.KafkaTimeoutError):
                    name = await self._in_thread(f"look-up-{host}", look_up, deadline)
            found.append(Address(name, port))
        return found

    async def _resolve(self, host: str, port: int, deadline: float) -> list[Any]:
        """Resolve a name on a separate thread, without blocking the loop."""
        family = self._family
        # As bytes, because for a str Python imports its IDNA codec, which takes 0.5 MB.
        name = host.encode("ascii") if host.isascii() else host
        look_up: Callable[[], list[Any]] = lambda: socket.getaddrinfo(  # noqa: E731 - used in two places
            name, port, family, socket.SOCK_STREAM
        )
        try:
            if _is_address(host):
                return look_up()
            found: list[Any] = await self._in_thread(f"look-up-{host}", look_up, deadline)
        except (OSError, kafka_errors.KafkaTimeoutError) as error:
            raise kafka_errors.KafkaConnectionError(
                f"the name {host!r} could not be looked up: {error}"
            ) from error
        return found

    async def _in_thread(self, name: str, work: Callable[[], object], deadline: float) -> Any:
        """Run a blocking function on a separate thread, and return its result."""
        future = Future()
        threading.Thread(
            target=self._complete, args=(future, work), name=f"groupwright-{name}", daemon=True
        ).start()
        return await self.wait_for(future, (deadline - time.monotonic()) * 1000)

    def _complete(self, future: Any, work: Callable[[], object]) -> None:
        """Run the function on this thread, and complete the future on the loop."""
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised again, on the loop
            complete: Callable[[], object] = lambda error=error: future.failure(error)  # type: ignore[misc] # noqa: E731
        else:
            complete = lambda: future.success(result)  # noqa: E731 - the other half of the one above
        with contextlib.suppress(RuntimeError):  # the loop has ended, and no coroutine waits
            self._net.call_soon_threadsafe(lambda: complete() and None)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _RedactingProtocol(KafkaProtocol):  # type: ignore[misc] # as above
    """A protocol that does not log the bytes that it sends and receives, as kafka-python's does at DEBUG."""

    bytes_to_send: list[bytes]

    def receive_bytes(self, data: bytes) -> Any:
        return super().receive_bytes(Redacted(data))

    def send_bytes(self) -> bytes:
        data = b"".join(self.bytes_to_send)
        self.bytes_to_send = []
        return data


class _Connection(KafkaConnection):  # type: ignore[misc] # as above
    """A connection that does not log passwords and tokens."""

    has_answered = False
    """True if the broker has answered a request that it answers to accepted clients alone."""

    def reauthenticate_with(self, fetch_ticket: Callable[[], Awaitable[None]]) -> None:
        """Call `fetch_ticket` before each reauthentication of this connection (KIP-368)."""
        self._reauth = _TicketedReauthenticator(self, fetch_ticket)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.parser = _RedactingProtocol(
            client_id=self.config["client_id"],
            receive_message_max_bytes=self.config["receive_message_max_bytes"],
            ident=f"node={self.node_id}",
        )

    def _send_request(self, request: Any, future: Any = None, timeout_at: float | None = None) -> Any:
        if isinstance(request, SaslAuthenticateRequest):
            request.auth_bytes = Redacted(request.auth_bytes)
        return super()._send_request(request, future=future, timeout_at=timeout_at)


class _TicketedReauthenticator(SaslReauthenticator):  # type: ignore[misc] # as above
    """Reauthenticates (KIP-368) once there is a ticket; until then heartbeats continue."""

    def __init__(self, connection: _Connection, fetch_ticket: Callable[[], Awaitable[None]]) -> None:
        super().__init__(connection)
        self._fetch_ticket = fetch_ticket

    async def _run(self) -> None:
        self._task = None
        while not self._conn.closed:  # finally the broker closes it; the next connection reports why
            try:
                await self._fetch_ticket()
            except kafka_errors.KafkaConnectionError:
                await self._conn.net.sleep(_LOGIN_RETRY_INTERVAL)
            else:
                break
        await super()._run()


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # as above
    """kafka-python's interface to `Tokens`."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        try:
            return self._tokens.current().value
        except TokenUnavailableError as error:
            raise RefusedError(KafkaError._AUTHENTICATION, str(error)) from error  # noqa: SLF001 - public

    def extensions(self) -> dict[str, str]:
        return dict(self._tokens.current().extensions)


class _DrainBeforeClose:
    """Processes the bytes that were received with the end of the stream, before it closes the connection."""

    _net: Any
    _sock: Any
    _protocol: Any
    _read: bool
    _closed: bool
    _has_received = False

    async def _read_from_sock(self) -> None:
        while self._read and not self._closed:
            await self._net.wait_read(self._sock)
            data, error = self._sock_recv()  # type: ignore[attr-defined] # the transport's, as below
            self.last_read = time.monotonic()
            if data and not self._has_received and data.startswith(_TLS_ALERT):
                error = RefusedError(
                    KafkaError._SSL,  # noqa: SLF001 - librdkafka's public code
                    "the broker speaks TLS on this port, and this client does not: set security.protocol to "
                    "SSL or SASL_SSL, or take the broker's other port",
                )
            elif data:
                self._has_received = True
                try:
                    self._protocol.data_received(data)
                except kafka_errors.KafkaProtocolError as failure:
                    error = error or failure
            if error is not None:
                await self._net.sleep(0)  # the coroutine that awaits the response runs first
                self.abort(error=_precise_error(error))  # type: ignore[attr-defined] # as above
                return


def _precise_error(error: Exception) -> Exception:
    """Return the error of a failed read, made more precise if the cause is known."""
    cause = error.args[0] if error.args else None
    if isinstance(cause, ssl.SSLError) and "ALERT" in openssl_reason(cause):
        # In TLS 1.3, the server rejects a client's certificate after the handshake only.
        return alert_error(f"the broker ended the TLS connection: {text_of(cause)}", cause)
    if isinstance(cause, (ConnectionError, ssl.SSLEOFError)) or cause == "socket disconnected":
        return ConnectionClosedError("the broker closed the connection")
    return error


class _PlainTransport(_DrainBeforeClose, KafkaTCPTransport):  # type: ignore[misc] # as above
    """TCP."""


class _TlsTransport(_DrainBeforeClose, KafkaSSLTransport):  # type: ignore[misc] # as above
    """TLS."""

    async def handshake_until(self, deadline: float, address: str) -> None:
        """Perform the TLS handshake.

        Raises:
            RefusedError: The handshake failed.
            ConnectionClosedError: The broker closed the connection.
            KafkaTimeoutError: The broker did not respond before `deadline`, in monotonic seconds.
        """
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=deadline)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=deadline)
            except ssl.SSLCertVerificationError as error:
                raise certificate_error(address, error) from error
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError) as error:
                raise ConnectionClosedError(
                    f"the broker {address} closed the connection during the TLS handshake; if this repeats, "
                    "its port probably does not use TLS: compare security.protocol with its listeners"
                ) from error
            except ssl.SSLError as error:
                raise alert_error(
                    f"the TLS handshake with the broker {address} failed: {text_of(error)}", error
                ) from error
            else:
                return
