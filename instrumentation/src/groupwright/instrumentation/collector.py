"""`instrument`, `instrument_parallel`, and the collector of all instrumented clients of one registry."""

from __future__ import annotations

import contextvars
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily

from groupwright.core import ObservableConsumer
from groupwright.core.locking import call_locked, locked
from groupwright.core.metrics import MetricType
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.log_ends import LogEnds
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, ProducerStatistics
from groupwright.instrumentation._metrics import gauges, multiprocess
from groupwright.instrumentation._metrics.catalogue import BUILD_INFO, CATALOGUE
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.samples import Sample
from groupwright.instrumentation._metrics.spec import ClientSpec
from groupwright.instrumentation._tracking.callback_tracker import tracker_of
from groupwright.instrumentation._tracking.parallel_metrics import Workers, of_workers
from groupwright.instrumentation._tracking.producer_metrics import ProducerReader
from groupwright.instrumentation._tracking.publisher import Publisher
from groupwright.instrumentation._tracking.sampled_client import SampledClient
from groupwright.instrumentation._tracking.share_metrics import ShareTracker, of_share_consumer
from groupwright.instrumentation.consumer_metrics import Instrumentation, Options
from groupwright.instrumentation.sinks import EventSink

C = TypeVar("C")
_Client = Instrumentation | SampledClient[Any]

_ENDED_CLIENTS = 100
"""Ended clients whose counters stay: a process may create clients with ever new names."""

_registry_lookup: contextvars.ContextVar[list[Metrics] | None] = contextvars.ContextVar(
    "groupwright_registry_lookup", default=None
)
"""Set while `Metrics.of` looks up a registry's collector, whose `collect` then only adds itself."""


def instrument(
    consumer: ObservableConsumer,
    registry: CollectorRegistry = REGISTRY,
    *,
    events: Sequence[EventSink] = (),
    load_checks: Sequence[EventSink] = (),
    lag_by_partition: bool = False,
    advise: bool = True,
) -> Instrumentation:
    """Instrument a consumer from now on; best called before `subscribe`.

    A second call for the same consumer and registry changes nothing, and returns the same object. Metrics
    made of librdkafka's statistics, lag above all, exist only for a client that `create_instrumented`
    created.

    Args:
        consumer: Groupwright's consumer, or a client that `create_instrumented` created.
        registry: The registry for its metrics.
        events: Sinks that receive an event for each rebalance.
        load_checks: Sinks that receive an event for each load check of Groupwright's consumer.
        lag_by_partition: Whether to show the lag of each partition too, which adds a series for each
            partition.
        advise: Whether to look for the causes of rebalances, and log warnings.

    Returns:
        The consumer's instrumentation.

    Raises:
        TypeError: The consumer reports no rebalances, as a plain `confluent_kafka.Consumer`.
        ValueError: The registry has other metrics by Groupwright's names.
    """
    options = Options(events, lag_by_partition, advise, load_checks)
    return Metrics.of(registry).add_consumer(consumer, options)


def instrument_parallel(workers: Workers, registry: CollectorRegistry = REGISTRY) -> SampledClient[Workers]:
    """Show what the workers of a `ParallelConsumer` do: messages in flight, done and repeated.

    The consumer's own metrics are those of the client: give `ParallelConsumer` one that `create_instrumented`
    creates. A second call for the same consumer and registry changes nothing.

    Args:
        workers: The parallel consumer.
        registry: The registry for the metrics.

    Returns:
        The object that can remove these series again.

    Raises:
        ValueError: The registry has other metrics by Groupwright's names.
    """
    return Metrics.of(registry).add_parallel(workers)


class Metrics:
    """A prometheus-client collector: the metrics of any number of clients in one registry.

    Each registry has one, which `of` returns. Clients share its metric families, and the registries of a
    process are independent of each other.
    """

    def __init__(self) -> None:
        """Create a collector without registering it."""
        self._families = Families()
        self._build = {name: _version(name) for name in ("groupwright", "confluent-kafka")}
        self._logger = logging.getLogger("groupwright.instrumentation")
        self._clients: list[_Client] = []
        self._ended: dict[ClientLabels, None] = {}
        """Labels of ended clients that have counters, in the order in which the clients ended."""
        self._pid = os.getpid()
        # Reentrant: a signal handler may remove a consumer while it interrupts a scrape.
        self._lock = threading.RLock()
        folder = multiprocess.directory()
        self._publisher = None if folder is None else Publisher(self, folder)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> Metrics:
        """Return the registry's collector, after registering one if it has none.

        Raises:
            ValueError: The registry has other metrics by Groupwright's names.
        """
        clash: ValueError | None = None
        found = _registered(registry)
        if found is None:
            try:
                registry.register(cls())
            except ValueError as error:  # other metrics, or another thread was first
                clash = error
            found = _registered(registry)
        if found is None:
            raise ValueError(
                f"the registry has other metrics by Groupwright's names ({clash}); use another registry, or "
                "unregister those"
            ) from clash
        return found

    def add_consumer(
        self,
        consumer: ObservableConsumer,
        options: Options | None = None,
        callbacks: LibrdkafkaCallbacks[ConsumerStatistics] | None = None,
        ends: LogEnds | None = None,
    ) -> Instrumentation:
        """Instrument a consumer; for an instrumented one, return the object that it has.

        Args:
            consumer: The consumer.
            options: Optional measurements.
            callbacks: librdkafka's callbacks of the consumer, if they are wrapped.
            ends: Looks up the log ends of partitions that librdkafka does not fetch.

        Raises:
            TypeError: The consumer reports no rebalances, as a plain `confluent_kafka.Consumer`.
        """
        _check_observable(consumer)
        self._update_clients()

        def on_removed(removed: Instrumentation) -> None:
            self._remove(removed)
            if ends is not None:
                ends.close()

        def find_or_add() -> Instrumentation:
            for known in self._alive():
                if isinstance(known, Instrumentation) and known.instruments(consumer):
                    return known
            added = Instrumentation(
                consumer, self._families, on_removed, self._logger, options, callbacks, ends
            )
            if ends is not None:
                weakref.finalize(consumer, ends.close).atexit = False
            self._clients.append(added)
            added.start()
            return added

        instrumentation = call_locked(self._lock, find_or_add)
        self._start_publisher()
        return instrumentation

    def add_producer(
        self, client_id: str, callbacks: LibrdkafkaCallbacks[ProducerStatistics]
    ) -> SampledClient[LibrdkafkaCallbacks[ProducerStatistics]]:
        """Instrument a producer, for as long as its callbacks exist."""
        labels = ClientLabels("", client_id)
        reader = ProducerReader(labels, callbacks, self._families, self._logger)
        return self._add_sampled(labels, callbacks, reader.samples)

    def add_share_consumer(self, consumer: Any, tracker: ShareTracker) -> SampledClient[Any]:
        """Instrument a share consumer, for as long as it exists."""
        labels = ClientLabels(tracker.group_id, tracker.client_id)
        return self._add_sampled(labels, consumer, lambda consumer: of_share_consumer(tracker, consumer))

    def add_parallel(self, workers: Workers) -> SampledClient[Workers]:
        """Show what the workers of a consumer do, for as long as it exists."""
        return self._add_sampled(ClientLabels(workers.group_id, workers.client_id), workers, of_workers)

    def _add_sampled(
        self, labels: ClientLabels, client: C, read: Callable[[C | None], Iterable[Sample]]
    ) -> SampledClient[C]:
        self._update_clients()

        def find_or_add() -> SampledClient[C]:
            for known in self._alive():
                if isinstance(known, SampledClient) and known.instruments(client):
                    return known
            added = SampledClient(labels, client, read, self._families, self._remove)
            self._clients.append(added)
            return added

        instrumentation = call_locked(self._lock, find_or_add)
        self._start_publisher()
        return instrumentation

    def add_observer(self, observer: Callable[[ClientSpec, Mapping[str, str], float], None]) -> None:
        """Call `observer` with each value of a histogram from now on, and its labels."""
        self._families.observers.append(observer)

    def describe(self) -> Iterator[Metric]:
        """Yield every family without series, from which the registry knows the names."""
        for spec in CATALOGUE:
            yield Metric(spec.family, spec.help, spec.type, spec.unit)

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its present series."""
        lookup = _registry_lookup.get()
        if lookup is not None:
            lookup.append(self)
            return
        # First, since reading samples increments counters of the families.
        read = self._read()
        yield from self._families.collect()
        for spec, series in read.items():
            yield _info(spec, series) if spec.type is MetricType.INFO else _gauge(spec, series)

    def publish(self, folder: Path, number: int) -> None:
        """Write the gauges for prometheus-client's multiprocess mode, and increment the counters."""
        last = max((each.last_rebalance for each in self._alive()), default=0.0)
        multiprocess.write(folder, number, self._read(), last)

    def _read(self) -> Mapping[ClientSpec, gauges.Series]:
        """Return the series of gauges and infos, and increment the counters."""
        self._update_clients()
        clients = [(client.client_labels, client.samples()) for client in self._alive()]
        return {**gauges.merge(clients), BUILD_INFO: {tuple(self._build.values()): 1.0}}

    def _start_publisher(self) -> None:
        if self._publisher is not None:
            self._publisher.start()

    @locked
    def _alive(self) -> list[_Client]:
        """Return the clients that still exist, in the order in which their last rebalances ended.

        `Merge.LAST` needs this order.
        """
        return sorted((each for each in self._clients if each.alive), key=lambda each: each.last_rebalance)

    def _update_clients(self) -> None:
        """Forget clients that no longer exist, after reading their totals for the last time.

        Their counters stay, those of the last `_ENDED_CLIENTS`. A forked process forgets the clients of its
        parent, which the parent reads.
        """
        ended = self._forget_ended()
        for each in ended:
            each.samples()
        self._remove_counters([each.client_labels for each in ended])

    @locked
    def _forget_ended(self) -> list[_Client]:
        if self._pid != os.getpid():
            self._pid, self._clients = os.getpid(), []
        alive = self._alive()
        ended = [each for each in self._clients if each not in alive]
        self._clients = alive
        return ended

    @locked
    def _remove_counters(self, ended: Iterable[ClientLabels]) -> None:
        """Remove the counters of the clients that ended first, as soon as too many have ended."""
        if self._publisher is not None:  # prometheus-client removes no counter from its files
            return
        for labels in ended:
            self._ended.pop(labels, None)
            self._ended[labels] = None
        for labels in {each.client_labels for each in self._alive()}:
            self._ended.pop(labels, None)  # another client goes on with them
        for labels in [*self._ended][:-_ENDED_CLIENTS]:
            del self._ended[labels]
            self._families.remove(labels)

    @locked
    def _remove(self, removed: _Client) -> None:
        self._clients = [each for each in self._clients if each is not removed]
        if all(each.client_labels != removed.client_labels for each in self._alive()):
            self._clients = [each for each in self._clients if each.client_labels != removed.client_labels]
            self._families.remove(removed.client_labels)


def _registered(registry: CollectorRegistry) -> Metrics | None:
    """Return the registry's collector, if it has one.

    `CollectorRegistry` returns no collectors, but it can collect the one with a given metric.
    """
    found: list[Metrics] = []
    token = _registry_lookup.set(found)
    try:
        for _ in registry.restricted_registry([BUILD_INFO.name]).collect():
            pass
    finally:
        _registry_lookup.reset(token)
    return found[0] if found else None


def _check_observable(consumer: Any) -> None:
    if tracker_of(consumer) is None and not hasattr(consumer, "add_listener"):
        name = type(consumer).__name__
        raise TypeError(
            f"cannot instrument this {type(consumer).__module__}.{name}: it reports no rebalances, and "
            f"accepts callbacks only in the constructor. Create it by create_instrumented({name}, config)"
        )


def _gauge(spec: ClientSpec, series: gauges.Series) -> GaugeMetricFamily:
    family = GaugeMetricFamily(spec.family, spec.help, labels=spec.labels, unit=spec.unit)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family


def _info(spec: ClientSpec, series: gauges.Series) -> Metric:
    family = Metric(spec.family, spec.help, spec.type)
    for labels in sorted(series):
        family.add_sample(spec.name, dict(zip(spec.labels, labels, strict=True)), 1)
    return family


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # run from a zip or a bare path
        return "unknown"
