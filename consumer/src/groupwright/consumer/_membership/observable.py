"""Observable part of a consumer, for instrumentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.group_membership import GroupMembership
from groupwright.core import MembershipSnapshot, RebalanceListener


class Observable:
    """Read-only view of a consumer for instrumentation. Any thread may use it, also after `close`."""

    _consumer_config: ConsumerConfig
    _member: GroupMembership
    _guard: AccessGuard
    _commits_by_producer = False

    @property
    def group_id(self) -> str:
        """``group.id``."""
        return self._consumer_config.network.group_id

    @property
    def client_id(self) -> str:
        """``client.id``."""
        return self._consumer_config.network.client_id

    @property
    def settings(self) -> Mapping[str, object]:
        """The configuration without functions and secrets; assignors are given by their names."""
        return self._consumer_config.settings

    @property
    def poll_age(self) -> float | None:
        """Seconds since the last `poll` or `consume` returned: 0 during one, None after `close`."""
        now = monotonic()
        return None if self._guard.closed else max(0.0, now - self._guard.polled(now))

    @property
    def membership_snapshot(self) -> MembershipSnapshot:
        """State of the membership at this moment; reading it delays no poll."""
        snapshot = self._member.snapshot
        return replace(snapshot, commits_by_producer=True) if self._commits_by_producer else snapshot

    def add_listener(self, listener: RebalanceListener) -> None:
        """Notify `listener` of rebalances and commits, on the polling thread."""
        self._member.listeners.append(listener)

    def remove_listener(self, listener: RebalanceListener) -> None:
        """Stop notifying `listener`; nothing happens if it was not added."""
        kept = [added for added in self._member.listeners if added is not listener]
        self._member.listeners[:] = kept
