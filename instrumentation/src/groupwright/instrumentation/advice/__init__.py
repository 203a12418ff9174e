"""Advice on what causes rebalances: pure rules over a configuration, a broker, a group, and what happens at run time.

- `on_configuration`, `on_broker`, `on_group`, `on_offsets_topic`: rules over what is configured and found;
  ``groupwright doctor`` runs them.
- `partition_for`: the partition of ``__consumer_offsets`` that holds a group's records.
- `RunningAdvice`: rules over what a consumer goes through.
- `Finding`: what a rule has found: the evidence, the consequence, and what to change.
"""

from groupwright.core.placement import partition_for
from groupwright.instrumentation.advice.configuration import on_configuration
from groupwright.instrumentation.advice.findings import Finding, Severity
from groupwright.instrumentation.advice.group import BrokerLimits, GroupFacts, on_broker, on_group
from groupwright.instrumentation.advice.placement import OffsetsTopic, on_offsets_topic
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
