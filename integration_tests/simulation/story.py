"""Story of a simulation: its events in words, with times, and a digest, by which two runs are compared."""

import zlib
from dataclasses import dataclass

from groupwright.testing._simulation.scheduler import SECOND, Scheduler


@dataclass(frozen=True, slots=True)
class Line:
    """One event."""

    at: int
    who: str
    words: str

    def __str__(self) -> str:
        """Write the line with its time in seconds."""
        return f"{self.at / SECOND:10.4f}  {self.who:<10} {self.words}"


class Story:
    """Events in order of time. Without `keep` only the digest is made, which is faster."""

    def __init__(self, scheduler: Scheduler, *, keep: bool) -> None:
        """Begin without lines."""
        self.lines: list[Line] = []
        self.digest = 0
        self._scheduler = scheduler
        self._keep = keep

    def record(self, who: str, words: str) -> None:
        """Add a line."""
        now = self._scheduler.now
        self.digest = zlib.crc32(f"{now} {who} {words}".encode(), self.digest)
        if self._keep:
            self.lines.append(Line(now, who, words))
