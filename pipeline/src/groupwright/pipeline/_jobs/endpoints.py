"""The streaming job's metrics and probes over HTTP."""

import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from groupwright.core.http_server import Endpoints, HttpServer
from groupwright.pipeline._jobs.status import StreamStatus
from groupwright.pipeline.errors import PipelineError, SettingsError

_log = logging.getLogger("groupwright.pipeline")


class StreamEndpoints(Endpoints):
    """Metrics and probes of a stream."""

    def __init__(self, status: StreamStatus) -> None:
        """Serve this status."""
        super().__init__(CONTENT_TYPE_LATEST)
        self._status = status

    def unready(self) -> str:
        """Not ready until something was read."""
        return self._status.unready()

    def unhealthy(self) -> str:
        """Unhealthy without progress, or without the lease."""
        return self._status.unhealthy()

    def body(self, *, compressed: bool) -> list[bytes]:
        """Return the metrics as of now."""
        page = generate_latest(self._status)
        return [gzip.compress(page) if compressed else page]


@contextmanager
def serving(address: str, status: StreamStatus) -> Iterator[int | None]:
    """Serve a stream's metrics and probes to the end of the context.

    Args:
        address: `host:port`; empty to serve none. Port 0 is any free one.
        status: The status to serve.

    Yields:
        The port.

    Raises:
        PipelineError: The address is none, or cannot be bound.
    """
    if not address:
        yield None
        return
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdecimal():
        raise SettingsError(f"metrics_address={address}: write host:port, such as 0.0.0.0:9096")
    try:
        server = HttpServer(host.strip("[]"), int(port), StreamEndpoints(status))
    except (OSError, OverflowError) as error:
        raise PipelineError(f"metrics_address={address} cannot be bound: {error}") from None
    server.start()
    try:
        _log.info("Serving http://%s:%d/metrics", host, server.port)
        yield server.port
    finally:
        server.close()
