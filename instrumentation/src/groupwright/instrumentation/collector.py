"""`instrument`, and the collector that stands for all instrumented consumers of one registry."""

import logging
import threading
from collections.abc import Iterator
from importlib import metadata
from typing import Self

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

from groupwright.instrumentation import gauges
from groupwright.instrumentation.catalogue import BUILD_INFO, CATALOGUE, Spec
from groupwright.instrumentation.families import Families
from groupwright.instrumentation.listener import Instrumentation
from groupwright.instrumentation.observable import ObservableConsumer, as_observable


def instrument(consumer: ObservableConsumer, registry: CollectorRegistry = REGISTRY) -> Instrumentation:
    """Measure a consumer's rebalances from now on, in `registry`; best called before `subscribe`.

    The same consumer in the same registry again changes nothing, and returns what it returned before.

    Raises:
        TypeError: the consumer tells nothing of its rebalances, as a plain `confluent_kafka.Consumer`.
        ValueError: the registry has metrics by these names that are not Groupwright's.
    """
    return Metrics.of(registry).watch(consumer)


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

    def watch(self, consumer: ObservableConsumer) -> Instrumentation:
        """Measure a consumer; one that is measured already returns what it returned before.

        Raises:
            TypeError: it tells nothing of its rebalances, as a plain `confluent_kafka.Consumer`.
        """
        consumer = as_observable(consumer)
        with self._lock:
            for known in self._alive():
                if known.watches(consumer):
                    return known
            instrumentation = Instrumentation(consumer, self._families, self._forget, self._logger)
            consumer.add_listener(instrumentation)
            self._consumers.append(instrumentation)
            instrumentation.start_counters()
        return instrumentation

    def describe(self) -> Iterator[Metric]:
        """Yield every family without series, by which the registry knows the names."""
        for spec in CATALOGUE:
            yield Metric(spec.family, spec.help, spec.kind, spec.unit)

    def collect(self) -> Iterator[Metric]:
        """Yield every family as it is now."""
        # First, since a gauge that cannot be read is counted.
        read = gauges.read(self._alive())
        yield from self._families.collect()
        for spec, series in read.items():
            yield _gauge(spec, series)
        labels = dict(zip(BUILD_INFO.labels, self._build.values(), strict=True))
        yield InfoMetricFamily(BUILD_INFO.family, BUILD_INFO.help, value=labels)

    def _alive(self) -> list[Instrumentation]:
        """Return the consumers that have not been collected. The counters of those that were stay, as totals."""
        with self._lock:
            self._consumers = [each for each in self._consumers if each.alive]
            return list(self._consumers)

    def _forget(self, gone: Instrumentation) -> None:
        with self._lock:
            self._consumers = [each for each in self._consumers if each is not gone]
            if all(each.identity != gone.identity for each in self._alive()):
                self._families.remove(gone.identity)


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


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # run from a zip or a bare path
        return "unknown"
