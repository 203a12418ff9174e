"""What a run of the benchmark finds out."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

Run = TypeVar("Run", "FetchRun", "JoinRun", "EventRun", "IdleRun")


class Status(StrEnum):
    """How a contestant did in a cell."""

    OK = "ok"
    """It came back from every run."""

    TIMEOUT = "timeout"
    """It did not come back in time from one."""

    FAILED = "failed"
    """It raised an error, or died."""

    LACKING = "lacking"
    """It has no such thing, or is not on this machine."""


@dataclass(frozen=True)
class FetchRun:
    """A filled topic was consumed.

    Attributes:
        messages: How many came: all of the topic, unless the time was over before.
        first: How many of them came at once with the first.
        size: The bytes of their values.
        seconds: From there to the last.
        cpu_seconds: The consumer's whole process used meanwhile.
    """

    messages: int
    first: int
    size: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return (self.messages - self.first) / self.seconds


@dataclass(frozen=True)
class Gaps:
    """For each of some partitions, the longest time without a message.

    Attributes:
        partitions: How many partitions.
        median: Of their longest times, the one in the middle; seconds.
        longest: The longest of all; seconds.
    """

    partitions: int
    median: float
    longest: float


@dataclass(frozen=True)
class JoinRun:
    """A member joined a group that consumed under a steady load. Times are seconds since it subscribed.

    Attributes:
        settled: When the last partition was given up or gained, and all have an owner, with loads that differ by one
            at most.
        consumed: When every partition had delivered a message, written since, to the owner who kept it.
        kept: The gaps of the partitions that stayed with their owner.
        moved: The gaps of those that did not.
        before: The gaps of all partitions in the second before.
        twice: How many messages came a second time.
        missing: How many messages never came.
    """

    settled: float
    consumed: float
    kept: Gaps
    moved: Gaps
    before: Gaps
    twice: int
    missing: int


@dataclass(frozen=True)
class EventRun:
    """Events reached a member that waited.

    Attributes:
        revokes: The seconds from the arrival of each order to give partitions up until its callback began.
        assigns: The same of each assignment.
    """

    revokes: tuple[float, ...]
    assigns: tuple[float, ...]

    @property
    def waits(self) -> tuple[float, ...]:
        """Both."""
        return self.revokes + self.assigns


@dataclass(frozen=True)
class IdleRun:
    """A member idled.

    Attributes:
        seconds: How long.
        cpu_seconds: Its whole process used meanwhile.
    """

    seconds: float
    cpu_seconds: float

    @property
    def share(self) -> float:
        """The share of a core."""
        return self.cpu_seconds / self.seconds


@dataclass
class Outcome(Generic[Run]):
    """How a contestant did in a cell.

    Attributes:
        status: In a word.
        note: What it lacks, or what went wrong.
        runs: What was measured, in order.
    """

    status: Status = Status.OK
    note: str = ""
    runs: list[Run] = field(default_factory=list)


AnyOutcome = Outcome[FetchRun] | Outcome[JoinRun] | Outcome[EventRun] | Outcome[IdleRun]
"""In whichever cell."""

Outcomes = dict[str, Outcome[Run]]
"""By the names of the contestants."""


@dataclass
class Results:
    """A run of the benchmark. What was not asked for is empty.

    Attributes:
        command: What was typed.
        date: When it began.
        machine: What it ran on, by what is described.
        clients: By name, the version, or why the client is not there.
        messages: How many the filled topic held.
        throughput: Of the filled topic.
        defaults: Of the filled topic, with librdkafka's own settings.
        joins: By the size of the group before one joined.
        events: Of a member that waits for events.
        idle: Of a member that idles.
    """

    command: str
    date: str
    machine: dict[str, str]
    clients: dict[str, str]
    messages: int
    throughput: Outcomes[FetchRun] = field(default_factory=dict)
    defaults: Outcomes[FetchRun] = field(default_factory=dict)
    joins: dict[int, Outcomes[JoinRun]] = field(default_factory=dict)
    events: Outcomes[EventRun] = field(default_factory=dict)
    idle: Outcomes[IdleRun] = field(default_factory=dict)
