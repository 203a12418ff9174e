"""The pages to serve: those that the last refresh made, whatever the cluster does meanwhile."""

import gzip
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST

from groupwright.core.http_server import Endpoints

_LEVEL = 1
"""Compression: pages are names that repeat, of which the fastest level leaves a tenth."""


class Pages(Endpoints):
    """The page to serve: the groups', made by each refresh, and the exporter's own, made by each scrape."""

    def __init__(self, own: Callable[[], bytes]) -> None:
        """Start without groups.

        Args:
            own: Returns the exporter's own metrics.
        """
        super().__init__(CONTENT_TYPE_LATEST)
        self._own = own
        self._groups: tuple[bytes, bytes] | None = None

    def publish(self, groups: bytes) -> None:
        """Replace the page of the groups."""
        self._groups = groups, gzip.compress(groups, _LEVEL)

    def unready(self) -> str:
        """Not ready until a refresh has succeeded."""
        return "" if self._groups else "no refresh has succeeded yet"

    def body(self, *, compressed: bool) -> list[bytes]:
        """Return the page in parts: gzip, too, may be a sequence of compressed parts."""
        groups = self._groups or (b"", b"")
        own = self._own()
        return [groups[1], gzip.compress(own, _LEVEL)] if compressed else [groups[0], own]
