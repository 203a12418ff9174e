"""Requests in flight on a connection, without input or output: bytes to send, and responses in bytes."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from groupwright.core.wire_format import Api, MalformedMessageError, Message, Request

_Handle = TypeVar("_Handle")
_SIZE = struct.Struct(">i")


class _InFlight(NamedTuple, Generic[_Handle]):
    correlation_id: int
    api: Api
    version: int
    handle: _Handle


class Pipeline(Generic[_Handle]):
    """The requests of one connection. A broker responds in order."""

    def __init__(self, client_id: str, max_bytes: int) -> None:
        """Start without requests.

        Args:
            client_id: ``client.id``, which is in each request.
            max_bytes: Longest response, in bytes.
        """
        self._client_id = client_id
        self._max_bytes = max_bytes
        self._in_flight: deque[_InFlight[_Handle]] = deque()
        self._next_id = 0
        self._received = bytearray()

    @property
    def handles(self) -> list[_Handle]:
        """The handles of the requests that wait for a response, oldest first."""
        return [each.handle for each in self._in_flight]

    def send(self, request: Request, version: int, handle: _Handle) -> bytes:
        """Return the bytes of a request; `receive` yields the handle with its response.

        Raises:
            UnsupportedVersionError: The version lacks a field that the request needs.
            MalformedMessageError: A field has a value of another type, or out of its range.
        """
        frame = request.api.frame(request.fields, version, self._next_id, self._client_id)
        self._in_flight.append(_InFlight(self._next_id, request.api, version, handle))
        self._next_id = (self._next_id + 1) & 0x7FFF_FFFF
        return frame

    def receive(self, data: bytes) -> Iterator[tuple[_Handle, Message]]:
        """Take bytes from the broker; yield the responses that are complete.

        Raises:
            MalformedMessageError: The bytes are no response to the oldest request.
        """
        self._received += data
        while len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if not _SIZE.size <= size <= self._max_bytes:
                raise MalformedMessageError(
                    f"the broker announces a response of {size} bytes; receive.message.max.bytes allows "
                    f"{self._max_bytes}"
                )
            end = _SIZE.size + size
            if len(self._received) < end:
                return
            frame = bytes(self._received[_SIZE.size : end])
            del self._received[:end]
            if not self._in_flight:
                raise MalformedMessageError("the broker sends a response without a request")
            oldest = self._in_flight[0]
            if _SIZE.unpack_from(frame)[0] != oldest.correlation_id:
                raise MalformedMessageError("the broker sends a response out of order")
            response = oldest.api.decode_frame(frame, oldest.version)
            self._in_flight.popleft()  # only now: a request whose response cannot be read still waits
            yield oldest.handle, response
