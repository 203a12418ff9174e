"""A FastAPI service with a consumer in its lifespan, metrics, probes and a clean shutdown.

    python examples/fastapi_service.py localhost:9092 --group orders-web --topic orders --port 8000

The consumer runs on the service's event loop. When the service stops (SIGTERM), the consumer
commits and leaves its group at once, so that the other members take over without waiting for its session to
end.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, Response, status
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from groupwright.consumer import AIOConsumer
from groupwright.instrumentation import create_instrumented

log = logging.getLogger("fastapi_service")


async def count_orders(consumer: AIOConsumer, orders: Counter[str]) -> None:
    """Count orders by customer, until cancelled."""
    while True:
        message = await consumer.poll(1.0)
        if message is None:
            continue
        if error := message.error():
            log.warning("%s", error.str())  # fatal ones are raised
            continue
        orders[(message.key() or b"").decode(errors="replace")] += 1  # not all keys are UTF-8


def create_app(servers: str, group: str, topic: str) -> FastAPI:
    """Return the service."""
    orders: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        config = {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": "web",
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest",
        }
        consumer = create_instrumented(AIOConsumer, config)
        try:
            await consumer.subscribe([topic])
            app.state.consumer = consumer
            app.state.consuming = asyncio.create_task(count_orders(consumer, orders))
            yield
            app.state.consuming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await app.state.consuming  # raises what has ended it
        finally:
            await consumer.close()  # commits, and leaves the group

    app = FastAPI(lifespan=lifespan)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/orders/{customer}")
    def count(customer: str) -> int:
        return orders[customer]

    @app.get("/live")
    def live(response: Response) -> str:
        """Fail once the consumer has failed, so that the service is started again."""
        if app.state.consuming.done():
            response.status_code = status.HTTP_503_SERVICE_UNAVAILABLE
            return "the consumer has ended"
        return "ok"

    @app.get("/ready")
    def ready(response: Response) -> str:
        """Succeed while this member has joined its group, so that a rollout waits for it."""
        state = app.state.consumer.membership_snapshot.state
        if state != "stable":
            response.status_code = status.HTTP_503_SERVICE_UNAVAILABLE
        return f"membership: {state}"

    return app


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", help="bootstrap.servers")
    arguments.add_argument("--group", required=True)
    arguments.add_argument("--topic", required=True)
    arguments.add_argument("--host", default="127.0.0.1", help="0.0.0.0 in a container")
    arguments.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    options = arguments.parse_args()
    # uvicorn stops the service, then raises the signal again: the process ends with status 0.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    app = create_app(options.servers, options.group, options.topic)
    uvicorn.run(app, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
