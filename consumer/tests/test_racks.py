"""Racks of replicas while brokers are down: Metadata lists live brokers only."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from groupwright.consumer._network.connections import Network, NetworkConfig
from groupwright.consumer._protocol.model import MetadataResponse
from groupwright.consumer._protocol.timers import Timing
from groupwright.consumer._protocol.topic_monitor import TopicMonitor

RACKS = {1: "a", 2: "b", 3: "c"}


class Cluster:
    """Three brokers in three racks; a topic with a replica in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alive = set(RACKS)
        self.racks: dict[int, str | None] = {**RACKS}
        self._network = Network(NetworkConfig("127.0.0.1:1", "client", "group"))
        monkeypatch.setattr(self._network, "ask_anywhere", self._answer)

    async def _answer(self, _request: Any) -> Any:
        partition = SimpleNamespace(partition_index=0, replica_nodes=[1, 2, 3])
        topic = SimpleNamespace(name="t", error_code=0, is_internal=False, partitions=[partition])
        brokers = [SimpleNamespace(node_id=node, rack=self.racks[node]) for node in sorted(self.alive)]
        return SimpleNamespace(brokers=brokers, topics=[topic])

    def metadata(self) -> MetadataResponse:
        return asyncio.run(self._network.fetch_topics(["t"]))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def racks(metadata: MetadataResponse) -> set[str]:
    known = metadata.topics["t"].racks
    assert known is not None
    return set(known[0])


def test_a_rolling_restart_changes_no_racks(cluster: Cluster) -> None:
    monitor = TopicMonitor(Timing(), racks=True)
    monitor.on_leader({"t"}, cluster.metadata(), 0.0)
    for node in RACKS:
        for alive in (set(RACKS) - {node}, set(RACKS)):
            cluster.alive = alive
            assert monitor.start(["t"], 1.0)
            monitor.found(cluster.metadata(), 1.0)
            assert monitor.change() is None
            assert racks(monitor.seen) == set(RACKS.values())


def test_a_broker_that_is_up_for_the_first_time_changes_no_racks_and_one_that_moves_does(
    cluster: Cluster,
) -> None:
    monitor = TopicMonitor(Timing(), racks=True)
    cluster.alive = {1, 2}
    before = cluster.metadata()
    assert racks(before) == {"a", "b"}
    monitor.on_leader({"t"}, before, 0.0)
    changes = []
    for rack in ("c", "d", None):
        cluster.alive, cluster.racks[3] = set(RACKS), rack
        assert monitor.start(["t"], 1.0)
        monitor.found(cluster.metadata(), 1.0)
        changes.append(monitor.change())

    assert changes == [None, *["replicas of topic 't' are in other racks"] * 2]
    assert racks(cluster.metadata()) == {"a", "b"}
