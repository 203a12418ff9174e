"""confluent-kafka's configuration, split between librdkafka, which fetches, and the membership.

Every key goes to librdkafka, which checks it, except those that would make it act for the group. What the
membership's own connections need is translated; a key that they cannot honour is refused, never ignored.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groupwright.assignors import Assignor, GroupwrightError, RebalanceProtocol, by_name, check_assignor
from groupwright.consumer.errors import ConfigurationError
from groupwright.consumer.network import NetworkConfig
from groupwright.consumer.timing import Timing

DEFAULT_STRATEGY = "range,roundrobin"

_STRATEGY = "partition.assignment.strategy"
_OURS = (_STRATEGY, "on_commit", "enable.auto.commit")

_SERVER = re.compile(r"(\w+://)?(\[[^\[\]]+\]|[^:\[\]]+)(:\d{1,5})?")

_TRUE = frozenset({"true", "t", "1"})
_FALSE = frozenset({"false", "f", "0"})

# What librdkafka's security keys are called by the membership's connections.
_SECURITY = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_SASL_MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})


class _Reader:
    """Reads values as librdkafka does: numbers and booleans may be strings."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        # Where configurations of old still keep topic settings.
        self._topic = config.get("default.topic.config") or {}

    def text(self, key: str, default: str = "") -> str:
        value = self._config.get(key, self._topic.get(key))
        return default if value is None else str(value)

    def milliseconds(self, key: str, default: int) -> int:
        value = self._config.get(key, default)
        try:
            return int(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{key} takes a whole number, not {value!r}") from error

    def seconds(self, key: str, default: int) -> float:
        return self.milliseconds(key, default) / 1000

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._config.get(key, default)
        word = str(value).lower()
        if word not in _TRUE | _FALSE:
            raise ConfigurationError(f"{key} takes true or false, not {value!r}")
        return word in _TRUE


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's configuration, read and checked."""

    native: Mapping[str, Any] = field(repr=False)  # may hold a password
    """What librdkafka gets."""
    network: NetworkConfig
    timing: Timing
    assignors: Mapping[str, Assignor]
    """By name, in order of preference."""
    rack: str | None
    auto_commit: bool
    auto_commit_interval: float
    """Seconds."""
    store_by_hand: bool
    """Whether the application calls `store_offsets` for what may be committed."""
    offset_reset: str
    """``auto.offset.reset`` as written."""
    on_commit: Callable[..., object] | None


def read_config(config: Mapping[str, Any]) -> ConsumerConfig:
    """Check a configuration and split it.

    Raises:
        ConfigurationError: a key is missing, out of range, or cannot be honoured.
        ValueError: ``group.id`` is missing (as confluent-kafka has it).
    """
    reader = _Reader(config)
    group = reader.text("group.id")
    if not group:
        raise ValueError("Failed to create consumer: group.id must be set")
    servers = _servers(reader.text("bootstrap.servers") or reader.text("metadata.broker.list"))
    if reader.text("group.protocol", "classic").lower() != "classic":
        raise ConfigurationError(
            "group.protocol=consumer lets the broker assign partitions, so assignors do not apply to it, and this "
            "consumer does not serve it yet: leave group.protocol out, or use confluent_kafka.Consumer"
        )
    on_commit = config.get("on_commit")
    if on_commit is not None and not callable(on_commit):
        raise ConfigurationError(f"on_commit takes a function, not {on_commit!r}")
    timing = _timing(reader)
    return ConsumerConfig(
        native=_native(config),
        network=NetworkConfig(
            bootstrap_servers=servers,
            client_id=reader.text("client.id", "rdkafka"),
            group_id=group,
            group_instance_id=reader.text("group.instance.id") or None,
            session_timeout=timing.session_timeout,
            rebalance_timeout=timing.max_poll_interval,
            request_timeout=reader.seconds("socket.timeout.ms", 60_000),
            allow_auto_create_topics=reader.flag("allow.auto.create.topics", default=False),
            transport=_transport(config, reader),
        ),
        timing=timing,
        assignors=read_strategy(config.get(_STRATEGY, DEFAULT_STRATEGY)),
        rack=reader.text("client.rack") or None,
        auto_commit=reader.flag("enable.auto.commit", default=True),
        auto_commit_interval=reader.seconds("auto.commit.interval.ms", 5_000),
        store_by_hand=not reader.flag("enable.auto.offset.store", default=True),
        offset_reset=reader.text("auto.offset.reset", "largest").lower(),
        on_commit=on_commit,
    )


def _servers(value: str) -> str:
    servers = [server.strip() for server in value.split(",") if server.strip()]
    if not servers:
        raise ConfigurationError(
            'bootstrap.servers must be set, to "host:port" or a comma-separated list of them'
        )
    for server in servers:
        if not _SERVER.fullmatch(server):
            raise ConfigurationError(
                f'bootstrap.servers has {server!r}; the form is "host:port", or "[address]:port" of an IPv6 address'
            )
    return ",".join(servers)


def read_strategy(value: object) -> dict[str, Assignor]:
    """Read ``partition.assignment.strategy``: names, assignors, or a list of either, by preference.

    Raises:
        ConfigurationError: a name is unknown, given twice, or an assignor cannot be used.
    """
    items: Sequence[object]
    if isinstance(value, str):
        items = [name.strip() for name in value.split(",") if name.strip()]
    elif isinstance(value, (Assignor, type)):
        items = [value]
    elif isinstance(value, (list, tuple)):
        items = value
    else:
        raise ConfigurationError(
            f"{_STRATEGY} takes names, assignors or a list of them, in order of preference; not {value!r}"
        )
    assignors: dict[str, Assignor] = {}
    for item in items:
        assignor = _read_assignor(item)
        if assignor.name in assignors:
            raise ConfigurationError(f"{_STRATEGY} has two assignors of the name {assignor.name!r}")
        assignors[assignor.name] = assignor
    if not assignors:
        raise ConfigurationError(f"{_STRATEGY} is empty; leave it out for {DEFAULT_STRATEGY!r}")
    _refuse_cooperative(assignors)
    return assignors


def _refuse_cooperative(assignors: Mapping[str, Assignor]) -> None:
    """Refuse a list whose assignors are all cooperative: as in Kafka, it asks for cooperative rebalances."""
    if all(RebalanceProtocol.COOPERATIVE in assignor.protocols for assignor in assignors.values()):
        names = ", ".join(map(repr, assignors))
        raise ConfigurationError(
            f"{_STRATEGY} {names} asks for cooperative rebalances, and this consumer rebalances eagerly for now: "
            "choose 'sticky', which balances and moves as 'cooperative-sticky' does, or add an eager assignor to the list"
        )


def _read_assignor(item: object) -> Assignor:
    if isinstance(item, type) and issubclass(item, Assignor):
        raise ConfigurationError(
            f"{_STRATEGY} has the class {item.__name__}; give an object: {item.__name__}()"
        )
    if not isinstance(item, (str, Assignor)):
        raise ConfigurationError(f"{_STRATEGY} has {item!r}, which is neither a name nor an Assignor")
    try:
        item = by_name(item) if isinstance(item, str) else item
        check_assignor(item)
    except GroupwrightError as error:
        raise ConfigurationError(f"{_STRATEGY}: {error}") from error
    if RebalanceProtocol.EAGER not in item.protocols:
        raise ConfigurationError(
            f"the assignor {item.name!r} is cooperative only, and this consumer rebalances eagerly for now; let its "
            "`protocols` include RebalanceProtocol.EAGER"
        )
    return item


def _native(config: Mapping[str, Any]) -> dict[str, Any]:
    native = {key: value for key, value in config.items() if key not in _OURS}
    # librdkafka must never commit: it is in no group, so the coordinator would refuse its commits.
    native["enable.auto.commit"] = False
    return native


def _timing(reader: _Reader) -> Timing:
    timing = Timing(
        session_timeout=reader.seconds("session.timeout.ms", 45_000),
        heartbeat_interval=reader.seconds("heartbeat.interval.ms", 3_000),
        max_poll_interval=reader.seconds("max.poll.interval.ms", 300_000),
        retry_backoff=reader.seconds("retry.backoff.ms", 100),
        retry_backoff_max=reader.seconds("retry.backoff.max.ms", 1_000),
    )
    if timing.heartbeat_interval >= timing.session_timeout:
        raise ConfigurationError(
            f"heartbeat.interval.ms ({timing.heartbeat_interval * 1000:.0f}) must be less than session.timeout.ms "
            f"({timing.session_timeout * 1000:.0f}); a third of it or less survives a lost heartbeat"
        )
    if timing.max_poll_interval < timing.session_timeout:
        raise ConfigurationError(
            f"max.poll.interval.ms ({timing.max_poll_interval * 1000:.0f}) must not be less than session.timeout.ms "
            f"({timing.session_timeout * 1000:.0f})"
        )
    return timing


def _transport(config: Mapping[str, Any], reader: _Reader) -> dict[str, object]:
    transport: dict[str, object] = {
        "reconnect_backoff_ms": reader.milliseconds("reconnect.backoff.ms", 100),
        "reconnect_backoff_max_ms": reader.milliseconds("reconnect.backoff.max.ms", 10_000),
        "receive_message_max_bytes": reader.milliseconds("receive.message.max.bytes", 100_000_000),
    }
    for key, value in config.items():
        name = key.lower()
        if name in _SECURITY:
            transport[_SECURITY[name]] = value
        elif {"ssl", "sasl", "oauth_cb"} & set(name.split(".")):
            raise ConfigurationError(
                f"{key} cannot be served by the connection to the coordinator yet; of the security keys, "
                f"{', '.join(sorted(_SECURITY))} can"
            )
    protocol = str(transport.get("security_protocol", "PLAINTEXT")).upper()
    transport["security_protocol"] = protocol
    if "sasl_mechanism" in transport:
        mechanism = transport["sasl_mechanism"] = str(transport["sasl_mechanism"]).upper()
        if mechanism not in _SASL_MECHANISMS and protocol.startswith("SASL"):
            served = ", ".join(sorted(_SASL_MECHANISMS))
            raise ConfigurationError(f"sasl.mechanism {mechanism} cannot be served yet; {served} can")
    elif protocol.startswith("SASL"):
        raise ConfigurationError(f"security.protocol={protocol} needs sasl.mechanism")
    return transport
