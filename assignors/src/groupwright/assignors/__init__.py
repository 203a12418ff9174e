"""Partition assignors for Kafka consumer groups.

- Model: an assignor turns a `Group` of `Member`s and `Topic`s into an `Assignment`, which maps member ids to
  `PartitionsByTopic`; these map topics to ascending arrays of partitions.
- Assignors: `RangeAssignor`, `RoundRobinAssignor`, `StickyAssignor`, `CooperativeStickyAssignor` and
  `CoPartitionedStickyAssignor`, also `by_name`; and `LoadAwareAssignor`, which balances the weights of
  partitions. A custom assignor is a subclass of `Assignor` with a name and a method `assign`. The function
  `assign` runs an assignor and checks the result; `unassigned` returns the partitions that no member is
  assigned.
- Broker: `UniformAssignor` and `BrokerRangeAssignor` are the broker's assignors (KIP-848), for studies.
- Weights: a leader asks a `WeightSource` (`ProcessingTime`, `Throughput`, `Lag`, `WeightFunction`, or a
  custom one) for the weights of partitions, which `with_weights` puts into topics.
- Leader: `perform_assignment` turns the members in JoinGroup's response into the assignments in SyncGroup's
  request.
- Offline rebalances: `simulate` computes the rebalances of a group when members join or leave, topics grow,
  or weights change, until the group settles.
- Quality: `evaluate` returns the quality of an assignment, and of the best one; `evaluate_load` returns the
  members' loads, and a lower bound of the largest; `check_load` returns what a rebalance would do to them.
- Wire format: `Subscription` and `MemberAssignment`, encoded and decoded.

Everything is pure: no I/O, no clock, no threads, no global state. Modules that need numpy are imported on
first use, so that importing this package is cheap.

Examples:
    >>> from groupwright.assignors import Group, Member, RangeAssignor
    >>> members = [Member("c-1", ["orders"]), Member("c-2", ["orders"])]
    >>> assignment = RangeAssignor().assign(Group(members, {"orders": 5}))
    >>> assignment
    Assignment({'c-1': {'orders': [0, 1, 2]}, 'c-2': {'orders': [3, 4]}})
    >>> assignment["c-1"]["orders"]
    array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from groupwright.assignors.errors import (
    AssignorError,
    GroupwrightError,
    InvalidInputError,
    MalformedBytesError,
)

if TYPE_CHECKING:
    from groupwright.assignors._algorithms.check import assign, assign_members, check_assignment, unassigned
    from groupwright.assignors._algorithms.cooperative import withhold_claimed
    from groupwright.assignors._algorithms.load_report import LoadReport, evaluate_load
    from groupwright.assignors._algorithms.quality import AssignmentQuality, evaluate
    from groupwright.assignors._model.arrays import PartitionArray
    from groupwright.assignors._model.assignor import Assignor, Plan, RebalanceProtocol, check_assignor
    from groupwright.assignors._model.columns import UNASSIGNED, Assignment
    from groupwright.assignors._model.group import (
        NO_GENERATION,
        Group,
        JoinedMember,
        Member,
        Topic,
        subscribed_topics,
    )
    from groupwright.assignors._model.partitions import PartitionsByTopic
    from groupwright.assignors._model.weight_arrays import smooth_weights, with_weights
    from groupwright.assignors._model.weight_source import GroupMeasurements, WeightSource
    from groupwright.assignors._wire.consumer_protocol import (
        NEWEST_VERSION,
        MemberAssignment,
        Subscription,
        decode_assignment,
        decode_subscription,
        encode_assignment,
        encode_subscription,
    )
    from groupwright.assignors._wire.group_codec import (
        DecodedMembers,
        decode_members,
        decode_subscriptions,
        encode_assignments,
    )
    from groupwright.assignors._wire.owned import decode_previous_assignment
    from groupwright.assignors._wire.processing_times import sends_processing_times, sent_processing_times
    from groupwright.assignors.broker import (
        BrokerAssignor,
        BrokerRangeAssignor,
        UniformAssignor,
        check_member_assignor,
    )
    from groupwright.assignors.builtin import builtin_assignors, by_name
    from groupwright.assignors.co_partitioned import CoPartitionedStickyAssignor
    from groupwright.assignors.leader import perform_assignment
    from groupwright.assignors.load_aware import LoadAwareAssignor
    from groupwright.assignors.load_check import LoadCheck, check_load
    from groupwright.assignors.range import RangeAssignor
    from groupwright.assignors.roundrobin import RoundRobinAssignor
    from groupwright.assignors.simulation import SimulatedEvent, SimulatedRebalance, simulate
    from groupwright.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
    from groupwright.assignors.weights import Lag, ProcessingTime, Throughput, WeightFunction

_MODULES = {
    "UNASSIGNED": "_model.columns",
    "Assignment": "_model.columns",
    "Assignor": "_model.assignor",
    "Plan": "_model.assignor",
    "RebalanceProtocol": "_model.assignor",
    "check_assignor": "_model.assignor",
    "builtin_assignors": "builtin",
    "by_name": "builtin",
    "assign": "_algorithms.check",
    "assign_members": "_algorithms.check",
    "check_assignment": "_algorithms.check",
    "unassigned": "_algorithms.check",
    "withhold_claimed": "_algorithms.cooperative",
    "JoinedMember": "_model.group",
    "perform_assignment": "leader",
    "subscribed_topics": "_model.group",
    "LoadReport": "_algorithms.load_report",
    "evaluate_load": "_algorithms.load_report",
    "AssignmentQuality": "_algorithms.quality",
    "evaluate": "_algorithms.quality",
    "NO_GENERATION": "_model.group",
    "Group": "_model.group",
    "Member": "_model.group",
    "Topic": "_model.group",
    "PartitionArray": "_model.arrays",
    "PartitionsByTopic": "_model.partitions",
    "smooth_weights": "_model.weight_arrays",
    "with_weights": "_model.weight_arrays",
    "GroupMeasurements": "_model.weight_source",
    "WeightSource": "_model.weight_source",
    "BrokerAssignor": "broker",
    "BrokerRangeAssignor": "broker",
    "UniformAssignor": "broker",
    "check_member_assignor": "broker",
    "CoPartitionedStickyAssignor": "co_partitioned",
    "LoadAwareAssignor": "load_aware",
    "LoadCheck": "load_check",
    "check_load": "load_check",
    "SimulatedEvent": "simulation",
    "SimulatedRebalance": "simulation",
    "simulate": "simulation",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "sticky",
    "StickyAssignor": "sticky",
    "Lag": "weights",
    "ProcessingTime": "weights",
    "Throughput": "weights",
    "WeightFunction": "weights",
    "NEWEST_VERSION": "_wire.consumer_protocol",
    "MemberAssignment": "_wire.consumer_protocol",
    "Subscription": "_wire.consumer_protocol",
    "decode_assignment": "_wire.consumer_protocol",
    "DecodedMembers": "_wire.group_codec",
    "decode_members": "_wire.group_codec",
    "decode_previous_assignment": "_wire.owned",
    "decode_subscription": "_wire.consumer_protocol",
    "decode_subscriptions": "_wire.group_codec",
    "encode_assignment": "_wire.consumer_protocol",
    "encode_assignments": "_wire.group_codec",
    "encode_subscription": "_wire.consumer_protocol",
    "sends_processing_times": "_wire.processing_times",
    "sent_processing_times": "_wire.processing_times",
}
"""Modules of the names that are imported on first use."""

__all__ = [
    "NEWEST_VERSION",
    "NO_GENERATION",
    "UNASSIGNED",
    "Assignment",
    "AssignmentQuality",
    "Assignor",
    "AssignorError",
    "BrokerAssignor",
    "BrokerRangeAssignor",
    "CoPartitionedStickyAssignor",
    "CooperativeStickyAssignor",
    "DecodedMembers",
    "Group",
    "GroupMeasurements",
    "GroupwrightError",
    "InvalidInputError",
    "JoinedMember",
    "Lag",
    "LoadAwareAssignor",
    "LoadCheck",
    "LoadReport",
    "MalformedBytesError",
    "Member",
    "MemberAssignment",
    "PartitionArray",
    "PartitionsByTopic",
    "Plan",
    "ProcessingTime",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "SimulatedEvent",
    "SimulatedRebalance",
    "StickyAssignor",
    "Subscription",
    "Throughput",
    "Topic",
    "UniformAssignor",
    "WeightFunction",
    "WeightSource",
    "assign",
    "assign_members",
    "builtin_assignors",
    "by_name",
    "check_assignment",
    "check_assignor",
    "check_load",
    "check_member_assignor",
    "decode_assignment",
    "decode_members",
    "decode_previous_assignment",
    "decode_subscription",
    "decode_subscriptions",
    "encode_assignment",
    "encode_assignments",
    "encode_subscription",
    "evaluate",
    "evaluate_load",
    "perform_assignment",
    "sends_processing_times",
    "sent_processing_times",
    "simulate",
    "smooth_weights",
    "subscribed_topics",
    "unassigned",
    "with_weights",
    "withhold_claimed",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
