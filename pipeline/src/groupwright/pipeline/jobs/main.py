"""What `spark-submit` runs: `main.py stream|batch [--config FILE] [KEY=VALUE]...`.

Needs no terminal: what it does goes to the log, and an error to standard error with exit status 1.
"""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from groupwright.assignors import GroupwrightError
from groupwright.pipeline.jobs.batch import run_batch
from groupwright.pipeline.jobs.session import cluster_session
from groupwright.pipeline.jobs.settings import settings_from
from groupwright.pipeline.jobs.stream import run_stream

_log = logging.getLogger("groupwright.pipeline")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job to its end, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("stream", "batch"))
    parser.add_argument("--config", type=Path, help="a TOML file of settings")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        settings = settings_from(options.settings, options.config)
        _log.info("%s with %r", options.job, settings)
        spark = cluster_session(f"groupwright {options.job}")
        stop = stop_on_signals()  # Spark has put its own in place
        try:
            if options.job == "stream":
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
    """Return an event that SIGTERM and SIGINT set from now on."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


if __name__ == "__main__":
    sys.exit(main())
