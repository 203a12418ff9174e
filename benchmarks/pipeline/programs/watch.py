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
        self._cpu: dict[tuple[int, float], float] = {}
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
        """Return the seconds of processor time so far, of all processes, also of those that have ended."""
        self._record_cpu()
        return sum(list(self._cpu.values()))  # the thread that samples adds to them

    def _run(self) -> None:
        while not self._end.wait(_SAMPLE_SECONDS):
            self._record_cpu()
            held = self._of_each(lambda process: (process.name(), process.memory_info().rss / 2**20))
            self.jvm = max(self.jvm, sum(size for name, size in held if "java" in name))
            # A process that the JVM is starting has the JVM's memory and a thread's name.
            self.python = max(self.python, sum(size for name, size in held[1:] if name.startswith("python")))

    def _record_cpu(self) -> None:
        found = self._of_each(lambda process: ((process.pid, process.create_time()), process.cpu_times()[:2]))
        self._cpu |= {process: sum(times) for process, times in found}

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
