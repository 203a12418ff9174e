"""Partitions by topic, and Kafka's order of names: Java's string order, which can differ outside ASCII.

numpy is imported when the first array is created: a member that does not lead handles its claims and its
assignment without numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    from groupwright.assignors._model.arrays import Offsets, PartitionArray, TopicNumbers

_SHOWN_PARTITIONS = 20
_SHOWN_TOPICS = 16
_LAZY = frozenset({"names", "numbers", "partitions", "starts", "_topics", "_index_by_topic"})


class ArraySource(Protocol):
    """Holder of the arrays of many lists of partitions."""

    def arrays_of(self, index: int) -> tuple[tuple[str, ...], TopicNumbers, Offsets, PartitionArray]:
        """Return the attributes `names`, `numbers`, `starts` and `partitions` of one list."""
        ...


def utf16_order(text: str) -> bytes:
    """Return a sort key that orders strings as Java's `String.compareTo` does.

    Java compares UTF-16 code units, Python code points. The orders differ between a character beyond the
    Basic Multilingual Plane (two code units, the first below 0xE000) and one from 0xE000 to 0xFFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Sort names as Java does.

    Raises:
        InvalidInputError: A name is not a string.
    """
    listed = list(names)
    # The two orders are the same in ASCII, to which topic names are limited.
    return tuple(sorted(listed) if is_ascii(listed) else sorted(listed, key=utf16_order))


def strictly_ascending(names: tuple[str, ...]) -> bool:
    """Return whether names are in Java's order, without duplicates."""
    keys = names if is_ascii(names) else tuple(map(utf16_order, names))
    return all(map(lt, keys, keys[1:]))


def is_ascii(names: Iterable[str]) -> bool:
    try:
        return "".join(names).isascii()
    except TypeError as error:
        raise InvalidInputError(f"names must be strings: {error}") from error


class PartitionsByTopic(Mapping[str, "PartitionArray"]):
    """Partitions by topic: a mapping from topics to ascending, read-only int32 arrays.

    A set in the form of a mapping: duplicates count once, and a topic without partitions is not in it. It
    equals every mapping with the same partitions, whatever their order and type. The partitions need not
    exist, since a member's claims may be out of date.

    Attributes:
        names: Names in Kafka's order (see `utf16_order`), including those of all topics here. Instances
            that were decoded or computed for one group share this tuple.
        numbers: `(topics,) int32`: the topics that have partitions here, as ascending indexes into `names`.
        partitions: `(partitions,) int32`: the partitions of all topics, concatenated.
        starts: `(topics + 1,) int64`: the partitions of `names[numbers[i]]` are
            `partitions[starts[i]:starts[i + 1]]`.
        source: The columns that hold these partitions, and the index of their list; None if they were not
            made by `from_columns`.
        ints: The partitions as tuples, by topic in Kafka's order; None if they were not made by `of_ints`.
    """

    __slots__ = ("_index_by_topic", "_topics", "ints", "names", "numbers", "partitions", "source", "starts")

    names: tuple[str, ...]
    numbers: TopicNumbers
    partitions: PartitionArray
    starts: Offsets
    source: tuple[ArraySource, int] | None
    ints: dict[str, tuple[int, ...]] | None
    _topics: tuple[str, ...] | None
    _index_by_topic: dict[str, int] | None

    def __init__(self, partitions: Mapping[str, Iterable[int]] = MappingProxyType({})) -> None:
        """Create partitions from a mapping of topics to integers.

        Raises:
            InvalidInputError: A partition is not a 32-bit integer; the message names the topic.
        """
        import numpy as np

        from groupwright.assignors._model.arrays import ascending

        arrays = {topic: ascending(topic, listed) for topic, listed in partitions.items()}
        topics = sorted_names(topic for topic, array in arrays.items() if array.size)
        sizes = [arrays[topic].size for topic in topics]
        flat = np.concatenate([np.empty(0, np.int32), *(arrays[topic] for topic in topics)])
        self.source = self.ints = None
        self._set(topics, _all_indexes(topics), np.cumsum([0, *sizes], dtype=np.int64), flat)

    @classmethod
    def from_numbers(
        cls, names: tuple[str, ...], numbers: TopicNumbers, starts: Offsets, partitions: PartitionArray
    ) -> PartitionsByTopic:
        """Return partitions with these attributes, unchecked."""
        made = cls.__new__(cls)
        made.source = made.ints = None
        made._set(names, numbers, starts, partitions)  # noqa: SLF001 - its own class
        return made

    @classmethod
    def from_columns(cls, columns: ArraySource, index: int) -> PartitionsByTopic:
        """Return the partitions of one list of the columns. Its arrays are sliced on first use."""
        made = cls.__new__(cls)
        made.source = columns, index
        made.ints = None
        return made

    @classmethod
    def of_ints(cls, partitions: Mapping[str, Iterable[int]]) -> PartitionsByTopic:
        """Return partitions that are known to be 32-bit integers.

        Arrays are created on first use; encoding needs none.
        """
        listed = {topic: tuple(sorted(set(numbers))) for topic, numbers in partitions.items()}
        made = cls.__new__(cls)
        made.source = None
        made.ints = {
            topic: listed[topic]
            for topic in sorted_names(name for name, numbers in listed.items() if numbers)
        }
        return made

    def as_tuples(self) -> dict[str, tuple[int, ...]]:
        """Return each topic's partitions as integers, ascending, with the topics in Kafka's order."""
        if self.ints is None:
            return {topic: tuple(array.tolist()) for topic, array in self.items()}
        return self.ints.copy()

    def __getattr__(self, name: str) -> Any:
        """Create the arrays on first use, from the columns or from integers."""
        if name not in _LAZY:
            raise AttributeError(name)
        if self.source is not None:
            columns, index = self.source
            self._set(*columns.arrays_of(index))
        elif self.ints is not None:
            self._set_ints(self.ints)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle these partitions alone, without the columns that they are part of."""
        return PartitionsByTopic.from_numbers, (self.names, self.numbers, self.starts, self.partitions)

    def _set(
        self,
        names: tuple[str, ...],
        numbers: TopicNumbers,
        starts: Offsets,
        partitions: PartitionArray,
    ) -> None:
        self.names = names
        self.numbers = numbers
        self.starts = starts
        self.partitions = partitions
        self._topics = names if len(names) == numbers.size else None
        self._index_by_topic = None
        for column in (numbers, starts, partitions):
            column.flags.writeable = False

    def _set_ints(self, ints: dict[str, tuple[int, ...]]) -> None:
        import numpy as np

        topics = tuple(ints)
        starts = np.cumsum([0, *map(len, ints.values())], dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(ints.values()), np.int32, int(starts[-1]))
        self._set(topics, _all_indexes(topics), starts, flat)

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics that have partitions here, in Kafka's order."""
        if self._topics is None:
            self._topics = tuple(map(self.names.__getitem__, self.numbers.tolist()))
        return self._topics

    def _indexes(self) -> dict[str, int]:
        if self._index_by_topic is None:
            self._index_by_topic = {name: index for index, name in enumerate(self.topics)}
        return self._index_by_topic

    @property
    def count(self) -> int:
        """The number of partitions of all topics."""
        return self.partitions.size

    def __getitem__(self, topic: str) -> PartitionArray:
        """Return the topic's partitions, ascending."""
        index = self._indexes()[topic]
        return self.partitions[self.starts[index] : self.starts[index + 1]]

    def __contains__(self, topic: object) -> bool:
        """Return whether the topic has partitions here."""
        return topic in self._indexes()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the topics that have partitions, sorted by name."""
        return iter(self.topics)

    def __len__(self) -> int:
        """Return the number of topics."""
        return self.numbers.size

    def __eq__(self, other: object) -> bool:
        """Return whether the other mapping has the same partitions."""
        if isinstance(other, PartitionsByTopic):
            import numpy as np

            return (
                np.array_equal(self.starts, other.starts)
                and self.topics == other.topics
                and np.array_equal(self.partitions, other.partitions)
            )
        if not isinstance(other, Mapping):
            return NotImplemented
        try:
            return self == PartitionsByTopic(other)
        except InvalidInputError:
            return False

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash((self.topics, self.partitions.tobytes()))

    def __repr__(self) -> str:
        """Return the text of an equal dict of lists, abbreviated, or the size if there are many topics."""
        if len(self) > _SHOWN_TOPICS:
            return f"<{self.count} partitions of {len(self)} topics>"
        import numpy as np

        shown = (
            f"{topic!r}: {np.array2string(array, separator=', ', threshold=_SHOWN_PARTITIONS)}"
            for topic, array in self.items()
        )
        return f"{{{', '.join(shown)}}}"


def _all_indexes(names: tuple[str, ...]) -> TopicNumbers:
    import numpy as np

    return np.arange(len(names), dtype=np.int32)


NO_PARTITIONS = PartitionsByTopic.of_ints({})
"""No partitions of any topic."""
