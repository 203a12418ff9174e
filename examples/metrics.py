"""A consumer whose rebalances are measured, and a page that Prometheus can scrape.

    python examples/metrics.py localhost:9092 --group orders-metrics --topic orders --port 9095
    curl -s http://127.0.0.1:9095/metrics | grep groupwright

Start a second one with another port, stop it, and look at what the rebalances took.
"""

import argparse
import signal
import threading

from prometheus_client import start_http_server

from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument


def main() -> None:
    """Consume and be measured until SIGTERM or Ctrl-C."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", help="bootstrap.servers")
    arguments.add_argument("--group", required=True)
    arguments.add_argument("--topic", required=True)
    arguments.add_argument("--port", type=int, default=9095, help="of the metrics; 0 takes a free one")
    options = arguments.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())

    config = {"bootstrap.servers": options.servers, "group.id": options.group}
    with Consumer(config) as consumer:
        instrument(consumer)  # before subscribe, so that no rebalance is missed
        server, _thread = start_http_server(options.port, addr="127.0.0.1")
        print(f"metrics at http://127.0.0.1:{server.server_port}/metrics", flush=True)
        consumer.subscribe([options.topic])
        while not stopping.is_set():
            consumer.poll(1.0)  # a service processes the message, and looks at its error(), here


if __name__ == "__main__":
    main()
