"""Measures what a consumer gets from the first message on."""

import resource
import time
from dataclasses import dataclass, field


def cpu_seconds() -> float:
    """Return the processor time that this process has had, all its threads included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass
class Stopwatch:
    """Runs from its making, which is when the first message is there, or the first batch, until `stop`.

    Attributes:
        wanted: How many messages the topic has.
        longest: The seconds after which it is enough.
        first: How many messages came at once with the first; they took no time.
    """

    wanted: int
    longest: float
    first: int
    _began: float = field(default_factory=time.perf_counter)
    _cpu: float = field(default_factory=cpu_seconds)

    def is_over(self) -> bool:
        """Tell whether the longest time has passed."""
        return time.perf_counter() - self._began > self.longest

    def stop(self, messages: int, size: int) -> dict[str, object]:
        """Return what was measured, given how many messages there were, and the bytes of their values.

        Raises:
            RuntimeError: There were more messages than the topic has, or none after the first.
        """
        seconds, cpu = time.perf_counter() - self._began, cpu_seconds() - self._cpu
        if not self.first < messages <= self.wanted:
            raise RuntimeError(f"{messages} messages came, {self.first} at once; the topic has {self.wanted}")
        return {
            "messages": messages,
            "first": self.first,
            "size": size,
            "seconds": seconds,
            "cpu_seconds": cpu,
        }
