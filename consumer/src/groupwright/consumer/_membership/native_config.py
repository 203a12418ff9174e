"""Configuration of librdkafka's handle in a `ClassicMembership`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._membership.callbacks import Failures, guard_native_callbacks
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.membership import Membership


class NativeConfig:
    """Makes the configuration, with guarded callbacks, whenever a handle is created."""

    def __init__(
        self,
        config: ConsumerConfig,
        membership: Membership,
        offsets: OffsetTracker,
        prefetch: PrefetchBuffer,
        failures: Failures,
    ) -> None:
        """Read the group's state from these parts, for ``stats_cb``; `failures` receives exceptions."""
        self._config = config
        self._membership = membership
        self._offsets = offsets
        self._prefetch = prefetch
        self._failures = failures

    def __call__(self) -> dict[str, Any]:
        """Return the configuration. It may contain a password, so nothing keeps it."""
        native = dict(self._config.native)
        if callable(native.get("stats_cb")):
            native["stats_cb"] = self._with_group_state(native["stats_cb"])
        return guard_native_callbacks(native, self._failures)

    def _with_group_state(self, stats_cb: Callable[[str], object]) -> Callable[[str], object]:
        """Return a ``stats_cb`` that first adds the group's state, which librdkafka does not have."""
        from groupwright.consumer._membership.librdkafka_stats import with_group_state

        read_uncommitted = self._config.native.get("isolation.level") == "read_uncommitted"

        def call(text: str) -> object:
            membership = self._membership
            committed = self._offsets.all_committed()
            return stats_cb(
                with_group_state(
                    text,
                    membership.state,
                    sum(map(len, membership.owned.values())),
                    {key: offset.offset for key, offset in committed.items()},
                    self._prefetch.first_offsets(),
                    read_uncommitted=read_uncommitted,
                )
            )

        return call
