"""Results of a benchmark run."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

Run = TypeVar("Run", "FetchRun", "MemberChangeRun", "LoadCheckRun", "EventRun", "IdleRun")


class Status(StrEnum):
    """Outcome of a contestant in a cell."""

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
    """Measurement of consuming a filled topic.

    Attributes:
        messages: Messages consumed: the whole topic, unless the time limit was reached.
        first: Messages of the first batch, before the clock starts.
        size: Total bytes of their values.
        seconds: Time from the first batch to the last message.
        cpu_seconds: Processor time of the whole process meanwhile.
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
    """Longest time without a message, over some partitions.

    Attributes:
        partitions: Number of partitions.
        median: Median of the partitions' longest times, in seconds.
        longest: Maximum of the partitions' longest times, in seconds.
    """

    partitions: int
    median: float
    longest: float


@dataclass(frozen=True)
class MemberChangeRun:
    """Measurement of a change of the members of a group under steady load.

    Times are in seconds since a member subscribed, or the first member ended.

    Attributes:
        settled: Time of the last assignment or revocation, after which loads differ by at most one.
        consumed: Time by which every partition has delivered a newer message to its final owner.
        kept: Gaps of the partitions that stayed with their owner.
        moved: Gaps of the partitions that changed owner.
        before: Gaps of all partitions in the second before the change.
        twice: Number of duplicate deliveries.
        missing: Number of messages never delivered.
    """

    settled: float
    consumed: float
    kept: Gaps
    moved: Gaps
    before: Gaps
    twice: int
    missing: int


@dataclass(frozen=True)
class Waits:
    """Time from the writing of messages until an application has them, in seconds.

    Attributes:
        messages: Number of messages.
        median: Median.
        longest: Maximum.
    """

    messages: int
    median: float
    longest: float


@dataclass(frozen=True)
class LoadCheckRun:
    """Measurement of load checks in a group under steady load.

    Attributes:
        moved: Number of partitions that changed owner.
        before: Messages of all partitions, in the second before the weights changed.
        kept: Messages of the partitions that stayed with their owner, from then until a second after the
            last assignment.
        twice: Number of duplicate deliveries.
        missing: Number of messages never delivered.
    """

    moved: int
    before: Waits
    kept: Waits
    twice: int
    missing: int


@dataclass(frozen=True)
class EventRun:
    """Measurement of the delivery of events to a waiting member.

    Attributes:
        revokes: Seconds from the arrival of each revocation to its callback.
        assigns: Seconds from the arrival of each assignment to its callback.
    """

    revokes: tuple[float, ...]
    assigns: tuple[float, ...]

    @property
    def waits(self) -> tuple[float, ...]:
        """Revocations and assignments together."""
        return self.revokes + self.assigns


@dataclass(frozen=True)
class IdleRun:
    """Measurement of an idle member.

    Attributes:
        seconds: Duration.
        cpu_seconds: Processor time of its whole process meanwhile.
        start_cpu_seconds: Processor time of importing the client and creating its consumer.
        objects: Number of objects that Python's garbage collector follows, at the end.
        resident: Resident memory at the end, in bytes.
    """

    seconds: float
    cpu_seconds: float
    start_cpu_seconds: float
    objects: int
    resident: int

    @property
    def share(self) -> float:
        """The share of a core."""
        return self.cpu_seconds / self.seconds


@dataclass
class Outcome(Generic[Run]):
    """Result of a contestant in a cell.

    Attributes:
        status: Outcome, as one word.
        note: Missing feature, or error.
        runs: Measurements, in order.
    """

    status: Status = Status.OK
    note: str = ""
    runs: list[Run] = field(default_factory=list)


AnyOutcome = (
    Outcome[FetchRun]
    | Outcome[MemberChangeRun]
    | Outcome[LoadCheckRun]
    | Outcome[EventRun]
    | Outcome[IdleRun]
)
"""In whichever cell."""

Outcomes = dict[str, Outcome[Run]]
"""By the names of the contestants."""


@dataclass
class Results:
    """Results of a benchmark run. Cells not selected are empty.

    Attributes:
        command: Command line.
        date: Date of its start.
        machine: Description of the machine, by property.
        clients: Version of each client, or the reason why it is missing.
        messages: Number of messages in the filled topic.
        throughput: Results with the filled topic.
        frozen: Results with the filled topic and a frozen heap.
        defaults: Results with the filled topic and librdkafka's default settings.
        member_changes: Results of changes of groups' members, by the cell's name.
        load_checks: Results of load checks.
        events: Results of the delivery of events.
        idle: Results of idling.
    """

    command: str
    date: str
    machine: dict[str, str]
    clients: dict[str, str]
    messages: int
    throughput: Outcomes[FetchRun] = field(default_factory=dict)
    frozen: Outcomes[FetchRun] = field(default_factory=dict)
    defaults: Outcomes[FetchRun] = field(default_factory=dict)
    member_changes: dict[str, Outcomes[MemberChangeRun]] = field(default_factory=dict)
    load_checks: Outcomes[LoadCheckRun] = field(default_factory=dict)
    events: Outcomes[EventRun] = field(default_factory=dict)
    idle: Outcomes[IdleRun] = field(default_factory=dict)
