"""`create_instrumented`: creates any client of confluent-kafka, instrumented from its first moment."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, get_origin

import confluent_kafka
from confluent_kafka import cimpl
from prometheus_client import REGISTRY, CollectorRegistry

from groupwright.core.configuration import Configuration
from groupwright.instrumentation._librdkafka.callbacks import STATISTICS_INTERVAL_MS, LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.log_ends import LogEnds
from groupwright.instrumentation._librdkafka.statistics import read_consumer, read_producer
from groupwright.instrumentation._tracking.callback_tracker import CallbackTracker
from groupwright.instrumentation._tracking.lag_tracker import reads_uncommitted
from groupwright.instrumentation._tracking.share_metrics import ShareTracker
from groupwright.instrumentation._tracking.wrapped_consumer import WrappedConsumer, create_wrapped
from groupwright.instrumentation.collector import Metrics
from groupwright.instrumentation.consumer_metrics import Options
from groupwright.instrumentation.sinks import EventSink

C = TypeVar("C")

_log = logging.getLogger("groupwright.instrumentation")


def create_instrumented(
    client_class: Callable[..., C],
    config: Mapping[str, Any],
    /,
    *,
    registry: CollectorRegistry = REGISTRY,
    events: Sequence[EventSink] = (),
    load_checks: Sequence[EventSink] = (),
    lag_by_partition: bool = False,
    advise: bool = True,
    **arguments: Any,
) -> C:
    """Create an instrumented client: ``create_instrumented(Consumer, config)``.

    The client is an instance of its class, and the application's callbacks run as before. Unless a consumer's
    configuration sets ``statistics.interval.ms``, librdkafka emits statistics every 15 s; with 0, the metrics
    made of statistics are absent. A producer emits statistics only if its configuration sets the interval.

    If the registry already has other metrics by Groupwright's names, a warning is logged, and the client's
    metrics are in no registry. Events and advice are not affected.

    Args:
        client_class: `confluent_kafka.Consumer`, `DeserializingConsumer`, `AIOConsumer`,
            `ShareConsumer`, Groupwright's `Consumer`, a class derived from one of these, or a producer's
            class.
        config: The client's whole configuration. It is not changed.
        registry: The registry for its metrics.
        events: Sinks that receive an event for each rebalance.
        load_checks: Sinks that receive an event for each load check of Groupwright's consumer.
        lag_by_partition: Whether to show the lag of each partition too, which adds a series for each
            partition.
        advise: Whether to look for the causes of rebalances, and log warnings.
        arguments: Further arguments of the class, such as ``logger`` or ``executor``.

    Returns:
        The client.

    Raises:
        TypeError: `client_class` is not a client class of confluent-kafka, or is a consumer class with an
            asynchronous constructor.
    """
    # It may have type arguments: DeserializingConsumer[str, Order].
    client_class = cast("Callable[..., C]", get_origin(client_class) or client_class)
    metrics = _metrics_of(registry)
    if _is_share_consumer(client_class):
        from groupwright.instrumentation._tracking.wrapped_share import create_wrapped_share

        share_tracker = ShareTracker(config)
        share_consumer = create_wrapped_share(client_class, share_tracker, config, **arguments)
        metrics.add_share_consumer(share_consumer, share_tracker)
        return share_consumer
    asynchronous = inspect.iscoroutinefunction(getattr(client_class, "poll", None))
    if _is_producer(client_class, asynchronous=asynchronous):
        producer_callbacks = LibrdkafkaCallbacks(read_producer)
        producer = client_class(producer_callbacks.configure(config, asynchronous=asynchronous), **arguments)
        metrics.add_producer(Configuration(config).text("client.id"), producer_callbacks)
        return producer
    callbacks = LibrdkafkaCallbacks(read_consumer)
    with_interval = {"statistics.interval.ms": STATISTICS_INTERVAL_MS, **config}
    configured = callbacks.configure(with_interval, asynchronous=asynchronous)
    consumer: Any
    if _is_groupwrights(client_class):
        consumer = client_class(configured, **arguments)
    else:
        tracker = CallbackTracker(config, callbacks)
        wrapper = _wrapper_for(client_class, asynchronous=asynchronous)
        consumer = create_wrapped(client_class, wrapper, tracker, configured, **arguments)
    ends = LogEnds(config, read_uncommitted=reads_uncommitted(config))
    options = Options(events, lag_by_partition, advise, load_checks)
    metrics.add_consumer(consumer, options, callbacks, ends)
    return consumer  # type: ignore[no-any-return] # it is of that class


def _metrics_of(registry: CollectorRegistry) -> Metrics:
    """Return the registry's collector; an unregistered one if the registry has other metrics by its names."""
    try:
        return Metrics.of(registry)
    except ValueError as clash:
        _log.warning("the client is created, but its metrics are not served: %s", clash)
        return Metrics()


def _is_share_consumer(client_class: Any) -> bool:
    """Return whether this is a class of share consumers, which confluent-kafka has from 2.15 on."""
    base = getattr(confluent_kafka, "ShareConsumer", None)
    return base is not None and isinstance(client_class, type) and issubclass(client_class, base)


def _is_producer(client_class: Any, *, asynchronous: bool) -> bool:
    """Return whether this is a class of producers."""
    # Tracers replace confluent_kafka.Producer and Consumer by subclasses of these.
    producer: type = cimpl.Producer
    if asynchronous:
        from confluent_kafka.aio import AIOProducer  # it imports asyncio

        producer = AIOProducer
    return isinstance(client_class, type) and issubclass(client_class, producer)


def _is_groupwrights(client_class: Any) -> bool:
    """Return whether this is a class of Groupwright's consumers, which this part does not import."""
    bases = inspect.getmro(client_class) if isinstance(client_class, type) else ()
    return any(base.__module__.startswith("groupwright.consumer.") for base in bases)


def _wrapper_for(client_class: Any, *, asynchronous: bool) -> type:
    """Return the class that wraps consumers of this class.

    Raises:
        TypeError: It is not a client class of confluent-kafka, or has an asynchronous constructor.
    """
    if asynchronous:
        from confluent_kafka.aio import AIOConsumer  # it imports asyncio

        from groupwright.instrumentation._tracking.wrapped_aio import WrappedAIOConsumer

        if isinstance(client_class, type) and issubclass(client_class, AIOConsumer):
            if inspect.iscoroutinefunction(client_class.__init__):
                raise TypeError(
                    f"{client_class!r} cannot be instrumented, since its constructor is asynchronous. Use "
                    "AIOConsumer, and deserialize the messages that poll returns"
                )
            return WrappedAIOConsumer
    elif isinstance(client_class, type) and issubclass(client_class, cimpl.Consumer):
        return WrappedConsumer
    raise TypeError(
        f"{client_class!r} is not a client class of confluent-kafka. Pass a class such as "
        "confluent_kafka.Consumer, and its configuration: create_instrumented(Consumer, config)"
    )
