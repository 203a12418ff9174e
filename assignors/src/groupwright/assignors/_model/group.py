"""Group as its leader sees it: members with their subscriptions and claims, and topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter, index
from reprlib import repr as brief
from typing import TYPE_CHECKING

from groupwright.assignors._model.partitions import (
    NO_PARTITIONS,
    PartitionsByTopic,
    is_ascii,
    sorted_names,
    utf16_order,
)
from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


NO_GENERATION = -1
"""Generation of a member that has not been in one."""

Weights = Mapping[str, "Sequence[float] | npt.NDArray[np.float64]"]
"""By topic, the weight of each partition, NaN where it is unknown."""

_MAX_PARTITIONS = 2**31 - 1


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
    weights: npt.NDArray[np.float64] | None

    def __init__(
        self,
        partitions: int,
        racks: Sequence[Collection[str]] | None = None,
        weights: Sequence[float] | npt.NDArray[np.float64] | None = None,
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

    def _weights(self, weights: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        import numpy as np  # a topic without weights needs no arrays

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
    ) -> Member:
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
    is_simple = all(member.instance_id is None for member in members) and is_ascii([m.id for m in members])
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
