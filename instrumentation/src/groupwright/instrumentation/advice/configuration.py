"""Rules over one consumer's configuration.

Sources: Kafka's documentation of consumer configs; KIP-62, KIP-345, KIP-429, KIP-848; librdkafka's
CONFIGURATION.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from groupwright.core.configuration import Configuration
from groupwright.instrumentation.advice.findings import Finding, note, warning

_HEARTBEATS = 3  # heartbeats within a session, as Kafka's documentation advises
_SHARE = 0.5  # of max.poll.interval.ms between two polls
_LONG_COMMIT_INTERVAL_MS = 60_000
_SHORT_STATIC_SESSION_MS = 30_000
_CLASSIC_ONLY = (
    "partition.assignment.strategy",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol.type",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured behaviour of the service whose configuration is checked."""

    longest_processing: float | None = None
    """The longest time between two polls, in seconds."""
    restarts_often: bool = False
    """Whether its members are often restarted or redeployed."""


def on_configuration(given: Mapping[str, Any], measured: Measured | None = None) -> list[Finding]:
    """Return the findings of all rules over a consumer's configuration.

    Args:
        given: The configuration, as confluent-kafka takes it; values may be text.
        measured: Measured behaviour of the service.
    """
    config, known = Configuration(given), measured or Measured()
    return [finding for rule in _RULES for finding in rule(config, known)]


def _session_timeout(config: Configuration, _: Measured) -> Iterator[Finding]:
    session, heartbeat = (
        config.milliseconds("session.timeout.ms"),
        config.milliseconds("heartbeat.interval.ms"),
    )
    if config.classic and session < _HEARTBEATS * heartbeat:
        yield warning(
            "session-timeout",
            f"{config.describe('session.timeout.ms')}, under three times "
            f"{config.describe('heartbeat.interval.ms')}",
            "One or two late heartbeats remove the member from the group, which then rebalances",
            f"Set session.timeout.ms to {_HEARTBEATS * heartbeat} or more, or heartbeat.interval.ms to "
            f"{session // _HEARTBEATS} or less",
        )


def _processing_time(config: Configuration, known: Measured) -> Iterator[Finding]:
    interval, longest = config.milliseconds("max.poll.interval.ms"), known.longest_processing
    if longest is not None and longest * 1000 > _SHARE * interval:
        yield warning(
            "max-poll-interval",
            f"{config.describe('max.poll.interval.ms')}, and up to {longest:.1f} s pass between two polls",
            "If processing gets slower, the member leaves the group, loses its partitions, and their "
            "messages are processed twice",
            f"Set max.poll.interval.ms to {int(longest * 3000)} or more, or process fewer messages between "
            "polls",
        )


def _mixed_strategies(config: Configuration, _: Measured) -> Iterator[Finding]:
    cooperative = [name for name in config.strategies if name.startswith("cooperative")]
    eager = [name for name in config.strategies if not name.startswith("cooperative")]
    if config.classic and cooperative and eager:
        yield warning(
            "mixed-strategies",
            f"partition.assignment.strategy mixes cooperative ({', '.join(cooperative)}) and eager "
            f"assignors ({', '.join(eager)})",
            "librdkafka rejects it; in other clients all members stay eager while one member supports eager "
            "assignors only",
            f"Set partition.assignment.strategy to {cooperative[0]} alone, once all members support it",
        )


def _eager(config: Configuration, _: Measured) -> Iterator[Finding]:
    if config.classic and not any(name.startswith("cooperative") for name in config.strategies):
        yield note(
            "eager-strategy",
            f"partition.assignment.strategy is {', '.join(config.strategies)}"
            + ("" if config.has("partition.assignment.strategy") else " (the default)"),
            "Every rebalance stops all members until the last of them has rejoined",
            "Set partition.assignment.strategy to cooperative-sticky in all members at once, or "
            "group.protocol to consumer where the brokers are Kafka 4.0 or later",
        )


def _static_membership(config: Configuration, known: Measured) -> Iterator[Finding]:
    if known.restarts_often and not config.has("group.instance.id"):
        yield warning(
            "static-membership",
            "the service restarts often, and group.instance.id is not set",
            "Every restart is a leave and a join, which are two rebalances of the whole group",
            "Set group.instance.id to a name that a member keeps across restarts, such as the pod name in a "
            "StatefulSet",
        )


def _static_session(config: Configuration, _: Measured) -> Iterator[Finding]:
    session = config.milliseconds("session.timeout.ms")
    if config.classic and config.has("group.instance.id") and session < _SHORT_STATIC_SESSION_MS:
        yield warning(
            "static-session-timeout",
            f"group.instance.id is set, and session.timeout.ms is {session}",
            "A restart that takes longer than that rebalances the group",
            "Set session.timeout.ms above the duration of a restart, such as 60000 or more",
        )


def _stored_before_processed(config: Configuration, _: Measured) -> Iterator[Finding]:
    if config.flag("enable.auto.commit") and config.flag("enable.auto.offset.store"):
        yield note(
            "auto-commit",
            f"{config.describe('enable.auto.commit')}, and {config.describe('enable.auto.offset.store')}",
            "A message counts as processed once poll has returned it, so a crash can lose the message in "
            "progress",
            "Set enable.auto.offset.store to false and call store_offsets after a message has been "
            "processed, or call commit",
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
            "Remove them: group.remote.assignor names the assignor, and the broker's group configuration has "
            "the timeouts",
        )


def _client_id(config: Configuration, _: Measured) -> Iterator[Finding]:
    if not config.has("client.id"):
        yield note(
            "client-id",
            "client.id is not set",
            "All consumers of the group share their metrics, and the broker's logs do not distinguish them",
            "Set client.id to a unique name for each consumer",
        )


_RULES: tuple[Callable[[Configuration, Measured], Iterator[Finding]], ...] = (
    _session_timeout,
    _processing_time,
    _mixed_strategies,
    _eager,
    _static_membership,
    _static_session,
    _stored_before_processed,
    _commit_interval,
    _classic_settings,
    _client_id,
)
