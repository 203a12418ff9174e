"""Partitions of many members in columns, without a Python object per member, topic or partition."""

from collections.abc import Sequence

import numpy as np

from groupwright.assignors._model.arrays import Int64Array, Offsets, PartitionArray, TopicNumbers
from groupwright.assignors._model.order import sorted_names
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic


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
    def of(cls, lists: Sequence[PartitionsByTopic]) -> "PartitionColumns":
        """Return these lists in columns.

        A list that is in columns already is copied as a slice of them. The other lists that are not empty
        become further columns. All columns are concatenated, and the lists taken from them in order.
        """
        origins = [listed.source for listed in lists]
        sources = {id(origin[0]): origin[0] for origin in origins if origin is not None}
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
    def concatenated(cls, parts: Sequence["PartitionColumns"]) -> "PartitionColumns":
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

    def take(self, indexes: Int64Array) -> "PartitionColumns":
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
