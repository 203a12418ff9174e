"""Rules over a broker's limits and over a group as its coordinator describes it, against a consumer's configuration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupwright.core.configuration import Configuration
from groupwright.instrumentation.advice.findings import Finding, note, warning


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """A broker's settings that limit groups."""

    min_session_timeout: int
    """``group.min.session.timeout.ms``"""
    max_session_timeout: int
    """``group.max.session.timeout.ms``"""
    max_size: int
    """``group.max.size``, members a group."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group, as its coordinator describes it."""

    state: str
    """As Kafka names it: ``STABLE``, ``PREPARING_REBALANCE``, ``EMPTY``, ..."""
    assignor: str
    """What it voted for; empty without a vote."""
    members: Sequence[tuple[str, str | None]]
    """Client id and ``group.instance.id`` of each."""
    classic: bool = True
    """Whether it is of the classic protocol, not of KIP-848."""


def on_broker(given: Mapping[str, Any], limits: BrokerLimits) -> list[Finding]:
    """Return where a consumer's configuration goes against a broker's limits."""
    return list(_session_limits(Configuration(given), limits))


def on_group(
    given: Mapping[str, Any], group: GroupFacts, limits: BrokerLimits | None = None
) -> list[Finding]:
    """Return what is found in a group, and where a consumer's configuration does not fit it."""
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
            f"{config.describe('session.timeout.ms')}; the broker takes {limits.min_session_timeout} to "
            f"{limits.max_session_timeout}",
            "It refuses the member with INVALID_SESSION_TIMEOUT",
            "Set session.timeout.ms between them, or the broker's group.min.session.timeout.ms and "
            "group.max.session.timeout.ms",
        )


def _vote(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if config.classic and group.classic and group.assignor and group.assignor not in config.strategies:
        yield warning(
            "mixed-strategies",
            f"the group has voted for {group.assignor}, and partition.assignment.strategy has "
            f"{', '.join(config.strategies)}",
            "The coordinator refuses a member that no other has a strategy in common with, with "
            "INCONSISTENT_GROUP_PROTOCOL; and if all have another, the vote changes with each join",
            "Set partition.assignment.strategy alike in all members; while it is changed, let each have both",
        )


def _protocol(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if group.members and config.classic != group.classic:
        mine, theirs = ("classic", "consumer") if config.classic else ("consumer", "classic")
        yield note(
            "mixed-protocols",
            f"group.protocol is {mine} here, and the group is of the protocol {theirs}",
            "The broker converts the group back and forth; while it does, members rebalance",
            "Set group.protocol alike in all members",
        )


def _partly_static(group: GroupFacts) -> Iterator[Finding]:
    dynamic = [client for client, instance in group.members if not instance]
    if dynamic and len(dynamic) < len(group.members):
        yield warning(
            "partly-static",
            f"{len(dynamic)} of {len(group.members)} members have no group.instance.id: {_some(dynamic)}",
            "Each restart of one of these rebalances them all, the static ones too",
            "Set group.instance.id in all members",
        )


def _shared_client_ids(group: GroupFacts) -> Iterator[Finding]:
    clients = [client for client, _ in group.members]
    shared = sorted({client for client in clients if clients.count(client) > 1})
    if shared:
        yield note(
            "client-id",
            f"members share a client.id: {_some(shared)}",
            "Where they share a process, they share their series of metrics; the broker's logs cannot tell them apart",
            "Set client.id to a name for each consumer",
        )


def _rebalancing(group: GroupFacts) -> Iterator[Finding]:
    if "REBALANC" in group.state or group.state in {"ASSIGNING", "RECONCILING"}:
        yield note(
            "rebalancing",
            f"the group's state is {group.state}",
            "It is rebalancing at this moment",
            "If it is each time that you look, see groupwright_rebalances_total for who begins it",
        )


def _nearly_full(group: GroupFacts, limits: BrokerLimits) -> Iterator[Finding]:
    if group.members and len(group.members) >= limits.max_size:
        yield warning(
            "group-size",
            f"the group has {len(group.members)} members, and the broker's group.max.size is {limits.max_size}",
            "It refuses another with GROUP_MAX_SIZE_REACHED",
            "Set the broker's group.max.size higher, or run fewer members",
        )


def _some(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(sorted(set(names))[:most])
    return shown + (", ..." if len(set(names)) > most else "")
