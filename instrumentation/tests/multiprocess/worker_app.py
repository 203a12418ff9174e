"""A web service with one instrumented consumer in each worker process, for gunicorn and uvicorn.

The consumer is scripted: it owns one partition, and is 10 messages behind. Its client id has the process's
id.
"""

import os
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, make_asgi_app, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector

from groupwright.core import MembershipSnapshot, Outcome, Rebalance, RebalanceListener
from groupwright.instrumentation import Metrics
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics
from groupwright.instrumentation._metrics import multiprocess

multiprocess.INTERVAL = 0.2


class Member:
    """The scripted consumer."""

    group_id = "billing"
    client_id = f"worker-{os.getpid()}"
    poll_age: float | None = 0.25
    settings: Mapping[str, object] = {}
    membership_snapshot = MembershipSnapshot(state="stable", fenced=0, max_poll_exceeded=2)

    def add_listener(self, listener: RebalanceListener) -> None:
        """Ignore it: this module calls the instrumentation itself."""


member = Member()
key = ("orders", os.getpid())
fetched = {key: PartitionStatistics(20, 30, -1, 30, 0, 30, 30)}
callbacks: LibrdkafkaCallbacks[ConsumerStatistics] = LibrdkafkaCallbacks(
    lambda _: ConsumerStatistics(1.0, "stable", None, {}, fetched)
)
instrumentation = Metrics.of(CollectorRegistry()).add_consumer(member, None, callbacks)
partitions = {key[0]: [key[1]]}
instrumentation.partitions_assigned(partitions, 0.0)
instrumentation.rebalanced(
    Rebalance(
        group=member.group_id,
        client_id=member.client_id,
        member_id="m",
        generation=4,
        protocol="range",
        outcome=Outcome.COMPLETED,
        reason="",
        duration=0.5,
        phases={},
        partitions=partitions,
        ended_at=1e9,
    )
)
callbacks.record_statistics("")

merged = CollectorRegistry()
MultiProcessCollector(merged)  # type: ignore[no-untyped-call]
wsgi: Any = make_wsgi_app(merged)
asgi: Any = make_asgi_app(merged)
