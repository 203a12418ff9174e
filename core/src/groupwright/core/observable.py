"""Interface of a consumer that reports its rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from groupwright.core.listener import RebalanceListener
from groupwright.core.snapshot import MembershipSnapshot


class ObservableConsumer(Protocol):
    """A consumer that reports its rebalances. It must allow weak references."""

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The configuration without functions and secrets; assignors by their names."""

    @property
    def poll_age(self) -> float | None:
        """Seconds since the last poll; None once the consumer is closed. Safe from any thread."""

    @property
    def membership_snapshot(self) -> MembershipSnapshot:
        """The membership at this moment. Safe from any thread."""

    def add_listener(self, listener: RebalanceListener, /) -> None:
        """Call `listener` for every rebalance and commit from now on."""
