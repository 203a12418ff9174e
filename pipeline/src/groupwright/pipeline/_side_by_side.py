"""Spark queries that do not need each other, at the same time."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

_AT_ONCE = 4
_T = TypeVar("_T")


class Start(Protocol):
    """Calls a function in another thread."""

    def __call__(self, call: Callable[[], _T], /) -> Future[_T]:
        """Return the result to come."""
        ...


@contextmanager
def side_by_side(spark: SparkSession) -> Iterator[Start]:
    """Yield a function that calls others in threads, at most 4 at a time. At the end all calls have ended.

    Most of a small query's time is the driver's, which plans it in one thread, and while the last tasks of a
    query run, the cluster's other cores are idle. The threads have the caller's scheduler pool and job group.

    Raises:
        Exception: The error of the first call that failed, at the end.
    """
    inherits = inheritable_thread_target(spark)
    calls: list[Future[object]] = []
    with ThreadPoolExecutor(_AT_ONCE, "groupwright-query") as pool:

        def start(call: Callable[[], _T], /) -> Future[_T]:
            future = pool.submit(inherits(call))
            calls.append(future)
            return future

        yield start
    for each in calls:
        each.result()
