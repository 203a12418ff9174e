"""Findings of the validation that a consumer does when it is created."""

from collections.abc import Mapping
from typing import Any

from groupwright.consumer.configuration import (
    ConfigurationProblem,
    ProblemKind,
    find_problems,
    known_properties,
)
from groupwright.core.configuration import Configuration
from groupwright.core.spelling import did_you_mean
from groupwright.instrumentation.advice import Finding, Severity

_LEFT_TO_RULES = frozenset(
    {"partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms", "group.protocol.type"}
)
"""Settings that contradict `group.protocol=consumer`, for which there is a rule."""

_FAILS = "Creating the consumer fails"


def on_settings(given: Mapping[str, Any]) -> list[Finding]:
    """Return the findings about settings that do not exist, or have no valid value."""
    if not Configuration(given).classic:
        given = {key: value for key, value in given.items() if key not in _LEFT_TO_RULES}
    return [_finding(problem) for problem in find_problems(given)]


def _finding(problem: ConfigurationProblem) -> Finding:
    key, message = problem.key or "", problem.message
    match problem.kind:
        case ProblemKind.UNKNOWN:
            hint = did_you_mean(key, known_properties())
            change = f"Correct the name{hint}" if hint else f"Remove {key}, or correct its name"
            return Finding("unknown-setting", Severity.WARNING, message, _FAILS, change)
        case ProblemKind.INVALID:
            change = f"Correct {key or 'one of these settings'}"
            return Finding("invalid-setting", Severity.WARNING, message, _FAILS, change)
        case ProblemKind.IGNORED:
            return Finding(
                "ignored-setting",
                Severity.NOTE,
                message,
                "It has no effect",
                f"Remove {key} from this configuration",
            )
        case ProblemKind.UNSUPPORTED:
            return Finding(
                "unsupported-setting",
                Severity.NOTE,
                message,
                "groupwright.consumer.Consumer rejects it; confluent-kafka's own classes may accept it",
                f"With groupwright.consumer.Consumer, remove {key}",
            )
