"""Threads that work at an interval beside a streaming query."""

import time
from collections.abc import Callable
from threading import Event, Thread

from pyspark.sql import SparkSession

_IDLE_SECONDS = 1.0


class Worker:
    """A thread that calls a function at an interval, until it is stopped or the function raises.

    Its Spark jobs are in a scheduler pool of its own name, so that with `spark.scheduler.mode=FAIR` they do
    not wait for the jobs of other threads.
    """

    def __init__(self, spark: SparkSession, name: str, seconds: float, work: Callable[[], bool]) -> None:
        """Start the thread; the first call is immediate.

        Args:
            spark: The session.
            name: Name of the thread and of its pool.
            seconds: The interval from start to start; a longer call is followed by the next at once.
            work: The function. If it returns False, it had nothing to do, and is called again after a second.
        """
        self._spark = spark
        self._seconds = seconds
        self._work = work
        self._stopping = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the exception that has ended the thread, if any."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop after the current call, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._thread.name)
            due = time.monotonic()
            while not self._stopping.wait(max(0.0, due - time.monotonic())):
                has_worked = self._work()
                now = time.monotonic()
                due = max(due + self._seconds, now) if has_worked else now + _IDLE_SECONDS
        except BaseException as error:  # noqa: BLE001 - raised by `check`, in the job's thread
            self._error = error
