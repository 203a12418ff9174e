"""Synthetic rows of the tables `group_generations` and `group_members`."""

import numpy as np
import pyarrow as pa

from benchmarks.pipeline.synthetic.commits import LOG_END, log_partitions
from benchmarks.pipeline.synthetic.fleet import Fleet, GroupTimeline, Numbers
from benchmarks.pipeline.synthetic.generations import client_id, member_id
from groupwright.pipeline._decoding.schema import TOPIC_PARTITIONS
from groupwright.pipeline._decoding.types import TIMESTAMP

_STRING, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_REBALANCE_MS, _SESSION_MS = 300_000, 45_000

_WHERE = [("log_partition", _INT), ("log_offset", _LONG), ("log_time", TIMESTAMP), ("date", pa.date32())]

GENERATION_ROWS = pa.schema(
    [
        ("group_id", _STRING),
        ("group_type", _STRING),
        ("protocol_type", _STRING),
        ("generation", _INT),
        ("protocol", _STRING),
        ("leader", _STRING),
        ("state_time", TIMESTAMP),
        ("member_count", _INT),
        ("tombstone", pa.bool_()),
        *_WHERE,
    ]
)
"""Columns of `group_generations`."""

MEMBER_ROWS = pa.schema(
    [
        ("group_id", _STRING),
        ("generation", _INT),
        ("member_id", _STRING),
        ("instance_id", _STRING),
        ("client_id", _STRING),
        ("client_host", _STRING),
        ("rack", _STRING),
        ("rebalance_timeout_ms", _INT),
        ("session_timeout_ms", _INT),
        ("subscribed", pa.list_(_STRING)),
        ("owned", TOPIC_PARTITIONS),
        ("owned_generation", _INT),
        ("assigned", TOPIC_PARTITIONS),
        *_WHERE,
    ]
)
"""Columns of `group_members`."""


def generation_rows(fleet: Fleet, group: int) -> pa.RecordBatch:
    """Return a row for each generation of a group; all groups use the classic protocol and `range`."""
    timeline = GroupTimeline.of(fleet, group)
    generations = np.arange(fleet.generations)
    times = fleet.generation_micros(group)
    leaders = timeline.alive.argmax(axis=1).tolist()
    columns = {
        "generation": pa.array(generations + 1, _INT),
        "leader": pa.array([member_id(fleet, group, leader) for leader in leaders]),
        "state_time": pa.array(times).view(TIMESTAMP),
        "member_count": pa.array(timeline.alive.sum(axis=1), _INT),
        **_where(fleet, group, generations),
    }
    alike = {
        "group_id": fleet.group_id(group),
        "group_type": "classic",
        "protocol_type": "consumer",
        "protocol": "range",
        "tombstone": False,
    }
    return _batch(columns, alike, generations.size, GENERATION_ROWS)


def member_rows(fleet: Fleet, group: int) -> pa.RecordBatch:
    """Return a row for each member in each generation of a group."""
    timeline = GroupTimeline.of(fleet, group)
    generations, members = np.nonzero(timeline.alive)
    names = [fleet.topic(group, topic) for topic in range(fleet.topics)]
    by_name = np.array(sorted(range(fleet.topics), key=names.__getitem__))
    topics = pa.array(names)
    subscribed = timeline.subscribed[generations, members][:, by_name]
    ever = timeline.alive.shape[1]
    of_member = pa.array(members)
    columns = {
        "generation": pa.array(generations + 1, _INT),
        "member_id": pa.array([member_id(fleet, group, member) for member in range(ever)]).take(of_member),
        "client_id": pa.array([client_id(fleet, group, member) for member in range(ever)]).take(of_member),
        "client_host": pa.array([f"/10.0.{group % 256}.{member % 256}" for member in range(ever)]).take(
            of_member
        ),
        "subscribed": _lists(
            subscribed.sum(axis=1), topics.take(pa.array(by_name[np.nonzero(subscribed)[1]]))
        ),
        "owned": _lists(np.zeros(members.size, np.int64), pa.array([], TOPIC_PARTITIONS.value_type)),
        "assigned": _assigned(
            timeline.starts[generations, members][:, by_name],
            timeline.ends[generations, members][:, by_name],
            topics.take(pa.array(by_name)),
        ),
        **_where(fleet, group, generations),
    }
    alike = {
        "group_id": fleet.group_id(group),
        "rebalance_timeout_ms": _REBALANCE_MS,
        "session_timeout_ms": _SESSION_MS,
    }
    return _batch(columns, alike, members.size, MEMBER_ROWS)


def _assigned(starts: Numbers, ends: Numbers, topics: pa.Array) -> pa.Array:
    """Return the partitions from start to end of each non-empty topic, for each row."""
    sizes = ends - starts
    rows, columns = np.nonzero(sizes)
    counts, firsts = sizes[rows, columns], starts[rows, columns]
    before = np.cumsum(counts) - counts
    partitions = np.repeat(firsts - before, counts) + np.arange(counts.sum())
    runs = pa.StructArray.from_arrays(
        [topics.take(pa.array(columns)), _lists(counts, pa.array(partitions, _INT))],
        fields=list(TOPIC_PARTITIONS.value_type),
    )
    return _lists((sizes > 0).sum(axis=1), runs)


def _where(fleet: Fleet, group: int, generations: Numbers) -> dict[str, pa.Array]:
    name = np.frombuffer(fleet.group_id(group).encode(), np.uint8)
    partition = log_partitions(name[None, :], fleet.log_partitions)
    times = pa.array(fleet.generation_micros(group)[generations]).view(TIMESTAMP)
    step = LOG_END // (fleet.groups * fleet.generations)
    return {
        "log_partition": pa.array(np.repeat(partition, generations.size), _INT),
        "log_offset": pa.array((generations * fleet.groups + group) * step),
        "log_time": times,
        "date": times.cast(pa.date32()),
    }


def _lists(counts: Numbers, values: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _batch(
    columns: dict[str, pa.Array], alike: dict[str, object], size: int, schema: pa.Schema
) -> pa.RecordBatch:
    """Return rows with these columns; the other columns are constant or null."""
    for field in schema:
        if field.name not in columns:
            columns[field.name] = pa.repeat(pa.scalar(alike.get(field.name), field.type), size)
    return pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)
