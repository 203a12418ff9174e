"""Fixtures: scripted consumers, rebalance records, and the look-up of a metric's value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Phase, Rebalance, Trigger
from groupwright.instrumentation import (
    GroupLoad,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    RebalanceListener,
)


@dataclass(eq=False)
class ScriptedConsumer:
    """The interface of a consumer that instrumentation uses; the test calls its listeners."""

    group_id: str = "billing"
    client_id: str = "c-1"
    age: Callable[[], float | None] = lambda: 0.5
    listeners: list[RebalanceListener] = field(default_factory=list)
    membership_snapshot: MembershipSnapshot = field(default_factory=MembershipSnapshot)
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def poll_age(self) -> float | None:
        return self.age()

    def add_listener(self, listener: RebalanceListener) -> None:
        self.listeners.append(listener)


@pytest.fixture
def new_consumer() -> Callable[..., ScriptedConsumer]:
    """Return a factory of consumers; by default of group "billing" and client "c-1", polled 0.5 s ago."""
    return ScriptedConsumer


@pytest.fixture
def new_rebalance() -> Callable[..., Rebalance]:
    """Make a record of a rebalance; a test names what it is about."""

    def make(**fields: Any) -> Rebalance:
        usual: dict[str, Any] = {
            "group": "billing",
            "client_id": "c-1",
            "member_id": "c-1-5d0c",
            "generation": 7,
            "protocol": "range",
            "outcome": Outcome.COMPLETED,
            "reason": "members or partitions changed",
            "trigger": Trigger.GROUP,
            "duration": 0.3,
            "phases": {Phase.REVOKE: 0.02, Phase.JOIN: 0.2, Phase.SYNC: 0.05, Phase.ASSIGN: 0.03},
            "partitions_before": {"orders": [1, 0]},
            "partitions": {"orders": [0, 1, 2]},
            "ended_at": 1_700_000_000.5,
        }
        return Rebalance(**{**usual, **fields})

    return make


@pytest.fixture
def group_load() -> GroupLoad:
    """Loads of two members, one of which is at 1.25 of the average."""
    return GroupLoad({"m-1": 10.0, "m-2": 6.0}, "m-1", peak=1.25, bound=1.125, moved_load=4.0)


@pytest.fixture
def new_load_check() -> Callable[..., LoadCheckResult]:
    """Make the result of a load check, by default one that moves 3 of 12 partitions."""

    def make(outcome: LoadCheckOutcome = LoadCheckOutcome.REBALANCED, **fields: Any) -> LoadCheckResult:
        usual = {"peak": 1.5, "bound": 1.0, "expected": 1.0625, "moves": 3, "partitions": 12}
        ended_at = fields.pop("ended_at", 1_700_000_300.0)
        return LoadCheckResult("billing", "c-1", 7, outcome, ended_at, **{**usual, **fields})

    return make


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def value(registry: CollectorRegistry) -> Callable[..., float | None]:
    """Look a series up by its name and labels, by default those of the usual consumer."""

    def look_up(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"group": "billing", "client_id": "c-1", **labels})

    return look_up


@pytest.fixture
def series(registry: CollectorRegistry) -> Callable[[], dict[tuple[str, frozenset[tuple[str, str]]], float]]:
    """All series but the times of their creation, which prometheus-client adds by itself."""

    def read() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }

    return read


@pytest.fixture
def statistics() -> Callable[[str], str]:
    """Statistics as librdkafka 2.16 gave them to a "consumer" or a "producer"."""

    def read(kind: str) -> str:
        path = Path(__file__).parent / "data" / f"{kind}-statistics.json"
        return path.read_text(encoding="utf-8")

    return read
