"""The client of a cluster beside scripted responses."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from groupwright.cli._cluster import client
from groupwright.cli._cluster.client import Cluster
from groupwright.consumer.cluster import Broker, ClusterConnectionError
from groupwright.core.wire_format import Request

BROKERS = {number: Broker(number, "localhost", 9092 + number) for number in (1, 2)}


class Connection:
    """Two brokers: `listed` has the groups of each, None of a silent one. Each group has a commit."""

    def __init__(self, *_: object, **__: object) -> None:
        self.listed: dict[int, list[str] | None] = {}
        self.looked_up: list[str] = []

    def close(self) -> None:
        pass

    def brokers(self) -> dict[int, Broker]:
        return BROKERS

    def send(self, request: Request) -> Any:
        assert request.api.name == "FindCoordinator"
        self.looked_up += request.fields["coordinator_keys"]
        rows = [
            SimpleNamespace(key=key, node_id=1, error_code=0) for key in request.fields["coordinator_keys"]
        ]
        return SimpleNamespace(coordinators=rows)

    def send_all(self, requests: Mapping[int, Request]) -> dict[int, Any]:
        return {broker: self._response(broker, request) for broker, request in requests.items()}

    def _response(self, broker: int, request: Request) -> Any:
        if request.api.name == "ListGroups":
            names = self.listed[broker]
            if names is None:
                return ClusterConnectionError("no response")
            listed = {"group_type": "", "group_state": "Empty", "protocol_type": "consumer"}
            rows = [SimpleNamespace(group_id=name, **listed) for name in names]
            return SimpleNamespace(error_code=0, groups=rows)
        fetched = [
            SimpleNamespace(group_id=group["group_id"], error_code=0, topics=[])
            for group in request.fields["groups"]
        ]
        return SimpleNamespace(groups=fetched)


def test_coordinators_are_remembered_of_groups_that_are_listed_or_may_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exporter that runs for months sees ever new names."""
    connection = Connection()
    monkeypatch.setattr(client, "ClusterConnection", lambda *_, **__: connection)
    with Cluster({"bootstrap.servers": "localhost:9092"}) as cluster:
        connection.listed = {1: ["a", "b"], 2: ["c"]}
        cluster.groups()
        cluster.committed(["a", "b", "c"])
        assert connection.looked_up == []

        connection.listed = {1: ["a"], 2: None}
        cluster.groups()
        cluster.committed(["a", "b", "c"])
        assert connection.looked_up == []

        connection.listed = {1: ["a"], 2: []}
        cluster.groups()
        cluster.committed(["a", "b"])
        assert connection.looked_up == ["b"]


class StreamsConnection(Connection):
    """A streams group with two members. Its subtopology reads `orders` (4 partitions) and `rates` (2)."""

    def send(self, request: Request) -> Any:
        if request.api.name != "Metadata":
            return super().send(request)
        counts = {"orders": 4, "rates": 2}
        topics = [
            SimpleNamespace(
                name=name,
                error_code=0,
                topic_id=bytes(16),
                is_internal=False,
                partitions=[
                    SimpleNamespace(partition_index=number, leader_id=1, replica_nodes=[1])
                    for number in range(count)
                ],
            )
            for name, count in counts.items()
            if {"name": name} in request.fields["topics"]
        ]
        return SimpleNamespace(brokers=[], topics=topics)

    def _response(self, _: int, request: Request) -> Any:
        if request.api.name != "StreamsGroupDescribe":
            classic = {"group_state": "Dead", "protocol_type": "", "protocol_data": "", "members": []}
            others = {"group_epoch": 0, "assignment_epoch": 0, "assignor_name": ""}
            return SimpleNamespace(
                groups=[SimpleNamespace(group_id="flow", error_code=69, **classic, **others)]
            )
        source = SimpleNamespace(
            subtopology_id="0", source_topics=["orders", "rates", "secret"], repartition_source_topics=[]
        )
        row = SimpleNamespace(
            group_id="flow",
            error_code=0,
            group_state="Stable",
            group_epoch=3,
            assignment_epoch=3,
            topology=SimpleNamespace(subtopologies=[source]),
            members=[self._member("a", 0, 1), self._member("b", 2, 3)],
        )
        return SimpleNamespace(groups=[row])

    def _member(self, name: str, *tasks: int) -> Any:
        active = SimpleNamespace(active_tasks=[SimpleNamespace(subtopology_id="0", partitions=list(tasks))])
        return SimpleNamespace(
            member_id=name,
            client_id=name,
            client_host="/10.0.0.1",
            instance_id=None,
            rack_id=None,
            assignment=active,
            target_assignment=active,
            member_epoch=3,
            is_classic=False,
        )


def test_members_of_a_streams_group_own_no_partitions_that_do_not_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The numbers of a topic that this client may not see are not known, and stay."""
    monkeypatch.setattr(client, "ClusterConnection", lambda *_, **__: StreamsConnection())
    with Cluster({"bootstrap.servers": "localhost:9092"}) as cluster:
        one, other = cluster.describe(["flow"])["flow"].members

    assert one.assigned == {"orders": (0, 1), "rates": (0, 1), "secret": (0, 1)}
    assert other.assigned == {"orders": (2, 3), "secret": (2, 3)}
    assert [each.target for each in (one, other)] == [one.assigned, other.assigned]
