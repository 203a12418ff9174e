"""A parser of librdkafka's statistics. Pure: text in, values out.

It keeps only what the catalogue shows: of 1 MB of JSON for 1,000 partitions, about 10 kB.

Sources: librdkafka's STATISTICS.md; rd_kafka_stats_emit_all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupwright.core import TopicPartitionKey

_COORDINATOR = "GroupCoordinator"
_MICROSECONDS = 1e-6
_MILLISECONDS = 1e-3

_STATES = {
    "init": "unjoined",
    "wait-unassign-to-complete": "preparing_rebalance",
    "wait-incr-unassign-to-complete": "preparing_rebalance",
    "wait-unassign-call": "preparing_rebalance",
    "wait-incr-unassign-call": "preparing_rebalance",
    "wait-join": "preparing_rebalance",
    "wait-metadata": "completing_rebalance",
    "wait-sync": "completing_rebalance",
    "wait-assign-call": "completing_rebalance",
    "steady": "stable",
}
"""The group protocol's state (`labels.STATES`) for each of librdkafka's join states."""

_REQUESTS = {
    "FindCoordinator": "find_coordinator",
    "JoinGroup": "join_group",
    "SyncGroup": "sync_group",
    "Heartbeat": "heartbeat",
    "OffsetCommit": "offset_commit",
    "OffsetFetch": "offset_fetch",
    "LeaveGroup": "leave_group",
}


@dataclass(frozen=True, slots=True)
class CoordinatorStatistics:
    """A consumer's coordinator."""

    node: int | None
    """The broker's id; None while none is known."""
    round_trip: float | None
    """Average over the window, in seconds; None without a response in it."""
    errors: int
    """Total of requests without a response."""


class PartitionStatistics(NamedTuple):
    """Offsets of one partition in fetch state `active`; a negative one is unknown."""

    position: int
    """`app_offset`: the offset after the last message that librdkafka returned since the partition was
    assigned or sought; negative without one."""
    fetch_position: int
    """`next_offset`: the next offset to fetch. Up to a second late after an assignment or a seek."""
    committed: int
    """`committed_offset`: of the last commit through librdkafka, or as fetched when the partition started."""
    received: int
    """`rxmsgs`: messages fetched, or prefetched, since the client was created."""
    log_start: int
    """`lo_offset` of the last fetch response."""
    high_watermark: int
    """`hi_offset` of the last fetch response."""
    last_stable_offset: int
    """`ls_offset` of the last fetch response."""
    queued: int = 0
    """`fetchq_cnt`: prefetched messages in the partition's queue, which is that of the whole consumer."""
    queued_bytes: int = 0
    """`fetchq_size`: their bytes."""


class Fetched(NamedTuple):
    """Totals of a topic's messages that were fetched, prefetched ones included."""

    messages: int
    """`rxmsgs` of its partitions."""
    bytes: int
    """`rxbytes` of its partitions."""


@dataclass(frozen=True, slots=True)
class ConsumerStatistics:
    """A consumer's statistics at one moment."""

    taken_at: float
    """librdkafka's `ts`: when it took them, in seconds by its own monotonic clock."""
    state: str | None
    """One of `labels.STATES`; None outside of any group."""
    coordinator: CoordinatorStatistics | None
    requests: Mapping[str, int]
    """Totals of group requests sent, by `labels.REQUESTS`. librdkafka does not count ConsumerGroupHeartbeat
    (KIP-848)."""
    partitions: Mapping[TopicPartitionKey, PartitionStatistics] = field(default_factory=dict)
    """Partitions in fetch state `active`. They include paused ones, with the log ends of their last fetch."""
    fetched: Mapping[str, Fetched] = field(default_factory=dict)
    """By topic."""
    throttle: float = 0.0
    """Longest throttle time in a broker's responses of the window, in seconds."""


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """A producer's statistics at one moment. Averages are over the window; None if it was empty."""

    taken_at: float
    """See `ConsumerStatistics.taken_at`."""
    queue_messages: int
    """`msg_cnt`."""
    queue_bytes: int
    """`msg_size`."""
    queue_used: float
    """Share of `msg_max` or of `msg_size_max` in use, whichever is higher."""
    batch_bytes: float | None
    """`batchsize` of the topics."""
    batch_messages: float | None
    """`batchcnt` of the topics."""
    queue_latency: float | None
    """`int_latency` of the brokers, in seconds."""
    round_trip: float | None
    """`rtt` of the brokers, in seconds."""
    messages: int
    """Total of messages sent: `txmsgs`."""
    sent_bytes: int
    """Total of their bytes: `txmsg_bytes`."""
    request_errors: int
    """Total of requests without a response."""
    retries: int
    """Total of retried requests: `txretries`."""


def read_consumer(text: str) -> ConsumerStatistics:
    """Parse the statistics that a consumer's ``stats_cb`` received.

    Raises:
        ValueError: The text is no JSON of statistics, or is incomplete.
    """
    with _ReadErrors():
        statistics = _parse(text)
        brokers = statistics["brokers"]
        coordinator = brokers.get(_COORDINATOR)
        join_state = (statistics.get("cgrp") or {}).get("join_state", "")
        sent: dict[str, int] = {}
        for broker in brokers.values():
            for name, number in broker.get("req", {}).items():
                if name in _REQUESTS and number:
                    sent[_REQUESTS[name]] = sent.get(_REQUESTS[name], 0) + number
        return ConsumerStatistics(
            taken_at=statistics["ts"] * _MICROSECONDS,
            state=_STATES.get(join_state),
            coordinator=None if coordinator is None else _coordinator(coordinator, brokers),
            requests=sent,
            partitions=dict(_partitions(statistics["topics"])),
            fetched={name: _fetched(topic) for name, topic in statistics["topics"].items()},
            throttle=max((each["throttle"]["max"] for each in brokers.values()), default=0) * _MILLISECONDS,
        )


def read_producer(text: str) -> ProducerStatistics:
    """Parse the statistics that a producer's ``stats_cb`` received.

    Raises:
        ValueError: The text is no JSON of statistics, or is incomplete.
    """
    with _ReadErrors():
        statistics = _parse(text)
        brokers, topics = statistics["brokers"].values(), statistics["topics"].values()
        used = (
            statistics["msg_cnt"] / max(1, statistics["msg_max"]),
            statistics["msg_size"] / max(1, statistics["msg_size_max"]),
        )
        return ProducerStatistics(
            taken_at=statistics["ts"] * _MICROSECONDS,
            queue_messages=statistics["msg_cnt"],
            queue_bytes=statistics["msg_size"],
            queue_used=max(used),
            batch_bytes=_average([topic["batchsize"] for topic in topics]),
            batch_messages=_average([topic["batchcnt"] for topic in topics]),
            queue_latency=_seconds(_average([broker["int_latency"] for broker in brokers])),
            round_trip=_seconds(_average([broker["rtt"] for broker in brokers])),
            messages=statistics["txmsgs"],
            sent_bytes=statistics["txmsg_bytes"],
            request_errors=sum(map(_errors, brokers)),
            retries=sum(broker["txretries"] for broker in brokers),
        )


class _ReadErrors:
    """Turns every exception that malformed statistics cause into a ValueError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, (AttributeError, KeyError, TypeError, ValueError)):
            raise ValueError(  # noqa: TRY004 - of text, not of an argument
                f"librdkafka's statistics cannot be read: {error!r}"
            ) from error


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # librdkafka escapes neither `name` nor `client_id`, which precede `type`.
        return json.loads("{" + text[text.index('"type"') :])


def _coordinator(coordinator: Mapping[str, Any], brokers: Mapping[str, Any]) -> CoordinatorStatistics:
    # librdkafka lists the coordinator as a separate broker, without an id but with the address of one.
    address = coordinator["nodename"]
    nodes = [broker["nodeid"] for broker in brokers.values() if broker["nodename"] == address]
    return CoordinatorStatistics(
        node=next((node for node in nodes if node >= 0), None) if address else None,
        round_trip=_seconds(_average([coordinator["rtt"]])),
        errors=_errors(coordinator),
    )


def _errors(broker: Mapping[str, Any]) -> int:
    return int(broker["txerrs"] + broker["rxerrs"] + broker["req_timeouts"])


def _partitions(topics: Mapping[str, Any]) -> Iterator[tuple[TopicPartitionKey, PartitionStatistics]]:
    """Yield the partitions in fetch state `active`."""
    for name, topic in topics.items():
        for partition in topic["partitions"].values():
            # Partition -1 is internal to librdkafka, and a revoked partition keeps its last offsets.
            if partition["fetch_state"] == "active" and partition["partition"] >= 0:
                yield (
                    (name, partition["partition"]),
                    PartitionStatistics(
                        partition["app_offset"],
                        partition["next_offset"],
                        partition["committed_offset"],
                        partition["rxmsgs"],
                        partition["lo_offset"],
                        partition["hi_offset"],
                        partition["ls_offset"],
                        partition["fetchq_cnt"],
                        partition["fetchq_size"],
                    ),
                )


def _fetched(topic: Mapping[str, Any]) -> Fetched:
    partitions = topic["partitions"].values()
    return Fetched(sum(each["rxmsgs"] for each in partitions), sum(each["rxbytes"] for each in partitions))


def _average(windows: list[Mapping[str, Any]]) -> float | None:
    count = sum(window["cnt"] for window in windows)
    return sum(window["sum"] for window in windows) / count if count else None


def _seconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds * _MICROSECONDS
