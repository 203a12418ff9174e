"""A connection to one broker: it opens itself, authenticates, and sends requests."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import KafkaError

from groupwright.consumer._config.kerberos import (
    KdcUnreachableError,
    NotLoggedInError,
    TicketError,
    fetch_ticket,
)
from groupwright.consumer._config.network_config import Transport
from groupwright.consumer._config.security import Security
from groupwright.consumer._network.connection_errors import RequestRefusedError, RequestTimedOutError
from groupwright.consumer._network.event_loop import Future, Loop, Timer
from groupwright.consumer._network.handshake import (
    VersionedRequest,
    Versions,
    authenticate,
    negotiate_versions,
    too_old,
    version_of,
)
from groupwright.consumer._network.pipeline import Pipeline
from groupwright.consumer._network.stream import Stream
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.core.wire_format import MalformedMessageError, Message, Request, UnsupportedVersionError

_Result = TypeVar("_Result")

_LOGIN_RETRY_INTERVAL = 0.1  # seconds between two checks for a ticket or a token
_SHORTEST_SESSION = 1.0  # seconds between two authentications (KIP-368)

_log = logging.getLogger("groupwright.consumer")


@dataclass(slots=True)
class ConnectionSettings:
    """Settings of all connections of one member; times in seconds."""

    client_id: str
    security: Security
    request_timeout: float
    transport: Transport
    username: str = field(repr=False)
    password: str = field(repr=False)


class Connection:
    """A connection, which begins to open at once. For the network thread."""

    def __init__(
        self,
        loop: Loop,
        address: Address,
        settings: ConnectionSettings,
        known: KnownBrokers,
        deadline: float,
    ) -> None:
        """Open it.

        Args:
            loop: The network thread's loop.
            address: The broker's.
            settings: Settings, which may change: the next authentication takes the new ones.
            known: Records whether it was opened.
            deadline: Monotonic time at which it must be open, in seconds.
        """
        self.has_answered = False
        """True if the broker has answered a request that it answers to accepted clients alone."""
        self._loop = loop
        self._address = address
        self._settings = settings
        self._known = known
        self._was_open = False
        self._error: DisconnectedError | None = None
        self._stream: Stream | None = None
        self._pipeline = Pipeline[tuple[Future, Timer]](settings.client_id, settings.transport.max_bytes)
        self._versions: Versions = {}
        self._opened = Future()
        self._drained: Future | None = None
        self._timers: dict[str, Timer] = {}
        """That of the next authentication, and that which closes an idle connection."""
        self._last_used = time.monotonic()
        loop.spawn(self._guard(self._open(deadline)))

    # --- For the sender of requests

    @property
    def is_open(self) -> bool:
        """True if a request is sent at once."""
        return self._opened.is_done and self._error is None

    @property
    def is_closed(self) -> bool:
        """True if it was closed, or could not be opened."""
        return self._error is not None

    @property
    def is_idle(self) -> bool:
        """True if no request waits for a response."""
        return not self._pipeline.handles

    async def opened(self) -> None:
        """Wait until it is open.

        Raises:
            DisconnectedError: It was not opened.
        """
        await self._opened

    async def send(self, request: Request, timeout: float | None = None) -> Message:
        """Send a request and return its response. A request that times out closes the connection.

        Raises:
            RequestRefusedError: The broker refuses the connection, or is too old.
            DisconnectedError: There was no response.
        """
        deadline = time.monotonic() + (self._settings.request_timeout if timeout is None else timeout)
        while not self._opened.is_done:
            await self._loop.before(deadline, self._opened)
        return await self._exchange(request, version_of(request.api, self._versions), deadline)

    def close(self, error: DisconnectedError | None = None) -> None:
        """Close it; requests in flight fail with the error."""
        if self._error is not None:
            return
        self._error = error = error or DisconnectedError("the connection was closed")
        _log.debug("%s: closed: %s", self._address, error)
        if self._stream is not None:
            self._stream.close()
        for timer in self._timers.values():
            timer.cancel()
        waiting = self._pipeline.handles
        if not self._opened.is_done:
            self._opened.failure(error)
        if self._drained is not None:
            self._drained.failure(error)
        for future, timer in waiting:
            timer.cancel()
            future.failure(error)
        if not self._was_open:
            self._known.not_connected(self._address, time.monotonic())

    # --- Requests and responses

    async def _exchange(self, request: Request, version: int, deadline: float) -> Message:
        """Send a request in a version; return its response."""
        if self._error is not None:
            raise self._error
        assert self._stream is not None  # noqa: S101 - it is open
        began, future = time.monotonic(), Future()
        name = request.api.name

        def expire() -> None:
            waited = (time.monotonic() - began) * 1000
            self.close(RequestTimedOutError(f"{name} timed out after {waited:.0f} ms"))

        timer = self._loop.call_at(deadline, expire)
        try:
            data = self._pipeline.send(request, version, (future, timer))
        except UnsupportedVersionError as error:
            timer.cancel()
            raise too_old(error) from error
        except MalformedMessageError as error:
            timer.cancel()
            raise DisconnectedError(str(error)) from error
        self._stream.write(data)
        response: Message = await future
        self._last_used = time.monotonic()
        _log.debug("%s: %s %d, %.1f ms", self._address, name, version, (self._last_used - began) * 1000)
        return response

    async def _receive(self, stream: Stream) -> None:
        try:
            while True:
                for (future, timer), response in self._pipeline.receive(await stream.read()):
                    timer.cancel()
                    future.success(response)
                if self._drained is not None and self.is_idle:
                    self._drained.success()
        except MalformedMessageError as error:
            self.close(DisconnectedError(str(error)))
        except DisconnectedError as error:
            await self._loop.sleep(0)  # what awaits the last response runs first
            self.close(error)

    # --- Opening and authenticating

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that opens or authenticates; an error closes the connection."""
        try:
            await work
        except DisconnectedError as error:
            self.close(error)
        except Exception as error:  # noqa: BLE001 - such as an error of OpenSSL or Kerberos; it is retried
            _log.debug("%s: a defect", self._address, exc_info=True)
            self.close(DisconnectedError(f"{type(error).__name__}: {error}"))

    async def _open(self, deadline: float) -> None:
        settings = self._settings
        await self._prepare_credentials(deadline)
        stream = await Stream.open(
            self._loop,
            self._address,
            deadline,
            tls=settings.security.tls,
            family=settings.transport.address_family,
            options=settings.transport.socket_options,
            first=self._known.failed_connections(self._address),
        )
        if self._error is not None:
            stream.close()
            return
        self._stream = stream
        self._loop.spawn(self._receive(stream))
        self._versions = await self._run(negotiate_versions(), deadline)
        await self._authenticate(deadline)
        self._was_open = True
        self._known.connected(self._address)
        self._opened.success()
        _log.debug("%s: connected", self._address)
        if settings.transport.max_idle:
            self._close_when_idle()

    async def _authenticate(self, deadline: float) -> None:
        settings, security = self._settings, self._settings.security
        if security.mechanism is None:
            return
        from groupwright.consumer._network import sasl

        exchange = sasl.exchange(security, settings.username, settings.password, self._address.host)
        lifetime = await self._run(
            authenticate(security.mechanism, security.protocol, self._versions, exchange), deadline
        )
        if lifetime:
            # Java's share of the session, so that many members do not authenticate at once.
            share = random.uniform(0.85, 0.95)  # noqa: S311 - no secret
            when = time.monotonic() + max(_SHORTEST_SESSION, lifetime) * share
            self._timers["authenticate"] = self._loop.call_at(
                when, lambda: self._loop.spawn(self._guard(self._authenticate_again()))
            )

    async def _authenticate_again(self) -> None:
        """Authenticate before the session ends (KIP-368); requests wait meanwhile."""
        while self._error is None:  # finally the broker closes it; the next connection reports why
            try:
                await self._prepare_credentials(time.monotonic() + self._settings.transport.setup_timeout)
            except RequestRefusedError:
                raise
            except DisconnectedError:
                await self._loop.sleep(_LOGIN_RETRY_INTERVAL)
            else:
                break
        self._opened = Future()
        if not self.is_idle:
            self._drained = Future()
            await self._drained
            self._drained = None
        await self._authenticate(time.monotonic() + self._settings.request_timeout)
        self._opened.success()

    async def _run(
        self, handshake: Generator[VersionedRequest, Message, _Result], deadline: float
    ) -> _Result:
        """Exchange the messages of a handshake; return its result."""
        try:
            request, version = next(handshake)
            while True:
                response = await self._exchange(request, version, deadline)
                request, version = handshake.send(response)
        except StopIteration as end:
            result: _Result = end.value
            return result

    async def _prepare_credentials(self, deadline: float) -> None:
        """Wait for a token, or for the broker's ticket in the credential cache."""
        security = self._settings.security
        # Before 2.13, confluent-kafka calls oauth_cb inside `poll` first, and not while the consumer is
        # created.
        tokens = security.tokens
        while tokens is not None and not tokens.was_called and time.monotonic() < deadline:
            await self._loop.sleep(_LOGIN_RETRY_INTERVAL)
        service, host = security.kerberos_service, self._address.host
        while security.mechanism == "GSSAPI":
            try:
                await self._loop.in_thread(f"ticket-{host}", lambda: fetch_ticket(service, host), deadline)
            except (KdcUnreachableError, RequestTimedOutError) as error:
                raise DisconnectedError(f"Kerberos does not answer: {error}") from error
            except TicketError as error:
                is_retriable = isinstance(error, NotLoggedInError) and security.kinit
                if is_retriable:
                    await self._loop.sleep(_LOGIN_RETRY_INTERVAL)
                if not is_retriable or time.monotonic() > deadline:
                    code = KafkaError._AUTHENTICATION  # noqa: SLF001 - public
                    raise RequestRefusedError(code, str(error)) from error
            else:
                return

    def _close_when_idle(self) -> None:
        now, idle = time.monotonic(), self._settings.transport.max_idle
        if not self.is_idle:
            self._last_used = now
        if now >= self._last_used + idle:
            self.close()
        else:
            self._timers["idle"] = self._loop.call_at(self._last_used + idle, self._close_when_idle)
