"""What many members have, in columns: no Python object is made for a member, a topic or a partition."""

from collections.abc import Sequence

import numpy as np

from groupwright.assignors._model.arrays import Int64Array, Offsets, PartitionArray, TopicNumbers
from groupwright.assignors._model.order import sorted_names
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic


class PartitionColumns:
    """One list of partitions a member, of many members, on end.

    Attributes:
        names: Names in Kafka's order, among them all topics here.
        list_starts: The runs of list `i` are those from `list_starts[i]` to `list_starts[i + 1]`.
        run_topics: For each run its topic, as a place in `names`; ascending in each list.
        run_starts: The partitions of run `i` are `partitions[run_starts[i]:run_starts[i + 1]]`; none is empty.
        partitions: The partitions of all runs, ascending in each.
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
        """Keep the columns. Nothing is checked."""
        self.names = names
        self.list_starts = list_starts
        self.run_topics = run_topics
        self.run_starts = run_starts
        self.partitions = partitions
        for column in (list_starts, run_topics, run_starts, partitions):
            column.flags.writeable = False

    @classmethod
    def of(cls, lists: Sequence[PartitionsByTopic]) -> "PartitionColumns":
        """Return these lists; of those that were made of columns, the columns are taken."""
        origins = [listed.source for listed in lists]
        sources = {id(origin[0]): origin[0] for origin in origins if origin is not None}
        others = [listed for listed, origin in zip(lists, origins, strict=True) if origin is None and listed]
        if others or not sources:
            sources[0] = _in_columns(others)
        sizes = [source.list_starts.size - 1 for source in sources.values()]
        first_of = dict(zip(sources, (np.cumsum(sizes) - sizes).tolist(), strict=True))
        nothing, other = sum(sizes), sum(sizes) - len(others)
        places = []
        for listed, origin in zip(lists, origins, strict=True):
            if origin is not None:
                places.append(first_of[id(origin[0])] + origin[1])
            elif listed:
                places.append(other)
                other += 1
            else:
                places.append(nothing)
        return cls.concatenated(list(sources.values())).take(np.array(places, np.int64))

    @classmethod
    def concatenated(cls, parts: Sequence["PartitionColumns"]) -> "PartitionColumns":
        """Return the lists of all parts, on end."""
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
        """Return how many lists there are."""
        return self.list_starts.size - 1

    @property
    def counts(self) -> Int64Array:
        """How many partitions each list has."""
        return np.diff(self.run_starts[self.list_starts])

    def take(self, places: Int64Array) -> "PartitionColumns":
        """Return the lists at these places; behind the last one there is nothing."""
        if np.array_equal(places, np.arange(len(self))):
            return self
        starts = np.append(self.list_starts, self.list_starts[-1])
        runs, list_starts = _gathered(starts, places)
        rows, run_starts = _gathered(self.run_starts, runs)
        return PartitionColumns(
            self.names, list_starts, self.run_topics[runs], run_starts, self.partitions[rows]
        )

    def keys(self, topics: Sequence[str]) -> Int64Array:
        """Return, as one number each, those partitions that are of these topics, and not negative.

        Returns:
            2³² times the topic's place in `topics`, plus the partition, in the order of the lists.
        """
        place_of = {topic: place for place, topic in enumerate(topics)}
        places = np.array([place_of.get(name, -1) for name in self.names], np.int64)
        place = np.repeat(places[self.run_topics], np.diff(self.run_starts))
        keys: Int64Array = ((place << 32) + self.partitions)[(place >= 0) & (self.partitions >= 0)]
        return keys

    def split(self) -> list[PartitionsByTopic]:
        """Return the lists one by one; their arrays are cut out when they are asked for."""
        if not self.run_topics.size:
            return [NO_PARTITIONS] * len(self)
        return [PartitionsByTopic.from_columns(self, place) for place in range(len(self))]

    def row(self, place: int) -> tuple[tuple[str, ...], TopicNumbers, Offsets, PartitionArray]:
        """Return what `PartitionsByTopic.from_numbers` makes the list at this place of."""
        first, end = self.list_starts[place], self.list_starts[place + 1]
        starts = self.run_starts[first : end + 1]
        return (
            self.names,
            self.run_topics[first:end],
            starts - starts[0],
            self.partitions[starts[0] : starts[-1]],
        )


def _in_columns(lists: Sequence[PartitionsByTopic]) -> PartitionColumns:
    names, tables = _merged([listed.names for listed in lists])
    nothing = np.empty(0, np.int32)
    topics = (tables[id(listed.names)][listed.numbers] for listed in lists)
    return PartitionColumns(
        names,
        _starts([np.array([len(listed) for listed in lists], np.int64)]),
        np.concatenate([nothing, *topics]),
        _starts([np.diff(listed.starts) for listed in lists]),
        np.concatenate([nothing, *(listed.partitions for listed in lists)]),
    )


def _merged(tables: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], dict[int, TopicNumbers]]:
    """Return all names of these tables, and by the identity of each table the places of its names among them."""
    distinct = {id(table): table for table in tables}  # most share one
    names = sorted_names(frozenset().union(*distinct.values()))
    number_of = {name: number for number, name in enumerate(names)}
    places = {key: np.array([number_of[name] for name in table], np.int32) for key, table in distinct.items()}
    return names, places


def _starts(sizes: Sequence[Int64Array]) -> Offsets:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))


def _gathered(starts: Offsets, places: Int64Array) -> tuple[Int64Array, Offsets]:
    """Return what the slices at these places consist of, on end, and where each starts there, and the last ends."""
    sizes = np.diff(starts)[places]
    new_starts = _starts([sizes])
    return np.repeat(starts[places] - new_starts[:-1], sizes) + np.arange(new_starts[-1]), new_starts
