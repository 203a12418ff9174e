"""Connections to a broker: one request at a time each, so that a parked request delays no other."""

import asyncio
import contextlib
import time

from groupwright.consumer._network.pipeline import Pipeline
from groupwright.core.wire_format import Message
from groupwright.core.wire_format import Request as WireRequest
from groupwright.testing._simulation.messages import Request, Response
from integration_tests.coordinator_model import codec
from integration_tests.coordinator_model.network import CLIENT_ID

_PATIENCE = 5.0


class BrokerNetwork:
    """A real broker, in real time."""

    patience = _PATIENCE

    def __init__(self, address: str) -> None:
        self._address = address

    def open(self) -> "Connections":
        return Connections(self._address)

    def time(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Connections:
    """Connections to one broker; those whose request was answered are used again."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._idle: list[_Connection] = []
        self._under_way: set[asyncio.Task[Response]] = set()

    async def send(self, request: Request) -> asyncio.Future[Response]:
        """Send a request; return the future that has its response."""
        connection = self._idle.pop() if self._idle else await _Connection.open(self._host, self._port)
        await connection.send(*codec.encode(request))
        task = asyncio.create_task(self._answer(connection, request))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def ask(self, request: Request, timeout: float) -> Response:
        """Send a request, and wait for its response."""
        return await asyncio.wait_for(await self.send(request), timeout)

    async def close(self) -> None:
        """Close the idle connections and those whose requests are parked."""
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _answer(self, connection: "_Connection", request: Request) -> Response:
        try:
            response = codec.decode(request, await connection.receive())
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return response


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._pipeline = Pipeline[None](CLIENT_ID, 1 << 30)

    @classmethod
    async def open(cls, host: str, port: int) -> "_Connection":
        return cls(*await asyncio.open_connection(host, port))

    async def send(self, request: WireRequest, version: int) -> None:
        self._writer.write(self._pipeline.send(request, version, None))
        await self._writer.drain()

    async def receive(self) -> Message:
        while True:
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            for _, answer in self._pipeline.receive(data):
                return answer

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._writer.close()
