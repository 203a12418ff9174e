"""What the gauges show and the counters count, as values of the catalogue's metrics. Pure.

A reading is a metric, its labels after those that say whose it is, and a value. Of a counter the value is a total since
the client was made; `Growth` tells how much it has grown.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groupwright.core import MembershipSnapshot
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, ProducerStatistics
from groupwright.instrumentation._metrics import catalogue as metrics
from groupwright.instrumentation._metrics import producer_catalogue as producers
from groupwright.instrumentation._metrics.consumer_state import Standing
from groupwright.instrumentation._metrics.labels import STATES
from groupwright.instrumentation._metrics.spec import Kind, Spec


class Reading(NamedTuple):
    """One value of one metric."""

    spec: Spec
    labels: tuple[str, ...]
    value: float


def of_standing(standing: Standing) -> Iterator[Reading]:
    """Read what the last rebalance left behind."""
    for topic, number in standing.owned.items():
        yield Reading(metrics.PARTITIONS_OWNED, (topic,), number)
    yield from _known(metrics.LAST_REBALANCE_TIMESTAMP, standing.ended_at)
    yield from _known(metrics.LAST_REBALANCE_DURATION, standing.duration)
    yield from _known(metrics.GENERATION, standing.generation)
    if standing.leadership is not None:
        yield Reading(metrics.LEADER_IMBALANCE, (), standing.leadership.imbalance)
        yield Reading(metrics.LEADER_MEMBERS, (), standing.leadership.members)


def of_polling(age: float | None, snapshot: MembershipSnapshot | None) -> Iterator[Reading]:
    """Read when the application last polled; nothing once it no longer can."""
    yield from _known(metrics.LAST_POLL_AGE, age)
    if age is not None and snapshot is not None and snapshot.max_poll_interval:
        yield Reading(metrics.POLL_INTERVAL_USED, (), age / snapshot.max_poll_interval)


def of_membership(snapshot: MembershipSnapshot) -> Iterator[Reading]:
    """Read a membership."""
    if snapshot.state is not None:
        for state in STATES:
            yield Reading(metrics.MEMBERSHIP_STATE, (state,), float(state == snapshot.state))
    yield from _known(metrics.COORDINATOR_NODE, snapshot.coordinator)
    yield from _known(metrics.COORDINATOR_ROUND_TRIP, snapshot.round_trip)
    yield from _known(metrics.LAST_HEARTBEAT_AGE, snapshot.heartbeat_age)
    yield from _known(metrics.POLL_SECONDS, snapshot.poll_seconds)
    yield Reading(metrics.COORDINATOR_CHANGES, (), snapshot.coordinator_changes)
    yield Reading(metrics.COORDINATOR_ERRORS, (), snapshot.coordinator_errors)
    yield Reading(metrics.FENCED, (), snapshot.fenced)
    yield Reading(metrics.MAX_POLL_EXCEEDED, (), snapshot.max_poll_exceeded)
    for request, number in snapshot.requests.items():
        yield Reading(metrics.GROUP_REQUESTS, (request,), number)
    for failure, number in snapshot.request_failures.items():
        yield Reading(metrics.GROUP_REQUEST_FAILURES, failure, number)


def of_lag(
    statistics: ConsumerStatistics, snapshot: MembershipSnapshot | None, *, by_partition: bool
) -> Iterator[Reading]:
    """Read the lag of what is fetched.

    Args:
        statistics: the newest ones.
        snapshot: a consumer's own, which knows what statistics do not: which messages librdkafka takes for taken and
            the application has not, and where partitions began of which nothing was taken.
        by_partition: whether each partition is read as well.
    """
    lag_by_topic = statistics.lag if snapshot is None else _known_better(statistics, snapshot)
    for topic, lags in lag_by_topic.items():
        if lags:
            yield Reading(metrics.LAG, (topic,), sum(lags.values()))
            yield Reading(metrics.LAG_MAX, (topic,), max(lags.values()))
        if by_partition:
            for partition, lag in lags.items():
                yield Reading(metrics.PARTITION_LAG, (topic, str(partition)), lag)


def _known_better(
    statistics: ConsumerStatistics, snapshot: MembershipSnapshot
) -> Mapping[str, Mapping[int, int]]:
    lag = {topic: dict(lags) for topic, lags in statistics.lag.items()}
    for (topic, partition), first in snapshot.ahead.items():
        position = statistics.positions.get(topic, {}).get(partition)
        if position is not None and first < position:
            lag[topic][partition] += position - first
    for (topic, partition), begin in snapshot.begins.items():
        end = statistics.ends.get(topic, {}).get(partition)
        if end is not None:
            lag[topic][partition] = max(0, end - begin)
    return lag


def of_producer(statistics: ProducerStatistics) -> Iterator[Reading]:
    """Read a producer."""
    yield Reading(producers.PRODUCER_QUEUE_MESSAGES, (), statistics.queue_messages)
    yield Reading(producers.PRODUCER_QUEUE_BYTES, (), statistics.queue_bytes)
    yield Reading(producers.PRODUCER_QUEUE_USED, (), statistics.queue_used)
    yield from _known(producers.PRODUCER_BATCH_BYTES, statistics.batch_bytes)
    yield from _known(producers.PRODUCER_BATCH_MESSAGES, statistics.batch_messages)
    yield from _known(producers.PRODUCER_QUEUE_LATENCY, statistics.queue_latency)
    yield from _known(producers.PRODUCER_ROUND_TRIP, statistics.round_trip)
    yield Reading(producers.PRODUCER_MESSAGES, (), statistics.messages)
    yield Reading(producers.PRODUCER_BYTES, (), statistics.sent_bytes)
    yield Reading(producers.PRODUCER_REQUEST_ERRORS, (), statistics.request_errors)
    yield Reading(producers.PRODUCER_RETRIES, (), statistics.retries)


def of_signals(
    age_spec: Spec, age: float | None, errors_spec: Spec, errors: Mapping[str, int]
) -> Iterator[Reading]:
    """Read how old statistics are, and a client's errors."""
    yield from _known(age_spec, age)
    for error, number in errors.items():
        yield Reading(errors_spec, (error,), number)


class Growth:
    """Tells of one client's totals how much each has grown since it was last asked."""

    def __init__(self) -> None:
        """Start with all totals at 0."""
        self._totals: dict[tuple[Spec, tuple[str, ...]], float] = {}

    def increments(self, readings: Iterable[Reading]) -> list[Reading]:
        """Return the counters among the readings, each with its growth; one that has begun anew has grown by all."""
        grown = []
        for spec, labels, total in readings:
            if spec.kind is Kind.COUNTER:
                before = self._totals.get((spec, labels), 0.0)
                self._totals[spec, labels] = total
                grown.append(Reading(spec, labels, total - before if total >= before else total))
        return grown


def _known(spec: Spec, value: float | None) -> Iterator[Reading]:
    if value is not None:
        yield Reading(spec, (), value)
