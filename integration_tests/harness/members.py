"""Members of real groups, each polled by a thread of its own."""

from collections.abc import Callable
from typing import Any, Protocol

from groupwright.consumer import Consumer
from groupwright.testing.groups import ThreadMember
from integration_tests.harness.patience import PATIENCE


class RunningMember(ThreadMember):
    """A consumer of Groupwright's in a loop of polls, and what happened to it."""

    def __init__(
        self, config: dict[str, Any], topics: list[str], make: Callable[[dict[str, Any]], Any] = Consumer
    ) -> None:
        super().__init__(make, config, topics, patience=PATIENCE)

    def close(self) -> None:
        """Leave the group, on the member's own thread, and wait until it has."""
        self.leave()


class Join(Protocol):
    """Adds a member to the test's group."""

    def __call__(self, name: str, topics: list[str], **settings: Any) -> RunningMember:
        """Start a member; settings are configuration keys, with underscores for dots."""
