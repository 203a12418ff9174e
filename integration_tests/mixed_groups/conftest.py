"""Fixtures: members of any client in one group."""

from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

from groupwright.testing import Kafka
from integration_tests.harness.foreign import JAVA_ASSIGNORS, ForeignMember, java_command
from integration_tests.harness.members import Join, RunningMember

StartMember = Callable[[str, str, str, list[str]], RunningMember | ForeignMember]


@pytest.fixture(scope="session")
def java_member(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a Java member."""
    return java_command(tmp_path_factory.mktemp("java-member"))


@pytest.fixture
def start_member(
    kafka: Kafka, group: str, join: Join, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[StartMember]:
    """Start a member of a client, with a name and an assignor; all are closed at the end."""
    foreign: list[RunningMember | ForeignMember] = []

    def start(kind: str, name: str, strategy: str, topics: list[str]) -> RunningMember | ForeignMember:
        if kind == "groupwright":
            return join(name, topics, partition_assignment_strategy=strategy, heartbeat_interval_ms=100)
        member: RunningMember | ForeignMember
        if kind == "java":
            command = request.getfixturevalue("java_member")
            arguments = [kafka.bootstrap_servers, group, name, JAVA_ASSIGNORS[strategy], *topics]
            member = ForeignMember([*command, *arguments], name, tmp_path / f"{name}.log")
        else:
            config = {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": name,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 100,
                "fetch.wait.max.ms": 50,
            }
            member = RunningMember(config, topics, make=confluent_kafka.Consumer)
        foreign.append(member)
        return member

    yield start
    for member in foreign:
        member.close()
