"""A group as its leader sees it: members, what they subscribe to and own, and the topics' partitions."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from reprlib import repr as brief
from typing import TYPE_CHECKING

from groupwright.assignors._model.order import member_order, sorted_names
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NO_GENERATION = -1
"""The generation of a member that has not been in one."""

_MAX_PARTITIONS = 2**31 - 1


@dataclass(frozen=True, init=False, eq=False, slots=True)
class Topic:
    """A topic, as far as assignors care.

    Attributes:
        partitions: How many it has; they are numbered from 0. A topic may have none.
        racks: For each partition the racks of all its replicas, offline ones too (KIP-881), or None if they
            are not known.
        weights: For each partition its share of work in any unit (such as bytes a second), or None if all
            count the same.
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
        """Check and keep the topic's facts.

        Raises:
            InvalidInputError: The count is not an integer from 0 to 2³¹-1, racks or weights are not one a
                partition, or a weight is negative or not finite.
        """
        object.__setattr__(self, "partitions", _partition_count(partitions))
        object.__setattr__(self, "racks", None if racks is None else self._racks(racks))
        object.__setattr__(self, "weights", None if weights is None else self._weights(weights))

    def _racks(self, racks: Sequence[Collection[str]]) -> tuple[frozenset[str], ...]:
        self._check_one_each("racks", len(racks))
        if any(isinstance(of_partition, str) for of_partition in racks):
            raise InvalidInputError(
                f"racks must be a collection of names for each partition, not {brief(racks)}"
            )
        distinct: dict[frozenset[str], frozenset[str]] = {}
        return tuple(distinct.setdefault(frozen, frozen) for frozen in map(frozenset, racks))

    def _weights(self, weights: "Sequence[float] | npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
        import numpy as np  # noqa: PLC0415 - a topic without weights needs no arrays

        self._check_one_each("weights", len(weights))
        try:
            array = np.array(weights, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"weights must be numbers, not {brief(weights)}") from error
        if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any():
            raise InvalidInputError(f"weights must be finite numbers, none negative, not {brief(weights)}")
        array.flags.writeable = False
        return array

    def _check_one_each(self, what: str, given: int) -> None:
        if given != self.partitions:
            raise InvalidInputError(
                f"{what} must be one a partition: {given} for {self.partitions} partitions"
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
        """Agree with equality."""
        return hash((self.partitions, self.racks))


@dataclass(frozen=True, init=False, slots=True)
class Member:
    """A member of the group and what its subscription says.

    Attributes:
        id: The coordinator's name for it.
        topics: What it subscribes to, as it said it; some may not exist.
        owned: What it says it owns (KIP-429): a claim, which may be late, of partitions that are gone, or
            in conflict with another member's.
        generation: The generation in which it got `owned` (KIP-792); -1 for none.
        instance_id: `group.instance.id` of a static member (KIP-345), None of a dynamic one.
        rack: `client.rack` (KIP-881), None if it is not set; Kafka's default, the empty string, is None.
        user_data: What its assignor's `user_data` returned.
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
        """Take a member's facts.

        Raises:
            InvalidInputError: The id is not a name, the topics are not strings (or are one string), or a
                claimed partition is not an integer.
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
        """Return the member of fields that already are what the attributes say. Nothing is checked."""
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
    """A member as the leader finds it in JoinGroup's response.

    Attributes:
        id: The coordinator's name for it.
        instance_id: `group.instance.id` of a static member, None of a dynamic one.
        metadata: Its subscription, in the bytes of ConsumerProtocol.
    """

    id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, init=False, slots=True)
class Group:
    """All that an assignment may depend on.

    Attributes:
        members: The members, in the order given, which means nothing.
        topics: The topics that exist, by name: at least those subscribed to. A topic that a member
            subscribes to and that is not here (or has no partitions) is passed over, as Kafka does.
    """

    members: tuple[Member, ...]
    topics: Mapping[str, Topic]

    def __init__(self, members: Iterable[Member], topics: Mapping[str, int | Topic]) -> None:
        """Take members and topics; a number instead of a topic is its count of partitions.

        Raises:
            InvalidInputError: Two members have one id, a topic's name is not a string or is empty, or a
                count of partitions cannot be.
        """
        object.__setattr__(self, "members", tuple(members))
        object.__setattr__(self, "topics", {name: _topic(name, given) for name, given in topics.items()})
        ids = [member.id for member in self.members]
        if len(set(ids)) < len(ids):
            repeated = [id_ for id_, times in Counter(ids).items() if times > 1]
            raise InvalidInputError(f"member {repeated[0]!r} is in the group more than once")

    def subscribers(self) -> dict[str, list[Member]]:
        """Return, by topic, the members that may be given its partitions.

        Topics come by name, members in Kafka's order (see `order.member_order`); topics that do not exist,
        have no partitions or have no subscriber are left out.
        """
        members: dict[str, list[Member]] = {}
        for member in sorted(self.members, key=member_order):
            for topic in set(member.topics):
                members.setdefault(topic, []).append(member)
        assignable = (name for name, topic in self.topics.items() if topic.partitions and name in members)
        return {name: members[name] for name in sorted_names(assignable)}


def _weights_list(topic: Topic) -> list[float] | None:
    return None if topic.weights is None else topic.weights.tolist()


def _names(member: str, topics: Iterable[str]) -> tuple[str, ...]:
    try:
        names = () if isinstance(topics, str) else tuple(topics)
        "".join(names)  # the fastest test that all are strings; a group may subscribe millions of times
    except TypeError:
        names = ()
    if not names and topics:
        raise InvalidInputError(
            f"member {member!r}: topics must be a collection of names, not {brief(topics)}"
        )
    return names


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
        raise InvalidInputError(f"a count of partitions must be an integer, not {given!r}") from error
    if not 0 <= count <= _MAX_PARTITIONS:
        raise InvalidInputError(f"a count of partitions must be from 0 to {_MAX_PARTITIONS}, not {count}")
    return count
