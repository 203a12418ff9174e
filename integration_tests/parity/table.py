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


ROWS: tuple[Row, ...] = ()


def as_markdown(rows: Sequence[Row] = ROWS) -> str:
    """Write the table as the consumer's README has it."""
    lines = ["| | confluent-kafka | Groupwright | why |", "|---|---|---|---|"]
    lines += [f"| {row.subject} | {row.original} | {row.ours} | {row.reason} |" for row in rows]
    return "\n".join(lines) + "\n"
