"""What a consumer tells of itself to whoever watches it, such as `groupwright.instrumentation`."""

from collections.abc import Mapping
from time import monotonic

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.group_membership import GroupMembership
from groupwright.core import MembershipSnapshot, RebalanceListener


class Observable:
    """The part of a consumer that any thread may ask, at any time, also once it is closed."""

    _config: ConsumerConfig
    _member: GroupMembership
    _guard: AccessGuard

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""
        return self._config.network.group_id

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""
        return self._config.network.client_id

    @property
    def settings(self) -> Mapping[str, object]:
        """The configuration, without functions and without anything that may be a secret; assignors by their names."""
        return self._config.settings

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside `poll` or `consume`: 0 while it is, None once closed."""
        now = monotonic()
        return None if self._guard.closed else max(0.0, now - self._guard.polled(now))

    @property
    def membership_snapshot(self) -> MembershipSnapshot:
        """The membership at this moment; no poll waits for the answer."""
        return self._member.snapshot

    def add_listener(self, listener: RebalanceListener) -> None:
        """Tell `listener` of every rebalance, and every commit, on the thread that polls."""
        self._member.listeners.append(listener)

    def remove_listener(self, listener: RebalanceListener) -> None:
        """Tell `listener` nothing more; nothing happens if it was not added."""
        kept = [added for added in self._member.listeners if added is not listener]
        self._member.listeners[:] = kept
