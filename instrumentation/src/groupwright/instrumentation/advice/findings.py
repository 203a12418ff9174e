"""The result of a rule of advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding."""

    WARNING = "warning"
    """The cause of rebalances, or of lost or repeated messages."""
    NOTE = "note"
    """Worth knowing, and possibly intended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a rule: what was observed, its consequence, and the change that the rule advises."""

    rule: str
    """The rule's name, a label of ``groupwright_warnings_total``."""
    severity: Severity
    evidence: str
    """The observed values."""
    consequence: str
    """The effect on the group or its messages."""
    change: str
    """The setting to change, and how."""

    def __str__(self) -> str:
        """Return the finding as one paragraph."""
        return f"{self.rule}: {self.evidence}. {self.consequence}. {self.change}."


def warning(rule: str, evidence: str, consequence: str, change: str) -> Finding:
    """Return a finding that is a warning."""
    return Finding(rule, Severity.WARNING, evidence, consequence, change)


def note(rule: str, evidence: str, consequence: str, change: str) -> Finding:
    """Return a finding that is a note."""
    return Finding(rule, Severity.NOTE, evidence, consequence, change)
