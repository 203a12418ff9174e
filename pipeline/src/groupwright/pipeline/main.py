"""Entry point for `spark-submit`: `main.py stream|batch [--config FILE] [KEY=VALUE]...`.

Progress and errors are logged to standard error. The exit status is 1 after an error.
"""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from groupwright.assignors import GroupwrightError
from groupwright.pipeline._jobs.batch import run_batch
from groupwright.pipeline._jobs.session import cluster_session
from groupwright.pipeline._jobs.settings import settings_from
from groupwright.pipeline._jobs.stream import run_stream

_log = logging.getLogger("groupwright.pipeline")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("stream", "batch"))
    parser.add_argument("--config", type=Path, help="a TOML file of settings")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args(arguments)  # settings may follow `--config`
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        settings = settings_from(options.settings, options.config)
        _log.info("%s with %r", options.job, settings)
        spark = cluster_session(f"groupwright {options.job}", settings.format)
        try:
            if options.job == "stream":
                stop = stop_on_signals()  # after Spark has installed its own handlers
                stop_on_signals_to_jvm(spark, stop)
                run_stream(spark, settings, stop)
            else:
                _log.info("%d records added", run_batch(spark, settings))
        finally:
            spark.stop()
    except GroupwrightError as error:
        _log.error("%s", error)
        return 1
    return 0


def stop_on_signals() -> Event:
    """Install handlers for SIGTERM and SIGINT, and return the event that they set."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def stop_on_signals_to_jvm(spark: SparkSession, stop: Event) -> None:
    """Set the event also for SIGTERM and SIGINT sent to the JVM, which is the main process of `spark-submit`.

    Otherwise the JVM would exit at once, in the middle of a batch.
    """
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no other way to its JVM
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    signals = gateway.jvm.sun.misc.Signal
    for name in ("TERM", "INT"):
        signals.handle(signals(name), _JvmSignalHandler(stop))


class _JvmSignalHandler:
    """A `sun.misc.SignalHandler` that the JVM calls in this process."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def handle(self, _signal: Any) -> None:
        self._stop.set()

    class Java:
        implements = ("sun.misc.SignalHandler",)


if __name__ == "__main__":
    sys.exit(main())
