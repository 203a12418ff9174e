"""Validation of a configuration without a consumer: each property by itself, then all of them together.

For tools. librdkafka checks the properties that it knows; Groupwright's `Consumer` checks the
rest. Nothing is connected, no plugin is loaded, and no callback is called.

Examples:
    >>> for problem in find_problems({"group.id": "billing", "sesion.timeout.ms": 6000}):
    ...     print(problem.key, problem.kind.value)
    sesion.timeout.ms unknown
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from groupwright.consumer._config.config import read_config
from groupwright.consumer._config.settings import (
    ALIASES,
    SETTINGS,
    ServedBy,
    flatten,
    refuse_unsupported,
    with_values,
)
from groupwright.consumer._config.tokens import Tokens
from groupwright.consumer.errors import ConfigurationError
from groupwright.core.configuration import without_secrets
from groupwright.core.spelling import did_you_mean

__all__ = ["ConfigurationProblem", "ProblemKind", "find_problems", "known_properties"]

_PYTHON = frozenset({"on_commit", "logger", "default.topic.config", "interceptors"})
_CALLBACKS = frozenset({"error_cb", "stats_cb", "throttle_cb", "oauth_cb"})
_OWN = frozenset({"load.check.interval.ms", "load.check.max.moves"})
_NOT_PASSED = frozenset({"plugin.library.paths", "partition.assignment.strategy", "group.id"}) | _OWN
"""Properties that librdkafka does not check here: they load code, are Groupwright's, or take any value."""
_UNKNOWN = "No such configuration property"
_TOGETHER = "Failed to create consumer"
"""Beginning of librdkafka's reasons to reject properties that do not go together."""
_GIVEN = {"group.id": "unnamed", "bootstrap.servers": "127.0.0.1:9"}
"""Properties that every consumer needs, where a configuration to check has none."""
_CONNECTING = (
    "bootstrap.servers",
    "security.protocol",
    "ssl.",
    "sasl.",
    "https.",
    "enable.sasl.",
    "enable.ssl.",
)
_SILENT = logging.Logger("groupwright.consumer.configuration", level=logging.CRITICAL + 1)  # noqa: LOG001 - of no tree


class ProblemKind(Enum):
    """The kind of a problem."""

    UNKNOWN = "unknown"
    """Neither librdkafka nor Groupwright has such a property: creating a consumer fails."""
    INVALID = "invalid"
    """The value is of the wrong type or out of range, or contradicts others: creating a consumer fails."""
    IGNORED = "ignored"
    """A property of producers, which consumers ignore."""
    UNSUPPORTED = "unsupported"
    """Groupwright's `Consumer` rejects it; confluent-kafka's accepts it."""


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """A problem of a configuration.

    Attributes:
        key: The property; None if several do not go together.
        kind: Its kind.
        message: A sentence, without a full stop. It contains no value of a property that may be secret.
    """

    key: str | None
    kind: ProblemKind
    message: str


def known_properties() -> frozenset[str]:
    """Return the names of all properties of a consumer, with librdkafka's aliases."""
    return frozenset(SETTINGS) | frozenset(ALIASES)


def rejection(
    error: KafkaException | SystemError, config: Mapping[str, Any], tokens: Tokens | None
) -> KafkaException:
    """Return librdkafka's rejection of a configuration without its secrets.

    If a property is unknown, the message has the closest name; if there is no token, the reason.
    confluent-kafka raises a SystemError if there is an ``error_cb`` and no token.
    """
    if tokens is not None and (
        isinstance(error, SystemError) or error.args[0].code() == KafkaError.SASL_AUTHENTICATION_FAILED
    ):
        text = f"OAuth token not set within 10 seconds timeout: {tokens.failure}"
        return KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, text))
    if isinstance(error, SystemError):
        return KafkaException(KafkaError(KafkaError._FAIL, str(error)))  # noqa: SLF001 - public
    flat = flatten(config)
    reason = without_secrets(error.args[0].str(), flat)
    unknown = next((key for key in map(str, flat) if f'{_UNKNOWN}: "{key}"' in reason), None)
    hint = did_you_mean(unknown, known_properties()) if unknown is not None else ""
    return KafkaException(KafkaError(error.args[0].code(), f"{reason}{hint}"))


def find_problems(config: Mapping[str, Any]) -> list[ConfigurationProblem]:
    """Return the problems of a configuration of a consumer, in the order of its properties.

    A missing ``group.id`` or ``bootstrap.servers`` is no problem: parts of configurations can be checked.
    Of several contradictions between properties, the first is returned.
    """
    flat = with_values(flatten(config))
    problems = [problem for key, value in flat.items() for problem in _problems_of_one(key, value)]
    faulty = {problem.key for problem in problems}
    sound = {key: value for key, value in flat.items() if key not in faulty}
    return [*problems, *_contradictions(sound)]


def _problems_of_one(key: str, value: object) -> Iterator[ConfigurationProblem]:
    if key in _PYTHON or key in _CALLBACKS:
        return
    setting = SETTINGS.get(key)
    if setting is not None and setting.by is ServedBy.REFUSED:
        try:
            refuse_unsupported({key: value})
        except ConfigurationError as error:
            yield ConfigurationProblem(key, ProblemKind.UNSUPPORTED, error.message)
        return
    if key in _NOT_PASSED:
        return
    reason = _rejection(key, value)
    if setting is None and reason is None:
        yield ConfigurationProblem(
            key, ProblemKind.IGNORED, f"{key} is a property of producers, which consumers ignore"
        )
    elif reason is not None and _UNKNOWN in reason:
        version = confluent_kafka.libversion()[0]
        yield ConfigurationProblem(
            key,
            ProblemKind.UNKNOWN,
            f"librdkafka {version} has no property {key}"
            + ("; a later one has it" if setting is not None else ""),
        )
    elif reason is not None:
        limits = setting.limits if setting is not None and "range" not in reason else None
        takes = f"; it takes a number from {limits[0]} to {limits[1]}" if limits is not None else ""
        yield ConfigurationProblem(key, ProblemKind.INVALID, f"{reason}{takes}")


def _rejection(key: str, value: object) -> str | None:
    """Return librdkafka's reason to reject a property by itself, or None."""
    reason = _librdkafka_rejection({key: value})
    return None if reason is not None and reason.startswith(_TOGETHER) else reason


def _librdkafka_rejection(config: Mapping[str, Any]) -> str | None:
    # Without bootstrap.servers, the handle connects to nothing.
    try:
        confluent_kafka.Consumer({"group.id": "unnamed", "log_level": 0, **config}).close()
    except confluent_kafka.KafkaException as error:
        return without_secrets(error.args[0].str(), config).rstrip()
    except (TypeError, ValueError) as error:
        return without_secrets(f"{', '.join(config)}: {error}", config)
    return None


def _contradictions(sound: Mapping[str, Any]) -> Iterator[ConfigurationProblem]:
    """Check properties together, as Groupwright's consumer does when it is created, and then librdkafka."""
    callbacks = {key for key in sound if key in _CALLBACKS and not callable(sound[key])}  # from a file
    config = {**_GIVEN, "logger": _SILENT} | {key: sound[key] for key in sound if key not in callbacks}
    if str(config.get("sasl.mechanism", "")).upper() == "OAUTHBEARER":
        config.setdefault("oauth_cb", _no_token)  # a function, which a file cannot have
    try:
        read_config(config)
    except ConfigurationError as error:
        yield ConfigurationProblem(_named(error.message, sound), ProblemKind.INVALID, error.message)
    except ValueError as error:
        yield ConfigurationProblem(None, ProblemKind.INVALID, str(error))
    else:
        handle = {
            key: value
            for key, value in sound.items()
            if key in SETTINGS
            and key not in _NOT_PASSED | _PYTHON | _CALLBACKS
            and SETTINGS[key].by is not ServedBy.REFUSED
            and not key.startswith(_CONNECTING)
        }
        reason = _librdkafka_rejection(handle)
        if reason is not None:
            yield ConfigurationProblem(None, ProblemKind.INVALID, reason.removeprefix(f"{_TOGETHER}: "))


def _no_token(_: str) -> tuple[str, float]:
    raise RuntimeError("a configuration is checked, and no token is needed")


def _named(message: str, config: Mapping[str, Any]) -> str | None:
    """Return the property with which a message begins."""
    first = message.split(maxsplit=1)[0].rstrip(":;,")
    return first if first in config else None
