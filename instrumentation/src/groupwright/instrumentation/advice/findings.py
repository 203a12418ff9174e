"""What a rule of advice says."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is."""

    WARNING = "warning"
    """It causes rebalances, or loses or repeats messages."""
    NOTE = "note"
    """Worth knowing; a choice that some make on purpose."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or could be better."""

    rule: str
    """The rule's name: a metric's label, so one of few."""
    severity: Severity
    evidence: str
    """What was seen, with its values."""
    consequence: str
    """What comes of it."""
    change: str
    """The setting to change, and how."""

    def __str__(self) -> str:
        """Return it as one paragraph."""
        return f"{self.rule}: {self.evidence}. {self.consequence}. {self.change}."


def warning(rule: str, evidence: str, consequence: str, change: str) -> Finding:
    """Return a finding that is a warning."""
    return Finding(rule, Severity.WARNING, evidence, consequence, change)


def note(rule: str, evidence: str, consequence: str, change: str) -> Finding:
    """Return a finding that is a note."""
    return Finding(rule, Severity.NOTE, evidence, consequence, change)
