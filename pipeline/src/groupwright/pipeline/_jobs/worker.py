"""Threads that work beside a streaming query."""

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from uuid import uuid4

from pyspark.sql import SparkSession

_IDLE_SECONDS = 1.0
_CANCEL_SECONDS = 5.0
"""Time for a call to end after its Spark jobs have been cancelled."""

_log = logging.getLogger("groupwright.pipeline")


class Worker:
    """A thread that calls a function at an interval, until it is stopped or the function raises.

    Its Spark jobs are in a scheduler pool of its own name, so that with `spark.scheduler.mode=FAIR` they do
    not wait for the jobs of other threads, and in a job group of their own, so that they can be cancelled.
    """

    def __init__(
        self, spark: SparkSession, name: str, seconds: float | None, work: Callable[[], bool]
    ) -> None:
        """Start the thread; the first call is immediate.

        Args:
            spark: The session.
            name: Name of the thread and of its pool.
            seconds: The interval from start to start; a longer call is followed by the next at once. None
                for a single call.
            work: The function. If it returns False, it had nothing to do, and is called again after a second.
        """
        self._spark = spark
        self._seconds = seconds
        self._work = work
        self._jobs = f"{name}-{uuid4()}"
        self._stopping = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """True until the thread has ended."""
        return self._thread.is_alive()

    def check(self) -> None:
        """Raise the exception that has ended the thread, if any."""
        if self._error is not None:
            raise self._error

    def stop(self, seconds: float) -> bool:
        """Stop after the current call, and wait for it.

        Args:
            seconds: Time for the current call, at least one; then its Spark jobs are cancelled, and it has 5
                more seconds.

        Returns:
            Whether the call was finished in time; otherwise a warning is logged.
        """
        self._stopping.set()
        self._thread.join(max(_IDLE_SECONDS, seconds))  # one that waits needs a moment to end
        if not self._thread.is_alive():
            return True
        deadline = time.monotonic() + _CANCEL_SECONDS
        while self._thread.is_alive() and time.monotonic() < deadline:
            self._spark.sparkContext.cancelJobGroup(self._jobs)  # again: the call may have been between jobs
            self._thread.join(_IDLE_SECONDS / 4)
        _log.warning(
            "%s was not finished within %.0f s, and %s",
            self._thread.name,
            seconds,
            "does not react to its cancellation" if self._thread.is_alive() else "was cancelled",
        )
        return False

    def _run(self) -> None:
        try:
            context = self._spark.sparkContext
            context.setLocalProperty("spark.scheduler.pool", self._thread.name)
            context.setJobGroup(self._jobs, self._thread.name)
            if self._seconds is None:
                self._work()
            else:
                self._repeat(self._seconds)
        except BaseException as error:  # noqa: BLE001 - raised by `check`, in the job's thread
            self._error = error

    def _repeat(self, seconds: float) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            has_worked = self._work()
            now = time.monotonic()
            due = max(due + seconds, now) if has_worked else now + _IDLE_SECONDS
