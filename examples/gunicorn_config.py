"""Settings of gunicorn for gunicorn_service.py: where metrics are, and when consumers start and stop."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

metrics_folder = tempfile.mkdtemp(prefix="prometheus-")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_folder  # before prometheus_client is imported

wsgi_app = "gunicorn_service:app"
pythonpath = str(Path(__file__).parent)
bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = 2
worker_class = "gthread"
threads = 4
graceful_timeout = 30


def post_worker_init(worker: Any) -> None:
    """Start the consumer, in the worker's process."""
    worker.wsgi.start()


def worker_exit(_server: Any, worker: Any) -> None:
    """Stop the consumer; a worker that could not be started has none."""
    if worker.wsgi is not None:
        worker.wsgi.stop()


def on_exit(_server: Any) -> None:
    """Remove the metrics' files."""
    shutil.rmtree(metrics_folder, ignore_errors=True)
