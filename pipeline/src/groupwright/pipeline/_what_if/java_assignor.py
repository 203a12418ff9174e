"""The sticky assignors of Kafka's Java client, called in Spark's JVM.

The classes are those of the Kafka client that Spark's Kafka source includes. They run in the driver, which
has the only connection to a JVM: a large history takes correspondingly long.
"""

from collections.abc import Callable
from typing import Any

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    StickyAssignor,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from groupwright.pipeline._tables.java import java_class

PREFIX = "java:"
"""Prefix of the names of Java's assignors."""


class _JavaAssignor:
    """A Java assignor, called through py4j."""

    def __init__(self, jvm: Any, class_name: str) -> None:
        consumer = "org.apache.kafka.clients.consumer"
        self._protocol = java_class(jvm, f"{consumer}.internals.ConsumerProtocol")
        self._assignment = java_class(jvm, f"{consumer}.ConsumerPartitionAssignor$Assignment")
        self._java = java_class(jvm, f"{consumer}.{class_name}")()
        self._map = java_class(jvm, "java.util.HashMap")
        self._optional = java_class(jvm, "java.util.Optional")
        self._buffer = java_class(jvm, "java.nio.ByteBuffer")

    def assign(self, group: Group) -> Assignment:
        """Return the assignment that the Java class returns for these members."""
        sizes, subscriptions = self._map(), self._map()
        for topic, metadata in group.topics.items():
            sizes.put(topic, metadata.partitions)
        for member in group.members:
            subscriptions.put(member.id, self._subscription(member))
        assigned = self._java.assign(sizes, subscriptions)
        return Assignment({member.id: self._decoded(assigned.get(member.id)) for member in group.members})

    def _subscription(self, member: Member) -> Any:
        subscription = Subscription(
            tuple(member.topics), member.user_data, member.owned, member.generation, member.rack
        )
        encoded = self._buffer.wrap(encode_subscription(subscription))
        decoded = self._protocol.deserializeSubscription(encoded)
        decoded.setGroupInstanceId(self._optional.ofNullable(member.instance_id))
        return decoded

    def _decoded(self, partitions: Any) -> PartitionsByTopic:
        encoded = self._protocol.serializeAssignment(self._assignment(partitions))
        return decode_assignment(bytes(encoded.array())).partitions


class JavaSticky(StickyAssignor):
    """Java's StickyAssignor. User data is Groupwright's, which has the same bytes."""

    def __init__(self, jvm: Any) -> None:
        """Create the Java object."""
        super().__init__()
        self._java = _JavaAssignor(jvm, "StickyAssignor")

    def assign(self, group: Group) -> Assignment:
        """Return the assignment of the Java object."""
        return self._java.assign(group)


class JavaCooperativeSticky(CooperativeStickyAssignor):
    """Java's CooperativeStickyAssignor. User data is Groupwright's, which has the same bytes."""

    def __init__(self, jvm: Any) -> None:
        """Create the Java object."""
        super().__init__()
        self._java = _JavaAssignor(jvm, "CooperativeStickyAssignor")

    def assign(self, group: Group) -> Assignment:
        """Return the assignment of the Java object."""
        return self._java.assign(group)


_CLASSES: dict[str, type[JavaSticky | JavaCooperativeSticky]] = {
    PREFIX + each.name: each for each in (JavaSticky, JavaCooperativeSticky)
}
JAVA_ASSIGNORS = tuple(_CLASSES)
"""The names of Java's assignors."""


def java_assignor(name: str, jvm: Any) -> Callable[[], Assignor]:
    """Return a function that returns a new instance of a Java assignor.

    Args:
        name: One of `JAVA_ASSIGNORS`.
        jvm: Spark's JVM, as py4j presents it.

    Raises:
        AssignorError: There is no such assignor, or the JVM has no Kafka client.
    """
    made = _CLASSES.get(name)
    if made is None:
        raise AssignorError(f"no assignor is named {name!r}; Java's assignors: {', '.join(_CLASSES)}")
    try:
        made(jvm)
    except TypeError as error:  # py4j takes a missing class for a package, which cannot be called
        raise AssignorError(
            f"assignor {name!r}: Spark's JVM has no Kafka client. Start Spark with its Kafka source, by "
            "--packages or spark.jars"
        ) from error
    return lambda: made(jvm)
