"""The status of the pipeline's streaming job for the scene, without Spark."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from groupwright.pipeline._jobs.data_loss import DataLoss, Kind
from groupwright.pipeline._jobs.endpoints import serving
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.metrics import TASKS
from groupwright.pipeline._jobs.status import StreamStatus
from groupwright.testing._kafka.ports import HOST


@contextlib.contextmanager
def stream_status() -> Iterator[int]:
    """Serve the status of a stream that adds a batch every second, and has found a loss and odd records.

    Yields:
        The port of its metrics.
    """
    status = StreamStatus("delta", 1800, lambda: True)
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
