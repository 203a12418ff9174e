"""Consumer groups under load, for chaos tests: members, a producer, faults, and checks of guarantees.

`LoadedGroup` runs members of any consumer class, as threads or processes, on a Kafka of this package or any
other. Its `Ledger` records which member owned and consumed which messages, and when.
"""

from groupwright.testing._groups.events import (
    Assigned,
    Committed,
    Consumed,
    Died,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Faulted,
    HistoryReader,
    HistoryWriter,
    Killed,
    Left,
    Produced,
    Rebalanced,
    Revoked,
    Sought,
    Started,
    now,
)
from groupwright.testing._groups.judge import Judge, in_order
from groupwright.testing._groups.ledger import Ledger
from groupwright.testing._groups.load import Load
from groupwright.testing._groups.loaded_group import LoadedGroup
from groupwright.testing._groups.member_history import End, MemberHistory, Window
from groupwright.testing._groups.member_loop import ConsumerFactory, Hooks, MemberLoop, WithDetails
from groupwright.testing._groups.members import Member, ProcessMember, ThreadMember
from groupwright.testing._groups.offsets import Span
from groupwright.testing._groups.report import ANY_END, Redelivery, Report, examples
from groupwright.testing._groups.rules import Breach, PartitionLog, Rule, Starts
from groupwright.testing.errors import GuaranteeViolatedError, LoadedGroupError

__all__ = [
    "ANY_END",
    "Assigned",
    "Breach",
    "Committed",
    "Consumed",
    "ConsumerFactory",
    "Died",
    "End",
    "EndReached",
    "ErrorReturned",
    "Event",
    "Failed",
    "Faulted",
    "GuaranteeViolatedError",
    "HistoryReader",
    "HistoryWriter",
    "Hooks",
    "Judge",
    "Killed",
    "Ledger",
    "Left",
    "Load",
    "LoadedGroup",
    "LoadedGroupError",
    "Member",
    "MemberHistory",
    "MemberLoop",
    "PartitionLog",
    "ProcessMember",
    "Produced",
    "Rebalanced",
    "Redelivery",
    "Report",
    "Revoked",
    "Rule",
    "Sought",
    "Span",
    "Started",
    "Starts",
    "ThreadMember",
    "Window",
    "WithDetails",
    "examples",
    "in_order",
    "now",
]
