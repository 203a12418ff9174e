"""Types and rules that several parts of Groupwright share. The standard library alone.

- `GroupwrightError`: the root of every exception that Groupwright raises on purpose.
- `Rebalance`, with `Kind`, `Outcome`, `Phase`, `Trigger` and `Leadership`: the record of one rebalance.
- `GroupLoad`, in `Leadership`: the loads of a group that is balanced by weights; `LoadCheckResult`, with
  `LoadCheckOutcome`: the record of one load check.
- `RebalanceListener`: receives rebalances, commits and load checks.
- `ErrorCode`: Kafka's error codes, with `error_name`.
- `ObservableConsumer`, `MembershipSnapshot`: interface of a consumer that can be measured.

Further modules: `assignor_traits`, `configuration`, `group_metadata`, `http_server`, `membership_errors`,
`metrics`, `offsets_topic`, `rebalance_tracker`, `spelling`, `start_offsets`.
"""

from groupwright.core.error_codes import ErrorCode, error_name
from groupwright.core.errors import GroupwrightError
from groupwright.core.listener import RebalanceListener
from groupwright.core.load import GroupLoad, LoadCheckOutcome, LoadCheckResult
from groupwright.core.observable import ObservableConsumer
from groupwright.core.rebalance import (
    Kind,
    Leadership,
    Outcome,
    Partitions,
    Phase,
    Rebalance,
    TopicPartitionKey,
    Trigger,
    by_topic,
)
from groupwright.core.snapshot import MembershipSnapshot

__all__ = [
    "ErrorCode",
    "GroupLoad",
    "GroupwrightError",
    "Kind",
    "Leadership",
    "LoadCheckOutcome",
    "LoadCheckResult",
    "MembershipSnapshot",
    "ObservableConsumer",
    "Outcome",
    "Partitions",
    "Phase",
    "Rebalance",
    "RebalanceListener",
    "TopicPartitionKey",
    "Trigger",
    "by_topic",
    "error_name",
]
