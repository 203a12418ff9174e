"""Limits of brokers, which advice must not exceed."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST_POLL_INTERVAL_MS = 86_400_000  # librdkafka's limit
_MARGIN = 3


def longer_poll_interval(processing: float) -> int | None:
    """Return a safe ``max.poll.interval.ms`` for a time between polls, in seconds; None beyond the limit."""
    wanted = int(processing * 1000 * _MARGIN)
    return wanted if wanted <= _LONGEST_POLL_INTERVAL_MS else None


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """Limits of groups in a broker's configuration. The defaults are Kafka's."""

    min_session_timeout: int = 6_000
    """``group.min.session.timeout.ms``, in milliseconds."""
    max_session_timeout: int = 1_800_000
    """``group.max.session.timeout.ms``, in milliseconds."""
    max_size: int = 2_147_483_647
    """``group.max.size``, the number of members of a classic group."""
    max_consumer_size: int = 2_147_483_647
    """``group.consumer.max.size``, the number of members of a group of KIP-848."""
