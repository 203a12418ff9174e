"""`instrument`, and the collector that stands for all instrumented clients of one registry."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from typing import Any, Self

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily

from groupwright.core import ObservableConsumer
from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, ProducerStatistics
from groupwright.instrumentation._metrics import gauges
from groupwright.instrumentation._metrics.catalogue import BUILD_INFO, CATALOGUE, CONSUMER_INFO
from groupwright.instrumentation._metrics.families import Families
from groupwright.instrumentation._metrics.spec import Spec
from groupwright.instrumentation._tracking.producers import ProducerInstrumentation
from groupwright.instrumentation.listener import Instrumentation, Options
from groupwright.instrumentation.sinks import EventSink


def instrument(
    consumer: ObservableConsumer,
    registry: CollectorRegistry = REGISTRY,
    *,
    events: Sequence[EventSink] = (),
    lag_by_partition: bool = False,
    advise: bool = True,
) -> Instrumentation:
    """Measure a consumer's rebalances from now on, in `registry`; best called before `subscribe`.

    The same consumer in the same registry again changes nothing, and returns what it returned before. What rests on
    librdkafka's statistics (lag above all) is measured only of a client that `instrumented` has made.

    Args:
        consumer: Groupwright's, or one that `instrumented` has made.
        registry: where its metrics go.
        events: where a record of each rebalance goes.
        lag_by_partition: whether lag is shown for each partition as well: as many series as there are partitions.
        advise: whether to look for what causes rebalances, and warn of it in the log.

    Raises:
        TypeError: the consumer tells nothing of its rebalances, as a plain `confluent_kafka.Consumer`.
        ValueError: the registry has metrics by these names that are not Groupwright's.
    """
    options = Options(events, lag_by_partition, advise)
    return Metrics.of(registry).watch(consumer, options)


class Metrics:
    """A prometheus-client collector: the metrics of any number of consumers in one registry.

    There is one in each registry, and the registry itself is where `of` finds it again. So there is no state outside
    of registries, consumers share metric families, and two registries in a process know nothing of each other.
    """

    def __init__(self) -> None:
        """Make a collector in no registry."""
        self._families = Families()
        self._build = {name: _version(name) for name in ("groupwright", "confluent-kafka")}
        self._logger = logging.getLogger("groupwright.instrumentation")
        self._consumers: list[Instrumentation] = []
        self._producers: list[ProducerInstrumentation] = []
        # Reentrant: a signal handler may remove a consumer while it interrupts a scrape.
        self._lock = threading.RLock()

    @classmethod
    def of(cls, registry: CollectorRegistry) -> Self:
        """Return the registry's collector; it gets one if it has none.

        Raises:
            ValueError: the registry has metrics by these names that are not Groupwright's.
        """
        clash: ValueError | None = None
        if _holder(registry) is None:
            try:
                registry.register(cls())
            except ValueError as error:  # or another thread was first
                clash = error
        holder = _holder(registry)
        if isinstance(holder, cls):
            return holder
        raise ValueError(
            f"the registry has metrics by Groupwright's names that are not its own ({clash or holder!r}); use another "
            "registry, or unregister those"
        ) from clash

    def watch(
        self,
        consumer: ObservableConsumer,
        options: Options | None = None,
        signals: Signals[ConsumerStatistics] | None = None,
    ) -> Instrumentation:
        """Measure a consumer; one that is measured already returns what it returned before.

        Args:
            consumer: the consumer.
            options: what to measure besides the usual.
            signals: what librdkafka's callbacks tell of it, if somebody listens to them.

        Raises:
            TypeError: it tells nothing of its rebalances, as a plain `confluent_kafka.Consumer`.
        """
        _check_observable(consumer)
        with self._lock:
            for known in self._alive():
                if known.watches(consumer):
                    return known
            instrumentation = Instrumentation(
                consumer, self._families, self._forget, self._logger, options, signals
            )
            consumer.add_listener(instrumentation)
            self._consumers.append(instrumentation)
            instrumentation.start()
        return instrumentation

    def watch_producer(self, client_id: str, signals: Signals[ProducerStatistics]) -> ProducerInstrumentation:
        """Measure a producer, which lives as long as its signals do."""
        instrumentation = ProducerInstrumentation(
            client_id, signals, self._families, self._forget_producer, self._logger
        )
        with self._lock:
            self._producers.append(instrumentation)
        return instrumentation

    def describe(self) -> Iterator[Metric]:
        """Yield every family without series, by which the registry knows the names."""
        for spec in CATALOGUE:
            yield Metric(spec.family, spec.help, spec.kind, spec.unit)

    def collect(self) -> Iterator[Metric]:
        """Yield every family as it is now."""
        consumers, producers = self._alive(), self._alive_producers()
        # First, since what cannot be read is counted, and so is what has grown.
        clients = []
        alive: list[Instrumentation | ProducerInstrumentation] = [*consumers, *producers]
        for client in alive:
            readings = client.readings()
            client.count_growth(readings)
            clients.append((client.identity, readings))
        yield from self._families.collect()
        for spec, series in gauges.merge(clients).items():
            yield _gauge(spec, series)
        yield _info(BUILD_INFO, {tuple(self._build.values())})
        yield _info(CONSUMER_INFO, {(*consumer.identity, *consumer.whose) for consumer in consumers})

    def _alive(self) -> list[Instrumentation]:
        """Return the consumers that have not been collected, in the order in which their last rebalances ended.

        The counters of those that were stay, as totals.
        """
        with self._lock:
            self._consumers = [each for each in self._consumers if each.alive]
            return sorted(self._consumers, key=lambda each: each.standing.ended_at or 0.0)

    def _alive_producers(self) -> list[ProducerInstrumentation]:
        with self._lock:
            self._producers = [each for each in self._producers if each.alive]
            return list(self._producers)

    def _forget(self, gone: Instrumentation) -> None:
        with self._lock:
            self._consumers = [each for each in self._consumers if each is not gone]
            if all(each.identity != gone.identity for each in self._alive()):
                self._families.remove(gone.identity)

    def _forget_producer(self, gone: ProducerInstrumentation) -> None:
        with self._lock:
            self._producers = [each for each in self._producers if each is not gone]
            if all(each.identity != gone.identity for each in self._alive_producers()):
                self._families.remove(gone.identity)


def _check_observable(consumer: Any) -> None:
    if not hasattr(consumer, "add_listener"):
        kind = f"{type(consumer).__module__}.{type(consumer).__qualname__}"
        raise TypeError(
            f"cannot instrument this {kind}: it tells nothing of its rebalances, and once it is made, it takes no "
            f"stats_cb any more. Make it by `instrumented({type(consumer).__name__}, config)`, which returns one"
        )


def _holder(registry: CollectorRegistry) -> object:
    """Return who holds our names in the registry, or None.

    The registry knows, but has no public way to ask: a second `register` only says that the names are taken.
    """
    return registry._names_to_collectors.get(BUILD_INFO.name)  # noqa: SLF001 - see above


def _gauge(spec: Spec, series: gauges.Series) -> GaugeMetricFamily:
    family = GaugeMetricFamily(spec.family, spec.help, labels=spec.labels, unit=spec.unit)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family


def _info(spec: Spec, series: Iterable[tuple[str, ...]]) -> Metric:
    family = Metric(spec.family, spec.help, spec.kind)
    for values in sorted(series):
        family.add_sample(spec.name, dict(zip(spec.labels, values, strict=True)), 1)
    return family


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # run from a zip or a bare path
        return "unknown"
