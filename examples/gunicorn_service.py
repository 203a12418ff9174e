"""A web service under gunicorn: each worker process is a member of the group, and one page has all metrics.

    KAFKA=localhost:9092 gunicorn --config examples/gunicorn_config.py

The consumer runs on a thread beside the worker's requests. `gunicorn_config.py` starts it after the fork,
since a consumer cannot be used in a child process, and stops it when the worker ends.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector

from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument

log = logging.getLogger("gunicorn.error")


class Service:
    """The WSGI application of one worker, with its consumer."""

    def __init__(self) -> None:
        """Create the page of metrics; `start` creates the consumer."""
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        self._metrics: Any = make_wsgi_app(registry)  # of all workers, whichever serves the scrape
        self._stopping = threading.Event()
        self._consumer: Consumer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Join the group."""
        consumer = Consumer(
            {
                "bootstrap.servers": os.environ.get("KAFKA", "localhost:9092"),
                "group.id": os.environ.get("GROUP", "orders-workers"),
                # The same in all workers: they share their series, however often workers are replaced.
                "client.id": "web",
                "partition.assignment.strategy": "cooperative-sticky",
                "auto.offset.reset": "earliest",
            }
        )
        instrument(consumer)
        consumer.subscribe([os.environ.get("TOPIC", "orders")])
        self._consumer = consumer
        self._thread = threading.Thread(target=self._consume, args=(consumer,), name="consumer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(30)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve a request."""
        if environ["PATH_INFO"] == "/metrics":
            page: Iterable[bytes] = self._metrics(environ, start_response)
            return page
        state = self._consumer.membership_snapshot.state if self._consumer else None
        ready = state == "stable"
        start_response("200 OK" if ready else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [f"worker {os.getpid()}, membership: {state}\n".encode()]

    def _consume(self, consumer: Consumer) -> None:
        try:
            with consumer:  # closes it: commits, and leaves the group
                while not self._stopping.is_set():
                    message = consumer.poll(0.5)
                    if message is None:
                        continue
                    if error := message.error():
                        log.warning("%s", error.str())  # fatal ones are raised
                        continue
                    log.info("%s %s", message.key(), message.value())
        except Exception:
            log.exception("the consumer has ended; gunicorn replaces this worker")
            os.kill(os.getpid(), signal.SIGTERM)  # otherwise it would serve without a consumer


app = Service()
