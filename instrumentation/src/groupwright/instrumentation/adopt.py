"""`instrumented`: makes any client of confluent-kafka, measured from its first moment."""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import confluent_kafka
from prometheus_client import REGISTRY, CollectorRegistry

from groupwright.core.configuration import Configuration
from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import read_consumer, read_producer
from groupwright.instrumentation._tracking.callback_tracker import Observer
from groupwright.instrumentation._tracking.wrapped_consumer import ObservedConsumer, observe
from groupwright.instrumentation.collector import Metrics
from groupwright.instrumentation.listener import Options
from groupwright.instrumentation.sinks import EventSink

C = TypeVar("C")

_log = logging.getLogger("groupwright.instrumentation")


def instrumented(
    kind: Callable[..., C],
    config: Mapping[str, Any],
    /,
    *,
    registry: CollectorRegistry = REGISTRY,
    events: Sequence[EventSink] = (),
    lag_by_partition: bool = False,
    advise: bool = True,
    **arguments: Any,
) -> C:
    """Make a client of confluent-kafka that is measured: ``instrumented(Consumer, config)`` for ``Consumer(config)``.

    The client is of its kind in every respect, and the application's callbacks go on unchanged. Statistics are asked
    for every 15 s, unless the configuration has ``statistics.interval.ms``; with 0, what rests on them is absent.

    A registry that has others' metrics by these names is left as it is: the client is made all the same, a warning in
    the log says so, and events and advice go on.

    Args:
        kind: the client's class: `confluent_kafka.Consumer`, `DeserializingConsumer`, `AIOConsumer`, Groupwright's
            `Consumer`, one derived from any of these; or a producer's.
        config: its whole configuration; it is not changed.
        registry: where its metrics go.
        events: where a record of each rebalance goes.
        lag_by_partition: whether lag is shown for each partition as well: as many series as there are partitions.
        advise: whether to look for what causes rebalances, and warn of it in the log.
        arguments: what else the class takes, such as ``logger`` or ``executor``.

    Raises:
        TypeError: `kind` is no client of confluent-kafka.
    """
    metrics = _metrics_of(registry)
    asynchronous = inspect.iscoroutinefunction(getattr(kind, "poll", None))
    if hasattr(kind, "produce"):
        signals = Signals(read_producer)
        producer = kind(signals.configure(config, asynchronous=asynchronous), **arguments)
        metrics.watch_producer(Configuration(config).text("client.id"), signals)
        return producer
    told = Signals(read_consumer)
    configured = told.configure(config, asynchronous=asynchronous)
    consumer: Any
    if hasattr(kind, "add_listener"):
        consumer = kind(configured, **arguments)
    else:
        observer = Observer(config, told)
        consumer = observe(
            kind, _watching(kind, asynchronous=asynchronous), observer, configured, **arguments
        )
    metrics.watch(consumer, Options(events, lag_by_partition, advise), told)
    return consumer  # type: ignore[no-any-return] # it is of that kind


def _metrics_of(registry: CollectorRegistry) -> Metrics:
    """Return the registry's metrics; where it has others by their names, such that nobody serves."""
    try:
        return Metrics.of(registry)
    except ValueError as clash:
        _log.warning("the client is made, and its metrics are not served: %s", clash)
        return Metrics()


def _watching(kind: Any, *, asynchronous: bool) -> type:
    """Return the class that watches consumers of this kind."""
    if asynchronous:
        from confluent_kafka.aio import AIOConsumer  # noqa: PLC0415 - it brings asyncio to those who use it

        from groupwright.instrumentation._tracking.wrapped_aio import ObservedAIOConsumer  # noqa: PLC0415 - as above

        if isinstance(kind, type) and issubclass(kind, AIOConsumer):
            return ObservedAIOConsumer
    elif isinstance(kind, type) and issubclass(kind, confluent_kafka.Consumer):
        return ObservedConsumer
    raise TypeError(
        f"cannot instrument {kind!r}: it is no client of confluent-kafka. Give the class itself, such as "
        "confluent_kafka.Consumer, and its configuration: instrumented(Consumer, config)"
    )
