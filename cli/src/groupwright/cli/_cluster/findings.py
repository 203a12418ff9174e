"""Findings of a group: conditions that are rarely intended, in sentences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import DescribedGroup, GroupType, OpenTransaction, TopicMetadata
from groupwright.cli._command_line.output import few, plural
from groupwright.consumer.cluster import Broker


def findings(
    lag: GroupLag,
    topics: Mapping[str, TopicMetadata],
    transactions: Sequence[OpenTransaction] = (),
    now: float = 0.0,
) -> list[str]:
    """Return the findings of a group, the most serious first.

    Args:
        lag: The group with its lag.
        topics: The topics that the group subscribes to or has committed, as far as they exist.
        transactions: The open transactions, the oldest first.
        now: The time in seconds since the epoch.
    """
    group = lag.group
    return [
        *_state(group),
        *_undecodable(group),
        *_unknown_topics(group, topics),
        *_unread_partitions(lag, topics),
        *_held(lag, transactions, now),
        *_offsets(lag),
        *_members(group),
    ]


def _state(group: DescribedGroup) -> Iterator[str]:
    if group.state == "Empty":
        yield no_members(group.protocol_type)
    stopped = [each for each in group.members if each.has_stopped]
    if stopped:
        have = _verb(len(stopped), "has", "have")
        names = few(each.instance_id or each.client_id for each in stopped)
        yield (
            f"{names} {have} stopped: a static member keeps its partitions, which nobody consumes, until its "
            "session times out or it comes back."
        )
    if group.is_rebalancing:
        unknown = "" if group.is_assignment_known else ", so its members' partitions are not known"
        yield f"The group is {group.state}: it rebalances now{unknown}."
    behind = [each for each in group.members if each.target is not None and each.target != each.assigned]
    if behind:
        have = _verb(len(behind), "has", "have")
        yield f"{few(each.client_id for each in behind)} {have} not reached the target assignment yet."


def no_members(protocol_type: str) -> str:
    """Return that a group has no members.

    Args:
        protocol_type: The group's; empty if no member has joined it, but offsets are committed.
    """
    if protocol_type:
        return "The group has no members: nothing is consumed."
    return "The group has no members: clients that assign partitions themselves may consume and commit."


def _undecodable(group: DescribedGroup) -> Iterator[str]:
    for each in group.members:
        if each.undecodable is not None:
            yield f"{each.client_id} at {each.host} ({each.id}) consumes nothing: {each.undecodable}."


def _unknown_topics(group: DescribedGroup, topics: Mapping[str, TopicMetadata]) -> Iterator[str]:
    missing = sorted(_subscribed(group) - set(topics))
    if missing:
        do = _verb(len(missing), "does", "do")
        yield f"Members subscribe to {few(missing)}, which {do} not exist, or may not be seen by this user."


def _unread_partitions(lag: GroupLag, topics: Mapping[str, TopicMetadata]) -> Iterator[str]:
    group = lag.group
    if group.type is GroupType.SHARE or group.state != "Stable" or not group.is_assignment_known:
        return
    owned = {(each.topic, each.partition) for each in lag.partitions if each.owners}
    subscribed = _subscribed(group)
    unread = [
        f"{topic}-{partition}"
        for topic in sorted(subscribed & set(topics))
        for partition in range(topics[topic].partitions)
        if (topic, partition) not in owned
    ]
    if unread:
        yield f"No member is assigned {few(unread)}, though the group subscribes to the topic."
    lagging = [each for each in lag.partitions if each.lag]
    left = {topic for topic in {each.topic for each in lagging} if group.subscribes(topic) is False}
    unsubscribed = [each for each in lagging if each.topic in left]
    if unsubscribed:
        have = _verb(len(unsubscribed), "has", "have")
        yield (
            f"{_names(unsubscribed)} {have} committed offsets and lag, but no member subscribes to the topic."
        )


def offset_notes(lags: Iterable[GroupLag]) -> Iterator[str]:
    """Yield why a group's lag leaves out some partitions, or messages.

    If no lag of the group is known, only the logs whose offsets are not known are named.
    """
    for lag in lags:
        has_number = lag.total is not None or lag.is_beyond_end
        yield from (f"{lag.group.id}: {finding}" for finding in (_offsets if has_number else _unknown)(lag))


def unknown_notes(lags: Iterable[GroupLag]) -> Iterator[str]:
    """Yield the logs of each group whose offsets are not known."""
    for lag in lags:
        yield from (f"{lag.group.id}: {finding}" for finding in _unknown(lag))


def left_out(silent: Mapping[Broker, str], hidden: Sequence[str]) -> Iterator[str]:
    """Yield which brokers did not list their groups, and which groups these credentials may not describe."""
    for broker, reason in silent.items():
        yield f"broker {broker} did not list its groups: {reason}"
    if hidden:
        yield f"these credentials may not describe {few(hidden)}"


def _held(lag: GroupLag, transactions: Sequence[OpenTransaction], now: float) -> Iterator[str]:
    held = [each for each in lag.partitions if each.held]
    if not held:
        return
    holding = [
        f"{each.transactional_id} ({max(0, round(now - each.started))} s old)"
        for each in transactions
        if any(row.partition in each.partitions.get(row.topic, ()) for row in held)
    ]
    of = f" of {few(holding)}" if holding else ", which these credentials may not see"
    number = lag.held or 0
    yield (
        f"{plural(number, 'message')} of {_names(held)} {_verb(number, 'is', 'are')} behind an open "
        f"transaction{of}: consumers with read_committed get them when it ends."
    )


def _offsets(lag: GroupLag) -> Iterator[str]:
    beyond = [each for each in lag.partitions if each.is_beyond_end]
    if beyond:
        yield (
            f"The committed offset of {_names(beyond)} is beyond the end of the log: the topic was created "
            "again or truncated, and consumers reset by auto.offset.reset."
        )
    before = [each for each in lag.partitions if each.deleted]
    if before:
        yield (
            f"The committed offset of {_names(before)} is before the beginning of the log: messages were "
            "deleted before they were consumed."
        )
    with_messages = [each for each in lag.partitions if (each.begin or 0) < (each.end or 0)]
    ungiven = [each for each in with_messages if each.is_shared and each.lag is None]
    if ungiven:
        yield (
            f"The lag of {_names(ungiven)} is not known: no member has read there yet, or the coordinator "
            "does not return it, as before Kafka 4.2."
        )
    uncommitted = [each for each in with_messages if each.committed is None and not each.is_shared]
    if uncommitted:
        yield (
            f"No offset of {_names(uncommitted)} is committed, though there are messages: the lag is not "
            "known, and a restart begins where auto.offset.reset says."
        )
    yield from _unknown(lag)


def _unknown(lag: GroupLag) -> Iterator[str]:
    unknown = [each for each in lag.partitions if each.is_log_unknown]
    if unknown:
        yield f"The offsets of {_names(unknown)} are not known: {unknown[0].error}."


def _members(group: DescribedGroup) -> Iterator[str]:
    members = group.members
    if group.state != "Stable" or not group.is_assignment_known:
        return
    idle = sum(not each.assigned for each in members)
    if idle:
        yield f"{idle} of {len(members)} members {_verb(idle, 'has', 'have')} no partitions."
    subscriptions = {
        (tuple(sorted(each.topics)), each.topic_regex) for each in members if each.undecodable is None
    }
    if len(subscriptions) > 1:
        yield f"Members have {len(subscriptions)} different subscriptions."
    versions = {each.subscription_version for each in members if each.subscription_version is not None}
    if len(versions) > 1:
        listed = " and ".join(map(str, sorted(versions)))
        yield f"Members use versions {listed} of the consumer protocol: clients of different ages or kinds."
    static = sum(each.instance_id is not None for each in members)
    if 0 < static < len(members):
        yield f"{static} of {len(members)} members {_verb(static, 'is', 'are')} static, the others are not."


def _subscribed(group: DescribedGroup) -> set[str]:
    return {topic for member in group.members for topic in member.topics}


def _names(partitions: Sequence[PartitionLag]) -> str:
    return few(each.name for each in partitions)


def _verb(count: int, singular: str, plural: str) -> str:
    return singular if count == 1 else plural
