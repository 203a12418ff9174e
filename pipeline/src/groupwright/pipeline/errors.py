"""Exceptions of the pipeline, and one-line summaries of Spark's exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from groupwright.assignors import GroupwrightError

_MAX_LENGTH = 400


class PipelineError(GroupwrightError):
    """A job cannot start or continue. The message names the reason and the remedy."""


class SettingsError(PipelineError):
    """A setting, an option or a file of settings cannot be used."""


class UnreachableError(PipelineError):
    """Kafka does not respond."""


class TablesError(GroupwrightError):
    """Tables cannot be opened or written. The message names the table and the remedy."""


@contextmanager
def spark_errors(subject: str) -> Iterator[None]:
    """Convert Spark's exceptions, which can run to pages, to a `PipelineError` of one line.

    Args:
        subject: Subject of the message, such as ``the batch``.

    Raises:
        PipelineError: Spark raised; its exception is the cause.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"{subject} failed: {summarize_error(error)}") from error


def summarize_error(error: BaseException) -> str:
    """Return the first and last informative line of an exception's message, without stack frames."""
    lines = [line.strip() for line in str(error).partition("JVM stacktrace")[0].splitlines() if line.strip()]
    informative = [
        line
        for line in lines
        if not line.startswith(("at ", "File ", "Traceback", "^", "~", "...", "An exception"))
    ]
    chosen = [*informative[:1], *informative[1:][-1:]]
    return " ... ".join(chosen)[:_MAX_LENGTH]
