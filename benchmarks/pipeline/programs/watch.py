"""Processor time and memory of this process, Spark's JVM and its Python workers."""

import os
import threading
from typing import Any, Self

import psutil  # type: ignore[import-untyped]

_SAMPLE_SECONDS = 0.1


def use_cores(cores: int) -> None:
    """Keep this process and its children on that many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


class Watch:
    """Watches the most memory that Spark's JVM and its Python workers take.

    Attributes:
        python: Of all workers together, in MiB.
        jvm: In MiB.
    """

    def __init__(self) -> None:
        """Watch from `with` on."""
        self.python = self.jvm = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Start to sample the memory."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._end.set()
        self._thread.join()

    def cpu_seconds(self) -> float:
        """Return the seconds of processor time so far, of all processes."""
        return sum(sum(times[:2]) for times in self._of_each(lambda process: process.cpu_times()))

    def _run(self) -> None:
        while not self._end.wait(_SAMPLE_SECONDS):
            held = self._of_each(lambda process: (process.name(), process.memory_info().rss / 2**20))
            self.jvm = max(self.jvm, sum(size for name, size in held if "java" in name))
            self.python = max(self.python, sum(size for name, size in held[1:] if "java" not in name))

    @staticmethod
    def _of_each(ask: Any) -> list[Any]:
        """Return the answers of this process, the first, and its descendants."""
        me = psutil.Process()
        answers = []
        for process in [me, *me.children(recursive=True)]:
            try:
                answers.append(ask(process))
            except psutil.Error:  # it has ended
                continue
        return answers
