"""Values of gauges at a scrape, where several clients may share a series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from groupwright.core.metrics import MetricType
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.families import ClientLabels
from groupwright.instrumentation._metrics.samples import Sample
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

Series = dict[tuple[str, ...], float]
"""Values by label values, in the order of `ClientSpec.labels`."""


def merge(clients: Iterable[tuple[ClientLabels, Iterable[Sample]]]) -> Mapping[ClientSpec, Series]:
    """Return the series of every gauge and info of the catalogue, merged from the samples of all clients.

    Clients of one group and one client id ("rdkafka" by default) share their series, by each metric's
    `Merge`.

    Args:
        clients: Labels and samples of each client, in the order in which their last rebalances ended.
    """
    types = {MetricType.GAUGE, MetricType.INFO}
    gauges: dict[ClientSpec, Series] = {spec: {} for spec in CATALOGUE if spec.type in types}
    for client_labels, samples in clients:
        own = {spec: client_labels.of(spec) for spec in gauges}
        for spec, labels, value in samples:
            series = gauges.get(spec)
            if series is not None:
                key = own[spec] + labels
                series[key] = _MERGES[spec.merge](series[key], value) if key in series else value
    return gauges


_MERGES: Mapping[Merge, Callable[[float, float], float]] = {
    Merge.SUM: lambda one, other: one + other,
    Merge.MAX: max,
    Merge.LAST: lambda _, other: other,
}
