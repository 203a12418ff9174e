"""Columns: subscriptions, claims and assignment of many members, without a Python object per partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from reprlib import repr as brief

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import (
    Int32Array,
    Int64Array,
    IntegerArray,
    Offsets,
    PartitionArray,
    TopicNumbers,
    partition_array,
)
from groupwright.assignors._model.group import Member
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic, sorted_names
from groupwright.assignors.errors import AssignorError, InvalidInputError

UNASSIGNED = -1
"""Owner index of a partition that is assigned to no member."""

NOT_FOUND = -1
"""Index of a pair that is not in a `PairTable`."""

_SHOWN_MEMBERS = 16
_RADIX_SORT_LIMIT = 2**16
_MAX_TABLE_SIZE = 2**22  # of a look-up table at a time


class InternedNames(tuple[str, ...]):  # noqa: SLOT001 - a tuple's subclass can have no other slots
    """Names with their indexes in a table of all names that were decoded together, for use in arrays.

    Attributes:
        table: The distinct names.
        indexes: `(names,) int32`: the index of each name in the table.
    """

    table: tuple[str, ...]
    indexes: TopicNumbers

    @classmethod
    def of(cls, names: Iterable[str], table: tuple[str, ...], indexes: TopicNumbers) -> InternedNames:
        """Return the list of these names, which have these indexes in the table."""
        interned = cls(names)
        interned.table = table
        interned.indexes = indexes
        return interned


@dataclass(frozen=True, eq=False, slots=True)
class IndexedSubscriptions:
    """Subscriptions of a group's members, as pairs of a distinct subscription and one of its topics.

    Attributes:
        count: The number of distinct subscriptions.
        of_member: `(members,) int32`: the index of each member's subscription.
        subscription: `(pairs,) int32`: the subscription of each pair, ascending.
        topic: `(pairs,) int32`: the topic of each pair, in the order of the subscription.
    """

    count: int
    of_member: Int32Array
    subscription: Int32Array
    topic: Int32Array

    @classmethod
    def of(cls, members: Iterable[Member], topics: Sequence[str]) -> IndexedSubscriptions:
        """Return the members' subscriptions.

        Args:
            members: The members.
            topics: The topics that count. Any other topic has the index `len(topics)`.
        """
        numbers: dict[tuple[str, ...], int] = {}
        by_identity: dict[int, int] = {}  # members share long tuples, which are slow to hash
        of_member = []
        for member in members:
            number = by_identity.get(id(member.topics))
            if number is None:
                number = by_identity[id(member.topics)] = numbers.setdefault(member.topics, len(numbers))
            of_member.append(number)
        subscription = np.repeat(np.arange(len(numbers), dtype=np.int32), list(map(len, numbers)))
        topic = np.concatenate([np.empty(0, np.int32), *_topic_indexes(topics, numbers)])
        return cls(len(numbers), np.array(of_member, np.int32), subscription, topic)


def _topic_indexes(topics: Sequence[str], lists: Iterable[tuple[str, ...]]) -> Iterator[Int32Array]:
    """Yield each list of names as indexes into `topics`; a name that is not in it has index `len(topics)`."""
    numbers = {topic: number for number, topic in enumerate(topics)}
    tables: dict[int, Int32Array] = {}

    def numbers_of(names: Sequence[str]) -> Int32Array:
        return np.fromiter(map(numbers.get, names, repeat(len(topics))), np.int32, len(names))

    for listed in lists:
        if not isinstance(listed, InternedNames):
            yield numbers_of(listed)
            continue
        if id(listed.table) not in tables:
            tables[id(listed.table)] = numbers_of(listed.table)
        yield tables[id(listed.table)][listed.indexes]


class PairTable:
    """Finds pairs of numbers in a table of pairs, many at a time."""

    def __init__(self, first: IntegerArray, second: IntegerArray, bound: int) -> None:
        """Create the table of these pairs.

        Args:
            first: `(pairs,)` integers: the first numbers, ascending.
            second: `(pairs,)` integers: the second numbers.
            bound: An upper bound of the second numbers, exclusive.
        """
        self._first = first
        self._second = second
        self._bound = bound

    def find(self, first: IntegerArray, second: IntegerArray) -> Int32Array:
        """Return `(pairs,) int32`: the index of each of these pairs in the table, or `NOT_FOUND`.

        The look-up uses a dense array of all possible pairs, built for part of the first numbers at a time so
        that its size is bounded.
        """
        found = np.full(first.size, NOT_FOUND, np.int32)
        firsts = int(self._first[-1]) + 1 if self._first.size else 0
        at_once = max(1, _MAX_TABLE_SIZE // self._bound)
        for start in range(0, firsts, at_once):
            end = min(start + at_once, firsts)
            is_all = end - start == firsts and (not first.size or int(first.max()) < end)
            chosen = slice(None) if is_all else slice(*np.searchsorted(self._first, [start, end]))
            indexes = np.arange(self._first.size, dtype=np.int32)[chosen]
            table = np.full((end - start) * self._bound, NOT_FOUND, np.int32)
            table[(self._first[chosen] - start).astype(np.int64) * self._bound + self._second[chosen]] = (
                indexes
            )
            asked = slice(None) if is_all else np.flatnonzero((first >= start) & (first < end))
            found[asked] = table[(first[asked] - start).astype(np.int64) * self._bound + second[asked]]
        return found


class PartitionColumns:
    """Lists of partitions by topic, one list per member, concatenated.

    A list is one `PartitionsByTopic`. A run is the partitions of one topic in one list.

    Attributes:
        names: Names in Kafka's order, including those of all topics here.
        list_starts: `(lists + 1,) int64`: the runs of list `i` are `list_starts[i]` to `list_starts[i + 1]`.
        run_topics: `(runs,) int32`: the topic of each run as an index into `names`, ascending within a list.
        run_starts: `(runs + 1,) int64`: the partitions of run `i` are `partitions[run_starts[i]:run_starts[i
            + 1]]`. No run is empty.
        partitions: `(partitions,) int32`: the partitions of all runs, ascending within a run.
    """

    __slots__ = ("list_starts", "names", "partitions", "run_starts", "run_topics")

    def __init__(
        self,
        names: tuple[str, ...],
        list_starts: Offsets,
        run_topics: TopicNumbers,
        run_starts: Offsets,
        partitions: PartitionArray,
    ) -> None:
        """Keep the columns, unchecked."""
        self.names = names
        self.list_starts = list_starts
        self.run_topics = run_topics
        self.run_starts = run_starts
        self.partitions = partitions
        for column in (list_starts, run_topics, run_starts, partitions):
            column.flags.writeable = False

    @classmethod
    def of(cls, lists: Sequence[PartitionsByTopic]) -> PartitionColumns:
        """Return these lists in columns.

        A list that is in columns already is copied as a slice of them. The other lists that are not empty
        become further columns. All columns are concatenated, and the lists taken from them in order.
        """
        origins = [listed.source for listed in lists]
        columns = (origin[0] for origin in origins if origin is not None)
        sources = {id(each): each for each in columns if isinstance(each, PartitionColumns)}
        not_in_columns = [
            listed for listed, origin in zip(lists, origins, strict=True) if origin is None and listed
        ]
        if not_in_columns or not sources:
            sources[0] = _in_columns(not_in_columns)  # no object has the id 0
        sizes = [source.list_starts.size - 1 for source in sources.values()]
        first_of = dict(zip(sources, (np.cumsum(sizes) - sizes).tolist(), strict=True))
        empty_list, next_new = sum(sizes), sum(sizes) - len(not_in_columns)
        indexes = []
        for listed, origin in zip(lists, origins, strict=True):
            if origin is not None:
                indexes.append(first_of[id(origin[0])] + origin[1])
            elif listed:
                indexes.append(next_new)
                next_new += 1
            else:
                indexes.append(empty_list)  # see `take`
        return cls.concatenated(list(sources.values())).take(np.array(indexes, np.int64))

    @classmethod
    def concatenated(cls, parts: Sequence[PartitionColumns]) -> PartitionColumns:
        """Return the lists of all parts, concatenated."""
        if len(parts) == 1:
            return parts[0]
        names, tables = _merged([part.names for part in parts])
        return cls(
            names,
            _starts([np.diff(part.list_starts) for part in parts]),
            np.concatenate(
                [
                    np.empty(0, np.int32),
                    *(tables[id(part.names)][part.run_topics] for part in parts),
                ]
            ),
            _starts([np.diff(part.run_starts) for part in parts]),
            np.concatenate([np.empty(0, np.int32), *(part.partitions for part in parts)]),
        )

    def __len__(self) -> int:
        """Return the number of lists."""
        return self.list_starts.size - 1

    @property
    def counts(self) -> Int64Array:
        """`(lists,) int64`: the number of partitions of each list."""
        return np.diff(self.run_starts[self.list_starts])

    @property
    def lists(self) -> Int64Array:
        """`(partitions,) int64`: the index of the list of each partition."""
        return np.repeat(np.arange(len(self)), self.counts)

    def take(self, indexes: Int64Array) -> PartitionColumns:
        """Return the lists with these indexes; the index after the last is an empty list."""
        if np.array_equal(indexes, np.arange(len(self))):
            return self
        starts = np.append(self.list_starts, self.list_starts[-1])
        runs, list_starts = _gathered(starts, indexes)
        elements, run_starts = _gathered(self.run_starts, runs)
        return PartitionColumns(
            self.names, list_starts, self.run_topics[runs], run_starts, self.partitions[elements]
        )

    def keys(self, topics: Sequence[str]) -> Int64Array:
        """Return a sort key for each partition of these topics. Negative partition numbers are left out.

        Returns:
            `(partitions,) int64`: 2³² times the topic's index in `topics`, plus the partition, in the order
            of the lists.
        """
        index_of = {topic: topic_index for topic_index, topic in enumerate(topics)}
        topic_indexes = np.array([index_of.get(name, -1) for name in self.names], np.int64)
        topic_index = np.repeat(topic_indexes[self.run_topics], np.diff(self.run_starts))
        keys: Int64Array = ((topic_index << 32) + self.partitions)[
            (topic_index >= 0) & (self.partitions >= 0)
        ]
        return keys

    def split(self) -> list[PartitionsByTopic]:
        """Return the lists as separate objects, whose arrays are sliced on first use."""
        if not self.run_topics.size:
            return [NO_PARTITIONS] * len(self)
        return [PartitionsByTopic.from_columns(self, index) for index in range(len(self))]

    def arrays_of(self, index: int) -> tuple[tuple[str, ...], TopicNumbers, Offsets, PartitionArray]:
        """Return the arguments of `PartitionsByTopic.from_numbers` for the list with this index."""
        first, end = self.list_starts[index], self.list_starts[index + 1]
        starts = self.run_starts[first : end + 1]
        return (
            self.names,
            self.run_topics[first:end],
            starts - starts[0],
            self.partitions[starts[0] : starts[-1]],
        )


def partitions_of_keys(topics: Sequence[str], keys: Int64Array) -> PartitionsByTopic:
    """Return the partitions with these keys.

    Args:
        topics: The topics that `PartitionColumns.keys` was called with.
        keys: The keys, ascending.
    """
    # Only the topics that occur are looped over: often they are few of many.
    indexes, starts = np.unique(keys >> 32, return_index=True)
    by_topic = np.split(
        (keys & 0xFFFFFFFF).astype(np.int32), starts[1:]
    )  # one empty part if there are no keys
    return PartitionsByTopic({topics[index]: each for index, each in zip(indexes, by_topic, strict=False)})


def difference(partitions: PartitionsByTopic, others: Sequence[PartitionsByTopic]) -> PartitionsByTopic:
    """Return the partitions that are in none of the others; those with negative numbers are left out."""
    keys = PartitionColumns.of([partitions]).keys(partitions.topics)
    left = np.setdiff1d(keys, PartitionColumns.of(others).keys(partitions.topics))
    return partitions_of_keys(partitions.topics, left)


def _in_columns(lists: Sequence[PartitionsByTopic]) -> PartitionColumns:
    names, tables = _merged([listed.names for listed in lists])
    empty = np.empty(0, np.int32)
    topics = (tables[id(listed.names)][listed.numbers] for listed in lists)
    return PartitionColumns(
        names,
        _starts([np.array([len(listed) for listed in lists], np.int64)]),
        np.concatenate([empty, *topics]),
        _starts([np.diff(listed.starts) for listed in lists]),
        np.concatenate([empty, *(listed.partitions for listed in lists)]),
    )


def _merged(tables: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], dict[int, TopicNumbers]]:
    """Return all tables' names, sorted, and the indexes of each table's names in them, by `id(table)`."""
    distinct = {id(table): table for table in tables}  # most lists share one
    names = sorted_names(frozenset().union(*distinct.values()))
    number_of = {name: number for number, name in enumerate(names)}
    indexes = {
        key: np.array([number_of[name] for name in table], np.int32) for key, table in distinct.items()
    }
    return names, indexes


def _starts(sizes: Sequence[Int64Array]) -> Offsets:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))


def _gathered(starts: Offsets, chosen: Int64Array) -> tuple[Int64Array, Offsets]:
    """Return the indexes of all elements of these slices, concatenated, and the new slices' offsets.

    Args:
        starts: The offsets of all slices.
        chosen: `(chosen,) int64`: the indexes of the chosen slices.
    """
    sizes = np.diff(starts)[chosen]
    new_starts = _starts([sizes])
    return np.repeat(starts[chosen] - new_starts[:-1], sizes) + np.arange(new_starts[-1]), new_starts


class Assignment(Mapping[str, PartitionsByTopic]):
    """Partitions by member and topic: `assignment["c-1"]["orders"]` are those of `orders` assigned to `c-1`.

    A read-only mapping with an entry for every member, even one without partitions. No partition is in it
    twice. It equals every mapping with the same content, such as a dict of dicts of lists.

    A million partitions take three arrays, not a million objects. A run is the partitions of one topic that
    one member is assigned; runs are sorted by member, then by topic.

    Attributes:
        members: The members' ids, in Kafka's order (see `utf16_order`).
        topics: The topics of which any partition is assigned, in Kafka's order.
        member_starts: `(members + 1,) int64`: the runs of member `i` are `member_starts[i]` to
            `member_starts[i + 1]`.
        run_topics: `(runs,) int32`: the topic of each run, as an index into `topics`.
        run_starts: `(runs + 1,) int64`: the partitions of run `i` are `partitions[run_starts[i]:run_starts[i
            + 1]]`, ascending.
        partitions: `(partitions,) int32`: the partitions of all runs, concatenated.
    """

    __slots__ = (
        "_index_by_member",
        "member_starts",
        "members",
        "partitions",
        "run_starts",
        "run_topics",
        "topics",
    )

    members: tuple[str, ...]
    topics: tuple[str, ...]
    member_starts: Offsets
    run_topics: Int32Array
    run_starts: Offsets
    partitions: PartitionArray
    _index_by_member: dict[str, int]

    def __init__(self, plan: Mapping[str, Mapping[str, Iterable[int]]], members: Iterable[str] = ()) -> None:
        """Create an assignment from any mapping.

        Args:
            plan: By member id and topic, the partitions in any order.
            members: Ids of further members, which are assigned nothing unless they are in the plan.

        Raises:
            AssignorError: A partition is negative, or is assigned twice.
            InvalidInputError: The plan is not a mapping of mappings, or a partition is not a 32-bit integer.
        """
        if not _maps_to_mappings(plan):
            raise InvalidInputError(
                f"a plan must map member ids to mappings of topics to partitions, not be {brief(plan)}"
            )
        ids = sorted_names({*plan, *members})
        topics = sorted_names({topic for share in plan.values() for topic in share})
        topic_numbers = {topic: number for number, topic in enumerate(topics)}
        runs = [
            (number, topic_numbers[topic], _run(member, topic, partitions))
            for number, member in enumerate(ids)
            for topic, partitions in plan.get(member, {}).items()
        ]
        sizes = [array.size for _, _, array in runs]
        owner = np.repeat(np.array([number for number, _, _ in runs], np.int64), sizes)
        topic = np.repeat(np.array([number for _, number, _ in runs], np.int64), sizes)
        partition = np.concatenate([np.empty(0, np.int32), *(array for _, _, array in runs)])
        order = np.lexsort((owner, partition, topic))
        twice = np.flatnonzero((np.diff(topic[order]) == 0) & (np.diff(partition[order]) == 0))
        if twice.size:
            one, other = order[twice[0]], order[twice[0] + 1]
            first, second = ids[owner[one]], ids[owner[other]]
            to = f"to {first!r} twice" if first == second else f"both to {first!r} and to {second!r}"
            raise AssignorError(f"partition {partition[one]} of {topics[topic[one]]!r} is assigned {to}")
        order = np.lexsort((partition, topic, owner))
        self._set(ids, topics, owner[order], topic[order], partition[order])

    @classmethod
    def from_owners(
        cls, members: Sequence[str], owners: Mapping[str, Sequence[int] | IntegerArray]
    ) -> Assignment:
        """Return the assignment with these owners of all partitions. This form is fast to compute.

        Examples:
            >>> Assignment.from_owners(["c-1", "c-2"], {"orders": [0, 1, 0, UNASSIGNED]})
            Assignment({'c-1': {'orders': [0, 2]}, 'c-2': {'orders': [1]}})

        Args:
            members: The members' ids, in any order.
            owners: By topic, `(partitions,)` integers: the owner of each partition as an index into
                `members`, or `UNASSIGNED`.

        Raises:
            InvalidInputError: An owner is not an index into `members`, or a member is repeated.
        """
        topics = sorted_names(owners)
        columns = [_owner_column(topic, owners[topic]) for topic in topics]
        starts = np.cumsum([0, *(column.size for column in columns)])
        owner = np.concatenate([np.empty(0, np.int64), *columns])
        return cls.from_column(members, topics, starts, owner)

    @classmethod
    def from_column(
        cls, members: Sequence[str], topics: tuple[str, ...], starts: Offsets, owner: IntegerArray
    ) -> Assignment:
        """Return the assignment with these owners of the partitions of all topics, concatenated.

        Args:
            members: The members' ids, in any order.
            topics: The topics, in Kafka's order.
            starts: `(topics + 1,) int64`: the first partition of each topic, and the number of all
                partitions.
            owner: `(partitions,)` integers: the owner of each partition as an index into `members`, or
                `UNASSIGNED`.

        Raises:
            InvalidInputError: An owner is not an index into `members`, or a member is repeated.
        """
        ids = sorted_names(members)
        index_of_id = {member: index for index, member in enumerate(ids)}
        if len(index_of_id) != len(ids):
            repeated = next(one for one, other in pairwise(ids) if one == other)
            raise InvalidInputError(f"members are repeated, such as {repeated!r}: pass each id once")
        if owner.size and not UNASSIGNED <= owner.min() <= owner.max() < len(ids):
            invalid = int(np.flatnonzero((owner < UNASSIGNED) | (owner >= len(ids)))[0])
            topic = np.searchsorted(starts, invalid, side="right") - 1
            raise InvalidInputError(
                f"partition {invalid - starts[topic]} of {topics[topic]!r} has owner {owner[invalid]}, "
                f"which is neither UNASSIGNED nor one of {len(ids)} members, numbered from 0"
            )
        # numpy sorts 16-bit integers with a radix sort: fast, and in the same time for every assignment.
        dtype: npt.DTypeLike = np.uint16 if len(ids) < _RADIX_SORT_LIMIT else np.int32
        sorted_index_of = np.array(
            [*(index_of_id[member] for member in members), len(ids)], dtype
        )  # the last one is UNASSIGNED's
        sort_key = sorted_index_of[owner]
        order = np.argsort(sort_key, kind="stable")
        if (owner == UNASSIGNED).any():
            order = order[: np.count_nonzero(owner != UNASSIGNED)]
        topic_of = np.repeat(np.arange(len(topics), dtype=np.int32), np.diff(starts))[order]
        partition = (order - starts[topic_of]).astype(np.int32)
        made = cls.__new__(cls)
        made._set(ids, topics, sort_key[order], topic_of, partition)  # noqa: SLF001 - its own class
        return made

    def _set(
        self,
        members: tuple[str, ...],
        topics: tuple[str, ...],
        owner: IntegerArray,
        topic: IntegerArray,
        partition: PartitionArray,
    ) -> None:
        """Store these columns as runs.

        Args:
            members: The members' ids, in Kafka's order.
            topics: The topics, in Kafka's order.
            owner: `(partitions,)` integers: the index of each partition's owner.
            topic: `(partitions,)` integers: the index of each partition's topic.
            partition: `(partitions,) int32`: the partitions, sorted by owner, topic and number.
        """
        is_first = np.ones(owner.size, np.bool_)
        is_first[1:] = (owner[1:] != owner[:-1]) | (topic[1:] != topic[:-1])
        run_firsts = np.flatnonzero(is_first)
        used = np.zeros(len(topics), np.bool_)
        used[topic[run_firsts]] = True
        self.members = members
        self.topics = tuple(name for name, is_used in zip(topics, used.tolist(), strict=True) if is_used)
        self.member_starts = np.searchsorted(owner[run_firsts], np.arange(len(members) + 1)).astype(np.int64)
        self.run_topics = (np.cumsum(used) - 1)[topic[run_firsts]].astype(np.int32)
        self.run_starts = np.append(run_firsts, owner.size).astype(np.int64)
        self.partitions = partition
        self._index_by_member = {member: number for number, member in enumerate(members)}
        for column in (self.member_starts, self.run_topics, self.run_starts, self.partitions):
            column.flags.writeable = False

    @property
    def count(self) -> int:
        """The number of assigned partitions of all members."""
        return self.partitions.size

    def __getitem__(self, member: str) -> PartitionsByTopic:
        """Return the partitions assigned to the member."""
        number = self._index_by_member[member]
        first, end = self.member_starts[number], self.member_starts[number + 1]
        starts = self.run_starts[first : end + 1]
        return PartitionsByTopic.from_numbers(
            self.topics,
            self.run_topics[first:end],
            starts - starts[0],
            self.partitions[starts[0] : starts[-1]],
        )

    def __contains__(self, member: object) -> bool:
        """Return whether the assignment has an entry for the member."""
        return member in self._index_by_member

    def __iter__(self) -> Iterator[str]:
        """Iterate over the members' ids, in order."""
        return iter(self.members)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        """Return whether the other mapping has the same members with the same partitions."""
        if isinstance(other, Assignment):
            return (
                self.members == other.members
                and self.topics == other.topics
                and np.array_equal(self.member_starts, other.member_starts)
                and np.array_equal(self.run_topics, other.run_topics)
                and np.array_equal(self.run_starts, other.run_starts)
                and np.array_equal(self.partitions, other.partitions)
            )
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash((self.members, self.topics, self.partitions.tobytes()))

    def __repr__(self) -> str:
        """Return the assignment as text, or its size if the group is large."""
        if len(self) > _SHOWN_MEMBERS:
            return (
                f"<Assignment of {self.count} partitions of {len(self.topics)} topics to {len(self)} members>"
            )
        shares = (f"{member!r}: {share!r}" for member, share in self.items())
        return f"Assignment({{{', '.join(shares)}}})"


def _maps_to_mappings(plan: object) -> bool:
    return isinstance(plan, Mapping) and all(isinstance(share, Mapping) for share in plan.values())


def _owner_column(topic: str, owners: Sequence[int] | IntegerArray) -> Int64Array:
    column = np.asarray(owners) if len(owners) else np.empty(0, np.int32)
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise InvalidInputError(f"the owners of {topic!r} must be indexes of members, not {brief(owners)}")
    return column.astype(np.int64, copy=False)


def _run(member: str, topic: str, partitions: Iterable[int]) -> PartitionArray:
    try:
        array = partition_array(partitions)
    except InvalidInputError as error:
        raise InvalidInputError(f"member {member!r}, topic {topic!r}: {error}") from error
    if array.size and array.min() < 0:
        raise AssignorError(
            f"member {member!r} is assigned partition {array.min()} of {topic!r}; they start at 0"
        )
    return array
