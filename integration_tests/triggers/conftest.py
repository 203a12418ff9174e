"""Groups whose every generation is accounted for."""

from collections.abc import Callable
from typing import Any

import pytest

from groupwright.testing import Kafka
from integration_tests.harness import offsets_topic
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.waiting import stays_so, wait_until

HEARTBEAT_MS = 100
FIVE_HEARTBEATS = 0.5

Settle = Callable[..., None]


@pytest.fixture(params=["range", "cooperative-sticky"])
def strategy(request: pytest.FixtureRequest) -> str:
    """An assignor whose rebalances are eager, and one whose are cooperative."""
    return str(request.param)


@pytest.fixture
def cooperative(strategy: str) -> bool:
    """Return whether the rebalance protocol is cooperative."""
    return strategy == "cooperative-sticky"


@pytest.fixture
def member(join: Join, strategy: str) -> Join:
    """Start a member that beats often, and looks at topics often."""

    def start(name: str, topics: list[str], **settings: Any) -> RunningMember:
        usual = {
            "partition_assignment_strategy": strategy,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "topic_metadata_refresh_interval_ms": 200,
            "session_timeout_ms": 60_000,
        }
        return join(name, topics, **{**usual, **settings})

    return start


@pytest.fixture
def settle(kafka: Kafka, group: str) -> Settle:
    """Wait until members have been assigned a generation, and stay there; the coordinator says the same."""

    def wait(generation: int, *members: RunningMember) -> None:
        def reached() -> bool:
            return all(member.generation == generation for member in members)

        def description() -> str:
            return f"{[(member.name, member.generation) for member in members]} to be all of {generation}"

        wait_until(
            reached, f"{', '.join(member.name for member in members)} to be of generation {generation}"
        )
        stays_so(reached, FIVE_HEARTBEATS, description())
        stored = [
            entry for entry in offsets_topic.generations(kafka.bootstrap_servers, group) if entry.members
        ]
        assert stored[-1].number == generation
        assert sorted(entry.client_id for entry in stored[-1].members) == sorted(
            member.name for member in members
        )

    return wait
