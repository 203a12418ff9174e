"""What keeps a job from going on."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from groupwright.assignors import GroupwrightError

_LONGEST = 400


class PipelineError(GroupwrightError):
    """A job cannot start or go on; the message says why, and what to do."""


@contextmanager
def in_a_line(what: str) -> Iterator[None]:
    """Raise what Spark raises, which may go on for pages, as an error of ours; Spark's own is its cause.

    Raises:
        PipelineError: Spark has raised.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"{what} failed: {summary(error)}") from error


def summary(error: BaseException) -> str:
    """Return the lines of an error that say something: not where it went through."""
    lines = [line.strip() for line in str(error).partition("JVM stacktrace")[0].splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if not line.startswith(("at ", "File ", "Traceback", "^", "~", "...", "An exception"))
    ]
    chosen = [*telling[:1], *telling[1:][-1:]]
    return " ... ".join(chosen)[:_LONGEST]
