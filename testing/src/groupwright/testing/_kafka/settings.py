"""The settings of a KRaft node, alone or of a cluster, as a broker's properties file states them."""

import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing._kafka.ports import HOST

NODE_ID = 1

Setting = str | int | bool
"""The value of a broker setting."""

CLIENTS, BROKERS, CONTROLLERS = 9092, 19092, 29093
"""The ports on which a node of a cluster listens, inside its container."""

_ANY_HOST = ""
_IN_VARIABLES = str.maketrans({".": "_", "_": "__", "-": "___"})


@dataclass(frozen=True)
class OpenListener:
    """A listener that a node has besides those that it cannot do without."""

    name: str
    port: int
    """Where the node listens."""
    protocol: str = "PLAINTEXT"
    """Its `security.protocol`."""
    advertised_port: int | None = None
    """Where its clients are sent, if not to `port`: that of a proxy."""


def single_node(
    *, port: int, controller_port: int, log_dir: Path, overrides: Mapping[str, Setting]
) -> dict[str, str]:
    """Return the settings of a node that is broker and controller, on loopback, sized for tests.

    Args:
        port: Where clients connect.
        controller_port: Where the node's controller listens.
        log_dir: Kafka's data directory (`log.dirs`).
        overrides: Settings that win over the defaults, by their names in the broker's documentation.
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
        # Small enough that the first consumer group and the first transaction wait for little.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 2,
        "share.coordinator.state.topic.num.partitions": 2,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        # After a crash the node registers anew only when its old session has ended (9 s by default).
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # A group's first members are known to the test, so nothing is gained by waiting for more.
        "group.initial.rebalance.delay.ms": 0,
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
        node: Its id.
        hosts: The addresses at which the nodes reach each other, by their ids.
        port: Where its clients reach it on loopback.
        overrides: Settings that win over the defaults.
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
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # A node that waits for the others on a busy machine would end itself after a minute.
        "initial.broker.registration.timeout.ms": 600_000,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    }
    return texts({**defaults, **overrides})


def with_listeners(
    node: Mapping[str, str], opened: Iterable[OpenListener], *, bound_to: str = _ANY_HOST
) -> dict[str, str]:
    """Return a node's settings with listeners more, whose clients are sent to loopback.

    Args:
        node: The settings.
        opened: The listeners.
        bound_to: The address that they listen on; by default all that the node has.
    """
    opened = list(opened)
    protocols = node.get("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT")
    added = {
        "listeners": [f"{each.name}://{bound_to}:{each.port}" for each in opened],
        "advertised.listeners": [
            f"{each.name}://{HOST}:{each.advertised_port or each.port}" for each in opened
        ],
        "listener.security.protocol.map": [f"{each.name}:{each.protocol}" for each in opened],
    }
    before = {**node, "listener.security.protocol.map": protocols}
    return {**before, **{name: ",".join((before[name], *words)) for name, words in added.items()}}


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as the environment variables that the image `apache/kafka` takes."""
    return {"KAFKA_" + name.translate(_IN_VARIABLES).upper(): value for name, value in settings.items()}


def texts(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return the settings as Kafka writes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def is_formatted(settings: Mapping[str, str]) -> bool:
    """Return whether the node's data directory has been prepared (`meta.properties` is what that leaves)."""
    return Path(settings["log.dirs"].split(",")[0], "meta.properties").exists()


def properties(settings: Mapping[str, str]) -> str:
    """Return the settings in the format of `java.util.Properties`."""
    # JSON's escapes of backslashes, control characters and non-ASCII letters are that format's too.
    return "".join(f"{name}={json.dumps(value)[1:-1]}\n" for name, value in settings.items())


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form: 16 bytes in URL-safe base64 without padding."""
    # Without a dash, since a leading one would be read as an option.
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
