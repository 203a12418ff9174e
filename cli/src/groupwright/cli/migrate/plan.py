"""How a group goes over to KIP-848: what hinders it, what changes, and in which order. Pure.

Sources: Kafka's GroupMetadataManager (`validateOnlineUpgrade`), ConsumerGroupMigrationPolicy; KIP-848.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from groupwright.assignors.broker import BrokerRangeAssignor, UniformAssignor
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import GroupType
from groupwright.cli._command_line.output import few, plural
from groupwright.cli._study.model import StudiedGroup, count, counted, flat
from groupwright.core.assignor_traits import BROKER_PREFIX, KAFKAS

if TYPE_CHECKING:
    from groupwright.assignors import Assignor

_POLICY, _MAX_SIZE = "group.consumer.migration.policy", "group.consumer.max.size"
_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
"""Settings of a group; those of all groups have `group.` before them."""
_SETTINGS = "partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms"
_THERE = ("bidirectional", "upgrade")
_BACK = ("bidirectional", "downgrade")
_ALWAYS = {"brokers", "size"}
"""Subjects of checks that hinder a group after a full stop, too."""


class Way(StrEnum):
    """How a group can go over."""

    ONLINE = "online"
    """By a rolling restart, while it consumes."""
    FULL_STOP = "full stop"
    """All members stop, then all start."""
    NONE = "none"
    """Not before something else has changed."""
    UNDER_WAY = "under way"
    """Some members have gone over."""
    DONE = "done"
    """All members have."""
    HALF_BACK = "half back"
    """All members are classic again, and the broker still assigns: its policy lets no group back."""
    EMPTY = "empty"
    """There are no members: the next one decides."""


class Verdict(StrEnum):
    """Result of a check."""

    FINE = "fine"
    HINDERS = "hinders"
    UNKNOWN = "unknown"
    """The cluster does not tell it: look for yourself."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition, and what was found."""

    subject: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one of the broker's assignors, if it assigned the group.

    Attributes:
        assignor: Its name in `group.remote.assignor`.
        moved: Partitions that would go to another member, if all members changed at once; None after a full
            stop, since the broker then knows no owners.
        least: The fewest partitions of a member then.
        most: The most.
    """

    assignor: str
    moved: int | None
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Brokers:
    """Answers of the coordinator.

    Attributes:
        serves_protocol: Whether it serves KIP-848.
        settings: Its settings; None if these credentials may not read them.
        group: The settings that it has for the group; None if it has none, or these credentials may not read
            them.
    """

    serves_protocol: bool
    settings: Mapping[str, str] | None
    group: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer.

    Attributes:
        way: How the group can go over, or how far it is.
        gone: Members of KIP-848, by name.
        to_go: Members of the classic protocol.
        checks: What was looked at.
        outcomes: What the broker's assignors would do; none if it has members of neither kind.
        changes: What else changes, in sentences.
        steps: What to do to go over, in order.
        back: What to do to go back.
    """

    way: Way
    gone: tuple[str, ...]
    to_go: tuple[str, ...]
    checks: tuple[Check, ...]
    outcomes: tuple[Outcome, ...]
    changes: tuple[str, ...]
    steps: tuple[str, ...]
    back: tuple[str, ...]


def make_plan(group: StudiedGroup, brokers: Brokers) -> Plan:
    """Return how a group goes over, or back."""
    names = member_names(group.members)
    is_classic = group.type is GroupType.CLASSIC
    to_go = tuple(names[each.id] for each in group.members if is_classic or each.is_classic)
    gone = tuple(names[each.id] for each in group.members if not (is_classic or each.is_classic))
    checks = tuple(_checks(group, brokers)) if to_go or not gone else ()
    way = _way(gone, to_go, checks, is_classic=is_classic)
    return Plan(
        way,
        gone,
        to_go,
        checks,
        tuple(_outcomes(group, way)) if is_classic and group.members else (),
        tuple(_changes(group, brokers)) if is_classic else (),
        tuple(_steps(group.id, way, to_go)),
        tuple(_back(group.id, way, gone, brokers)),
    )


def _way(
    gone: tuple[str, ...], to_go: tuple[str, ...], checks: tuple[Check, ...], *, is_classic: bool
) -> Way:
    if gone:
        return Way.UNDER_WAY if to_go else Way.DONE
    if to_go and not is_classic:
        return Way.HALF_BACK
    hindrances = {check.subject for check in checks if check.verdict is Verdict.HINDERS}
    if hindrances & _ALWAYS:
        return Way.NONE
    if not to_go:
        return Way.EMPTY
    return Way.FULL_STOP if hindrances else Way.ONLINE


def _checks(group: StudiedGroup, brokers: Brokers) -> Iterator[Check]:
    """Yield the conditions that a broker checks when the first member of KIP-848 joins, and others."""
    if brokers.serves_protocol:
        yield Check("brokers", Verdict.FINE, "the coordinator serves KIP-848")
    else:
        yield Check(
            "brokers",
            Verdict.HINDERS,
            "the coordinator does not serve KIP-848: it needs Kafka 4.0, and the feature group.version at 1 "
            "(kafka-features.sh upgrade --feature group.version=1)",
        )
    yield _policy(brokers.settings)
    yield _size(len(group.members), brokers.settings)
    names = member_names(group.members)
    with_data = [names[each.id] for each in group.members if each.has_assignment_data]
    if with_data:
        yield Check(
            "assignments",
            Verdict.HINDERS,
            f"the leader sends user data with the partitions, to {few(with_data)}: no broker takes such a "
            "group over. librdkafka's cooperative-sticky and some assignors of one's own do so. "
            "Groupwright's and Java's do not: once all members are those, by a rolling restart, the group "
            "goes over online",
        )
    else:
        yield Check("assignments", Verdict.FINE, "no assignment has user data")
    undecodable = [names[each.id] for each in group.members if each.undecodable is not None]
    if undecodable:
        yield Check(
            "subscriptions",
            Verdict.HINDERS,
            f"those of {few(undecodable)} cannot be decoded, by the broker neither",
        )
    else:
        yield Check("subscriptions", Verdict.FINE, "all can be decoded")
    yield Check(
        "clients",
        Verdict.UNKNOWN,
        "brokers do not tell versions of clients. confluent-kafka and librdkafka serve KIP-848 from 2.12 on, "
        "and before 2.15 a member that exceeds max.poll.interval.ms ends with a fatal error; Java's client "
        "serves it from 4.0 on; aiokafka and kafka-python do not",
    )
    yield Check(
        "patterns",
        Verdict.UNKNOWN,
        "a subscription that begins with ^ is matched by the broker then, whose expressions (RE2/J) have no "
        "look-around and no back-references",
    )


def _policy(settings: Mapping[str, str] | None) -> Check:
    if settings is None:
        return Check("policy", Verdict.UNKNOWN, f"these credentials may not read the broker's {_POLICY}")
    policy = settings.get(_POLICY, "disabled").lower()
    if policy in _THERE:
        return Check("policy", Verdict.FINE, f"{_POLICY} is {policy}")
    return Check("policy", Verdict.HINDERS, f"{_POLICY} is {policy}, not bidirectional or upgrade")


def _size(members: int, settings: Mapping[str, str] | None) -> Check:
    text = None if settings is None else settings.get(_MAX_SIZE)
    if text is None or not text.isdecimal():
        return Check("size", Verdict.UNKNOWN, f"the broker's {_MAX_SIZE} is not known")
    if members > int(text):
        detail = (
            f"the group has {members} members, and {_MAX_SIZE} is {text}: raise it in all brokers first, for "
            "they refuse more members after a full stop, too"
        )
        return Check("size", Verdict.HINDERS, detail)
    return Check("size", Verdict.FINE, f"{plural(members, 'member')}, and {_MAX_SIZE} is {text}")


def _outcomes(group: StudiedGroup, way: Way) -> Iterator[Outcome]:
    assignors: tuple[Assignor, ...] = (UniformAssignor(), BrokerRangeAssignor())
    present = {each.id: dict(group.present(each)) for each in group.members}
    owners = {key: id_ for id_, partitions in present.items() for key in flat(partitions)}
    for assignor in assignors:
        assignment = assignor.assign(group.as_group(present))
        shares = {
            id_: {topic: tuple(map(int, numbers)) for topic, numbers in share.items()}
            for id_, share in assignment.items()
        }
        moved = sum(
            key in owners and owners[key] != id_ for id_, share in shares.items() for key in flat(share)
        )
        sizes = [count(share) for share in shares.values()]
        name = assignor.name.removeprefix(BROKER_PREFIX)
        yield Outcome(name, None if way is Way.FULL_STOP else moved, min(sizes), max(sizes))


def _changes(group: StudiedGroup, brokers: Brokers) -> Iterator[str]:
    if group.assignor:
        own = "" if group.assignor in KAFKAS else ", which is none of Kafka's,"
        yield (
            f"The broker assigns, by uniform, or range if members set group.remote.assignor; {group.assignor}"
            f"{own} is called no more."
        )
    yield (
        f"Members that still set {_SETTINGS} are refused when they are created: librdkafka and Groupwright "
        "say so."
    )
    settings = {f"group.{key}": value for key, value in (brokers.group or {}).items()}
    settings = {**(brokers.settings or {}), **settings}
    times = [f"{settings[name]} ms" for key in (_SESSION, _HEARTBEAT) if (name := f"group.{key}") in settings]
    if len(times) == 2:  # noqa: PLR2004 - both
        yield (
            f"Sessions and heartbeats are set in the broker, for all groups or for one ({_SESSION}, "
            f"{_HEARTBEAT}). Those of this group are {times[0]} and {times[1]}."
        )
    yield (
        "Once all members have gone over, a rebalance stops no member: each revokes what moves, while it "
        "consumes the rest. Until then, members with an eager assignor give up everything at each restart."
    )
    yield "Offsets, group.id, group.instance.id and the rights on the group and its topics stay as they are."


def _steps(group: str, way: Way, to_go: tuple[str, ...]) -> Iterator[str]:
    clients = "Bring all members to confluent-kafka 2.15 or later (Java: 4.0), as a release of its own"
    settings = f"Set group.protocol=consumer, and remove {_SETTINGS}"
    match way:
        case Way.NONE:
            yield "Change what hinders it, and run this command again"
        case Way.EMPTY:
            yield f"{settings}: the first member makes it a group of KIP-848"
        case Way.ONLINE:
            yield clients
            yield f"{settings}; restart the members {_one_by_one(group)}"
            yield f"Watch it: groupwright watch {group}. The broker assigns from the first one on"
            yield "Run this command again"
        case Way.FULL_STOP:
            yield clients
            yield f"{settings}, without starting any member"
            yield from _full_stop(group, len(to_go))
        case Way.UNDER_WAY:
            yield f"Restart with group.protocol=consumer, {_one_by_one(group)}: {few(to_go)}"
        case Way.HALF_BACK | Way.DONE:
            pass


def _back(group: str, way: Way, gone: tuple[str, ...], brokers: Brokers) -> Iterator[str]:
    """Yield the steps of the way back, if there is one, for a group that has gone over, or will."""
    if way in {Way.NONE, Way.EMPTY}:
        return
    policy = (brokers.settings or {}).get(_POLICY, "").lower()
    classic = f"without group.protocol=consumer, and with {_SETTINGS} as before"
    if way is Way.HALF_BACK:
        yield from _full_stop(group, None)
    elif policy and policy not in _BACK:
        yield f"Configure the members {classic}, without starting any member"
        yield from _full_stop(group, None)
    else:
        those = f": {few(gone)}" if gone else ""
        yield f"Restart the members {classic}, {_one_by_one(group)}{those}"
        yield "When the last member of KIP-848 has left, the members' assignor is called again"


def _one_by_one(group: str) -> str:
    return f"one by one, each once groupwright describe {group} shows Stable"


def _full_stop(group: str, members: int | None) -> Iterator[str]:
    all_of_them = "all members" if members is None else f"all {counted(members, 'member')}"
    yield f"Stop {all_of_them}, and wait until groupwright describe {group} shows Empty"
    yield "Start all of them; they go on from their committed offsets"
