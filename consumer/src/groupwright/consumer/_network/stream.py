"""Streams of bytes to a broker: TCP or TLS, non-blocking, on the loop.

Names are resolved on separate threads, so that a slow server does not delay heartbeats.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any, Self

from confluent_kafka import KafkaError

from groupwright.consumer._network.connection_errors import (
    ConnectionClosedError,
    RequestRefusedError,
    RequestTimedOutError,
    alert_error,
    certificate_error,
    openssl_reason,
    text_of,
)
from groupwright.consumer._network.event_loop import READ, WRITE, Loop
from groupwright.consumer._protocol.known_brokers import Address
from groupwright.consumer._protocol.model import DisconnectedError

_TLS_ALERT = b"\x15\x03"  # no Kafka response begins so: as a length it would mean 350 MB
_CHUNK = 1 << 16
_CLOSED = "the broker closed the connection"


class Stream:
    """A connected socket. One coroutine reads; `write` never waits."""

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        """Take a socket, which the stream closes."""
        self._loop = loop
        self._sock = sock
        self._unsent = bytearray()
        self._is_sending = self._has_received = self._is_closed = False

    @classmethod
    async def open(
        cls,
        loop: Loop,
        address: Address,
        deadline: float,
        *,
        tls: ssl.SSLContext | None = None,
        family: int = socket.AF_UNSPEC,
        options: Iterable[tuple[int, int, int]] = (),
        first: int = 0,
    ) -> Self:
        """Connect to an address, and perform the TLS handshake if there is a context.

        Of a name's addresses, the one with the index `first` is tried first, modulo their number.

        Raises:
            RequestRefusedError: The TLS handshake failed.
            DisconnectedError: The address cannot be reached, or not before the monotonic time `deadline`.
        """
        sock = await _connect(loop, address, deadline, family, options, first)
        stream = cls(loop, sock)
        try:
            if tls is not None:
                # The handshake needs the name, to verify the certificate.
                stream._sock = tls.wrap_socket(
                    sock, server_hostname=address.host, do_handshake_on_connect=False
                )
                await stream._shake_hands(address, deadline)
        except BaseException:
            stream.close()
            raise
        return stream

    async def read(self) -> bytes:
        """Return the bytes that have arrived, at least one.

        Raises:
            RequestRefusedError: The broker ended the connection with a TLS alert.
            DisconnectedError: The connection is closed.
        """
        while not self._is_closed:
            try:
                data = self._sock.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError):
                await self._loop.wait(self._sock, READ)
            except ssl.SSLWantWriteError:
                await self._loop.wait(self._sock, WRITE)
            except ssl.SSLError as error:
                raise _read_error(error) from error
            except OSError as error:
                raise ConnectionClosedError(_CLOSED) from error
            else:
                if not data:
                    break
                if not self._has_received and data.startswith(_TLS_ALERT):
                    raise RequestRefusedError(
                        KafkaError._SSL,  # noqa: SLF001 - librdkafka's public code
                        "the broker speaks TLS on this port, and this client does not: set security.protocol "
                        "to SSL or SASL_SSL, or take the broker's other port",
                    )
                self._has_received = True
                return data
        raise ConnectionClosedError(_CLOSED)

    def write(self, data: bytes) -> None:
        """Send bytes, as soon as the socket takes them. An error is reported by `read`."""
        self._unsent += data
        if not self._is_sending and not self._is_closed:
            self._is_sending = True
            self._loop.spawn(self._send())

    async def _send(self) -> None:
        try:
            while self._unsent and not self._is_closed:
                try:
                    sent = self._sock.send(self._unsent[:_CHUNK])
                except (BlockingIOError, ssl.SSLWantWriteError):
                    await self._loop.wait(self._sock, WRITE)
                except ssl.SSLWantReadError:
                    await self._loop.wait(self._sock, READ)
                else:
                    del self._unsent[:sent]
        except OSError:
            self._unsent.clear()
        finally:
            self._is_sending = False

    def close(self) -> None:
        """Close the socket; `read` ends."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.forget(self._sock)
            self._sock.close()

    async def _shake_hands(self, address: Address, deadline: float) -> None:
        sock: Any = self._sock
        while True:
            try:
                sock.do_handshake()
            except ssl.SSLWantReadError:
                await _wait_until(self._loop, sock, READ, deadline)
            except ssl.SSLWantWriteError:
                await _wait_until(self._loop, sock, WRITE, deadline)
            except ssl.SSLCertVerificationError as error:
                raise certificate_error(str(address), error) from error
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


async def canonical_names(
    loop: Loop, addresses: Iterable[Address], deadline: float, family: int
) -> list[Address]:
    """Return the addresses with canonical names, by a reverse look-up of each address of a name (KIP-235).

    A name stays as it is for an address that has none.
    """
    found: dict[Address, None] = {}
    for host, port in addresses:
        names = [host]

        def look_up(host: str = host) -> list[str]:
            rows = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
            return [_name_of(row[4], host) for row in rows]

        if not _is_address(host):
            with contextlib.suppress(OSError, RequestTimedOutError):
                names = await loop.in_thread(f"canonical-names-{host}", look_up, deadline)
        found |= {Address(name, port): None for name in names}
    return list(found)


def _name_of(place: Any, default: str) -> str:
    """Return the name of a socket's address, or the default if it has none."""
    try:
        return socket.getnameinfo(place, socket.NI_NAMEREQD | socket.NI_NUMERICSERV)[0]
    except socket.gaierror:
        return default


def _read_error(error: ssl.SSLError) -> DisconnectedError:
    if "ALERT" in openssl_reason(error):
        # In TLS 1.3, the server rejects a client's certificate after the handshake only.
        return alert_error(f"the broker ended the TLS connection: {text_of(error)}", error)
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return ConnectionClosedError(_CLOSED)
    return DisconnectedError(f"the TLS connection failed: {text_of(error)}")


async def _connect(
    loop: Loop,
    address: Address,
    deadline: float,
    family: int,
    options: Iterable[tuple[int, int, int]],
    first: int,
) -> socket.socket:
    """Connect to the first of a name's addresses that accepts, from the index `first` on."""
    failure: Exception | None = None
    found = await _resolve(loop, address, deadline, family)
    first %= max(1, len(found))
    found = found[first:] + found[:first]
    for index, (own_family, kind, protocol, _, place) in enumerate(found):
        # An address that drops packets leaves the others their share of the time.
        now = time.monotonic()
        share = now + (deadline - now) / (len(found) - index)
        try:
            sock = socket.socket(own_family, kind, protocol)
        except OSError as error:  # such as an IPv6 address on a system without IPv6
            failure = failure or error
            continue
        try:
            sock.setblocking(False)  # noqa: FBT003 - the socket module's own way
            for option in options:
                sock.setsockopt(*option)
            with contextlib.suppress(BlockingIOError):
                sock.connect(place)
            await _wait_until(loop, sock, WRITE, share)
            if code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, os.strerror(code))  # noqa: TRY301 - as if `connect` had raised it
        except (OSError, RequestTimedOutError) as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    kind_of = RequestTimedOutError if isinstance(failure, RequestTimedOutError) else DisconnectedError
    reason = getattr(failure, "strerror", None) or failure  # without the number of the system's error
    raise kind_of(f"{address} cannot be reached: {reason}") from failure


async def _resolve(loop: Loop, address: Address, deadline: float, family: int) -> list[Any]:
    """Resolve a name on a separate thread, without blocking the loop."""
    host, port = address
    # As bytes, because for a str Python imports its IDNA codec, which takes 0.5 MB.
    name = host.encode("ascii") if host.isascii() else host

    def look_up() -> list[Any]:
        return socket.getaddrinfo(name, port, family, socket.SOCK_STREAM)

    try:
        if _is_address(host):
            return look_up()
        found: list[Any] = await loop.in_thread(f"look-up-{address}", look_up, deadline)
    except (OSError, RequestTimedOutError) as error:
        raise DisconnectedError(f"the name {host!r} could not be looked up: {error}") from error
    return found


def _is_address(host: str) -> bool:
    """Return whether this is an IP address, of version 6 also with its zone."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):  # ValueError for a name with a null character
            socket.inet_pton(family, host.partition("%")[0])
            return True
    return False


async def _wait_until(loop: Loop, sock: socket.socket, event: int, deadline: float) -> None:
    """Wait until a socket is ready.

    Raises:
        RequestTimedOutError: It is not before the monotonic time `deadline`.
    """
    is_late = False

    def expire() -> None:
        nonlocal is_late
        is_late = True
        loop.forget(sock)

    timer = loop.call_at(deadline, expire)
    try:
        await loop.wait(sock, event)
    finally:
        timer.cancel()
    if is_late:
        raise RequestTimedOutError("no response in time")
