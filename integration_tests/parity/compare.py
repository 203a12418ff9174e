"""Differences between two traces of one scenario, and the rows of the table that explain them."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from integration_tests.parity.table import Row
from integration_tests.parity.trace import Line, Trace

_CRASH = re.compile("the process died|ends by signal (?!9$)")
_STORED = "stored"
"""The timeline of the offsets that are committed in the end."""
_SLACK = 1.5
"""Seconds that a call may take longer than the original's, beside as long again: machines are busy."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Lines of one timeline that stand in place of others."""

    timeline: str
    original: tuple[str, ...]
    ours: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"  {self.timeline}:"]
        lines += [f"    - {text}" for text in self.original]
        lines += [f"    + {text}" for text in self.ours]
        return "\n".join(lines)


def differences(original: Trace, ours: Trace) -> list[Difference]:
    """Return where ours does something else than the original, or takes longer over it."""
    left, right = original.lines(), ours.lines()
    found: list[Difference] = []
    for name in sorted(left.keys() | right.keys()):
        found += _of_timeline(name, left.get(name, []), right.get(name, []))
    return found


def died(trace: Trace) -> bool:
    """Return whether the process that ran a scenario crashed."""
    return any(_CRASH.search(line.text) for line in trace.lines().get("scenario", []))


def _of_timeline(name: str, original: list[Line], ours: list[Line]) -> list[Difference]:
    left, right = [line.text for line in original], [line.text for line in ours]
    found: list[Difference] = []
    for tag, a, b, c, d in _opcodes(left, right):
        if tag == "equal":
            found += _slower(name, original[a:b], ours[c:d])
        elif b - a == d - c:
            pairs = zip(left[a:b], right[c:d], strict=True)
            found += [Difference(name, (one,), (other,)) for one, other in pairs]
        else:
            found.append(Difference(name, tuple(left[a:b]), tuple(right[c:d])))
    return found


def _opcodes(left: list[str], right: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """Return the steps from one to the other; line by line, if that takes fewer.

    difflib splits a change whose next line repeats it into a removal and an addition elsewhere.
    """
    steps = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    changed = sum(max(b - a, d - c) for tag, a, b, c, d in steps if tag != "equal")
    if len(left) != len(right) or sum(map(str.__ne__, left, right)) >= changed:
        return steps
    pairs = enumerate(zip(left, right, strict=True))
    return [("equal" if one == other else "replace", i, i + 1, i, i + 1) for i, (one, other) in pairs]


def _slower(name: str, original: Sequence[Line], ours: Sequence[Line]) -> list[Difference]:
    return [
        Difference(name, (f"{one.text} [fast]",), (f"{other.text} [slow]",))
        for one, other in zip(original, ours, strict=True)
        if one.seconds is not None and other.seconds is not None and other.seconds > 2 * one.seconds + _SLACK
    ]


def is_slow(difference: Difference) -> bool:
    """Return whether ours did the same, and took longer over it."""
    return difference.ours[-1:] != () and difference.ours[-1].endswith(" [slow]")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a scenario."""

    scenario: str
    unexplained: tuple[Difference, ...]
    rows: tuple[str, ...]
    """The rows of the table that explain the other differences."""
    runs: int
    """Runs of the original that it took."""

    @property
    def good(self) -> bool:
        """True if the table explains every difference."""
        return not self.unexplained

    @property
    def crashed(self) -> bool:
        """True if a process on our side crashed: no load of the machine excuses it."""
        return any(_CRASH.search(text) for difference in self.unexplained for text in difference.ours)


def explain(scenario: str, found: Sequence[Difference], rows: Sequence[Row], runs: int = 1) -> Comparison:
    """Find the rows that explain differences.

    Offsets stored after a random program follow from its calls, so only a row that explains another
    difference of the program explains them.
    """
    unexplained: list[Difference] = []
    used: list[str] = []
    for difference in sorted(found, key=lambda each: each.timeline == _STORED):
        follows = scenario.startswith("program") and difference.timeline == _STORED
        candidates = [row for row in rows if row.name in used] if follows else rows
        row = next(
            (each for each in candidates if each.explains(scenario, difference.original, difference.ours)),
            None,
        )
        if row is None:
            unexplained.append(difference)
        elif row.name not in used:
            used.append(row.name)
    return Comparison(scenario, tuple(unexplained), tuple(used), runs)
