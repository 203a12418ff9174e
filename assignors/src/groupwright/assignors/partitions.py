"""Partitions by topic, held as one array of numbers."""

from collections.abc import Iterable, Iterator, Mapping
from reprlib import repr as brief
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors.errors import InvalidInputError
from groupwright.assignors.order import sorted_names

if TYPE_CHECKING:
    from groupwright.assignors.lists import PartitionLists

PartitionArray = npt.NDArray[np.int32]
"""Numbers of partitions, of one topic or of several on end."""

Offsets = npt.NDArray[np.int64]
"""Where the slices of an array start, and, last, where the last one ends."""

TopicNumbers = npt.NDArray[np.int32]
"""Topics, as places in a tuple of names."""

_INT32 = np.iinfo(np.int32)
_SHOWN_PARTITIONS = 20
_SHOWN_TOPICS = 16
_CUT_OUT = frozenset({"names", "numbers", "partitions", "starts", "_topics", "_places"})


def partition_array(partitions: Iterable[int]) -> PartitionArray:
    """Return the numbers as a new array, in the order given.

    Raises:
        InvalidInputError: One of them is not an integer of 32 bits.
    """
    try:
        array = np.asarray(partitions if isinstance(partitions, np.ndarray) else list(partitions))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"partitions must be a sequence of integers, not {brief(partitions)}"
        ) from error
    if array.size == 0:
        return np.empty(0, np.int32)
    if (
        array.ndim != 1
        or array.dtype.kind not in "iu"
        or array.min() < _INT32.min
        or array.max() > _INT32.max
    ):
        raise InvalidInputError(f"partitions must be a sequence of 32-bit integers, not {brief(partitions)}")
    return array.astype(np.int32)


def numbers_in_slices(starts: Offsets) -> PartitionArray:
    """Return 0, 1, 2 and so on for each slice, on end."""
    return (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)


def ascend_in_slices(starts: Offsets, partitions: PartitionArray) -> bool:
    """Tell whether no slice is empty, and each is strictly ascending."""
    if (starts[1:] == starts[:-1]).any():
        return False
    ascends = partitions[1:] > partitions[:-1]
    ascends[starts[1:-1] - 1] = True
    return bool(ascends.all())


class TopicPartitions(Mapping[str, PartitionArray]):
    """Some partitions of some topics: each topic's partitions are an ascending, read-only int32 array.

    A set in the form of a mapping: a repeated partition counts once, and a topic with no partitions is not
    in it. It equals every mapping that names the same partitions, whatever their order and type. Whether
    they exist is not its business: a member's claims may be out of date.

    Attributes:
        names: Names in Kafka's order (see `order.utf16_order`), among them all topics here. What is read or
            made for a whole group shares one tuple.
        numbers: The topics that have partitions here, as places in `names`, ascending.
        partitions: The partitions of all topics on end.
        starts: The partitions of topic `names[numbers[i]]` are `partitions[starts[i]:starts[i + 1]]`.
        cut_of: The lists of many members that this is one of, and its place there, or None.
    """

    __slots__ = ("_places", "_topics", "cut_of", "names", "numbers", "partitions", "starts")

    names: tuple[str, ...]
    numbers: TopicNumbers
    partitions: PartitionArray
    starts: Offsets
    cut_of: "tuple[PartitionLists, int] | None"
    _topics: tuple[str, ...] | None
    _places: dict[str, int] | None

    def __init__(self, partitions: Mapping[str, Iterable[int]] = MappingProxyType({})) -> None:
        """Take partitions by topic.

        Raises:
            InvalidInputError: A partition is not a 32-bit integer; the message names the topic.
        """
        arrays = {topic: _ascending(topic, listed) for topic, listed in partitions.items()}
        topics = sorted_names(topic for topic, array in arrays.items() if array.size)
        sizes = [arrays[topic].size for topic in topics]
        flat = np.concatenate([np.empty(0, np.int32), *(arrays[topic] for topic in topics)])
        self.cut_of = None
        self._set(topics, _all_of(topics), np.cumsum([0, *sizes], dtype=np.int64), flat)

    @classmethod
    def from_slices(
        cls, topics: tuple[str, ...], starts: Offsets, partitions: PartitionArray
    ) -> "TopicPartitions":
        """Return the partitions of arrays that already are what the attributes say. Nothing is checked.

        Args:
            topics: The topics' names, in order.
            starts: As the attribute.
            partitions: As the attribute.
        """
        return cls.from_numbers(topics, _all_of(topics), starts, partitions)

    @classmethod
    def from_numbers(
        cls, names: tuple[str, ...], numbers: TopicNumbers, starts: Offsets, partitions: PartitionArray
    ) -> "TopicPartitions":
        """Return the partitions of arrays that already are what the attributes say. Nothing is checked."""
        made = cls.__new__(cls)
        made.cut_of = None
        made._set(names, numbers, starts, partitions)  # noqa: SLF001 - its own class
        return made

    @classmethod
    def from_lists(cls, lists: "PartitionLists", place: int) -> "TopicPartitions":
        """Return one of many members' lists. Its arrays are cut out when somebody asks for them."""
        made = cls.__new__(cls)
        made.cut_of = lists, place
        return made

    def __getattr__(self, name: str) -> Any:
        """Cut the arrays out of the lists' columns. This is called for what has not been set."""
        if name not in _CUT_OUT or self.cut_of is None:
            raise AttributeError(name)
        lists, place = self.cut_of
        self._set(*lists.columns_of(place))
        return getattr(self, name)

    def __reduce__(self) -> tuple[object, ...]:
        """Leave the others' lists behind."""
        return TopicPartitions.from_numbers, (self.names, self.numbers, self.starts, self.partitions)

    def _set(
        self, names: tuple[str, ...], numbers: TopicNumbers, starts: Offsets, partitions: PartitionArray
    ) -> None:
        self.names = names
        self.numbers = numbers
        self.starts = starts
        self.partitions = partitions
        self._topics = names if len(names) == numbers.size else None
        self._places = None
        for column in (numbers, starts, partitions):
            column.flags.writeable = False

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics that have partitions here, in Kafka's order."""
        if self._topics is None:
            self._topics = tuple(map(self.names.__getitem__, self.numbers.tolist()))
        return self._topics

    def _place_of(self) -> dict[str, int]:
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self.topics)}
        return self._places

    @property
    def count(self) -> int:
        """How many partitions there are, of all topics."""
        return self.partitions.size

    def __getitem__(self, topic: str) -> PartitionArray:
        """Return the topic's partitions, ascending."""
        place = self._place_of()[topic]
        return self.partitions[self.starts[place] : self.starts[place + 1]]

    def __contains__(self, topic: object) -> bool:
        """Tell whether the topic has partitions here."""
        return topic in self._place_of()

    def __iter__(self) -> Iterator[str]:
        """Go through the topics that have partitions, by name."""
        return iter(self.topics)

    def __len__(self) -> int:
        """Return the number of topics."""
        return self.numbers.size

    def __eq__(self, other: object) -> bool:
        """Tell whether the other mapping names the same partitions."""
        if isinstance(other, TopicPartitions):
            return (
                np.array_equal(self.starts, other.starts)
                and self.topics == other.topics
                and np.array_equal(self.partitions, other.partitions)
            )
        if not isinstance(other, Mapping):
            return NotImplemented
        try:
            return self == TopicPartitions(other)
        except InvalidInputError:
            return False

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((self.topics, self.partitions.tobytes()))

    def __repr__(self) -> str:
        """Show what an equal dictionary of lists would, of long lists the ends, of many topics how many."""
        if len(self) > _SHOWN_TOPICS:
            return f"<{self.count} partitions of {len(self)} topics>"
        shown = (
            f"{topic!r}: {np.array2string(array, separator=', ', threshold=_SHOWN_PARTITIONS)}"
            for topic, array in self.items()
        )
        return f"{{{', '.join(shown)}}}"


def _all_of(names: tuple[str, ...]) -> TopicNumbers:
    return np.arange(len(names), dtype=np.int32)


NO_PARTITIONS = TopicPartitions()
"""No partitions of no topic."""


def _ascending(topic: str, partitions: Iterable[int]) -> PartitionArray:
    try:
        return np.unique(partition_array(partitions))
    except InvalidInputError as error:
        raise InvalidInputError(f"topic {topic!r}: {error}") from error
