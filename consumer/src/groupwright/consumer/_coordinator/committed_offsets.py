"""Committed offsets: the newest ones of the partitions of an assignment, which start there."""

from __future__ import annotations

import threading

from groupwright.consumer._protocol.model import Offsets
from groupwright.core.locking import locked


class CommittedOffsets:
    """The newest committed offsets of the partitions of the last assignment. Safe to use from any thread.

    OffsetFetch's response has them. Until the assignment is applied, commits change them: otherwise a commit
    between OffsetFetch and the end of on_assign would not change where partitions start.
    """

    def __init__(self) -> None:
        """Start without an assignment."""
        self._lock = threading.RLock()  # a signal handler may poll
        self.newest: Offsets = {}
        """Replaced by each change, and never changed in place."""

    @locked
    def on_fetched(self, offsets: Offsets) -> None:
        """Begin with the committed offsets of another assignment."""
        self.newest = dict(offsets)

    @locked
    def update(self, offsets: Offsets) -> None:
        """Take newer offsets."""
        self.newest = {**self.newest, **offsets}

    @locked
    def on_committed(self, offsets: Offsets) -> None:
        """Take the offsets of a commit that has succeeded, as far as the assignment has the partitions."""
        newer = {key: offset for key, offset in offsets.items() if key in self.newest}
        if newer:
            self.newest = {**self.newest, **newer}
