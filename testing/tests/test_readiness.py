"""Readiness of a broker, by the responses that a stub client gets."""

import time
from typing import Any

import pytest

from groupwright.testing._kafka import readiness
from groupwright.testing._kafka.ports import PortTakenError
from groupwright.testing._kafka.settings import NODE_ID
from integration_tests.harness.patience import PATIENCE


class Running:
    """A process that runs."""

    running = True


class Metadata:
    """The response of a broker that lists these ones."""

    def __init__(self, cluster_id: str | None, *brokers: int) -> None:
        self.cluster_id = cluster_id
        self.brokers = brokers


def ready(monkeypatch: pytest.MonkeyPatch, *responses: Metadata) -> bool:
    """Return whether the broker of the cluster "mine" becomes ready with these responses."""
    coming = iter(responses)

    class StubClient:
        def __init__(self, _: dict[str, Any]) -> None: ...

        def list_topics(self, timeout: float) -> Metadata:
            assert timeout > 0
            return next(coming)

        def committed(self, *_: object, **__: object) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(readiness, "Consumer", StubClient)
    deadline = time.monotonic() + PATIENCE
    return readiness.becomes_ready(Running(), {}, deadline, cluster_id="mine")  # type: ignore[arg-type]


def test_a_broker_is_ready_once_its_cluster_lists_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ready(monkeypatch, Metadata("mine"), Metadata(None), Metadata("mine", NODE_ID))


def test_the_broker_of_another_cluster_with_the_same_node_id_has_taken_the_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(PortTakenError, match="Another Kafka, with the cluster id 'theirs', listens on"):
        ready(monkeypatch, Metadata("theirs", NODE_ID))
