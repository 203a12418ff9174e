"""A drop-in for `confluent_kafka.Consumer` whose partitions are assigned by assignors of your choice.

- `Consumer`: change the import, add ``partition.assignment.strategy`` with names or `Assignor` objects.
- `DeserializingConsumer`, `AIOConsumer`: confluent-kafka's classes of these names, over the same membership.
- `ConsumerInterceptor`: base class of objects that receive every message and every commit (KIP-42).
- `RebalanceListener`: receives rebalances, commits and load checks (`Consumer.add_listener`).
- `Rebalance`, with `Outcome`, `Phase`, `Kind`, `Trigger`, `Leadership`: the record of one rebalance.
- `GroupLoad`, in `Leadership`: the loads of a group that is balanced by weights; `LoadCheckResult`, with
  `LoadCheckOutcome`: the record of one load check.
- `MembershipSnapshot`: the state of the membership (`Consumer.membership_snapshot`).
- `GroupMembershipOperation`: whether `Consumer.close` leaves the group (KIP-1092).
- `ConsumerError` and its subclasses: exceptions of the consumer, each also a
  `confluent_kafka.KafkaException`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from groupwright.consumer._protocol.model import GroupMembershipOperation
from groupwright.consumer.errors import (
    AssignorFailedError,
    CommitError,
    ConcurrentAccessError,
    ConfigurationError,
    ConsumerError,
    GroupError,
    WakeupError,
)
from groupwright.consumer.interceptors import ConsumerInterceptor
from groupwright.core import (
    GroupLoad,
    Kind,
    Leadership,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    Outcome,
    Phase,
    Rebalance,
    RebalanceListener,
    Trigger,
)

if TYPE_CHECKING:
    from groupwright.consumer.aio import AIOConsumer
    from groupwright.consumer.consumer import Consumer
    from groupwright.consumer.deserializing import DeserializingConsumer

_MODULES = {"AIOConsumer": "aio", "Consumer": "consumer", "DeserializingConsumer": "deserializing"}
"""Modules of the classes that are imported at their first use: tools that ask brokers need none of them.

`AIOConsumer` needs confluent-kafka 2.13 or later.
"""

__all__ = [
    "AIOConsumer",
    "AssignorFailedError",
    "CommitError",
    "ConcurrentAccessError",
    "ConfigurationError",
    "Consumer",
    "ConsumerError",
    "ConsumerInterceptor",
    "DeserializingConsumer",
    "GroupError",
    "GroupLoad",
    "GroupMembershipOperation",
    "Kind",
    "Leadership",
    "LoadCheckOutcome",
    "LoadCheckResult",
    "MembershipSnapshot",
    "Outcome",
    "Phase",
    "Rebalance",
    "RebalanceListener",
    "Trigger",
    "WakeupError",
]


def __getattr__(name: str) -> Any:
    """Import a class of consumers at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
