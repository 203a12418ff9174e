"""What gauges show at a scrape, where several clients may share a series."""

from collections.abc import Callable, Iterable, Mapping

from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.families import Identity
from groupwright.instrumentation._metrics.samples import Reading
from groupwright.instrumentation._metrics.spec import Kind, Merge, Spec

Series = dict[tuple[str, ...], float]
"""Values by label values, in the order of `Spec.labels`."""


def merge(clients: Iterable[tuple[Identity, Iterable[Reading]]]) -> Mapping[Spec, Series]:
    """Return every gauge of the catalogue, as all clients' readings together give it.

    Those of one group and one client id (it is "rdkafka" unless set) share their series: each metric's `Merge` says
    what it shows then. The clients come in the order in which their last rebalances ended.
    """
    gauges: dict[Spec, Series] = {spec: {} for spec in CATALOGUE if spec.kind is Kind.GAUGE}
    for identity, readings in clients:
        own = {spec: identity.of(spec) for spec in gauges}
        for spec, labels, value in readings:
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
