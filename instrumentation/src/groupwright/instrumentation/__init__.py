"""Rebalances measured, explained and warned of, of any client of confluent-kafka, in a Prometheus registry.

- `instrumented`: adopt it in one line, ``instrumented(Consumer, config)`` for ``Consumer(config)``.
- `instrument`: the same for a consumer that is there already and tells of its rebalances, as Groupwright's does.
- `Instrumentation`: what that returns; it can take the consumer's series out again.
- `Metrics`: the collector behind it, one for each registry.
- `EventSink`, `to_logging`, `to_callback`, `to_file`, `to_kafka`: where the record of each rebalance goes.
- `RebalanceEvent`: that record.
- `ObservableConsumer`, `RebalanceListener`, `Rebalance`, `MembershipSnapshot`, `Leadership`: the interface to a consumer.

`groupwright.instrumentation._metrics.catalogue` describes every metric, and REFERENCE.md is made from it;
`groupwright.instrumentation.advice` has the rules of advice. Serving is prometheus-client's: ``start_http_server``,
``make_wsgi_app``, ``make_asgi_app``, ``write_to_textfile``.
"""

from groupwright.core import Leadership, MembershipSnapshot, ObservableConsumer, Rebalance, RebalanceListener
from groupwright.instrumentation.adopt import instrumented
from groupwright.instrumentation.collector import Metrics, instrument
from groupwright.instrumentation.events import RebalanceEvent
from groupwright.instrumentation.listener import Instrumentation
from groupwright.instrumentation.sinks import EventSink, to_callback, to_file, to_kafka, to_logging

ClientListener = RebalanceListener
"""Another name of `RebalanceListener`."""
RebalanceRecord = Rebalance
"""Another name of `Rebalance`."""

__all__ = [
    "ClientListener",
    "EventSink",
    "Instrumentation",
    "Leadership",
    "MembershipSnapshot",
    "Metrics",
    "ObservableConsumer",
    "Rebalance",
    "RebalanceEvent",
    "RebalanceListener",
    "RebalanceRecord",
    "instrument",
    "instrumented",
    "to_callback",
    "to_file",
    "to_kafka",
    "to_logging",
]
