"""Settings of a KRaft node, standalone or in a cluster, by their names in `server.properties`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing._kafka.ports import HOST

NODE_ID = 1

Setting = str | int | bool
"""The value of a broker setting."""

CLIENTS, BROKERS, CONTROLLERS = 9092, 19092, 19093
"""The ports on which a node of a cluster listens, inside its container; `ReservedPorts` never returns one."""

_ANY_HOST = ""
_IN_VARIABLES = str.maketrans({".": "_", "_": "__", "-": "___"})


@dataclass(frozen=True)
class AdditionalListener:
    """An additional listener of a node."""

    name: str
    port: int
    """Port on which the node listens."""
    protocol: str = "PLAINTEXT"
    """Its `security.protocol`."""
    advertised_port: int | None = None
    """Port in `advertised.listeners`, if it differs from `port`: that of a proxy."""


def single_node(
    *, port: int, controller_port: int, log_dir: Path, overrides: Mapping[str, Setting]
) -> dict[str, str]:
    """Return the settings of a node that is broker and controller, on loopback, sized for tests.

    Args:
        port: Port for clients.
        controller_port: Port of the controller.
        log_dir: Kafka's data directory (`log.dirs`).
        overrides: Settings that override the defaults, by their names in Kafka's documentation.
    """
    voters = f"{NODE_ID}@{HOST}:{controller_port}"
    defaults: dict[str, Setting] = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": False,
        # One node holds the only replica of everything.
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # Few partitions, so the first consumer group and the first transaction start fast.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 2,
        "share.coordinator.state.topic.num.partitions": 2,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        # Threads take a processor's time at the start and when they idle, and a test has few clients.
        "num.network.threads": 1,
        "num.io.threads": 2,
        # Tests produce messages with old timestamps, which retention would delete after some minutes.
        "log.retention.ms": -1,
        # After a crash, the node can register again only when its old session has ended (9 s by default).
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # Tests wait for their members themselves.
        "group.initial.rebalance.delay.ms": 0,
        # By default the controller writes a record without content every half second.
        "metadata.max.idle.interval.ms": 10_000,
    }
    return texts({**defaults, **overrides})


def cluster_node(
    node: int,
    *,
    hosts: Mapping[int, str],
    port: int,
    overrides: Mapping[str, Setting],
) -> dict[str, str]:
    """Return the settings of a node of a cluster, which is broker and controller, in a container of its own.

    Args:
        node: The node id.
        hosts: The nodes' addresses in the containers' network, by node id.
        port: Port for clients on loopback.
        overrides: Settings that override the defaults.
    """
    replicas = min(3, len(hosts))
    defaults: dict[str, Setting] = {
        "process.roles": "broker,controller",
        "node.id": node,
        "broker.rack": f"rack-{node}",
        "controller.quorum.voters": ",".join(f"{each}@{host}:{CONTROLLERS}" for each, host in hosts.items()),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"CLIENT://:{CLIENTS},BROKER://:{BROKERS},CONTROLLER://:{CONTROLLERS}",
        "advertised.listeners": f"CLIENT://{HOST}:{port},BROKER://{hosts[node]}:{BROKERS}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "auto.create.topics.enable": False,
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min(2, replicas),
        # As on a single node, above.
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.num.partitions": 2,
        "log.retention.ms": -1,
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # By default, a node that waits more than a minute for the others exits, as on a busy machine.
        "initial.broker.registration.timeout.ms": 600_000,
        "group.initial.rebalance.delay.ms": 0,
        "metadata.max.idle.interval.ms": 10_000,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    }
    return texts({**defaults, **overrides})


def with_listeners(
    node_settings: Mapping[str, str], listeners: Iterable[AdditionalListener], *, bound_to: str = _ANY_HOST
) -> dict[str, str]:
    """Return a node's settings with additional listeners, advertised on loopback.

    Args:
        node_settings: The settings.
        listeners: The additional listeners.
        bound_to: The address that they listen on; by default all addresses.
    """
    listeners = list(listeners)
    protocols = node_settings.get(
        "listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    )
    added = {
        "listeners": [f"{each.name}://{bound_to}:{each.port}" for each in listeners],
        "advertised.listeners": [
            f"{each.name}://{HOST}:{each.advertised_port or each.port}" for each in listeners
        ],
        "listener.security.protocol.map": [f"{each.name}:{each.protocol}" for each in listeners],
    }
    before = {**node_settings, "listener.security.protocol.map": protocols}
    return {**before, **{name: ",".join((before[name], *words)) for name, words in added.items()}}


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as environment variables of the image `apache/kafka`."""
    return {"KAFKA_" + name.translate(_IN_VARIABLES).upper(): value for name, value in settings.items()}


def texts(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return the settings with their values as Kafka's text."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def properties(settings: Mapping[str, str]) -> str:
    """Return the settings in the format of `java.util.Properties`."""
    # JSON escapes backslashes, control characters and non-ASCII letters as that format does.
    return "".join(f"{name}={json.dumps(value)[1:-1]}\n" for name, value in settings.items())
