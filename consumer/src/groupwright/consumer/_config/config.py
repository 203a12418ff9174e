"""confluent-kafka's configuration, split between librdkafka, which fetches messages, and the membership.

librdkafka receives every property and checks it, except the properties of the group, which the membership
implements. Properties of connections are translated for the membership's own connections. A property that
they do not support raises `ConfigurationError`; none is ignored.
"""

from __future__ import annotations

import logging
import math
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from groupwright.consumer._config.network_config import NetworkConfig, Transport
from groupwright.consumer._config.security import MECHANISMS, Security, read_security
from groupwright.consumer._config.settings import SETTINGS, flatten, refuse_unsupported, with_values
from groupwright.consumer._protocol.subscription import read_pattern
from groupwright.consumer._protocol.timers import Timing
from groupwright.consumer.errors import ConfigurationError
from groupwright.core.configuration import (
    DEFAULTS,
    STRATEGY,
    parse_boolean,
    parse_integer,
    public_settings,
    shown,
)

if TYPE_CHECKING:
    from groupwright.assignors import Assignor

_LOAD_CHECK = "load.check.interval.ms"
_MAX_MOVES = "load.check.max.moves"
_NOT_FOR_LIBRDKAFKA = (STRATEGY, "on_commit", _LOAD_CHECK, _MAX_MOVES)
_BROKER_DECIDES = (
    STRATEGY,
    _LOAD_CHECK,
    _MAX_MOVES,
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol.type",
)

_SERVER = re.compile(r"(\w+://)?(\[[^\[\]\s]+\]|[^:\[\]\s]+)(:\d{1,5})?")
_BARE_IPV6 = re.compile(r"[0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,}")

_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_RECOVERIES = ("rebootstrap", "none")
_DEFAULTS: Mapping[str, object] = {
    **DEFAULTS,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "largest",
    "connections.max.idle.ms": 0,
    "enable.ssl.certificate.verification": True,
    _LOAD_CHECK: 300_000,
    "receive.message.max.bytes": 100_000_000,
    "reconnect.backoff.max.ms": 10_000,
    "reconnect.backoff.ms": 100,
    "retry.backoff.max.ms": 1_000,
    "retry.backoff.ms": 100,
    "socket.connection.setup.timeout.ms": 30_000,
    "socket.keepalive.enable": False,
    "socket.nagle.disable": True,
    "socket.receive.buffer.bytes": 0,
    "socket.send.buffer.bytes": 0,
    "socket.timeout.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 300_000,
}
"""Defaults of the properties that are read here; librdkafka's, where it has the property."""
_NATIVE_RECONNECT_BACKOFF_MAX_MS = 1_000
"""librdkafka's ``reconnect.backoff.max.ms`` if the application sets none."""


class _Reader:
    """Reads values as librdkafka does: numbers and booleans may be strings, and trailing text is ignored.

    Its methods raise `ConfigurationError` for a value that is of the wrong type or out of range.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Read a flattened configuration."""
        self._config = config

    def has(self, key: str) -> bool:
        """Return whether the application has set the property."""
        return key in self._config

    def text(self, key: str) -> str:
        return str(self._value(key, ""))

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return one of the choices, the first by default."""
        value = str(self._value(key, choices[0])).lower()
        if value not in choices:
            raise ConfigurationError(f"{key} takes {', '.join(choices)}, not {shown(key, value)}")
        return value

    def number(self, key: str) -> int:
        value = self._value(key)
        number = parse_integer(value)
        if number is None:
            raise ConfigurationError(f"{key} takes a whole number, not {shown(key, value)}")
        least, most = SETTINGS[key].limits or (number, number)
        if not least <= number <= most:
            raise ConfigurationError(f"{key} takes {least} to {most}, not {number}")
        return number

    def seconds(self, key: str) -> float:
        return self.number(key) / 1000

    def flag(self, key: str) -> bool:
        value = self._value(key)
        flag = parse_boolean(value)
        if flag is None:
            raise ConfigurationError(f"{key} takes true or false, not {shown(key, value)}")
        return flag

    def _value(self, key: str, otherwise: object = None) -> object:
        return self._config.get(key, _DEFAULTS.get(key, otherwise))


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's configuration, read and checked."""

    native: Mapping[str, Any] = field(repr=False)  # may hold a password
    """Configuration of librdkafka's handle."""
    network: NetworkConfig
    timing: Timing
    assignors: Mapping[str, Assignor]
    """The member's assignors by name, in order of preference; empty if the broker assigns."""
    rack: str | None
    auto_commit: bool
    auto_commit_interval: float
    """Seconds."""
    store_by_hand: bool
    """True if ``enable.auto.offset.store`` is false: only what `store_offsets` stored is committed."""
    offset_reset: str
    """``auto.offset.reset`` in lower case, one of librdkafka's synonyms."""
    on_commit: Callable[..., object] | None
    ignored_topics: tuple[re.Pattern[str], ...] = ()
    """``topic.blacklist``: topics that are never subscribed to."""
    load_check_max_moves: float = math.inf
    """``load.check.max.moves``; infinite where it is not set."""
    broker_assigned: bool = False
    """True if ``group.protocol=consumer`` (KIP-848).

    The membership is librdkafka's, and so are all properties.
    """
    settings: Mapping[str, object] = field(default_factory=dict)
    """The configuration without functions and secrets, for display."""

    @property
    def cooperative(self) -> bool:
        """True if the member rebalances cooperatively (KIP-429): all its assignors must support that.

        As in Java's ConsumerCoordinator, the member uses the highest protocol that all assignors support. So
        a list with one eager assignor is eager, as in the first rolling bounce of KIP-429.
        """
        from groupwright.consumer._config.strategy import is_cooperative  # it brings numpy

        return is_cooperative(self.assignors)


def is_broker_assigned(config: Mapping[str, Any]) -> bool:
    """Return whether the broker assigns partitions: ``group.protocol=consumer`` (KIP-848).

    Raises:
        ConfigurationError: The protocol is unknown, or another property contradicts it.
    """
    flat = with_values(flatten(config))
    if _Reader(flat).choice("group.protocol", ("classic", "consumer")) == "classic":
        return False
    for key in _BROKER_DECIDES:
        if key in flat:
            raise ConfigurationError(f"{key} does not go with group.protocol=consumer, {_instead(key)}")
    return True


def _instead(key: str) -> str:
    """Return why a property does not apply with ``group.protocol=consumer``, and what to do instead."""
    if key == STRATEGY:
        return (
            "where the broker assigns partitions: set group.remote.assignor to one of the broker's own, or, "
            "for an assignor of your choice, leave group.protocol out"
        )
    if key in (_LOAD_CHECK, _MAX_MOVES):
        return f"where no member checks the load: leave {key} out"
    if key == "group.protocol.type":
        return f"where there is no choice of it: leave {key} out"
    return f"where it is the broker's to set (group.consumer.{key}): leave {key} or group.protocol out"


def read_config(config: Mapping[str, Any]) -> ConsumerConfig:
    """Check a configuration and split it.

    Raises:
        ConfigurationError: A property is missing, out of range, or not supported.
        ValueError: ``group.id`` is missing, as with confluent-kafka.
    """
    broker_assigned = is_broker_assigned(config)
    written = flatten(config)
    if not _has_known_mechanism(written):
        del written["sasl.mechanism"]  # unused, and librdkafka would log it
    config = with_values(written)
    reader = _Reader(config)
    group = reader.text("group.id")
    if not group:
        raise ValueError("Failed to create consumer: group.id must be set")
    servers = _servers(reader.text("bootstrap.servers"))
    on_commit = written.get("on_commit", _no_callback)
    if not callable(on_commit):
        raise ConfigurationError(f"on_commit takes a function, not {shown('on_commit', on_commit)}")
    log: logging.Logger = config.get("logger") or logging.getLogger("groupwright.consumer")
    timing = _timing(reader, log, broker_assigned=broker_assigned)
    auto_commit_interval = reader.seconds("auto.commit.interval.ms")
    security = Security()
    if not broker_assigned:
        refuse_unsupported(config)
        verify = reader.flag("enable.ssl.certificate.verification")
        security = read_security(config, verify=verify, log=log)
    assignors: Mapping[str, Assignor] = {}
    if not broker_assigned:
        from groupwright.consumer._config.strategy import DEFAULT_STRATEGY, read_strategy

        assignors = read_strategy(config.get(STRATEGY, DEFAULT_STRATEGY))
    return ConsumerConfig(
        native=written if broker_assigned else _native(written, security),
        network=NetworkConfig(
            bootstrap_servers=servers,
            client_id=reader.text("client.id"),
            group_id=group,
            group_instance_id=reader.text("group.instance.id") or None,
            session_timeout=timing.session_timeout,
            rebalance_timeout=timing.max_poll_interval,
            request_timeout=reader.seconds("socket.timeout.ms"),
            allow_auto_create_topics=reader.flag("allow.auto.create.topics"),
            security=security,
            transport=_transport(reader),
        ),
        timing=timing,
        assignors=assignors,
        rack=reader.text("client.rack") or None,
        auto_commit=reader.flag("enable.auto.commit") and auto_commit_interval > 0,
        auto_commit_interval=auto_commit_interval,
        store_by_hand=not reader.flag("enable.auto.offset.store"),
        offset_reset=reader.text("auto.offset.reset").lower(),
        on_commit=None if on_commit is _no_callback else on_commit,
        ignored_topics=_ignored_topics(reader),
        load_check_max_moves=reader.number(_MAX_MOVES) if reader.has(_MAX_MOVES) else math.inf,
        broker_assigned=broker_assigned,
        settings=public_settings(config),
    )


def _has_known_mechanism(config: Mapping[str, Any]) -> bool:
    """Return False for an unknown ``sasl.mechanism`` that is not used."""
    mechanism, protocol = config.get("sasl.mechanism"), str(config.get("security.protocol"))
    return mechanism is None or str(mechanism).upper() in MECHANISMS or "SASL" in protocol.upper()


def read_connection(config: Mapping[str, Any], *, timeout: float) -> NetworkConfig:
    """Check the settings of connections, and return them; settings of consumers and groups are ignored.

    Args:
        config: A confluent-kafka configuration.
        timeout: Seconds for each request, and at most for each connection.

    Raises:
        ConfigurationError: A property is missing, out of range, or not supported.
    """
    config = with_values(flatten(config))
    reader = _Reader(config)
    refuse_unsupported(config)
    servers = _servers(reader.text("bootstrap.servers"))
    if not servers:
        raise ConfigurationError("bootstrap.servers is not set: name at least one broker, as host:port")
    verify = reader.flag("enable.ssl.certificate.verification")
    log: logging.Logger = config.get("logger") or logging.getLogger("groupwright.consumer")
    transport = _transport(reader)
    return NetworkConfig(
        bootstrap_servers=servers,
        client_id=reader.text("client.id"),
        group_id="",
        request_timeout=timeout,
        security=read_security(config, verify=verify, log=log),
        transport=replace(transport, setup_timeout=min(transport.setup_timeout, timeout)),
    )


def _no_callback() -> None:
    """Default of ``on_commit``: distinguishes a missing callback from an explicit None."""


def _ignored_topics(reader: _Reader) -> tuple[re.Pattern[str], ...]:
    texts = (text.strip() for text in reader.text("topic.blacklist").split(","))
    try:
        return tuple(read_pattern(text) for text in texts if text)
    except ValueError as error:
        raise ConfigurationError(f"topic.blacklist: {error}") from error


def _servers(value: str) -> str:
    """Check ``bootstrap.servers``. An empty value is legal, as with librdkafka: no broker is ever reached."""
    servers = [server.strip() for server in value.split(",") if server.strip()]
    servers = [f"[{server}]" if _BARE_IPV6.fullmatch(server) else server for server in servers]
    for server in servers:
        if not _SERVER.fullmatch(server):
            raise ConfigurationError(
                f"bootstrap.servers has {shown('bootstrap.servers', server)}; the form is "
                '"host:port", or "[address]:port" of an IPv6 address'
            )
    return ",".join(servers)


def _native(config: Mapping[str, Any], security: Security) -> dict[str, Any]:
    native = {key: value for key, value in config.items() if key not in _NOT_FOR_LIBRDKAFKA}
    # librdkafka must never commit: it is in no group, so the coordinator would reject its commits. An
    # explicit None is passed on, so that librdkafka rejects it with its own error.
    if native.get("enable.auto.commit", True) is not None:
        native["enable.auto.commit"] = False
    # librdkafka's default of 10 s delays fetching after an outage. In a group of its own, its queries for the
    # coordinator mostly reconnect sooner; here it has none.
    first = _Reader(with_values(config)).number("reconnect.backoff.ms")
    native.setdefault("reconnect.backoff.max.ms", max(first, _NATIVE_RECONNECT_BACKOFF_MAX_MS))
    if security.tokens is not None:
        native["oauth_cb"] = security.tokens.refresh
        # The callback replaces librdkafka's own OIDC client.
        native.pop("sasl.oauthbearer.method", None)
    return native


def _timing(reader: _Reader, log: logging.Logger, *, broker_assigned: bool) -> Timing:
    refresh = reader.seconds("topic.metadata.refresh.interval.ms")
    session = reader.seconds("session.timeout.ms")
    heartbeat = reader.seconds("heartbeat.interval.ms")
    timing = Timing(
        session_timeout=session,
        heartbeat_interval=session / 3 if heartbeat >= session else heartbeat,
        max_poll_interval=reader.seconds("max.poll.interval.ms"),
        retry_backoff=reader.seconds("retry.backoff.ms"),
        retry_backoff_max=reader.seconds("retry.backoff.max.ms"),
        metadata_refresh=refresh if refresh > 0 else math.inf,
        load_check=reader.seconds(_LOAD_CHECK) or math.inf,
    )
    if broker_assigned:
        return timing  # the broker sets session and heartbeats
    if reader.has("heartbeat.interval.ms") and heartbeat >= session:
        log.warning(
            "heartbeat.interval.ms (%.0f) is not less than session.timeout.ms (%.0f), so the group would "
            "lose this member between two heartbeats: they are sent every %.0f ms instead. Set it to a third "
            "of session.timeout.ms or less",
            heartbeat * 1000,
            session * 1000,
            timing.heartbeat_interval * 1000,
        )
    if timing.max_poll_interval < timing.session_timeout:
        raise ConfigurationError(
            f"max.poll.interval.ms ({timing.max_poll_interval * 1000:.0f}) must not be less than "
            f"session.timeout.ms ({timing.session_timeout * 1000:.0f})"
        )
    return timing


def _transport(reader: _Reader) -> Transport:
    """Return the settings of sockets and connections."""
    return Transport(
        address_family=_FAMILIES[reader.choice("broker.address.family", tuple(_FAMILIES))],
        socket_options=_socket_options(reader),
        setup_timeout=reader.seconds("socket.connection.setup.timeout.ms"),
        max_idle=reader.seconds("connections.max.idle.ms"),
        max_bytes=reader.number("receive.message.max.bytes"),
        reconnect_backoff=reader.seconds("reconnect.backoff.ms"),
        reconnect_backoff_max=reader.seconds("reconnect.backoff.max.ms"),
        resolves_canonical_names=reader.choice("client.dns.lookup", _DNS_LOOKUPS) != _DNS_LOOKUPS[0],
        rebootstraps=reader.choice("metadata.recovery.strategy", _RECOVERIES) == _RECOVERIES[0],
    )


def _socket_options(reader: _Reader) -> list[tuple[int, int, int]]:
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, int(reader.flag("socket.nagle.disable"))),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(reader.flag("socket.keepalive.enable"))),
    ]
    buffers = {"socket.send.buffer.bytes": socket.SO_SNDBUF, "socket.receive.buffer.bytes": socket.SO_RCVBUF}
    for key, option in buffers.items():
        if size := reader.number(key):
            options.append((socket.SOL_SOCKET, option, size))
    return options
