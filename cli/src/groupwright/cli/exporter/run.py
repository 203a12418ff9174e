"""The exporter as a process: from its start to the signal that ends it."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.exporter.admin_source import AdminSource
from groupwright.cli.exporter.exposition import text
from groupwright.cli.exporter.limits import GroupLimit
from groupwright.cli.exporter.refresher import Refresher
from groupwright.cli.exporter.server import Pages
from groupwright.cli.exporter.state import ExporterState, Options
from groupwright.cli.exporter.status import ExporterStatus
from groupwright.core.http_server import HttpServer

if TYPE_CHECKING:
    from groupwright.cli.exporter.offsets_topic_source import OffsetsLog

_OFFSETS_TOPIC = "offsets-topic"
_SWITCH_SECONDS = 0.0005
"""Longest time for which a refresh keeps the GIL while a scrape waits for it, about 20 times a scrape."""
_STOP_SECONDS = 5.0
"""Time for the present refresh to end, when the exporter is stopped."""

_logger = logging.getLogger("groupwright.exporter")


def run(
    settings: Mapping[str, Any],
    source: str,
    groups: GroupLimit,
    options: Options,
    *,
    interval: float,
    address: tuple[str, int],
    timeout: float,
) -> None:
    """Serve metrics until SIGTERM or SIGINT. Call it in the main thread.

    Args:
        settings: A confluent-kafka configuration.
        source: Source of committed offsets: `admin` or `offsets-topic`.
        groups: Chooses the groups to show.
        options: Options of their series.
        interval: Seconds between refreshes.
        address: Address and port to listen on.
        timeout: Seconds for each request to a broker.

    Raises:
        CommandError: The configuration is invalid, or the address cannot be bound.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    status = ExporterStatus(metadata.version("groupwright"), source)
    pages = Pages(lambda: text(status.samples()))
    with (
        _stopped_by_signal() as stopped,
        Cluster(settings, timeout=timeout) as cluster,
        ExitStack() as cleanup,
    ):
        snapshots: AdminSource = AdminSource(cluster, groups)
        if source == _OFFSETS_TOPIC:
            log, snapshots = _offsets_topic_source(cluster, groups, settings, timeout)
            cleanup.callback(log.close)
            status.records = log.content.records
        server = _bound(address, pages)
        refresher = Refresher(snapshots, ExporterState(options), status, pages, interval)
        server.start()
        refresher.start()
        _logger.info("serving http://%s:%d/metrics", address[0], server.port)
        stopped.wait()
        refresher.stop(_STOP_SECONDS)
        server.close()
    _logger.info("stopped")


def _offsets_topic_source(
    cluster: Cluster, groups: GroupLimit, settings: Mapping[str, Any], timeout: float
) -> "tuple[OffsetsLog, AdminSource]":
    try:
        from groupwright.cli.exporter.offsets_topic_source import OffsetsLog, OffsetsTopicSource
    except ImportError as error:
        raise CommandError(
            f"--source {_OFFSETS_TOPIC} needs {error.name}, which is not installed: pip install "
            "'groupwright[pipeline]'",
            ExitStatus.USAGE,
        ) from None
    log = OffsetsLog(settings, timeout)
    return log, OffsetsTopicSource(cluster, groups, log)


def _bound(address: tuple[str, int], pages: Pages) -> HttpServer:
    host, port = address
    try:
        return HttpServer(host, port, pages)
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. Set --host or --port",
            ExitStatus.USAGE,
        ) from None


@contextmanager
def _stopped_by_signal() -> Iterator[threading.Event]:
    """Return an event that SIGTERM and SIGINT set."""
    stopped = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
