"""Advice on the causes of rebalances: pure rules over configurations, brokers, groups and events.

- `on_configuration`, `on_broker`, `on_group`, `on_offsets_topic`: rules that ``groupwright doctor`` runs.
- `partition_for`: the partition of ``__consumer_offsets`` that holds a group's records.
- `RunningAdvice`: rules over the events of a running consumer.
- `BrokerLimits`: limits of a broker; no advice exceeds them.
- `Finding`: the result of a rule: the evidence, the consequence, and the change to make.
"""

from groupwright.core.offsets_topic import partition_for
from groupwright.instrumentation.advice.configuration import on_configuration
from groupwright.instrumentation.advice.findings import Finding, Severity
from groupwright.instrumentation.advice.group import GroupFacts, on_broker, on_group
from groupwright.instrumentation.advice.limits import BrokerLimits
from groupwright.instrumentation.advice.offsets_topic import OffsetsTopic, on_offsets_topic
from groupwright.instrumentation.advice.running import RunningAdvice

__all__ = [
    "BrokerLimits",
    "Finding",
    "GroupFacts",
    "OffsetsTopic",
    "RunningAdvice",
    "Severity",
    "on_broker",
    "on_configuration",
    "on_group",
    "on_offsets_topic",
    "partition_for",
]
