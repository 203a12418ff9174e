"""Judges cells by what Groupwright set out to reach."""

from dataclasses import dataclass

from benchmarks.assignors.cases import (
    FRANZ_GO,
    GROUPWRIGHT,
    JAVA,
    MEMORY_LIMIT_MB,
    MEMORY_PARTITIONS,
    Target,
    targets,
    time_limit,
)
from benchmarks.assignors.results import Outcome, Quality, Row, Status
from benchmarks.layout import Finding

_TOO_SHORT = 0.005
"""Seconds below which a difference does not matter."""


@dataclass(frozen=True)
class Ratio:
    """Speed of Groupwright relative to another contestant.

    Attributes:
        times: The other's shortest time over Groupwright's.
        at_least: Whether the other ran out of time, so that it is more.
    """

    times: float
    at_least: bool

    def __str__(self) -> str:
        """Show it as in the tables."""
        number = f"{self.times:.0f}" if self.times >= 10 else f"{self.times:.2g}"  # noqa: PLR2004 - two digits
        return f"{'>' if self.at_least else ''}{number}x"


def ratio(row: Row, contestant: str) -> Ratio | None:
    """Return how many times faster Groupwright is than the contestant, if both are known."""
    ours, other = row.outcomes.get(GROUPWRIGHT), row.outcomes.get(contestant)
    if ours is None or other is None or ours.best is None:
        return None
    if other.status is Status.TIMEOUT:
        return Ratio(other.limit / ours.best, at_least=True)
    return None if other.best is None else Ratio(other.best / ours.best, at_least=False)


def findings_of(row: Row) -> list[Finding]:
    """Return what was to be reached in the cell, and whether it was."""
    ours = row.outcomes[GROUPWRIGHT]
    if ours.best is None:
        return [Finding(_why_not(ours), reached=False)]
    findings = _speed(row, ours.best)
    if ours.peak and row.case.partitions >= MEMORY_PARTITIONS:
        findings.append(Finding(f"peak {ours.peak / 1e6:.0f} MB", ours.peak < MEMORY_LIMIT_MB * 1e6))
    return findings + _quality(row, ours.quality)


def _why_not(ours: Outcome) -> str:
    if ours.status is Status.TIMEOUT:
        return f"no answer in {ours.limit:.0f} s"
    return f"{ours.status}: {ours.note}"


def _speed(row: Row, best: float) -> list[Finding]:
    wanted = targets(row.case)
    if best > _TOO_SHORT:
        named = {target.than for target in wanted}
        wanted = [*(Target(1, peer) for peer in (JAVA, FRANZ_GO) if peer not in named), *wanted]
    findings = []
    for target in wanted:
        faster = ratio(row, target.than)
        if faster is not None:
            reached = True if faster.times >= target.times else None if faster.at_least else False
            findings.append(Finding(f"{faster} {target.than}, wanted {target.times:g}x", reached))
    limit = time_limit(row.case)
    if limit is not None:
        findings.append(Finding(f"{1000 * best:.0f} ms, wanted {1000 * limit:g}", best < limit))
    return findings


def _quality(row: Row, ours: Quality | None) -> list[Finding]:
    if ours is None:
        return [Finding("the answer was not seen", reached=None)]
    if ours.fault:
        return [Finding(ours.fault, reached=False)]
    found = {
        name: outcome.quality
        for name, outcome in row.outcomes.items()
        if name != GROUPWRIGHT and outcome.quality is not None and not outcome.quality.fault
    }
    if not row.case.is_sticky:
        javas = found.get(JAVA)
        if javas is None or javas.fingerprint == ours.fingerprint:
            return []
        return [Finding("differs from Java's result", reached=False)]
    return [finding for name, other in found.items() for finding in _worse(ours, name, other)]


def _worse(ours: Quality, name: str, other: Quality) -> list[Finding]:
    """Return in what the other is better: balance first, then racks, then moves."""
    for what, mine, theirs in (
        ("less balanced", ours.squares, other.squares),
        ("less local", -(ours.local or 0), -(other.local or 0)),
        ("more moves", ours.moved, other.moved),
    ):
        if mine is None or theirs is None or mine < theirs:
            return []
        if mine > theirs:
            return [Finding(f"{what} than {name}", reached=False)]
    return []
