"""What happens to the demo from outside, in the order in which it takes it in.

Threads read the members' reports and run the producer; they put events into one queue, and the demo's own
thread takes them out. So nothing else is shared, and everything that decides runs in one thread.
"""

from dataclasses import dataclass
from queue import SimpleQueue

from groupwright.cli.demo.offsets import Span
from groupwright.cli.demo.reports import Report


@dataclass(frozen=True, slots=True)
class MemberReported:
    """A member has told something."""

    name: str
    report: Report


@dataclass(frozen=True, slots=True)
class MemberEnded:
    """A member's process has ended, and all its reports have been read."""

    name: str
    exit_code: int
    """Negative for a signal."""


@dataclass(frozen=True, slots=True)
class Produced:
    """Kafka has acknowledged messages."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class FeedEnded:
    """The producer has ended, and what it was acknowledged has been told."""

    error: str | None
    """Why it ended, if not because it was asked to."""


Event = MemberReported | MemberEnded | Produced | FeedEnded
Events = SimpleQueue[Event]
