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
