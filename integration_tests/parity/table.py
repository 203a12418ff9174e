"""The table of differences: all that ours does otherwise than confluent-kafka's consumer, and why.

A difference that no row explains fails its scenario. A row that no scenario shows any longer fails too. The consumer's
README has this table; `python -m parity table` writes it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch


@dataclass(frozen=True, slots=True)
class Row:
    """One difference on purpose."""

    name: str
    """A word or two, by which tests name it."""
    subject: str
    """The method, callback or setting that it is about."""
    original: str
    """What confluent-kafka's consumer does."""
    ours: str
    """What Groupwright's does."""
    reason: str
    scenarios: tuple[str, ...]
    """Where it shows: names, with ``*`` for any part of one."""
    pairs: tuple[tuple[str, str], ...] = field(default=())
    """(original's lines, our lines) as regular expressions; lines are joined by ``\\n``, and empty where there are none."""
    in_fuzzing: bool = False
    """Whether random programs may show it too."""

    def explains(self, scenario: str, original: Sequence[str], ours: Sequence[str]) -> bool:
        """Return whether this row is about these lines."""
        if not self._covers(scenario):
            return False
        left, right = "\n".join(original), "\n".join(ours)
        return any(re.fullmatch(one, left) and re.fullmatch(other, right) for one, other in self.pairs)

    def _covers(self, scenario: str) -> bool:
        if scenario.startswith("program"):
            return self.in_fuzzing
        return any(fnmatch(scenario, pattern) for pattern in self.scenarios)


ROWS: tuple[Row, ...] = (
    Row(
        name="unassign-in-on-assign",
        subject="`unassign()` in an eager `on_assign`",
        original="the member waits for an `assign` for ever: rebalances pass it by, and `close` calls no `on_revoke`",
        ours="as `assign([])`: nothing is assigned, and the member goes on",
        reason="a member that takes part in no rebalance holds the group up, and is expelled from it",
        scenarios=("unassigning_in_an_eager_on_assign",),
        pairs=((r"", r"on_revoke t1\[0\]"),),
    ),
    Row(
        name="refused-in-on-assign",
        subject="`on_assign` whose call to assign was refused",
        original="nothing is assigned",
        ours="the partitions are assigned from their committed offsets, as without a callback",
        reason="the group has given them to this member: nobody else would read them",
        scenarios=("a_refused_call_in_on_assign_*",),
        pairs=(
            (r"assigned nothing", r"assigned t1\[0\]"),
            (r"", r"on_revoke t1\[0\]"),
        ),
    ),
    Row(
        name="joins-without-topics",
        subject="a subscription of which no topic exists",
        original="the member does not join before one does",
        ours="it joins, and `on_assign` is called with nothing; a static member stays until its session ends",
        reason="the leader sees new topics for all, as in the Java client",
        scenarios=("a_subscription_of_which_nothing_exists",),
        pairs=(
            (r"", r"on_assign nothing"),
            (r"", r"on_revoke nothing"),
            (r"members: 0", r"members: 1"),
        ),
    ),
    Row(
        name="lost-when-fenced",
        subject="`on_lost` of a fenced member",
        original="no callback is called",
        ours="called",
        reason="the application learns that its partitions are another's, as in the Java client",
        scenarios=("a_fenced_static_member_has_lost_its_partitions",),
        pairs=((r"", r"on_lost t1\[0\]"),),
    ),
)


def as_markdown(rows: Sequence[Row] = ROWS) -> str:
    """Write the table as the consumer's README has it."""
    lines = ["| | confluent-kafka | Groupwright | why |", "|---|---|---|---|"]
    lines += [f"| {row.subject} | {row.original} | {row.ours} | {row.reason} |" for row in rows]
    return "\n".join(lines) + "\n"
