"""What gauges show at a scrape, read from the consumers that are alive."""

from collections.abc import Iterable, Mapping

from groupwright.instrumentation.catalogue import (
    CATALOGUE,
    GENERATION,
    LAST_POLL_AGE,
    LAST_REBALANCE_DURATION,
    LAST_REBALANCE_TIMESTAMP,
    PARTITIONS_OWNED,
    Kind,
    Spec,
)
from groupwright.instrumentation.listener import Instrumentation

Series = dict[tuple[str, ...], float]
"""Values by label values, in the order of `Spec.labels`."""


def read(consumers: Iterable[Instrumentation]) -> Mapping[Spec, Series]:
    """Read every gauge of the catalogue.

    Consumers of one group and one client id (it is "rdkafka" unless set) share their series: what they own adds up,
    the last rebalance is the latest of theirs, and the poll age is that of the one that has not polled for longest.
    """
    gauges: dict[Spec, Series] = {spec: {} for spec in CATALOGUE if spec.kind is Kind.GAUGE}
    owned, ages = gauges[PARTITIONS_OWNED], gauges[LAST_POLL_AGE]
    standings = [(consumer, consumer.standing) for consumer in consumers]
    for consumer, standing in sorted(standings, key=lambda each: each[1].ended_at or 0.0):
        labels = consumer.identity
        for topic, number in standing.owned.items():
            owned[*labels, topic] = owned.get((*labels, topic), 0) + number
        if standing.ended_at is not None:
            gauges[LAST_REBALANCE_TIMESTAMP][labels] = standing.ended_at
            gauges[LAST_REBALANCE_DURATION][labels] = standing.duration
        if standing.generation is not None:
            gauges[GENERATION][labels] = standing.generation
        age = consumer.poll_age()
        if age is not None:
            ages[labels] = max(age, ages.get(labels, age))
    return gauges
