"""Partitions by topic, held as one array of numbers.

numpy is imported with the first array: members that do not lead have their claims and their share of the group without any.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from groupwright.assignors._model.order import sorted_names
from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    from groupwright.assignors._model.arrays import Offsets, PartitionArray, TopicNumbers
    from groupwright.assignors._model.columns import PartitionColumns

_SHOWN_PARTITIONS = 20
_SHOWN_TOPICS = 16
_MADE_LATER = frozenset({"names", "numbers", "partitions", "starts", "_topics", "_places"})


class PartitionsByTopic(Mapping[str, "PartitionArray"]):
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
        ints: The partitions as integers, by topic in order, where it was made of such, or None.
    """

    __slots__ = ("_places", "_topics", "ints", "names", "numbers", "partitions", "source", "starts")

    names: tuple[str, ...]
    numbers: "TopicNumbers"
    partitions: "PartitionArray"
    starts: "Offsets"
    source: "tuple[PartitionColumns, int] | None"
    ints: dict[str, tuple[int, ...]] | None
    _topics: tuple[str, ...] | None
    _places: dict[str, int] | None

    def __init__(self, partitions: Mapping[str, Iterable[int]] = MappingProxyType({})) -> None:
        """Take partitions by topic.

        Raises:
            InvalidInputError: A partition is not a 32-bit integer; the message names the topic.
        """
        import numpy as np  # noqa: PLC0415 - see the module

        from groupwright.assignors._model.arrays import ascending  # noqa: PLC0415 - see the module

        arrays = {topic: ascending(topic, listed) for topic, listed in partitions.items()}
        topics = sorted_names(topic for topic, array in arrays.items() if array.size)
        sizes = [arrays[topic].size for topic in topics]
        flat = np.concatenate([np.empty(0, np.int32), *(arrays[topic] for topic in topics)])
        self.source = self.ints = None
        self._set(topics, _all_of(topics), np.cumsum([0, *sizes], dtype=np.int64), flat)

    @classmethod
    def from_slices(
        cls, topics: tuple[str, ...], starts: "Offsets", partitions: "PartitionArray"
    ) -> "PartitionsByTopic":
        """Return the partitions of arrays that already are what the attributes say. Nothing is checked.

        Args:
            topics: The topics' names, in order.
            starts: As the attribute.
            partitions: As the attribute.
        """
        return cls.from_numbers(topics, _all_of(topics), starts, partitions)

    @classmethod
    def from_numbers(
        cls, names: tuple[str, ...], numbers: "TopicNumbers", starts: "Offsets", partitions: "PartitionArray"
    ) -> "PartitionsByTopic":
        """Return the partitions of arrays that already are what the attributes say. Nothing is checked."""
        made = cls.__new__(cls)
        made.source = made.ints = None
        made._set(names, numbers, starts, partitions)  # noqa: SLF001 - its own class
        return made

    @classmethod
    def from_columns(cls, lists: "PartitionColumns", place: int) -> "PartitionsByTopic":
        """Return one of many members' lists. Its arrays are cut out when somebody asks for them."""
        made = cls.__new__(cls)
        made.source = lists, place
        made.ints = None
        return made

    @classmethod
    def of_ints(cls, partitions: Mapping[str, Iterable[int]]) -> "PartitionsByTopic":
        """Return partitions whose numbers are known to be integers of 32 bits.

        Arrays are made when somebody asks for them: what only goes over the wire needs none.
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
        """Make the arrays: of the lists' columns, or of integers. This is called for what has not been set."""
        if name not in _MADE_LATER:
            raise AttributeError(name)
        if self.source is not None:
            lists, place = self.source
            self._set(*lists.row(place))
        elif self.ints is not None:
            self._set_ints(self.ints)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def __reduce__(self) -> tuple[object, ...]:
        """Leave the others' lists behind."""
        return PartitionsByTopic.from_numbers, (self.names, self.numbers, self.starts, self.partitions)

    def _set(
        self,
        names: tuple[str, ...],
        numbers: "TopicNumbers",
        starts: "Offsets",
        partitions: "PartitionArray",
    ) -> None:
        self.names = names
        self.numbers = numbers
        self.starts = starts
        self.partitions = partitions
        self._topics = names if len(names) == numbers.size else None
        self._places = None
        for column in (numbers, starts, partitions):
            column.flags.writeable = False

    def _set_ints(self, ints: dict[str, tuple[int, ...]]) -> None:
        import numpy as np  # noqa: PLC0415 - see the module

        topics = tuple(ints)
        starts = np.cumsum([0, *map(len, ints.values())], dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(ints.values()), np.int32, int(starts[-1]))
        self._set(topics, _all_of(topics), starts, flat)

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

    def __getitem__(self, topic: str) -> "PartitionArray":
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
        if isinstance(other, PartitionsByTopic):
            import numpy as np  # noqa: PLC0415 - see the module

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
        """Agree with equality."""
        return hash((self.topics, self.partitions.tobytes()))

    def __repr__(self) -> str:
        """Show what an equal dictionary of lists would, of long lists the ends, of many topics how many."""
        if len(self) > _SHOWN_TOPICS:
            return f"<{self.count} partitions of {len(self)} topics>"
        import numpy as np  # noqa: PLC0415 - see the module

        shown = (
            f"{topic!r}: {np.array2string(array, separator=', ', threshold=_SHOWN_PARTITIONS)}"
            for topic, array in self.items()
        )
        return f"{{{', '.join(shown)}}}"


def _all_of(names: tuple[str, ...]) -> "TopicNumbers":
    import numpy as np  # noqa: PLC0415 - see the module

    return np.arange(len(names), dtype=np.int32)


NO_PARTITIONS = PartitionsByTopic.of_ints({})
"""No partitions of no topic."""
