"""A proxy between clients and brokers, with which a test cuts, silences, delays and slows their connections.

It does for TCP what toxiproxy does, as a thread of the test's process. Toxiproxy is a separate Go program,
which pip cannot install, and its faults are set over HTTP.
"""

import asyncio
import contextlib
import math
import random
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from groupwright.testing._kafka.ports import HOST

_CHUNK = 64 * 1024
_QUEUE_SIZE = 256  # chunks buffered in each direction; then the sender has to wait
_SLICE_SECONDS = 0.05
_CALL_SECONDS = 10.0

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class LinkFaults:
    """Faults of a link."""

    cut: bool = False
    """Connections are reset, new ones at once."""
    silent: bool = False
    """Bytes are held back, and none is lost; connections stay open, as while a link is down."""
    responses_silent: bool = False
    """The server's bytes are held back, and the clients' bytes pass: a partition in one direction."""
    dropping: bool = False
    """Bytes are lost. A connection that has lost some is reset at the end, because its stream has a gap."""
    delay: float = 0.0
    """Additional latency in each direction, in seconds."""
    jitter: float = 0.0
    """Maximum random latency added to `delay`, in seconds; the order of bytes is kept."""
    bytes_per_second: float | None = None
    """Maximum rate in each direction of each connection; None for no limit."""

    @property
    def delays(self) -> bool:
        """True if bytes are delayed."""
        return self.delay > 0 or self.jitter > 0


_NO_FAULTS = LinkFaults()


class Proxy:
    """Links to servers on loopback, each a port of its own.

    ```python
    with Proxy() as proxy:
        link = proxy.open(9092)
        ...  # a client connects to link.address
        link.silence()
        link.restore()
    ```

    A broker sends its clients to its advertised addresses, so it needs a listener that advertises the link's
    port; `LocalKafka` and `KafkaContainers` open one with `proxied=True`. Links may be used from any thread.
    """

    def __init__(self) -> None:
        """Start the thread that forwards bytes."""
        self._loop = asyncio.new_event_loop()
        self._links: list[Link] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="groupwright proxy", daemon=True)
        self._thread.start()

    def open(self, target_port: int) -> "Link":
        """Open a link to a port on loopback. The server may start later.

        Raises:
            OSError: No port is free.
        """
        link = Link(self, target_port)
        self.call(link.listen)
        self._links.append(link)
        return link

    def close(self) -> None:
        """Reset all connections and stop the thread; may be called again."""
        if self._loop.is_closed():
            return
        for link in self._links:
            self.call(link.end)
        self.call(_cancel_other_tasks)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_SECONDS)
        self._loop.close()

    def call(self, action: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine in the proxy's thread, and return its result."""
        return asyncio.run_coroutine_threadsafe(action(), self._loop).result(_CALL_SECONDS)

    def __enter__(self) -> Self:
        """Return the proxy, which is running already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the proxy."""
        self.close()


class Link:
    """A forwarded port: its address for clients, and the faults of its connections."""

    def __init__(self, proxy: Proxy, target_port: int) -> None:
        """Use `Proxy.open` to create a link."""
        self.target_port = target_port
        self.port = 0
        """Port for clients, chosen by the operating system."""
        self.faults = _NO_FAULTS
        self._proxy = proxy
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def address(self) -> str:
        """The address for clients, as ``host:port``."""
        return f"{HOST}:{self.port}"

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    @property
    def lossy_connections(self) -> int:
        """Number of connections that have lost bytes, and will be reset when dropping ends."""
        return sum(connection.has_lost_bytes for connection in list(self._connections))

    def cut(self) -> None:
        """Reset all connections, and new ones when they are opened."""
        self.set_faults(replace(self.faults, cut=True))

    def silence(self) -> None:
        """Hold all bytes back; connections stay open."""
        self.set_faults(replace(self.faults, silent=True))

    def silence_responses(self) -> None:
        """Hold the server's bytes back; those of clients arrive, and connections stay open."""
        self.set_faults(replace(self.faults, responses_silent=True))

    def drop(self) -> None:
        """Drop all bytes. Connections stay open until `restore`, which resets those that have lost bytes."""
        self.set_faults(replace(self.faults, dropping=True))

    def delay(self, seconds: float, *, jitter: float = 0.0) -> None:
        """Delay each byte by `seconds` in each direction, plus a random time of up to `jitter` seconds.

        Raises:
            ValueError: A time is not a number of 0 or more, or is infinite.
        """
        for name, value in (("seconds", seconds), ("jitter", jitter)):
            if not (_is_finite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of 0 or more, not {value!r}")
        self.set_faults(replace(self.faults, delay=seconds, jitter=jitter))

    def throttle(self, bytes_per_second: float) -> None:
        """Limit the rate, in each direction of each connection.

        Raises:
            ValueError: The rate is not a number of more than 0, or is infinite.
        """
        if not (_is_finite(bytes_per_second) and bytes_per_second > 0):
            raise ValueError(
                f"bytes_per_second must be more than 0, not {bytes_per_second!r}; silence() stops all bytes"
            )
        self.set_faults(replace(self.faults, bytes_per_second=bytes_per_second))

    def reset(self) -> None:
        """Reset all connections once; new ones are accepted."""
        self._proxy.call(self._reset)

    def restore(self) -> None:
        """End all faults, also for bytes that are held back or delayed."""
        self.set_faults(_NO_FAULTS)

    def close(self) -> None:
        """Stop listening and reset all connections: a new one is refused."""
        self._proxy.call(self.end)

    def set_faults(self, faults: LinkFaults) -> None:
        """Replace the faults. The new ones are in effect when this returns."""
        self._proxy.call(lambda: self._set_faults(faults))

    # --- In the proxy's thread

    async def listen(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=_CHUNK)
        self.port = self._server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Stop listening, and reset all connections."""
        self._ended = True
        if self._server is not None:
            # asyncio leaves a socket open that it has accepted for a server that was closed meanwhile.
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            await _run_iterations()
            self._server.close()
        await self._reset()

    async def _reset(self) -> None:
        for connection in list(self._connections):
            await connection.end()

    async def _set_faults(self, faults: LinkFaults) -> None:
        drops_no_more = self.faults.dropping and not faults.dropping
        self.faults = faults
        self._changed.set()
        self._changed = asyncio.Event()
        for connection in list(self._connections):
            if faults.cut or (drops_no_more and connection.has_lost_bytes):
                await connection.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not a coroutine: one that is cancelled before its first step would leave the socket open.
        if self.faults.cut or self._ended:
            writer.transport.abort()
            return
        connection = _Connection(self, writer)
        self._connections.add(connection)
        connection.serving = asyncio.get_running_loop().create_task(self._serve(connection, reader))

    async def _serve(self, connection: "_Connection", reader: asyncio.StreamReader) -> None:
        try:
            await connection.serve(reader)
        finally:
            self._connections.discard(connection)

    async def changed(self, timeout: float) -> bool:
        """Wait until the faults change, for at most `timeout` seconds; return whether they have changed."""
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self._changed.wait(), timeout)
        return False


class _Connection:
    """A client's connection, and its counterpart to the server."""

    def __init__(self, link: Link, client: asyncio.StreamWriter) -> None:
        self.has_lost_bytes = False
        """True if bytes were lost; it will be reset when dropping ends."""
        self.serving: asyncio.Task[None] | None = None
        """Kept here, since asyncio itself keeps no strong reference to a task."""
        self._link = link
        self._client = client
        self._writers = [client]
        self._pumps: list[asyncio.Task[None]] = []

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Forward bytes in both directions, until either side closes or `end` is called."""
        try:
            server_reader, server_writer = await asyncio.open_connection(
                HOST, self._link.target_port, limit=_CHUNK
            )
        except OSError:
            self._client.transport.abort()
            return
        self._writers.append(server_writer)
        loop = asyncio.get_running_loop()
        try:
            for source, sink in ((reader, server_writer), (server_reader, self._client)):
                queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_QUEUE_SIZE)
                self._pumps += [
                    loop.create_task(self._receive(source, queue)),
                    loop.create_task(self._send(sink, queue)),
                ]
            # A side that closes ends both: no client of Kafka closes one direction alone.
            await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also if a closing proxy cancels this task: `end` may have come before the server's side
            await self.end()

    async def end(self) -> None:
        """Reset both sides."""
        for pump in self._pumps:
            pump.cancel()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _receive(self, source: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        """Read bytes from one side, and queue them with their due time; empty bytes mark the end."""
        loop = asyncio.get_running_loop()
        while True:
            data = await _read(source)
            faults = self._link.faults
            if faults.dropping:
                self.has_lost_bytes = True
                if data:
                    continue
                await _until_cancelled()
            late = faults.delay + faults.jitter * random.random()  # noqa: S311 - no secret
            await queue.put((loop.time() + late, data))
            if not data:
                await _until_cancelled()  # `_send` ends the connection after it has written the bytes before

    async def _send(self, sink: asyncio.StreamWriter, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        """Write queued bytes when they are due and the faults allow."""
        loop = asyncio.get_running_loop()
        while True:
            due, data = await queue.get()
            while self._link.faults.delays and (early := due - loop.time()) > 0:
                await self._link.changed(early)
            while self._link.faults.silent or (self._link.faults.responses_silent and sink is self._client):
                await self._link.changed(_CALL_SECONDS)
            if not data:
                return
            try:
                await self._write(sink, data)
            except ConnectionError:
                return

    async def _write(self, sink: asyncio.StreamWriter, data: bytes) -> None:
        while data:
            rate = self._link.faults.bytes_per_second
            size = len(data) if rate is None else max(1, int(rate * _SLICE_SECONDS))
            if rate is not None and await self._link.changed(min(size, len(data)) / rate):
                continue
            sink.write(data[:size])
            await sink.drain()
            data = data[size:]


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


async def _cancel_other_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await _run_iterations()  # for the sockets of aborted connections


async def _run_iterations() -> None:
    """Let the loop run for some iterations."""
    for _ in range(5):
        await asyncio.sleep(0)


async def _until_cancelled() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("this event is never set")


async def _read(source: asyncio.StreamReader) -> bytes:
    try:
        return await source.read(_CHUNK)
    except ConnectionError:
        return b""
