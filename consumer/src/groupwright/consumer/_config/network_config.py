"""Configuration of the membership's connections. Not in `_network`, whose import takes kafka-python along."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupwright.consumer._config.security import Security


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Configuration of `Network`; times in seconds."""

    bootstrap_servers: str
    client_id: str
    group_id: str
    group_instance_id: str | None = None
    session_timeout: float = 45.0
    rebalance_timeout: float = 300.0
    request_timeout: float = 60.0
    allow_auto_create_topics: bool = False
    security: Security = field(default_factory=Security)
    transport: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of `transport.Connections`: settings of sockets and connections."""
