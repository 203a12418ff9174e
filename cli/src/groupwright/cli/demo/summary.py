"""Result of the demo, in numbers and in words. Pure: no I/O."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from groupwright.cli._command_line.output import Column
from groupwright.cli.demo.view_model import MemberRow
from groupwright.testing.groups import Redelivery, Report, Span, examples

CHANGE_COLUMNS = tuple(Column(key, key.upper()) for key in ("step", "seconds", "generation", "moved"))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the group's membership, after which every partition had exactly one owner again."""

    title: str
    seconds: float
    """Seconds from the change until every partition had one owner."""
    generation: int
    moved: int
    """Number of partitions whose owner has changed."""

    def __str__(self) -> str:
        """Describe the result in a sentence."""
        moves = f", {self.moved} moved" if self.moved else ""
        owners = f"every partition has exactly one owner after {self.seconds:.1f} s"
        return f"{owners} (generation {self.generation}{moves})"

    def short_text(self) -> str:
        """Describe the result in a few words."""
        moves = f", {self.moved} moved" if self.moved else ""
        return f"one owner each after {self.seconds:.1f} s{moves}"


@dataclass(frozen=True, slots=True)
class Summary:
    """The demo's result."""

    changes: Sequence[Change]
    seconds: Sequence[float]
    """Duration of each rebalance of each member, in seconds."""
    members: int
    generations: int
    revoked: int
    """Number of partitions that members revoked in these rebalances."""
    kept: int
    """Number of partitions that members kept through these rebalances."""
    meanwhile: int
    """Number of messages that members consumed during these rebalances."""
    report: Report

    @property
    def passed(self) -> bool:
        """True if no guarantee was violated, and only messages of the demo were consumed."""
        return not (self.report.violations or self.report.foreign)

    @property
    def moved(self) -> int:
        """Number of partitions that moved, over all changes."""
        return sum(change.moved for change in self.changes)

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of the summary, each a heading and a text."""
        report = self.report
        return [
            ("rebalances", self._rebalances()),
            (
                "partitions",
                (
                    f"{self.moved} moved to another member, of {self.revoked} that were revoked; {self.kept} "
                    "kept"
                ),
            ),
            ("meanwhile", f"{self.meanwhile:,} messages consumed by members during their rebalances"),
            (
                "owners",
                f"{len(self.changes)} of {len(self.changes)} changes left each partition with exactly one",
            ),
            ("messages", f"{report.produced:,} produced, {report.consumed:,} consumed"),
            ("lost", _spans(report.lost)),
            ("duplicates", self._duplicates()),
            *([("unexplained", _redeliveries(report.unexplained))] if report.unexplained else []),
            *([("foreign", f"{_spans(report.foreign)}, not of this demo")] if report.foreign else []),
            *(
                [("conflicts", f"{len(both)}{examples(both)}")]
                if (both := report.conflicts + report.strays)
                else []
            ),
        ]

    def document(self) -> dict[str, Any]:
        """Return the result as a document; see `demo.schema.json`."""
        seconds, report = self.seconds, self.report
        return {
            "passed": self.passed,
            "changes": self.rows(),
            "rebalances": {
                "count": len(seconds),
                "members": self.members,
                "generations": self.generations,
                "median_seconds": round(statistics.median(seconds), 3) if seconds else None,
                "max_seconds": round(max(seconds), 3) if seconds else None,
            },
            "partitions": {"moved": self.moved, "revoked": self.revoked, "kept": self.kept},
            "messages": {
                "produced": report.produced,
                "consumed": report.consumed,
                "consumed_while_rebalancing": self.meanwhile,
                "lost": sum(span.size for span in report.lost),
                "duplicates": _size(report.explained),
                "unexplained_duplicates": _size(report.unexplained),
                "foreign": sum(span.size for span in report.foreign),
            },
            "conflicts": len(report.conflicts) + len(report.strays),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each change, with the keys of `CHANGE_COLUMNS`."""
        return [
            {
                "step": change.title,
                "seconds": round(change.seconds, 3),
                "generation": change.generation,
                "moved": change.moved,
            }
            for change in self.changes
        ]

    def conclusion(self) -> str:
        """Return the conclusion, in one sentence."""
        if self.passed:
            return "Every message was consumed, and every duplicate is explained."
        return "The check failed: see the messages and partitions listed above."

    def _rebalances(self) -> str:
        counts = f"{len(self.seconds)} by {self.members} members, in {self.generations} generations"
        if not self.seconds:
            return counts
        shortest, longest = min(self.seconds), max(self.seconds)
        median = statistics.median(self.seconds)
        return f"{counts}: {shortest:.3f} s min, {median:.3f} s median, {longest:.3f} s max"

    def _duplicates(self) -> str:
        explained = self.report.explained
        if not explained:
            return "0"
        killed = " and ".join(sorted({each.before for each in explained}))
        return (
            f"{_size(explained):,}: consumed by {killed} after its last commit, before it was killed, "
            "and again by the next owner"
        )


def summarize(members: Iterable[MemberRow], changes: Sequence[Change], report: Report) -> Summary:
    """Return the summary of the members' events."""
    members = list(members)
    return Summary(
        changes=changes,
        seconds=[seconds for member in members for seconds in member.seconds],
        members=len(members),
        generations=len({generation for member in members for generation in member.generations}),
        revoked=sum(member.revoked for member in members),
        kept=sum(member.kept for member in members),
        meanwhile=sum(member.meanwhile for member in members),
        report=report,
    )


def _size(redeliveries: Iterable[Redelivery]) -> int:
    return sum(each.span.size for each in redeliveries)


def _spans(spans: Sequence[Span]) -> str:
    return f"{sum(span.size for span in spans):,}{examples(spans)}"


def _redeliveries(redeliveries: Sequence[Redelivery]) -> str:
    return f"{_size(redeliveries):,}{examples(redeliveries)}"
