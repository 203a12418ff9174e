"""Rules that compare a consumer's configuration with a broker's limits, and with its group's description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupwright.core.assignor_traits import ASSIGNORS
from groupwright.core.configuration import Configuration
from groupwright.instrumentation.advice.findings import Finding, note, warning
from groupwright.instrumentation.advice.limits import BrokerLimits
from groupwright.instrumentation.advice.strategies import LIBRDKAFKA, TO_COOPERATIVE, is_cooperative


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A coordinator's description of a group: Java's `ConsumerGroupDescription`."""

    state: str
    """Name of the state, as brokers or Java write it: ``Stable``, ``PREPARING_REBALANCE``, ``Empty``, ..."""
    assignor: str
    """The assignor that the group voted for; empty without a vote."""
    members: Sequence[tuple[str, str | None]]
    """Client id and ``group.instance.id`` of each member."""
    classic: bool = True
    """True if it uses the classic protocol, not KIP-848."""


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
    session, polls = config.milliseconds("session.timeout.ms"), config.milliseconds("max.poll.interval.ms")
    least, most = limits.min_session_timeout, limits.max_session_timeout
    if not config.classic or least <= session <= most:
        return
    if session < least:
        change = f"Set session.timeout.ms to {least} or more"
        change += f", and max.poll.interval.ms no lower than that: it is {polls}" if polls < least else ""
    else:
        change = f"Set session.timeout.ms to {most} or less"
    yield warning(
        "broker-session-limits",
        f"{config.describe('session.timeout.ms')}; the broker accepts {least} to {most}",
        "It rejects the member with INVALID_SESSION_TIMEOUT",
        f"{change}. The broker's limits, group.min.session.timeout.ms and group.max.session.timeout.ms, "
        "change with a restart of all brokers only",
    )


def _vote(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if not (config.classic and group.classic and group.assignor) or group.assignor in config.strategies:
        return
    mine, theirs = ", ".join(config.strategies), group.assignor
    keep = f"If the group's assignor is to stay, set partition.assignment.strategy to {theirs}"
    keep += "" if theirs in ASSIGNORS else ", as an object of its class"
    kinds = {is_cooperative(name) for name in config.strategies}
    # Only then may members be plain consumers, for which rolling restarts from one kind to the other fail.
    all_in_librdkafka = LIBRDKAFKA.issuperset((*config.strategies, theirs))
    if all_in_librdkafka and not is_cooperative(theirs) and kinds == {True}:
        change = f"To change the group from eager to cooperative: {TO_COOPERATIVE}"
    elif all_in_librdkafka and is_cooperative(theirs) and False in kinds:
        change = (
            "To change the group from cooperative to eager: Groupwright's or Java's consumers, two rolling "
            f"restarts, the first with {mine}, {theirs}, the second without {theirs}. Plain confluent-kafka "
            f"consumers: stop all members, then start them with {mine}"
        )
    else:
        change = (
            f"To change it: two rolling restarts, the first with {mine}, {theirs}, the second without "
            f"{theirs}"
        )
    yield warning(
        "mixed-strategies",
        f"the group has voted for {theirs}, and partition.assignment.strategy has {mine}",
        "The coordinator rejects a member that has no strategy in common with the others, with "
        "INCONSISTENT_GROUP_PROTOCOL; if the members have several in common, a join may change the vote",
        f"{keep}. {change}",
    )


def _protocol(config: Configuration, group: GroupFacts) -> Iterator[Finding]:
    if group.members and config.classic != group.classic:
        mine, theirs = ("classic", "consumer") if config.classic else ("consumer", "classic")
        yield note(
            "mixed-protocols",
            f"group.protocol is {mine}, and the group uses the protocol {theirs}",
            "If the broker's group.consumer.migration.policy allows it, the group holds members of both, and "
            "is converted when possible; otherwise the broker rejects the member. While the group holds "
            "both, the broker assigns, and no assignor of partition.assignment.strategy is called, a custom "
            "one neither. User data in subscriptions does not hinder it; user data in assignments, which "
            "librdkafka's cooperative-sticky and some custom assignors write, does",
            "Set the same group.protocol in all members, by a rolling restart if the policy is bidirectional "
            "(the default) or names the direction, and if the group has no more members than the broker's "
            "group.consumer.max.size; else by stopping all of them",
        )


def _partly_static(group: GroupFacts) -> Iterator[Finding]:
    dynamic = [client for client, instance in group.members if not instance]
    if dynamic and len(dynamic) < len(group.members):
        yield warning(
            "partly-static",
            f"{len(dynamic)} of {len(group.members)} members have no group.instance.id: "
            f"{_list_some(dynamic)}",
            "Each restart of one of these rebalances all members, the static ones too",
            "Set group.instance.id in all members, to a different one in each: a member with another's id "
            "fences it",
        )


def _shared_client_ids(group: GroupFacts) -> Iterator[Finding]:
    clients = [client for client, _ in group.members]
    shared = sorted({client for client in clients if clients.count(client) > 1})
    if shared:
        yield note(
            "client-id",
            f"members share a client.id: {_list_some(shared)}",
            "In one process they share their metrics, and the broker's logs do not distinguish them",
            "Set client.id to a name of its own in each member, which it keeps over restarts; quotas go by "
            "client.id too",
        )


def _rebalancing(group: GroupFacts) -> Iterator[Finding]:
    state = group.state.upper()
    if "REBALANC" in state or state in {"ASSIGNING", "RECONCILING"}:
        yield note(
            "rebalancing",
            f"the group's state is {group.state}",
            "It is rebalancing at this moment",
            "If this persists, groupwright_rebalances_total shows which members rebalance",
        )


def _nearly_full(group: GroupFacts, limits: BrokerLimits) -> Iterator[Finding]:
    key, most = (
        ("group.max.size", limits.max_size)
        if group.classic
        else ("group.consumer.max.size", limits.max_consumer_size)
    )
    if group.members and len(group.members) >= most:
        yield warning(
            "group-size",
            f"the group has {len(group.members)} members, and the broker's {key} is {most}",
            "It rejects another member with GROUP_MAX_SIZE_REACHED",
            f"Run fewer members; during a rolling restart, stop each member before its successor starts. Or "
            f"set {key} higher on all brokers, and restart the brokers one by one",
        )


def _list_some(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(sorted(set(names))[:most])
    return shown + (", ..." if len(set(names)) > most else "")
