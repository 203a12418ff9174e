"""Configuration of the membership's connections. Not in `_network`, which is imported when it is needed."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from groupwright.consumer._config.security import Security


@dataclass(frozen=True, slots=True)
class Transport:
    """Settings of sockets and connections; times in seconds."""

    address_family: int = socket.AF_UNSPEC
    socket_options: Sequence[tuple[int, int, int]] = ()
    """Level, option and value of each."""
    setup_timeout: float = 30.0
    """Longest time from the resolution of a name to the end of the authentication."""
    max_idle: float = 0.0
    """Time after which an idle connection is closed; 0: never."""
    max_bytes: int = 100_000_000
    """Longest response, in bytes."""
    reconnect_backoff: float = 0.1
    reconnect_backoff_max: float = 10.0
    resolves_canonical_names: bool = False
    """True if the canonical names of their hosts replace `bootstrap.servers`."""
    rebootstraps: bool = True
    """True if the client asks `bootstrap.servers` also after the cluster has named its brokers (KIP-899)."""


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
    transport: Transport = field(default_factory=Transport)
