"""Brokers that die, move and stay away, `bootstrap.servers` among them, beside confluent-kafka's consumer.

Both clients consume at the same time. While some broker answers that a member has seen, it goes on: it gets
messages that are produced after the fault, it commits, and it loses nothing.
"""

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import (
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from groupwright.testing import Listener, Security
from integration_tests.harness.beside import CLIENTS, Member
from integration_tests.harness.local_cluster import LocalCluster
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import wait_until_known

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class Pair:
    """A member of each client, in groups that the same broker coordinates, and a producer for both."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.topic = f"orders-{uuid.uuid4().hex[:8]}"
        cluster.create_topic(self.topic, 1)
        # A broker that does not know it yet would say that there is no such topic.
        wait_until_known(cluster.bootstrap_servers, self.topic, 1)
        self.members: list[Member] = []
        self._produced = 0
        """Messages that brokers have acknowledged, without any gap."""
        self._ended = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._produce, name="producer")
        self._thread.start()

    def _produce(self) -> None:
        while not self._ended.wait(0.05):
            self._producer.produce(self.topic, b"", on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._produced += error is None

    def join(self, coordinator: int, config: dict[str, Any] | None = None) -> None:
        """Have a member of each client join a group that this broker coordinates; wait until they commit."""
        for client in CLIENTS:
            group = self.group_at(coordinator)
            self.members.append(Member(client, self.topic, {**(config or {}), "group": group}))
        self.go_on("joined")

    def group_at(self, coordinator: int) -> str:
        """Return the name of a new group that this broker coordinates."""
        return next(
            name
            for name in iter(lambda: f"g-{uuid.uuid4().hex[:8]}", "")
            if self.cluster.coordinator_of(name) == coordinator
        )

    def go_on(self, what: str) -> None:
        """Wait until each member has committed a message that is produced after this; none has lost any."""
        before = self._produced
        for member in self.members:
            wait_until(lambda: member.committed > before, f"{what}: a commit of {member.client}")  # noqa: B023 - called at once
        assert [member.losses for member in self.members] == [0] * len(self.members)
        assert [member.errors for member in self.members] == [[]] * len(self.members)

    def close(self) -> None:
        """End the producer and the members."""
        self._ended.set()
        self._thread.join(PATIENCE)
        self._producer.purge()
        for member in self.members:
            member.close()


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCluster]:
    """Three brokers, also with TLS and SASL."""
    with LocalCluster(security=Security()) as cluster:
        with contextlib.closing(confluent_kafka.Consumer(_probe(cluster))) as probe:
            # The topic of offsets is created by the first group.
            wait_until(lambda: _is_coordinated(probe), "a coordinator")
        cluster.wait_until_ready()
        yield cluster


def _probe(cluster: LocalCluster) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "probe", "log_level": 0}


def _is_coordinated(probe: confluent_kafka.Consumer) -> bool:
    with contextlib.suppress(KafkaException):
        probe.committed([TopicPartition("probe", 0)], timeout=5)
        return True
    return False


@pytest.fixture
def pair(running: LocalCluster) -> Iterator[Pair]:
    """Members of both clients; the cluster is whole again at the end."""
    running.heal()
    pair = Pair(running)
    try:
        yield pair
    finally:
        running.heal()
        pair.close()


def plain(cluster: LocalCluster, node: int) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.address(node)}


def secured(cluster: LocalCluster, node: int) -> dict[str, Any]:
    config = cluster.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-256")
    return {**config, "bootstrap.servers": cluster.address(node, Listener.SASL_SSL)}


def static(cluster: LocalCluster, node: int) -> dict[str, Any]:
    return {**secured(cluster, node), "group.instance.id": "static"}


def broker_assigned(cluster: LocalCluster, node: int) -> dict[str, Any]:
    """Return the configuration of members whose partitions the broker assigns (KIP-848)."""
    return {**plain(cluster, node), "group.protocol": "consumer"}


@pytest.mark.parametrize(
    ("config", "is_named"),
    [
        pytest.param(secured, True, marks=pytest.mark.endurance),
        (plain, False),
        pytest.param(static, True, marks=pytest.mark.endurance),
        (broker_assigned, True),
    ],
)
def test_the_coordinator_dies_for_good(
    pair: Pair, config: Callable[[LocalCluster, int], dict[str, Any]], *, is_named: bool
) -> None:
    """Named: `bootstrap.servers` has that broker alone. The others name it as the coordinator for seconds."""
    cluster, coordinator = pair.cluster, 2
    pair.join(coordinator, config(cluster, coordinator if is_named else 3))

    cluster.kill(coordinator)

    pair.go_on("without the coordinator")
    cluster.start(coordinator)
    cluster.wait_until_ready()
    pair.go_on("with the coordinator")


@pytest.mark.endurance
def test_the_bootstrap_address_disappears_and_later_the_coordinator_restarts(pair: Pair) -> None:
    """The bootstrap address disappears while members run; later, a broker restarts."""
    cluster, coordinator = pair.cluster, 2
    assert cluster._proxy is not None
    balancer = cluster._proxy.open(cluster._client_ports[3])
    pair.join(coordinator, {"bootstrap.servers": balancer.address})

    balancer.cut()
    pair.go_on("without the bootstrap address")
    cluster.kill(coordinator)
    pair.go_on("without the coordinator")
    cluster.start(coordinator)
    cluster.wait_until_ready()
    pair.go_on("with the coordinator")


@pytest.mark.endurance
def test_all_brokers_move_to_other_addresses_one_after_the_other(pair: Pair) -> None:
    """In the end no address is left that the clients were configured with or have learned at first."""
    cluster = pair.cluster
    pair.join(1, secured(cluster, 1))

    for node in cluster.nodes:
        cluster.move(node)
        cluster._admin = None
        cluster.wait_until_ready()
        pair.go_on(f"after broker {node} has moved")


@pytest.mark.endurance
def test_two_of_three_brokers_die_one_after_the_other_and_come_back(pair: Pair) -> None:
    """Each time the coordinator's group of controllers has a majority again before the next one dies."""
    cluster = pair.cluster
    pair.join(1, plain(cluster, 1))

    for node in (1, 2):
        cluster.kill(node)
        pair.go_on(f"without broker {node}")
        cluster.start(node)
        cluster.wait_until_ready()
        pair.go_on(f"with broker {node}")


def test_while_all_brokers_are_down_poll_returns_no_error_and_error_cb_is_called(pair: Pair) -> None:
    """As in librdkafka: the errors of connections are for `error_cb`, and poll returns those of the group."""
    cluster = pair.cluster
    pair.join(1, {"bootstrap.servers": cluster.bootstrap_servers, "session.timeout.ms": 300_000})

    for node in cluster.nodes:
        cluster.kill(node)

    for member in pair.members:
        wait_until(lambda: KafkaError._ALL_BROKERS_DOWN in member.callback_errors, "all brokers down")  # noqa: B023 - called at once
    assert [member.errors for member in pair.members] == [[], []]
    kinds = [set(member.callback_errors) for member in pair.members]
    assert kinds[0] == kinds[1] == {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
    cluster.heal()
    pair.go_on("with all brokers")
