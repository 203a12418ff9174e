"""Rules that compare a consumer's configuration with a broker's limits, and with its group's description."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupwright.core.configuration import Configuration
from groupwright.instrumentation.advice.findings import Finding, note, warning


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """Limits of groups in a broker's configuration."""

    min_session_timeout: int
    """``group.min.session.timeout.ms``, in milliseconds."""
    max_session_timeout: int
    """``group.max.session.timeout.ms``, in milliseconds."""
    max_size: int
    """``group.max.size``, the number of members."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A coordinator's description of a group: Java's `ConsumerGroupDescription`."""

    state: str
    """Kafka's name of the state: ``STABLE``, ``PREPARING_REBALANCE``, ``EMPTY``, ..."""
    assignor: str
    """The assignor that the group voted for; empty without a vote."""
    members: Sequence[tuple[str, str | None]]
    """Client id and ``group.instance.id`` of each member."""
    classic: bool = True
    """Whether it uses the classic protocol, not KIP-848."""


def on_broker(given: Mapping[str, Any], limits: BrokerLimits) -> list[Finding]:
    """Return the findings about a consumer's configuration and a broker's limits."""
    return list(_session_limits(Configuration(given), limits))


def on_group(
    given: Mapping[str, Any], group: GroupFacts, limits: BrokerLimits | None = None
) -> list[Finding]:
    """Return the findings about a group, and about a consumer's configuration in it."""
    config = Configuration(given)
    return [
        *_vote(config, group),
        *_protocol(config, group),
        *_partly_static(group),
        *_shared_client_ids(group),
        *_rebalancing(group),
        *(_nearly_full(group, limits) if limits is not None else ()),
    ]


def _session_limits(config: Configuration, limits: BrokerLimits) -> Iterator[Finding]:
    session = config.milliseconds("session.timeout.ms")
    if config.classic and not limits.min_session_timeout <= session <= limits.max_session_timeout:
        yield warning(
            "broker-session-limits",
            f"{config.describe('session.timeout.ms')}; the broker accepts {limits.min_session_timeout} to "
            f"{limits.max_session_timeout}",
            "It rejects the member with INVALID_SESSION_TIMEOUT",
            "Set session.timeout.ms between them, or the broker's group.min.session.timeout.ms and "
            "group.max.session.timeout.ms",
        )


def _vote(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if config.classic and group.classic and group.assignor and group.assignor not in config.strategies:
        yield warning(
            "mixed-strategies",
            f"the group has voted for {group.assignor}, and partition.assignment.strategy has "
            f"{', '.join(config.strategies)}",
            "The coordinator rejects a member that has no strategy in common with the others, with "
            "INCONSISTENT_GROUP_PROTOCOL; if the members have several in common, a join may change the vote",
            "Set the same partition.assignment.strategy in all members; during a change, list the old and "
            "the new one",
        )


def _protocol(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if group.members and config.classic != group.classic:
        mine, theirs = ("classic", "consumer") if config.classic else ("consumer", "classic")
        yield note(
            "mixed-protocols",
            f"group.protocol is {mine}, and the group uses the protocol {theirs}",
            "The broker converts the group from one protocol to the other, and each conversion rebalances "
            "its members",
            "Set the same group.protocol in all members",
        )


def _partly_static(group: GroupFacts) -> Iterator[Finding]:
    dynamic = [client for client, instance in group.members if not instance]
    if dynamic and len(dynamic) < len(group.members):
        yield warning(
            "partly-static",
            f"{len(dynamic)} of {len(group.members)} members have no group.instance.id: "
            f"{_list_some(dynamic)}",
            "Each restart of one of these rebalances all members, the static ones too",
            "Set group.instance.id in all members",
        )


def _shared_client_ids(group: GroupFacts) -> Iterator[Finding]:
    clients = [client for client, _ in group.members]
    shared = sorted({client for client in clients if clients.count(client) > 1})
    if shared:
        yield note(
            "client-id",
            f"members share a client.id: {_list_some(shared)}",
            "In one process they share their metrics, and the broker's logs do not distinguish them",
            "Set client.id to a unique name for each consumer",
        )


def _rebalancing(group: GroupFacts) -> Iterator[Finding]:
    if "REBALANC" in group.state or group.state in {"ASSIGNING", "RECONCILING"}:
        yield note(
            "rebalancing",
            f"the group's state is {group.state}",
            "It is rebalancing at this moment",
            "If this persists, groupwright_rebalances_total shows which members rebalance",
        )


def _nearly_full(group: GroupFacts, limits: BrokerLimits) -> Iterator[Finding]:
    if group.members and len(group.members) >= limits.max_size:
        yield warning(
            "group-size",
            f"the group has {len(group.members)} members, and the broker's group.max.size is "
            f"{limits.max_size}",
            "It rejects another member with GROUP_MAX_SIZE_REACHED",
            "Set the broker's group.max.size higher, or run fewer members",
        )


def _list_some(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(sorted(set(names))[:most])
    return shown + (", ..." if len(set(names)) > most else "")
