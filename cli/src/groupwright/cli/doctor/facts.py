"""The cluster's answers, as the rules of advice need them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupwright.cli._cluster.model import GroupType
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core.configuration import parse_integer
from groupwright.core.offsets_topic import OFFSETS_TOPIC
from groupwright.core.spelling import did_you_mean
from groupwright.instrumentation.advice import BrokerLimits, GroupFacts, OffsetsTopic

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.model import DescribedGroup

_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)


def broker_limits(settings: Mapping[str, str]) -> BrokerLimits:
    """Return the limits in a broker's settings; Kafka's default for one that the broker does not have."""
    keys = {
        "min_session_timeout": "group.min.session.timeout.ms",
        "max_session_timeout": "group.max.session.timeout.ms",
        "max_size": "group.max.size",
        "max_consumer_size": "group.consumer.max.size",
    }
    numbers = {name: parse_integer(settings.get(key, "")) for name, key in keys.items()}
    return BrokerLimits(**{name: number for name, number in numbers.items() if number is not None})


def group_facts(group: "DescribedGroup") -> GroupFacts:
    """Return a group as the rules take it."""
    return GroupFacts(
        state=group.state,
        assignor=group.assignor,
        members=[(member.client_id, member.instance_id) for member in group.members],
        classic=group.type is GroupType.CLASSIC,
    )


def find_consumer_group(cluster: "Cluster", id_: str) -> "DescribedGroup":
    """Return a group of consumers.

    Raises:
        CommandError: It does not exist, is of other clients, or may not be described.
    """
    group = cluster.describe([id_])[id_]
    if not group.exists:
        listed, _ = cluster.groups()
        hint = did_you_mean(id_, [each.id for each in listed])
        raise CommandError(
            f"there is no group {id_!r}{hint or ', or it has neither members nor offsets yet'}",
            ExitStatus.NOT_FOUND,
        )
    if group.type not in _TYPES or group.protocol_type not in {"", "consumer"}:
        kind = group.type.value if group.type not in _TYPES else group.protocol_type
        raise CommandError(
            f"the group {id_!r} is a {kind} group, which no consumer can join; choose another group.id",
            ExitStatus.REFUSED,
        )
    return group


def offsets_topic(cluster: "Cluster", settings: Mapping[str, str]) -> OffsetsTopic:
    """Return the offsets topic.

    Raises:
        CommandError: It does not exist, or may not be described.
    """
    found = cluster.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    configured = parse_integer(settings.get("offsets.topic.num.partitions", ""))
    if found is None or configured is None:
        raise CommandError(
            f"{OFFSETS_TOPIC} does not exist yet, or these credentials may not describe it",
            ExitStatus.INCOMPLETE,
        )
    return OffsetsTopic(found.partitions, configured)
