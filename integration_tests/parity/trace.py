"""Trace of one run of a scenario, as lines that can be compared between runs.

A trace has one timeline for each consumer on each thread, so that parallel threads are not interleaved. A
line is an observation of the application: a call and its outcome, a callback and its partitions, an error, or
a block of messages. Messages between two other lines form one block, sorted by partition, because the order
in which partitions alternate is not defined.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

FAILED = "ended by "
"""The beginning of a line of the timeline ``scenario`` that says what exception ended it."""


@dataclass(slots=True)
class Line:
    """One observation of an application."""

    text: str
    seconds: float | None = None
    """Duration, if it is compared."""


@dataclass(slots=True)
class Block:
    """Consecutive messages."""

    offsets: dict[str, list[int | str]] = field(default_factory=dict)
    """By partition; the end of a partition is ``EOF`` with its offset."""

    @property
    def text(self) -> str:
        return "messages " + ", ".join(
            f"{partition} {ranges(offsets)}" for partition, offsets in sorted(self.offsets.items())
        )


@dataclass(slots=True)
class Trace:
    """All timelines of one run."""

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
        """Move messages after the last `lines` lines, because the poll that assigns may return some."""
        found = self.timelines.get(timeline, [])
        if len(found) > lines and isinstance(found[-lines - 1], Block):
            found.append(found.pop(-lines - 1))

    def lines(self) -> dict[str, list[Line]]:
        """Return each timeline, with its blocks of messages as lines."""
        return {
            name: [line if isinstance(line, Line) else Line(line.text) for line in lines]
            for name, lines in list(self.timelines.items())
        }

    @property
    def failure(self) -> str | None:
        """The exception that ended the scenario itself, if any; such a trace is no evidence."""
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
        """Return the trace as JSON, for `from_json`."""
        return {name: [[line.text, line.seconds] for line in lines] for name, lines in self.lines().items()}

    @classmethod
    def from_json(cls, data: dict[str, list[list[Any]]]) -> "Trace":
        """Return the trace from the JSON of `to_json`."""
        return cls({name: [Line(text, seconds) for text, seconds in lines] for name, lines in data.items()})


class Recorder(Protocol):
    """The part of a scenario's lab that its consumers record to."""

    id: str
    """Prefix of the names of its groups and topics, which a trace leaves out."""
    trace: Trace


def ranges(values: Iterable[int | str]) -> str:
    """Format values in their order, consecutive numbers as ``first..last``."""
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
