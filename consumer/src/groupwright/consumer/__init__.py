"""A drop-in for `confluent_kafka.Consumer` whose partitions are assigned by assignors of your choice.

- `Consumer`: change the import, add ``partition.assignment.strategy`` with names or `Assignor` objects.
- `Listener`, `Rebalance`, `Outcome`, `Phase`: what a consumer tells of its rebalances (`Consumer.add_listener`).
- `ConsumerError` and its kinds: what it raises, each also a `confluent_kafka.KafkaException`.
"""

from groupwright.consumer.consumer import Consumer
from groupwright.consumer.errors import (
    AssignorFailedError,
    CommitError,
    ConfigurationError,
    ConsumerError,
    FencedInstanceError,
    GroupError,
    InconsistentGroupProtocolError,
)
from groupwright.consumer.rebalance import Listener, Outcome, Phase, Rebalance

__all__ = [
    "AssignorFailedError",
    "CommitError",
    "ConfigurationError",
    "Consumer",
    "ConsumerError",
    "FencedInstanceError",
    "GroupError",
    "InconsistentGroupProtocolError",
    "Listener",
    "Outcome",
    "Phase",
    "Rebalance",
]
