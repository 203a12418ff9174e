"""Rules over one consumer's configuration.

Sources: Kafka's documentation of consumer configs; KIP-62, KIP-345, KIP-429, KIP-848; librdkafka's
CONFIGURATION.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupwright.core.assignor_traits import ASSIGNORS
from groupwright.core.configuration import Configuration
from groupwright.instrumentation.advice.findings import Finding, note, warning
from groupwright.instrumentation.advice.limits import BrokerLimits, longer_poll_interval
from groupwright.instrumentation.advice.strategies import (
    ALL_AT_ONCE,
    LIBRDKAFKA,
    TO_COOPERATIVE,
    is_cooperative,
)

_HEARTBEATS = 3  # heartbeats within a session, as Kafka's documentation advises
_SHARE = 0.5  # of max.poll.interval.ms; a longer time between two polls is a finding
_LONG_COMMIT_INTERVAL_MS = 60_000
_SHORT_STATIC_SESSION_MS = 30_000
_RESTART_MS = 60_000  # most restarts take less
_CLASSIC_ONLY = (
    "partition.assignment.strategy",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol.type",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured behaviour of the service whose configuration is checked, and of the brokers."""

    longest_processing: float | None = None
    """The longest time between two polls, in seconds."""
    restarts_often: bool = False
    """True if its members are often restarted or redeployed."""
    limits: BrokerLimits = field(default_factory=BrokerLimits)
    """The broker's limits, within which the advice stays; Kafka's defaults if they are not known."""


def on_configuration(given: Mapping[str, Any], measured: Measured | None = None) -> list[Finding]:
    """Return the findings of all rules over a consumer's configuration.

    Args:
        given: The configuration, as confluent-kafka takes it; values may be text.
        measured: Measured behaviour of the service.
    """
    config = Configuration(given)
    measured = Measured() if measured is None else measured
    return [finding for rule in RULES for finding in rule(config, measured)]


def _session_timeout(config: Configuration, measured: Measured) -> Iterator[Finding]:
    session, heartbeat = (
        config.milliseconds("session.timeout.ms"),
        config.milliseconds("heartbeat.interval.ms"),
    )
    if not config.classic or session >= _HEARTBEATS * heartbeat:
        return
    limits = measured.limits
    changes = []
    least = max(_HEARTBEATS * heartbeat, limits.min_session_timeout)
    if least <= min(config.milliseconds("max.poll.interval.ms"), limits.max_session_timeout):
        changes.append(f"session.timeout.ms to {least} or more")
    if session >= limits.min_session_timeout:
        most = min(session, limits.max_session_timeout) // _HEARTBEATS
        changes.append(f"heartbeat.interval.ms to {most} or less")
    if not changes:
        least = limits.min_session_timeout
        changes.append(
            f"session.timeout.ms to {least}, heartbeat.interval.ms to {least // _HEARTBEATS} or less, and "
            f"max.poll.interval.ms no lower than {least}"
        )
    heartbeats = config.describe("heartbeat.interval.ms").replace(" is ", ", which is ", 1)
    yield warning(
        "session-timeout",
        f"{config.describe('session.timeout.ms')}, less than three times {heartbeats}",
        "One or two late heartbeats remove the member from the group, which then rebalances",
        f"Set {', or '.join(changes)}",
    )


def _processing_time(config: Configuration, measured: Measured) -> Iterator[Finding]:
    interval, longest = config.milliseconds("max.poll.interval.ms"), measured.longest_processing
    if longest is None or longest * 1000 <= _SHARE * interval:
        return
    when = "Then" if longest * 1000 >= interval else "If processing gets slower,"
    fewer = "process fewer messages between polls, such as by a smaller num_messages of consume()"
    wanted = longer_poll_interval(longest)
    yield warning(
        "max-poll-interval",
        f"{config.describe('max.poll.interval.ms')}, and up to {longest:.1f} s pass between two polls",
        f"{when} the member leaves the group, loses its partitions, and their messages are processed twice",
        f"{fewer[0].upper()}{fewer[1:]}"
        if wanted is None
        else f"Set max.poll.interval.ms to {wanted} or more, or {fewer}. A rebalance waits for a member that "
        "hangs for as long as max.poll.interval.ms",
    )


def _mixed_strategies(config: Configuration, _: Measured) -> Iterator[Finding]:
    cooperative = [name for name in config.strategies if is_cooperative(name)]
    eager = [name for name in config.strategies if is_cooperative(name) is False]
    if config.classic and cooperative and eager:
        plain = f". {ALL_AT_ONCE}" if LIBRDKAFKA.issuperset(config.strategies) else ""
        yield warning(
            "mixed-strategies",
            f"partition.assignment.strategy mixes cooperative ({', '.join(cooperative)}) and eager "
            f"assignors ({', '.join(eager)})",
            "confluent-kafka's own consumer rejects it. Groupwright's and Java's accept it, as the first of "
            "two rolling restarts from eager to cooperative, and stay eager with it",
            "Groupwright's or Java's consumers: once all members have this list, restart them one by one "
            f"with {', '.join(cooperative)} alone{plain}",
        )


def _not_in_librdkafka(config: Configuration, _: Measured) -> Iterator[Finding]:
    others = [name for name in config.strategies if name not in LIBRDKAFKA]
    if config.classic and others:
        is_in_java = all(ASSIGNORS[name].java_class for name in others if name in ASSIGNORS)
        java = " or Java's consumer" if is_in_java else ""
        yield note(
            "not-in-librdkafka",
            f"partition.assignment.strategy has {', '.join(others)}",
            "confluent-kafka's own consumer rejects the configuration, and its members cannot join a group "
            "that uses such an assignor",
            f"Use groupwright.consumer.Consumer{java} in all members of the group",
        )


def _eager(config: Configuration, _: Measured) -> Iterator[Finding]:
    if config.classic and all(is_cooperative(name) is False for name in config.strategies):
        yield note(
            "eager-strategy",
            f"partition.assignment.strategy is {', '.join(config.strategies)}"
            + ("" if config.has("partition.assignment.strategy") else " (the default)"),
            "Every rebalance stops all members until the last of them has rejoined",
            f"Change to cooperative-sticky. {TO_COOPERATIVE}. Or, where the brokers are Kafka 4.0 or later "
            "and their group.consumer.migration.policy is bidirectional (the default) or upgrade, set "
            "group.protocol to consumer by a rolling restart, and remove partition.assignment.strategy, "
            "session.timeout.ms and heartbeat.interval.ms, which are then the broker's to decide",
        )


def _static_membership(config: Configuration, measured: Measured) -> Iterator[Finding]:
    if measured.restarts_often and not config.has("group.instance.id"):
        yield warning(
            "static-membership",
            "the service restarts often, and group.instance.id is not set",
            "Every restart is a leave and a join, which are two rebalances of the whole group",
            "Set group.instance.id to a name that a member keeps across restarts, such as the pod name in a "
            "StatefulSet, and to a different one in each member: a second member with the same id fences the "
            f"first. {_session_for_restarts(config, measured)}; partitions of a member that does not come "
            "back have no owner for that time",
        )


def _static_session(config: Configuration, measured: Measured) -> Iterator[Finding]:
    session = config.milliseconds("session.timeout.ms")
    least = min(_SHORT_STATIC_SESSION_MS, measured.limits.max_session_timeout)
    if config.classic and config.has("group.instance.id") and session < least:
        yield warning(
            "static-session-timeout",
            f"group.instance.id is set, and session.timeout.ms is {session}",
            "A restart that takes longer than that rebalances the group",
            f"{_session_for_restarts(config, measured)}; partitions of a member that does not come "
            "back have no owner for that time",
        )


def _session_for_restarts(config: Configuration, measured: Measured) -> str:
    """Return the advice on the session of a static member: what the broker and the consumer accept."""
    if not config.classic:
        return (
            "The session is the broker's to set: consumer.session.timeout.ms of the group, above the "
            "duration of a restart"
        )
    session, most = config.milliseconds("session.timeout.ms"), measured.limits.max_session_timeout
    wanted = min(_RESTART_MS, most)
    if wanted <= session <= most:
        return f"Keep session.timeout.ms above the duration of a restart: it is {session}"
    change = f"Set session.timeout.ms above the duration of a restart, such as {wanted}"
    polls = config.milliseconds("max.poll.interval.ms")
    if polls < wanted:
        change += f", and max.poll.interval.ms no lower than that: it is {polls}"
    return f"{change} (the broker accepts {most} at most)"


def _stored_before_processed(config: Configuration, _: Measured) -> Iterator[Finding]:
    if config.flag("enable.auto.commit") and config.flag("enable.auto.offset.store"):
        yield note(
            "auto-commit",
            f"{config.describe('enable.auto.commit')}, and {config.describe('enable.auto.offset.store')}",
            "A message counts as processed once poll has returned it, so a crash can lose the message in "
            "progress",
            "Set enable.auto.offset.store to false and, in the same release, call store_offsets after a "
            "message has been processed: without such calls nothing is committed. Or set enable.auto.commit "
            "to false, and call commit",
        )


def _commit_interval(config: Configuration, _: Measured) -> Iterator[Finding]:
    interval = config.milliseconds("auto.commit.interval.ms")
    if config.flag("enable.auto.commit") and interval >= _LONG_COMMIT_INTERVAL_MS:
        yield warning(
            "auto-commit-interval",
            f"auto.commit.interval.ms is {interval}",
            f"After a crash or a lost membership, up to {interval / 1000:g} s of messages are processed "
            "twice",
            "Set auto.commit.interval.ms to about 5000",
        )


def _classic_settings(config: Configuration, _: Measured) -> Iterator[Finding]:
    rejected = [key for key in _CLASSIC_ONLY if config.has(key)]
    if not config.classic and rejected:
        yield warning(
            "classic-settings",
            f"group.protocol is consumer, and {', '.join(rejected)} {'is' if len(rejected) == 1 else 'are'} "
            "set",
            "The broker decides these, and librdkafka rejects them",
            "Remove them: group.remote.assignor names one of the broker's assignors, and the broker's "
            "configuration of the group has consumer.session.timeout.ms and consumer.heartbeat.interval.ms. "
            "For an assignor of your own, remove group.protocol instead",
        )


def _client_id(config: Configuration, _: Measured) -> Iterator[Finding]:
    if not config.has("client.id"):
        yield note(
            "client-id",
            "client.id is not set",
            "All consumers of the group share their metrics, and the broker's logs do not distinguish them",
            "Set client.id to a name of its own in each member, which it keeps over restarts; quotas go by "
            "client.id too",
        )


RULES: tuple[Callable[[Configuration, Measured], Iterator[Finding]], ...] = (
    _session_timeout,
    _processing_time,
    _mixed_strategies,
    _not_in_librdkafka,
    _eager,
    _static_membership,
    _static_session,
    _stored_before_processed,
    _commit_interval,
    _classic_settings,
    _client_id,
)
