"""Members that do nothing by themselves."""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from groupwright.testing import Kafka
from integration_tests.harness.wire import WireMember


class NewWireMember(Protocol):
    """Connects another member of the test's group to its coordinator."""

    def __call__(self, client_id: str = "wire", **settings: Any) -> WireMember:
        """Connect; settings are `WireMember`'s."""


@pytest.fixture
def wire_member(kafka: Kafka, group: str) -> Iterator[NewWireMember]:
    """Members of the test's group, of which it sends each request by itself."""
    members: list[WireMember] = []

    def connect(client_id: str = "wire", **settings: Any) -> WireMember:
        member = WireMember(kafka.bootstrap_servers, group, client_id, **{"session_ms": 60_000, **settings})
        members.append(member)
        return member

    yield connect
    for member in members:
        member.close()
