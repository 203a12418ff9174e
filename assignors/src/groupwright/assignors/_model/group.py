"""Group as its leader sees it: members with their subscriptions and claims, and topics.

`PartitionsByTopic` holds a member's claims, and its assignment. Names and members have Kafka's order: Java's
string order, which can differ from Python's outside ASCII.

numpy is imported when the first array is created: a member that does not lead handles its claims and its
assignment without numpy.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, index, lt
from reprlib import repr as brief
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from groupwright.assignors._model.arrays import Offsets, PartitionArray, TopicNumbers
    from groupwright.assignors._model.columns import PartitionColumns

NO_GENERATION = -1
"""Generation of a member that has not been in one."""

Weights = Mapping[str, "Sequence[float] | npt.NDArray[np.float64]"]
"""By topic, the weight of each partition, NaN where it is unknown."""

_MAX_PARTITIONS = 2**31 - 1
_SHOWN_PARTITIONS = 20
_SHOWN_TOPICS = 16
_LAZY = frozenset({"names", "numbers", "partitions", "starts", "_topics", "_index_by_topic"})


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
    return tuple(sorted(listed) if _is_ascii(listed) else sorted(listed, key=utf16_order))


def strictly_ascending(names: tuple[str, ...]) -> bool:
    """Return whether names are in Java's order, without duplicates."""
    keys = names if _is_ascii(names) else tuple(map(utf16_order, names))
    return all(map(lt, keys, keys[1:]))


def _is_ascii(names: Iterable[str]) -> bool:
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
    numbers: "TopicNumbers"
    partitions: "PartitionArray"
    starts: "Offsets"
    source: "tuple[PartitionColumns, int] | None"
    ints: dict[str, tuple[int, ...]] | None
    _topics: tuple[str, ...] | None
    _index_by_topic: dict[str, int] | None

    def __init__(self, partitions: Mapping[str, Iterable[int]] = MappingProxyType({})) -> None:
        """Create partitions from a mapping of topics to integers.

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
        self._set(topics, _all_indexes(topics), np.cumsum([0, *sizes], dtype=np.int64), flat)

    @classmethod
    def from_slices(
        cls, topics: tuple[str, ...], starts: "Offsets", partitions: "PartitionArray"
    ) -> "PartitionsByTopic":
        """Return partitions with these attributes, unchecked.

        Args:
            topics: The topics' names, in Kafka's order.
            starts: See the attribute.
            partitions: See the attribute.
        """
        return cls.from_numbers(topics, _all_indexes(topics), starts, partitions)

    @classmethod
    def from_numbers(
        cls, names: tuple[str, ...], numbers: "TopicNumbers", starts: "Offsets", partitions: "PartitionArray"
    ) -> "PartitionsByTopic":
        """Return partitions with these attributes, unchecked."""
        made = cls.__new__(cls)
        made.source = made.ints = None
        made._set(names, numbers, starts, partitions)  # noqa: SLF001 - its own class
        return made

    @classmethod
    def from_columns(cls, columns: "PartitionColumns", index: int) -> "PartitionsByTopic":
        """Return the partitions of one list of the columns. Its arrays are sliced on first use."""
        made = cls.__new__(cls)
        made.source = columns, index
        made.ints = None
        return made

    @classmethod
    def of_ints(cls, partitions: Mapping[str, Iterable[int]]) -> "PartitionsByTopic":
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
        numbers: "TopicNumbers",
        starts: "Offsets",
        partitions: "PartitionArray",
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
        import numpy as np  # noqa: PLC0415 - see the module

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

    def __getitem__(self, topic: str) -> "PartitionArray":
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
        """Return a hash that agrees with equality."""
        return hash((self.topics, self.partitions.tobytes()))

    def __repr__(self) -> str:
        """Return the text of an equal dict of lists, abbreviated, or the size if there are many topics."""
        if len(self) > _SHOWN_TOPICS:
            return f"<{self.count} partitions of {len(self)} topics>"
        import numpy as np  # noqa: PLC0415 - see the module

        shown = (
            f"{topic!r}: {np.array2string(array, separator=', ', threshold=_SHOWN_PARTITIONS)}"
            for topic, array in self.items()
        )
        return f"{{{', '.join(shown)}}}"


def _all_indexes(names: tuple[str, ...]) -> "TopicNumbers":
    import numpy as np  # noqa: PLC0415 - see the module

    return np.arange(len(names), dtype=np.int32)


NO_PARTITIONS = PartitionsByTopic.of_ints({})
"""No partitions of any topic."""


@dataclass(frozen=True, init=False, eq=False, slots=True)
class Topic:
    """A topic's properties that matter to assignors.

    Attributes:
        partitions: The number of partitions, which may be 0. They are numbered from 0.
        racks: By partition, the racks of all replicas, including offline ones (KIP-881); None if they are
            unknown.
        weights: `(partitions,) float64`: the load of each partition in any unit, such as bytes per second;
            None if all are equal.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] | None
    weights: "npt.NDArray[np.float64] | None"

    def __init__(
        self,
        partitions: int,
        racks: Sequence[Collection[str]] | None = None,
        weights: "Sequence[float] | npt.NDArray[np.float64] | None" = None,
    ) -> None:
        """Create a topic.

        Raises:
            InvalidInputError: The number of partitions is not an integer from 0 to 2³¹-1, the racks or
                weights do not have one element per partition, or a weight is negative or not finite.
        """
        object.__setattr__(self, "partitions", _partition_count(partitions))
        object.__setattr__(self, "racks", None if racks is None else self._racks(racks))
        object.__setattr__(self, "weights", None if weights is None else self._weights(weights))

    def _racks(self, racks: Sequence[Collection[str]]) -> tuple[frozenset[str], ...]:
        self._check_length("racks", len(racks))
        if any(isinstance(of_partition, str) for of_partition in racks):
            raise InvalidInputError(
                f"racks must be a collection of names for each partition, not {brief(racks)}"
            )
        distinct: dict[frozenset[str], frozenset[str]] = {}
        return tuple(distinct.setdefault(frozen, frozen) for frozen in map(frozenset, racks))

    def _weights(self, weights: "Sequence[float] | npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
        import numpy as np  # noqa: PLC0415 - a topic without weights needs no arrays

        self._check_length("weights", len(weights))
        try:
            array = np.array(weights, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"weights must be numbers, not {brief(weights)}") from error
        if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any():
            raise InvalidInputError(f"weights must be finite numbers, none negative, not {brief(weights)}")
        array.flags.writeable = False
        return array

    def _check_length(self, what: str, given: int) -> None:
        if given != self.partitions:
            raise InvalidInputError(
                f"{what} must have one element per partition: {given} for {self.partitions} partitions"
            )

    def __eq__(self, other: object) -> bool:
        """Compare all attributes."""
        if not isinstance(other, Topic):
            return NotImplemented
        return (
            self.partitions == other.partitions
            and self.racks == other.racks
            and _weights_list(self) == _weights_list(other)
        )

    def __hash__(self) -> int:
        """Return a hash that agrees with equality."""
        return hash((self.partitions, self.racks))


@dataclass(frozen=True, init=False, slots=True)
class Member:
    """A member of the group and its subscription.

    Attributes:
        id: The member id, assigned by the coordinator.
        topics: The subscribed topics, in the member's order; some may not exist.
        owned: The partitions that the member claims to own (KIP-429). A claim may be out of date, contradict
            another member's, or name partitions that do not exist.
        generation: The generation in which `owned` was assigned (KIP-792); -1 for none.
        instance_id: The `group.instance.id` of a static member (KIP-345); None for a dynamic member.
        rack: The `client.rack` (KIP-881); None if it is not set or empty.
        user_data: The result of the assignor's `user_data`.
    """

    id: str
    topics: tuple[str, ...]
    owned: PartitionsByTopic
    generation: int
    instance_id: str | None
    rack: str | None
    user_data: bytes | None

    def __init__(
        self,
        id: str,  # noqa: A002 - the member's id, as Kafka says
        topics: Iterable[str],
        *,
        owned: Mapping[str, Iterable[int]] = NO_PARTITIONS,
        generation: int = NO_GENERATION,
        instance_id: str | None = None,
        rack: str | None = None,
        user_data: bytes | None = None,
    ) -> None:
        """Create a member.

        Raises:
            InvalidInputError: The id is not a string or is empty, the topics are not a collection of strings,
                or a claimed partition is not an integer.
        """
        if not id or not isinstance(id, str):
            raise InvalidInputError(f"a member's id must be a string that is not empty, not {id!r}")
        claims = owned if isinstance(owned, PartitionsByTopic) else PartitionsByTopic(owned)
        self._set(id, _names(id, topics), claims, generation, instance_id, rack or None, user_data)

    @classmethod
    def from_fields(
        cls,
        id: str,  # noqa: A002 - as in the constructor
        topics: tuple[str, ...],
        owned: PartitionsByTopic,
        generation: int,
        instance_id: str | None,
        rack: str | None,
        user_data: bytes | None,
    ) -> "Member":
        """Return a member with these attributes, unchecked."""
        made = cls.__new__(cls)
        made._set(id, topics, owned, generation, instance_id, rack, user_data)  # noqa: SLF001 - its own class
        return made

    def _set(
        self,
        id: str,  # noqa: A002 - as in the constructor
        topics: tuple[str, ...],
        owned: PartitionsByTopic,
        generation: int,
        instance_id: str | None,
        rack: str | None,
        user_data: bytes | None,
    ) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "topics", topics)
        object.__setattr__(self, "owned", owned)
        object.__setattr__(self, "generation", generation)
        object.__setattr__(self, "instance_id", instance_id)
        object.__setattr__(self, "rack", rack)
        object.__setattr__(self, "user_data", user_data)


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member in JoinGroup's response to the leader.

    Attributes:
        id: The member id.
        instance_id: The `group.instance.id` of a static member; None for a dynamic member.
        metadata: The subscription, encoded in ConsumerProtocol.
    """

    id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, init=False, slots=True)
class Group:
    """The input of an assignor: everything that an assignment may depend on.

    Attributes:
        members: The members. Their order has no meaning.
        topics: The existing topics by name, at least the subscribed ones. As in Kafka, a subscribed topic
            that is not here, or has no partitions, is ignored.
    """

    members: tuple[Member, ...]
    topics: Mapping[str, Topic]

    def __init__(self, members: Iterable[Member], topics: Mapping[str, int | Topic]) -> None:
        """Create a group. An integer stands for a topic with that number of partitions.

        Raises:
            InvalidInputError: Two members have the same id, a topic's name is not a string, or a number of
                partitions is out of range.
        """
        object.__setattr__(self, "members", tuple(members))
        object.__setattr__(self, "topics", {name: _topic(name, given) for name, given in topics.items()})
        ids = [member.id for member in self.members]
        if len(set(ids)) < len(ids):
            repeated = [id_ for id_, times in Counter(ids).items() if times > 1]
            raise InvalidInputError(f"member {repeated[0]!r} is in the group more than once")

    def subscribers(self) -> dict[str, list[Member]]:
        """Return the subscribed members of each topic.

        Topics are sorted by name, members in Kafka's order (see `member_order`). Topics that do not
        exist, have no partitions or have no subscriber are left out.
        """
        members: dict[str, list[Member]] = {}
        for member in sorted(self.members, key=member_order):
            for topic in set(member.topics):
                members.setdefault(topic, []).append(member)
        assignable = (name for name, topic in self.topics.items() if topic.partitions and name in members)
        return {name: members[name] for name in sorted_names(assignable)}


def member_order(member: Member) -> tuple[bool, bytes, bytes]:
    """Return a sort key: static members first, by `group.instance.id`, then dynamic ones by member id.

    This is the order of Java's `AbstractPartitionAssignor.MemberInfo`, except that members with the same
    instance id are sorted by member id. Java leaves them in the order of a hash map; a coordinator never puts
    them into one generation.
    """
    instance_id = member.instance_id
    return instance_id is None, utf16_order(instance_id or ""), utf16_order(member.id)


def sorted_members(members: Collection[Member]) -> list[Member]:
    """Sort members by `member_order`."""
    is_simple = all(member.instance_id is None for member in members) and _is_ascii([m.id for m in members])
    return sorted(members, key=attrgetter("id") if is_simple else member_order)


def subscribed_topics(members: Iterable[Member]) -> frozenset[str]:
    """Return all topics that any member subscribes to: those whose metadata the leader needs."""
    distinct = {id(member.topics): member.topics for member in members}  # decoded members share equal tuples
    return frozenset().union(*distinct.values())


def _weights_list(topic: Topic) -> list[float] | None:
    return None if topic.weights is None else topic.weights.tolist()


def _names(member: str, topics: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(topics, str):
        with suppress(TypeError):
            names = tuple(topics)
            "".join(names)  # the fastest check that all are strings: a group may have millions
            return names
    raise InvalidInputError(f"member {member!r}: topics must be a collection of names, not {brief(topics)}")


def _topic(name: str, given: int | Topic) -> Topic:
    if not isinstance(name, str):
        raise InvalidInputError(f"a topic's name must be a string, not {name!r}")
    try:
        return given if isinstance(given, Topic) else Topic(given)
    except InvalidInputError as error:
        raise InvalidInputError(f"topic {name!r}: {error}") from error


def _partition_count(given: int) -> int:
    try:
        count = index(given)
    except TypeError as error:
        raise InvalidInputError(f"the number of partitions must be an integer, not {given!r}") from error
    if not 0 <= count <= _MAX_PARTITIONS:
        raise InvalidInputError(f"the number of partitions must be from 0 to {_MAX_PARTITIONS}, not {count}")
    return count
