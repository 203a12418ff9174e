"""The pipeline's streaming job for the scene: the real one, or its status without Spark."""

import contextlib
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from charts.live.prometheus import PATIENCE_SECONDS, end_process, wait_until

from groupwright.pipeline._jobs.data_loss import DataLoss, Kind
from groupwright.pipeline._jobs.endpoints import serving
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.status import TASKS, StreamStatus
from groupwright.testing._kafka.ports import HOST, free_port

Stream: TypeAlias = Callable[[str], AbstractContextManager[int]]
"""Runs a stream on the bootstrap servers for a block, and returns the port of its metrics."""


@contextlib.contextmanager
def real_stream(servers: str) -> Iterator[int]:
    """Run `groupwright pipeline stream`, which takes a processor for half a minute to start."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as cleanup:
        log = cleanup.enter_context((Path(folder) / "log").open("w", encoding="utf-8"))
        job = subprocess.Popen(
            [
                *(sys.executable, "-m", "groupwright.cli", "pipeline", "stream"),
                *(f"bootstrap_servers={servers}", f"tables={folder}/tables", "events_topic="),
                *(f"metrics_address={HOST}:{port}", "trigger_seconds=2", "stop_seconds=5"),
                *("end_offsets_seconds=2", "derive_seconds=15", "spark.sql.shuffle.partitions=2"),
            ],
            stdout=log,
            stderr=log,
        )
        try:
            wait_until(lambda: _is_ready(port, job), "the stream is ready", PATIENCE_SECONDS * 5)
            yield port
        finally:
            end_process(job, PATIENCE_SECONDS * 3)  # its JVM ends with it


def _is_ready(port: int, job: "subprocess.Popen[bytes]") -> bool:
    if job.poll() is not None:
        raise RuntimeError(f"the stream has ended with status {job.returncode}")
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/ready", timeout=PATIENCE_SECONDS) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def status_alone(_servers: str) -> Iterator[int]:
    """Serve the status of a stream that adds a batch every second, and has found a loss and odd records."""
    status = StreamStatus("parquet", 1800, lambda: True)
    over = threading.Event()

    def follow() -> None:
        end = 0
        while not over.wait(1.0):
            end += 40
            status.batch_added(BatchSummary(records=Counter(offset_commit=39, malformed=1), errors=1), 0.4)
            for task in TASKS[1:]:
                status.task_ended(task, 0.2)
            status.logs_observed({"events": {0: end + 10}}, {"events": {0: end}}, 3)

    status.losses_accepted([DataLoss("events", Kind.EXPIRED, "records expired", "go on", (0,))])
    with serving(f"{HOST}:0", status) as port:
        thread = threading.Thread(target=follow, name="stream-status", daemon=True)
        thread.start()
        try:
            assert port is not None
            yield port
        finally:
            over.set()
            thread.join()
