"""Assignment of partitions to members, stored as columns of numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from reprlib import repr as brief

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import (
    Int32Array,
    Int64Array,
    IntegerArray,
    Offsets,
    PartitionArray,
    partition_array,
)
from groupwright.assignors._model.order import sorted_names
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors.errors import AssignorError, InvalidInputError

UNASSIGNED = -1
"""Owner index of a partition that is assigned to no member."""

_SHOWN_MEMBERS = 16
_RADIX_SORT_LIMIT = 2**16


class Assignment(Mapping[str, PartitionsByTopic]):
    """Partitions by member and topic: `assignment["c-1"]["orders"]` are those of `orders` assigned to `c-1`.

    A read-only mapping with an entry for every member, even one without partitions. No partition is in it
    twice. It equals every mapping with the same content, such as a dict of dicts of lists.

    A million partitions take three arrays, not a million objects. A run is the partitions of one topic that
    one member is assigned; runs are sorted by member, then by topic.

    Attributes:
        members: The members' ids, in Kafka's order (see `order.utf16_order`).
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
    ) -> "Assignment":
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
    ) -> "Assignment":
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
