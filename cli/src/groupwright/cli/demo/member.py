"""A member of the demo: an instrumented consumer in its own process, which serves the metrics."""

from typing import Any

from prometheus_client import CollectorRegistry, start_http_server

from groupwright.cli._command_line.assignors import load_assignor
from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument
from groupwright.testing.groups import WithDetails


def make_consumer(config: dict[str, Any]) -> WithDetails:
    """Return a consumer, with the URL of its metrics as a detail.

    Args:
        config: Its configuration, with the name or import path of its assignor.
    """
    registry = CollectorRegistry()
    strategy = config["partition.assignment.strategy"]
    consumer = Consumer({**config, "partition.assignment.strategy": load_assignor(strategy)})
    instrument(consumer, registry=registry)
    server, _ = start_http_server(0, addr="127.0.0.1", registry=registry)
    return WithDetails(consumer, {"metrics": f"http://127.0.0.1:{server.server_port}/metrics"})
