"""Metrics of a consumer's rebalances, in a Prometheus registry of your choice.

- `instrument`: adopt it in one line, ``instrument(consumer)``.
- `Instrumentation`: what that returns; it can take the consumer's series out again.
- `Metrics`: the collector behind it, one for each registry.
- `ObservableConsumer`, `RebalanceListener`, `RebalanceRecord`: what it needs of a consumer, as protocols.

`groupwright.instrumentation.catalogue` describes every metric, and REFERENCE.md is made from it. Serving them is
prometheus-client's: ``start_http_server``, ``make_wsgi_app``, ``make_asgi_app``, ``write_to_textfile``.
"""

from groupwright.instrumentation.collector import Metrics, instrument
from groupwright.instrumentation.listener import Instrumentation
from groupwright.instrumentation.observable import ObservableConsumer, RebalanceListener, RebalanceRecord

__all__ = [
    "Instrumentation",
    "Metrics",
    "ObservableConsumer",
    "RebalanceListener",
    "RebalanceRecord",
    "instrument",
]
