"""Results of a benchmark run."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from benchmarks.assignors.cases import Case


class Status(StrEnum):
    """Outcome of a contestant in a cell."""

    OK = "ok"
    """It answered."""

    TIMEOUT = "timeout"
    """It did not come back in time."""

    FAILED = "failed"
    """It raised an error, or died."""

    LACKING = "lacking"
    """It has no such thing, or is not on this machine."""

    LEFT_OUT = "left out"
    """It was not asked, since it would take minutes."""


@dataclass(frozen=True)
class Quality:
    """Quality of an assignment.

    Attributes:
        fault: What makes it none, such as a partition with two owners; empty if it is one.
        squares: The sum of the squares of the members' loads; None if partitions are withheld.
        moved: How many partitions did not stay with (or are taken from) an owner who is still here.
        local: How many have an owner in a rack of one of their replicas; None without racks.
        fingerprint: Equal for equal assignments, and for them alone.
        peak: The largest load over the average one, where partitions have weights and none is withheld.
    """

    fault: str
    squares: int | None
    moved: int
    local: int | None
    fingerprint: str
    peak: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Result of a contestant in a cell.

    Attributes:
        status: In a word.
        note: What it lacks, or what went wrong.
        runs: How often it did the step.
        best: The shortest time of a run, in seconds.
        limit: The seconds that one run could take.
        peak: The most memory that its process held, in bytes; 0 if that is not known.
        quality: Of the last run's answer.
    """

    status: Status
    note: str = ""
    runs: int = 0
    best: float | None = None
    limit: float = 0.0
    peak: int = 0
    quality: Quality | None = None

    def with_run(self, seconds: float) -> "Outcome":
        """Return the outcome with one run more."""
        return replace(self, runs=self.runs + 1, best=min(seconds, self.best or seconds))


@dataclass(frozen=True)
class Row:
    """A cell, and how the contestants did there, by their names."""

    case: Case
    outcomes: dict[str, Outcome]


@dataclass(frozen=True)
class Results:
    """A run of the benchmark.

    Attributes:
        command: What was typed.
        date: When it began.
        machine: What it ran on, by what is described.
        contestants: By name, the version, or why the contestant is not there.
        rows: The cells.
    """

    command: str
    date: str
    machine: dict[str, str]
    contestants: dict[str, str]
    rows: list[Row] = field(default_factory=list)
