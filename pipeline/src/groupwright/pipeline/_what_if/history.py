"""One group's recorded history, as arrays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from groupwright.assignors import UNASSIGNED
from groupwright.assignors.indexed import sorted_names, utf16_order
from groupwright.pipeline._transforms.generations import MAX_PARTITIONS
from groupwright.pipeline._what_if.group_shape import Owners, Racks, ShapeKey

_Numbers = npt.NDArray[np.int64]

_UNKNOWN = -1
"""The generation of a tombstone, which has none."""


class UnreplayableError(Exception):
    """A group's rows cannot be replayed."""


class TopicMetadata(NamedTuple):
    """Metadata of a topic.

    Attributes:
        partitions: Number of partitions; 0 if unknown.
        racks: The racks of their replicas; None if unknown.
        weights: The weight of each partition, such as its messages per second; None if unknown.
    """

    partitions: int
    racks: Racks | None = None
    weights: tuple[float, ...] | None = None


class RecordedMember(NamedTuple):
    """A member in one generation, as recorded.

    Attributes:
        id: The member id.
        instance_id: `group.instance.id` of a static member.
        rack: `client.rack`, if it sent one.
        subscription: Its subscription, as an index into the history's subscriptions.
    """

    id: str
    instance_id: str | None
    rack: str | None
    subscription: int


@dataclass(frozen=True, slots=True)
class RecordedGeneration:
    """A generation, as recorded, together with the handover generations that followed from it.

    Attributes:
        number: Generation number; that of the first generation, if handovers followed.
        time: When it was written, in microseconds since 1970.
        key: The group's shape; None if the group had no members.
        members: The members in Kafka's order.
        identities: `(members,) int64`, index of each member's identity; static members keep theirs across
            member ids.
        topics: The assignable topics, as indices into the history's topics.
        partition_indices: `(partitions,) int64`, index of each partition among all partitions of the history,
            ordered by topic.
        actual: `(partitions,) int32`, the recorded owner of each partition, after the handovers.
        protocol: The assignor that the group used; `consumer` for a KIP-848 group, None if unknown.
        measured: Start and end of the rebalance as its members measured them, in microseconds since 1970;
            None if unknown. Members may measure a rebalance and its handover as one, which has the
            handover's generation.
        handovers: The handover generations that followed.
    """

    number: int
    time: int
    key: ShapeKey | None
    members: tuple[RecordedMember, ...] = ()
    identities: _Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    topics: tuple[int, ...] = ()
    partition_indices: _Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    actual: Owners = field(default_factory=lambda: np.empty(0, np.int32))
    protocol: str | None = None
    measured: tuple[int, int] | None = None
    handovers: tuple["RecordedGeneration", ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A group's generations in order.

    Attributes:
        topics: The names of all topics in the history, in Kafka's order.
        starts: `(topics + 1,) int64`, index of each topic's first partition; the last is the number of
            partitions.
        subscriptions: The distinct subscriptions of the members.
        identities: Number of distinct members.
        generations: The generations.
        weights: `(all partitions,) float64`, the weight of each partition; NaN if unknown.
    """

    topics: tuple[str, ...]
    starts: _Numbers
    subscriptions: tuple[tuple[str, ...], ...]
    identities: int
    generations: tuple[RecordedGeneration, ...]
    weights: npt.NDArray[np.float64]


def read_history(rows: pa.Table, metadata: Mapping[str, TopicMetadata]) -> History:
    """Read a group's history.

    Args:
        rows: One row per member with `member_id`, `instance_id`, `rack`, `subscribed`, `assigned`; and one
            row per record without these but with `is_empty`, whether the group had no members, `protocol`,
            and `started` and `ended`, the measured times of the rebalance. All rows have `generation`,
            `log_partition`, `log_offset`, and `time`. Times are in microseconds since 1970.
        metadata: Topic metadata. For other topics, the number of partitions is derived from the assignments
            so far.

    Raises:
        UnreplayableError: A row is invalid, or there are too many partitions.
    """
    reader = _Reader(rows.combine_chunks(), metadata)
    generations = tuple(reader.generations())
    return History(
        reader.topics,
        reader.starts,
        reader.subscriptions,
        len(reader.identities),
        generations,
        reader.weights(),
    )


class _Reader:
    """Reader of a group's rows, ordered by their position in the log.

    A record is a run of rows with the same position: `_bounds` has the first row of each, and then the number
    of rows. `_row`, `_topic` and `_partition` have one element for each assigned partition of a row.
    """

    def __init__(self, rows: pa.Table, metadata: Mapping[str, TopicMetadata]) -> None:
        self._metadata = metadata
        order = np.lexsort([_numbers(rows, name) for name in ("log_offset", "log_partition")])
        rows = rows.take(order)
        self._member_ids = rows["member_id"].to_pylist()
        self._instance_ids = rows["instance_id"].to_pylist()
        self._racks = [rack or None for rack in rows["rack"].to_pylist()]
        self._empty = rows["is_empty"].to_pylist()
        self._protocol = rows["protocol"].to_pylist()
        self._started = rows["started"].to_pylist()
        self._ended = rows["ended"].to_pylist()
        self._generation_number = _numbers(rows, "generation")
        self._time = _numbers(rows, "time")
        self._bounds = _record_bounds(rows)
        self.subscriptions, self._subscription_of = _subscriptions(rows["subscribed"])
        row, topic, self._partition, names = _assigned(rows["assigned"])
        subscribed = {name for listed in self.subscriptions for name in listed}
        self.topics = sorted_names({*names, *(name for name in subscribed if name in metadata)})
        self._topic_index = {name: index for index, name in enumerate(self.topics)}
        self._topic = np.array([self._topic_index[name] for name in names], np.int64)[topic]
        self._row = row
        self._sizes = self._sizes_by_record()
        self.starts = (
            np.concatenate([[0], np.cumsum(self._sizes[-1])]) if len(self._sizes) else np.zeros(1, np.int64)
        )
        if self.starts[-1] > MAX_PARTITIONS:
            raise UnreplayableError(
                f"the assignments name {self.starts[-1]} partitions; at most {MAX_PARTITIONS} can be replayed"
            )
        self.identities: dict[tuple[bool, str], int] = {}

    def _sizes_by_record(self) -> _Numbers:
        """Return the number of partitions known at each record, as `(records, topics) int64`."""
        sizes = np.zeros((len(self._bounds) - 1, len(self.topics)), np.int64)
        record = np.searchsorted(self._bounds, self._row, side="right") - 1
        np.maximum.at(sizes, (record, self._topic), self._partition + 1)
        np.maximum.accumulate(sizes, axis=0, out=sizes)
        for index, name in enumerate(self.topics):
            if name in self._metadata:
                sizes[:, index] = np.maximum(sizes[:, index], self._metadata[name].partitions)
        return sizes

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the weight of each partition of the history; NaN if unknown."""
        weights = np.full(self.starts[-1], np.nan)
        for index, name in enumerate(self.topics):
            known = (self._metadata[name].weights or ()) if name in self._metadata else ()
            of_topic = weights[self.starts[index] : self.starts[index + 1]]
            of_topic[: len(known)] = known[: of_topic.size]
        return weights

    def generations(self) -> Iterator[RecordedGeneration]:
        """Yield the generations.

        Of several records of a generation, as when a static member restarts, the last one counts, but for the
        measured times, which are those of the first record that has any. A conversion to KIP-848 or back is
        no generation.
        """
        kept: list[tuple[int, tuple[int, int] | None]] = []
        number_before = _UNKNOWN
        for record, first in enumerate(self._bounds[:-1].tolist()):
            number = self._generation_number[first]
            if self._converts(record) or (number == number_before and record and self._converts(record - 1)):
                continue
            if not self._is_replayable(record):
                if number == _UNKNOWN:  # a deletion: a later group can have the same generations
                    number_before = _UNKNOWN
                continue
            measured = self._measured(record)
            if number == number_before and kept:
                _, earlier = kept.pop()
                measured = measured if earlier is None else earlier
            kept.append((record, measured))
            number_before = number
        for record, measured in kept:
            yield self._generation(record, measured)

    def _converts(self, record: int) -> bool:
        """Return whether a record is a tombstone with the time of the next record: the group is converted."""
        first, following = self._bounds[record : record + 2]
        return bool(
            self._generation_number[first] == _UNKNOWN
            and following < len(self._time)
            and self._time[first] == self._time[following]
        )

    def _measured(self, record: int) -> tuple[int, int] | None:
        started, ended = (self._of_record(column, record) for column in (self._started, self._ended))
        return None if started is None or ended is None else (started, ended)

    def _of_record(self, column: list[Any], record: int) -> Any:
        """Return a record's value of a column: its row without a member has it."""
        rows = slice(self._bounds[record], self._bounds[record + 1])
        return next((value for value in column[rows] if value is not None), None)

    def _is_replayable(self, record: int) -> bool:
        """Return whether the record is a consumer group's, and its members are known or it has none."""
        rows = slice(self._bounds[record], self._bounds[record + 1])
        is_member = [id_ is not None for id_ in self._member_ids[rows]]
        return not all(is_member) and (any(is_member) or any(self._empty[rows]))

    def _generation(self, record: int, measured: tuple[int, int] | None) -> RecordedGeneration:
        first, end = int(self._bounds[record]), int(self._bounds[record + 1])
        number, time = int(self._generation_number[first]), int(self._time[first])
        member_rows = sorted(
            (row for row in range(first, end) if self._member_ids[row] is not None), key=self._order
        )
        members = tuple(
            RecordedMember(
                self._member_ids[row], self._instance_ids[row], self._racks[row], self._subscription_of[row]
            )
            for row in member_rows
        )
        if not members:
            return RecordedGeneration(number, time, None)
        sizes = self._sizes[record]
        topics, key = self._key(members, sizes)
        # The index of the member in each row of the record, in the order of `members`.
        member_of_row = np.full(end - first + 1, UNASSIGNED, np.int32)
        member_of_row[np.array(member_rows) - first] = np.arange(len(member_rows))
        owner = np.full(self.starts[-1], UNASSIGNED, np.int32)
        record_slice = slice(*np.searchsorted(self._row, [first, end]))
        assigned = self.starts[self._topic[record_slice]] + self._partition[record_slice]
        owner[assigned] = member_of_row[self._row[record_slice] - first]
        partition_indices = np.concatenate(
            [np.empty(0, np.int64), *(np.arange(sizes[topic]) + self.starts[topic] for topic in topics)]
        )
        return RecordedGeneration(
            number,
            time,
            key,
            members,
            self._identities_of(members),
            topics,
            partition_indices,
            owner[partition_indices],
            self._of_record(self._protocol, record),
            measured,
        )

    def _order(self, row: int) -> tuple[bool, bytes, bytes]:
        """Return the sort key of a row's member in Kafka's order: static members come first."""
        instance_id = self._instance_ids[row]
        return instance_id is None, utf16_order(instance_id or ""), utf16_order(self._member_ids[row])

    def _identities_of(self, members: tuple[RecordedMember, ...]) -> _Numbers:
        names = [(m.instance_id is not None, m.instance_id or m.id) for m in members]
        return np.array([self.identities.setdefault(name, len(self.identities)) for name in names], np.int64)

    def _key(self, members: tuple[RecordedMember, ...], sizes: _Numbers) -> tuple[tuple[int, ...], ShapeKey]:
        """Return the assignable topics, and the key of the group's shape.

        Args:
            members: The members in Kafka's order.
            sizes: `(topics,) int64`, the number of partitions of each topic; 0 if unknown.
        """
        index = self._topic_index
        subscribed_topics = {
            number: {index[name] for name in self.subscriptions[number] if name in index}
            for number in {member.subscription for member in members}
        }
        all_subscribed = set[int]().union(*subscribed_topics.values())
        topics = tuple(sorted(topic for topic in all_subscribed if sizes[topic]))
        number_of = {topic: number for number, topic in enumerate(topics)}
        listed = {
            number: tuple(sorted(number_of[topic] for topic in of_one if topic in number_of))
            for number, of_one in subscribed_topics.items()
        }
        numbers: dict[tuple[int, ...], int] = {}
        subscription_of = tuple(numbers.setdefault(listed[m.subscription], len(numbers)) for m in members)
        return topics, ShapeKey(
            tuple(sizes[list(topics)].tolist()),
            tuple(numbers),
            subscription_of,
            *self._rack_keys(members, topics),
        )

    def _rack_keys(
        self, members: tuple[RecordedMember, ...], topics: tuple[int, ...]
    ) -> tuple[tuple[str | None, ...], tuple[Racks | None, ...]]:
        racks = tuple(member.rack for member in members)
        metadata = [self._metadata.get(self.topics[topic]) for topic in topics]
        of_topics = tuple(None if topic is None else topic.racks for topic in metadata)
        if any(racks) and any(of_topics):
            return racks, of_topics
        return (), ()


def _numbers(rows: pa.Table, name: str) -> _Numbers:
    numbers: _Numbers = pc.fill_null(rows[name], _UNKNOWN).to_numpy().astype(np.int64)
    return numbers


def _record_bounds(rows: pa.Table) -> _Numbers:
    """Return the first row of each record, and then the number of rows."""
    where = np.stack([_numbers(rows, "log_partition"), _numbers(rows, "log_offset")])
    opens = np.flatnonzero((where[:, 1:] != where[:, :-1]).any(axis=0)) + 1
    return np.concatenate([[0], opens, [rows.num_rows]])


def _subscriptions(column: Any) -> tuple[tuple[tuple[str, ...], ...], list[int]]:
    """Return the distinct lists of names, and the index of each row's list."""
    lists = _chunk(column)
    codes = pc.list_flatten(lists).dictionary_encode()
    names = codes.dictionary.to_pylist()
    indices = codes.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    ends = np.cumsum(
        np.nan_to_num(pc.list_value_length(lists).to_numpy(zero_copy_only=False)).astype(np.int64)
    )
    numbers: dict[bytes, int] = {}
    of_row, start = [], 0
    for end in ends.tolist():
        of_row.append(numbers.setdefault(indices[start:end].tobytes(), len(numbers)))
        start = end
    distinct = tuple(tuple(names[code] for code in np.frombuffer(key, np.int32).tolist()) for key in numbers)
    return distinct, of_row


def _assigned(column: Any) -> tuple[_Numbers, _Numbers, _Numbers, list[str]]:
    """Return each assigned partition's row, topic (as an index into the names) and number, and the names."""
    lists = _chunk(column)
    runs = pc.list_flatten(lists)
    row_of_run = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    topics = pc.struct_field(runs, "topic").dictionary_encode()
    partitions = pc.struct_field(runs, "partitions")
    run = pc.list_parent_indices(partitions).to_numpy(zero_copy_only=False)
    partition = pc.list_flatten(partitions).to_numpy(zero_copy_only=False).astype(np.int64)
    if partition.size and partition.min() < 0:
        raise UnreplayableError(f"a member is assigned the invalid partition {partition.min()}")
    topic_of_run = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return row_of_run[run].astype(np.int64), topic_of_run[run], partition, topics.dictionary.to_pylist()


def _chunk(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
