"""The settings of a single KRaft node, as a broker's properties file states them."""

import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from groupwright.testing.ports import HOST

NODE_ID = 1

Setting = str | int | bool
"""The value of a broker setting."""


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
