"""The state of a membership that librdkafka holds, from its statistics."""

from __future__ import annotations

import threading
from dataclasses import replace

from groupwright.core import MembershipSnapshot
from groupwright.core.locking import locked
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics


class MembershipStatistics:
    """One consumer's membership, as successive statistics show it. Safe to use from any thread."""

    def __init__(self) -> None:
        """Start without statistics."""
        self._coordinator: int | None = None
        self._changes = 0
        self._lock = threading.RLock()

    def complete(
        self, snapshot: MembershipSnapshot, statistics: ConsumerStatistics | None
    ) -> MembershipSnapshot:
        """Return the snapshot, completed by the state, the coordinator and the requests in the statistics."""
        if statistics is None:
            return snapshot
        coordinator = statistics.coordinator
        node = None if coordinator is None else coordinator.node
        if node is not None:
            self._count(node)
        return replace(
            snapshot,
            state=snapshot.state or statistics.state,
            coordinator=node,
            coordinator_changes=self._changes,
            coordinator_errors=0 if coordinator is None else coordinator.errors,
            round_trip=None if coordinator is None else coordinator.round_trip,
            requests=statistics.requests,
        )

    @locked
    def _count(self, node: int) -> None:
        self._changes += self._coordinator not in {None, node}
        self._coordinator = node
