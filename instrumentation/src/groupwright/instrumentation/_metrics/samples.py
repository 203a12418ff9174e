"""Samples: values of the catalogue's gauges, and totals of its counters, read at a scrape. Pure.

A counter's sample is a total since the client was created. prometheus-client's counters are incremented, so
`CounterIncrements` returns the increments of these totals between scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groupwright.core import MembershipSnapshot, TopicPartitionKey
from groupwright.core.metrics import MetricType
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, ProducerStatistics
from groupwright.instrumentation._metrics import catalogue as metrics
from groupwright.instrumentation._metrics import producer_catalogue as producers
from groupwright.instrumentation._metrics.consumer_state import ConsumerState
from groupwright.instrumentation._metrics.labels import STATES
from groupwright.instrumentation._metrics.spec import ClientSpec


class Sample(NamedTuple):
    """One value of one metric; `labels` are the label values after those of `ClientLabels`."""

    spec: ClientSpec
    labels: tuple[str, ...]
    value: float


def of_consumer_state(state: ConsumerState) -> Iterator[Sample]:
    """Yield the samples of a consumer's state."""
    for topic, number in state.owned_by_topic().items():
        yield Sample(metrics.PARTITIONS_OWNED, (topic,), number)
    yield from _if_known(metrics.LAST_REBALANCE_TIMESTAMP, state.ended_at)
    yield from _if_known(metrics.LAST_REBALANCE_DURATION, state.duration)
    yield from _if_known(metrics.GENERATION, state.generation)
    if state.leadership is not None:
        yield Sample(metrics.LEADER_IMBALANCE, (), state.leadership.imbalance)
        yield Sample(metrics.LEADER_MEMBERS, (), state.leadership.members)
    if (ratios := state.load_ratios) is not None:
        peak, bound = ratios
        yield Sample(metrics.LEADER_LOAD_PEAK, (), peak)
        yield Sample(metrics.LEADER_LOAD_BOUND, (), bound)


def of_polling(age: float | None, snapshot: MembershipSnapshot | None) -> Iterator[Sample]:
    """Yield the samples of the last poll; none for a closed consumer."""
    yield from _if_known(metrics.LAST_POLL_AGE, age)
    if age is not None and snapshot is not None and snapshot.max_poll_interval:
        yield Sample(metrics.POLL_INTERVAL_USED, (), age / snapshot.max_poll_interval)


def of_membership(snapshot: MembershipSnapshot) -> Iterator[Sample]:
    """Yield the samples of a membership."""
    if snapshot.state is not None:
        for state in STATES:
            yield Sample(metrics.MEMBERSHIP_STATE, (state,), float(state == snapshot.state))
    yield from _if_known(metrics.COORDINATOR_NODE, snapshot.coordinator)
    yield from _if_known(metrics.COORDINATOR_ROUND_TRIP, snapshot.round_trip)
    yield from _if_known(metrics.COORDINATOR_MISSING, snapshot.coordinator_missing)
    yield from _if_known(metrics.LAST_HEARTBEAT_AGE, snapshot.heartbeat_age)
    yield from _if_known(metrics.POLL_SECONDS, snapshot.poll_seconds)
    yield Sample(metrics.COORDINATOR_CHANGES, (), snapshot.coordinator_changes)
    yield Sample(metrics.COORDINATOR_ERRORS, (), snapshot.coordinator_errors)
    yield Sample(metrics.FENCED, (), snapshot.fenced)
    yield Sample(metrics.MAX_POLL_EXCEEDED, (), snapshot.max_poll_exceeded)
    for request, number in snapshot.requests.items():
        yield Sample(metrics.GROUP_REQUESTS, (request,), number)
    for failure, number in snapshot.request_failures.items():
        yield Sample(metrics.GROUP_REQUEST_FAILURES, failure, number)


def of_lag(
    lag: Mapping[TopicPartitionKey, int],
    uncommitted: Mapping[TopicPartitionKey, int],
    *,
    by_partition: bool,
) -> Iterator[Sample]:
    """Yield the samples of the lag of partitions.

    Args:
        lag: Lag in offsets, by partition.
        uncommitted: Offsets from the committed one to the position, as far as both are known.
        by_partition: Whether to yield samples of single partitions too.
    """
    lags: dict[str, list[int]] = {}
    for (topic, partition), offsets in lag.items():
        lags.setdefault(topic, []).append(offsets)
        if by_partition:
            yield Sample(metrics.PARTITION_LAG, (topic, str(partition)), offsets)
    for topic, of_partitions in lags.items():
        yield Sample(metrics.LAG, (topic,), sum(of_partitions))
        yield Sample(metrics.LAG_MAX, (topic,), max(of_partitions))
    committed_lags: dict[str, int] = {}
    for key in lag.keys() & uncommitted.keys():
        committed_lags[key[0]] = committed_lags.get(key[0], 0) + lag[key] + uncommitted[key]
    for topic, of_topic in committed_lags.items():
        yield Sample(metrics.COMMITTED_LAG, (topic,), of_topic)


def of_fetching(statistics: ConsumerStatistics) -> Iterator[Sample]:
    """Yield the samples of what a consumer has fetched."""
    yield Sample(metrics.THROTTLE, (), statistics.throttle)
    for topic, (messages, size) in statistics.fetched.items():
        yield Sample(metrics.FETCHED_MESSAGES, (topic,), messages)
        yield Sample(metrics.FETCHED_BYTES, (topic,), size)


def of_producer(statistics: ProducerStatistics) -> Iterator[Sample]:
    """Yield the samples of a producer."""
    yield Sample(producers.PRODUCER_QUEUE_MESSAGES, (), statistics.queue_messages)
    yield Sample(producers.PRODUCER_QUEUE_BYTES, (), statistics.queue_bytes)
    yield Sample(producers.PRODUCER_QUEUE_USED, (), statistics.queue_used)
    yield from _if_known(producers.PRODUCER_BATCH_BYTES, statistics.batch_bytes)
    yield from _if_known(producers.PRODUCER_BATCH_MESSAGES, statistics.batch_messages)
    yield from _if_known(producers.PRODUCER_QUEUE_LATENCY, statistics.queue_latency)
    yield from _if_known(producers.PRODUCER_ROUND_TRIP, statistics.round_trip)
    yield Sample(producers.PRODUCER_MESSAGES, (), statistics.messages)
    yield Sample(producers.PRODUCER_BYTES, (), statistics.sent_bytes)
    yield Sample(producers.PRODUCER_REQUEST_ERRORS, (), statistics.request_errors)
    yield Sample(producers.PRODUCER_RETRIES, (), statistics.retries)


def of_callbacks(
    age_spec: ClientSpec, age: float | None, errors_spec: ClientSpec, errors: Mapping[str, int]
) -> Iterator[Sample]:
    """Yield the samples of the age of statistics, and of a client's errors."""
    yield from _if_known(age_spec, age)
    for error, number in errors.items():
        yield Sample(errors_spec, (error,), number)


class CounterIncrements:
    """Increments of one client's totals between scrapes."""

    def __init__(self) -> None:
        """Start with all totals at 0."""
        self._totals: dict[tuple[ClientSpec, tuple[str, ...]], float] = {}

    def increments(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the counters' increments.

        A total that has decreased adds nothing: a broker has left librdkafka's statistics, or the client has
        a new handle of librdkafka.
        """
        increments = []
        for spec, labels, total in samples:
            if spec.type is MetricType.COUNTER:
                before = self._totals.get((spec, labels), 0.0)
                self._totals[spec, labels] = total
                increments.append(Sample(spec, labels, max(0.0, total - before)))
        return increments


def _if_known(spec: ClientSpec, value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield Sample(spec, (), value)
