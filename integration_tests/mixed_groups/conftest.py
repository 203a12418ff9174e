"""Members with any client, in one group."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupwright.testing import Kafka
from harness.foreign import JAVA_ASSIGNORS, ForeignMember, java_command, librdkafka_command
from harness.members import Join, RunningMember

StartMember = Callable[[str, str, str, list[str]], RunningMember | ForeignMember]


@pytest.fixture(scope="session")
def java_member(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a member with Java's client."""
    return java_command(tmp_path_factory.mktemp("java-member"))


@pytest.fixture
def start_member(
    kafka: Kafka, group: str, join: Join, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[StartMember]:
    """Start a member with a client of that kind, of that name, with that assignor; all are closed at the end."""
    foreign: list[ForeignMember] = []

    def start(kind: str, name: str, strategy: str, topics: list[str]) -> RunningMember | ForeignMember:
        if kind == "groupwright":
            return join(name, topics, partition_assignment_strategy=strategy, heartbeat_interval_ms=100)
        if kind == "java":
            command, strategy = request.getfixturevalue("java_member"), JAVA_ASSIGNORS[strategy]
        else:
            command = librdkafka_command()
        arguments = [kafka.bootstrap_servers, group, name, strategy, *topics]
        member = ForeignMember([*command, *arguments], name, tmp_path / f"{name}.log")
        foreign.append(member)
        return member

    yield start
    for member in foreign:
        member.close()
