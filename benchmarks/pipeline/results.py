"""Results of a benchmark run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Run:
    """Records were decoded.

    Attributes:
        cell: Which cell it belongs to.
        what: Who decoded, and how.
        records: How many.
        cores: That it might use.
        seconds: The best round took.
        cpu_seconds: Of all processes, in that round; None where it was not asked.
        python_mib: The most memory of all Python workers together.
        jvm_mib: The most memory of the JVM.
        more: Further numbers, for the cost model.
    """

    cell: str
    what: str
    records: int
    cores: int
    seconds: float
    cpu_seconds: float | None = None
    python_mib: float | None = None
    jvm_mib: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds


@dataclass
class Results:
    """A run of the benchmark.

    Attributes:
        command: What was typed.
        date: When it began.
        machine: What it ran on, by what is described.
        runs: What was measured, in order.
    """

    command: str
    date: str
    machine: dict[str, str]
    runs: list[Run] = field(default_factory=list)

    def find(self, cell: str, what: str) -> Run | None:
        """Return the run of that name, if there was one."""
        return next((run for run in self.runs if (run.cell, run.what) == (cell, what)), None)
