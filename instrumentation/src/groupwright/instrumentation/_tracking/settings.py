"""What a client's configuration says that the instrumentation has to know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from groupwright.instrumentation._tracking.rebalance_tracker import CONSUMER, COOPERATIVE, EAGER

DEFAULT_CLIENT_ID = "rdkafka"
DEFAULT_STRATEGY = "range,roundrobin"


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """A consumer's, with librdkafka's defaults. Times are in seconds."""

    group_id: str
    client_id: str
    kind: str
    protocol: str
    heartbeat_interval: float
    max_poll_interval: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read a configuration, which librdkafka checks, not this."""
        strategy = str(config.get("partition.assignment.strategy", DEFAULT_STRATEGY))
        kind = COOPERATIVE if "cooperative" in strategy else EAGER
        protocol = strategy
        if config.get("group.protocol") == "consumer":
            kind, protocol = CONSUMER, str(config.get("group.remote.assignor") or "consumer")
        return cls(
            group_id=str(config.get("group.id", "")),
            client_id=str(config.get("client.id", DEFAULT_CLIENT_ID)),
            kind=kind,
            protocol=protocol,
            heartbeat_interval=milliseconds(config, "heartbeat.interval.ms", 3000),
            max_poll_interval=milliseconds(config, "max.poll.interval.ms", 300_000),
        )


def milliseconds(config: Mapping[str, Any], key: str, default: int) -> float:
    """Return a duration in seconds; the default where it is missing, or no number (which librdkafka will refuse)."""
    try:
        return float(config.get(key, default)) / 1000
    except (TypeError, ValueError):
        return default / 1000
