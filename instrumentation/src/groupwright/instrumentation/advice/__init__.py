"""Advice on what causes rebalances: pure rules over a configuration, a broker, a group, and what happens at run time.

- `on_configuration`, `on_broker`, `on_group`: rules over what is configured; ``groupwright doctor`` runs them.
- `RunningAdvice`: rules over what a consumer goes through.
- `Finding`: what a rule has found: the evidence, the consequence, and what to change.
"""

from groupwright.instrumentation.advice.configuration import on_configuration
from groupwright.instrumentation.advice.findings import Finding, Severity
from groupwright.instrumentation.advice.group import BrokerLimits, GroupFacts, on_broker, on_group
from groupwright.instrumentation.advice.running import RunningAdvice

__all__ = [
    "BrokerLimits",
    "Finding",
    "GroupFacts",
    "RunningAdvice",
    "Severity",
    "on_broker",
    "on_configuration",
    "on_group",
]
