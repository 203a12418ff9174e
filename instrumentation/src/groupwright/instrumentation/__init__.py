"""Metrics, events and advice about rebalances, for any client of confluent-kafka, in a Prometheus registry.

- `create_instrumented`: creates a client: ``create_instrumented(Consumer, config)`` instead of
  ``Consumer(config)``.
- `instrument`: instruments an existing consumer that reports its rebalances, as Groupwright's does.
- `instrument_parallel`: instruments the workers of a `groupwright.consumer.parallel.ParallelConsumer`.
- `Instrumentation`: returned by `instrument`; it can remove the consumer's series again.
- `Metrics`: the prometheus-client collector of these metrics, one for each registry.
- `EventSink`, `to_logging`, `to_callback`, `to_file`, `to_kafka`: destinations of the event of each
  rebalance.
- `RebalanceEvent`: that event; the same content as a `Rebalance`, ready for JSON.
- `LoadCheckEvent`: the event of each load check; the same content as a `LoadCheckResult`.
- `Finding`, `Severity`: the results of advice.
- `ObservableConsumer`, `RebalanceListener`, `Rebalance`, `Leadership`, `GroupLoad`, `LoadCheckResult`,
  `LoadCheckOutcome`, `MembershipSnapshot`: the interface to a consumer.

REFERENCE.md describes every metric, and `groupwright.instrumentation.advice` has the rules of advice.
prometheus-client serves the registry: ``start_http_server``, ``make_wsgi_app``, ``make_asgi_app``,
``write_to_textfile``.
"""

from groupwright.core import (
    GroupLoad,
    Leadership,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    ObservableConsumer,
    Rebalance,
    RebalanceListener,
)
from groupwright.instrumentation.advice import Finding, Severity
from groupwright.instrumentation.collector import Metrics, instrument, instrument_parallel
from groupwright.instrumentation.consumer_metrics import Instrumentation
from groupwright.instrumentation.create import create_instrumented
from groupwright.instrumentation.events import LoadCheckEvent, RebalanceEvent
from groupwright.instrumentation.sinks import EventSink, to_callback, to_file, to_kafka, to_logging

__all__ = [
    "EventSink",
    "Finding",
    "GroupLoad",
    "Instrumentation",
    "Leadership",
    "LoadCheckEvent",
    "LoadCheckOutcome",
    "LoadCheckResult",
    "MembershipSnapshot",
    "Metrics",
    "ObservableConsumer",
    "Rebalance",
    "RebalanceEvent",
    "RebalanceListener",
    "Severity",
    "create_instrumented",
    "instrument",
    "instrument_parallel",
    "to_callback",
    "to_file",
    "to_kafka",
    "to_logging",
]
