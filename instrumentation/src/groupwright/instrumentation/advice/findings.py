"""The result of a rule of advice."""

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
    """One thing that is wrong, or could be better."""

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


ALL_AT_ONCE = (
    "Plain confluent-kafka consumers: stop all members, then start them with cooperative-sticky (a rolling "
    "restart fails: librdkafka refuses a list of both kinds, and the coordinator refuses members without a "
    "common assignor)"
)
TWO_RESTARTS = (
    "Groupwright's or Java's consumers: two rolling restarts, the first with cooperative-sticky added to the "
    "list, the second with cooperative-sticky alone"
)
TO_COOPERATIVE = f"{TWO_RESTARTS}. {ALL_AT_ONCE}"
"""Ways from eager to cooperative rebalances, by the client. Mixed groups: as confluent-kafka's."""
