"""What one run of a scenario did, as lines that two runs are compared by.

A trace has a timeline for each consumer on each thread, so that two threads which run side by side do not mix. A line is
what an application sees: a call and its outcome, a callback and its partitions, an error, a block of messages. Messages
between two other lines are one block, sorted by partition: in which order two partitions take turns says nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

FAILED = "ended by "
"""The beginning of a line of the timeline ``scenario`` that says what exception ended it."""


@dataclass(slots=True)
class Line:
    """One thing that an application sees."""

    text: str
    seconds: float | None = None
    """How long it took, where that is compared."""


@dataclass(slots=True)
class Block:
    """Messages that came one after the other."""

    offsets: dict[str, list[int | str]] = field(default_factory=dict)
    """By partition; the end of a partition is ``EOF`` with its offset."""

    @property
    def text(self) -> str:
        return "messages " + ", ".join(
            f"{partition} {ranges(offsets)}" for partition, offsets in sorted(self.offsets.items())
        )


@dataclass(slots=True)
class Trace:
    """All that one run did."""

    timelines: dict[str, list[Line | Block]] = field(default_factory=dict)

    def add(self, timeline: str, text: str, seconds: float | None = None) -> None:
        """Add a line."""
        self.timelines.setdefault(timeline, []).append(Line(text, seconds))

    def add_message(self, timeline: str, partition: str, offset: int | str) -> None:
        """Add a message to the block at the end of a timeline."""
        lines = self.timelines.setdefault(timeline, [])
        if not lines or not isinstance(lines[-1], Block):
            lines.append(Block())
        block = lines[-1]
        assert isinstance(block, Block)
        block.offsets.setdefault(partition, []).append(offset)

    def defer_messages(self, timeline: str, lines: int) -> None:
        """Write messages that stand before the last `lines` lines after them: the poll that assigns may bring some."""
        found = self.timelines.get(timeline, [])
        if len(found) > lines and isinstance(found[-lines - 1], Block):
            found.append(found.pop(-lines - 1))

    def lines(self) -> dict[str, list[Line]]:
        """Return each timeline with its blocks of messages as lines."""
        return {
            name: [line if isinstance(line, Line) else Line(line.text) for line in lines]
            for name, lines in list(self.timelines.items())
        }

    @property
    def failure(self) -> str | None:
        """The exception that ended the scenario itself, or none: such a trace proves nothing."""
        lines = self.lines().get("scenario", [])
        return next((line.text for line in lines if line.text.startswith(FAILED)), None)

    def __str__(self) -> str:
        """Return all timelines, with times."""
        rows = [
            f"  {name:12} {line.text}" + ("" if line.seconds is None else f"   [{line.seconds:.2f} s]")
            for name, lines in self.lines().items()
            for line in lines
        ]
        return "\n".join(rows)

    def to_json(self) -> dict[str, list[list[Any]]]:
        """Return what `from_json` reads."""
        return {name: [[line.text, line.seconds] for line in lines] for name, lines in self.lines().items()}

    @classmethod
    def from_json(cls, data: dict[str, list[list[Any]]]) -> "Trace":
        """Read what `to_json` has written."""
        return cls({name: [Line(text, seconds) for text, seconds in lines] for name, lines in data.items()})


def ranges(values: Iterable[int | str]) -> str:
    """Write values in their order, runs of consecutive numbers as ``first..last``."""
    return ",".join(_runs(values))


def _runs(values: Iterable[int | str]) -> Iterator[str]:
    first: int | None = None
    last = 0
    for value in values:
        if isinstance(value, int) and first is not None and value == last + 1:
            last = value
            continue
        if first is not None:
            yield _run(first, last)
            first = None
        if isinstance(value, int):
            first = last = value
        else:
            yield value
    if first is not None:
        yield _run(first, last)


def _run(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
