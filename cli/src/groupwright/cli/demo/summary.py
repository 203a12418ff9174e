"""What the demo comes to, in numbers and in words. Pure."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groupwright.cli.demo.ledger import Account, Redelivery
from groupwright.cli.demo.offsets import Span
from groupwright.cli.demo.roster import Member

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the group's membership, after which every partition had exactly one owner again."""

    title: str
    seconds: float
    """From the change until then."""
    generation: int
    moved: int
    """How many partitions have another owner than before the change."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The demo's result."""

    changes: Sequence[Change]
    seconds: Sequence[float]
    """The duration of every rebalance of every member."""
    members: int
    generations: int
    revoked: int
    """How many partitions the members gave up in all these rebalances."""
    account: Account

    @property
    def passed(self) -> bool:
        """Whether every message is accounted for; each change has left one owner a partition, or is not here."""
        return self.account.balanced

    @property
    def moved(self) -> int:
        """How many partitions got another owner, over all changes."""
        return sum(change.moved for change in self.changes)

    def lines(self) -> list[tuple[str, str]]:
        """Return the summary in words: a heading and a text, each."""
        account = self.account
        return [
            ("rebalances", self._rebalances()),
            ("partitions", f"{self.moved} moved to another member, of {self.revoked} that were given up"),
            (
                "owners",
                f"{len(self.changes)} of {len(self.changes)} changes left each partition with exactly one",
            ),
            ("messages", f"{account.produced:,} produced, {account.consumed:,} consumed"),
            ("lost", _spans(account.lost)),
            ("duplicates", self._duplicates()),
            *([("unexplained", _redeliveries(account.unexplained))] if account.unexplained else []),
            *([("foreign", f"{_spans(account.foreign)}, not of this demo")] if account.foreign else []),
        ]

    def verdict(self) -> str:
        """Return the one sentence that remains."""
        if self.passed:
            return "Every message that was produced has been consumed, and every duplicate has its reason."
        return "The books do not balance: see what is lost, unexplained or foreign above."

    def _rebalances(self) -> str:
        counts = f"{len(self.seconds)} by {self.members} members, in {self.generations} generations"
        if not self.seconds:
            return counts
        shortest, longest = min(self.seconds), max(self.seconds)
        median = statistics.median(self.seconds)
        return f"{counts}: {shortest:.3f} s min, {median:.3f} s median, {longest:.3f} s max"

    def _duplicates(self) -> str:
        explained = self.account.explained
        if not explained:
            return "0"
        killed = " and ".join(sorted({each.before for each in explained}))
        return (
            f"{_size(explained):,}: consumed by {killed} after its last commit, before it was killed, "
            "and again by the next owner"
        )


def summarize(members: Iterable[Member], changes: Sequence[Change], account: Account) -> Summary:
    """Return the summary of all that the members reported."""
    members = list(members)
    rebalances = [rebalance for member in members for rebalance in member.rebalances]
    return Summary(
        changes=changes,
        seconds=[rebalance.seconds for rebalance in rebalances],
        members=len(members),
        generations=len({rebalance.generation for rebalance in rebalances}),
        revoked=sum(rebalance.revoked for rebalance in rebalances),
        account=account,
    )


def _size(redeliveries: Iterable[Redelivery]) -> int:
    return sum(each.span.size for each in redeliveries)


def _spans(spans: Sequence[Span]) -> str:
    return f"{sum(span.size for span in spans):,}{_examples(spans)}"


def _redeliveries(redeliveries: Sequence[Redelivery]) -> str:
    return f"{_size(redeliveries):,}{_examples(redeliveries)}"


def _examples(things: Sequence[object]) -> str:
    if not things:
        return ""
    shown = "; ".join(map(str, things[:_SHOWN]))
    return f" ({shown}{'; ...' if len(things) > _SHOWN else ''})"
