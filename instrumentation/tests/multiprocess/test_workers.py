"""Metrics of workers in processes of their own, under gunicorn and uvicorn, at one scrape of one worker."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from integration_tests.harness.patience import PATIENCE

Scrape = Callable[[], dict[tuple[str, str], float]]
"""Values by metric and client id."""

GAUGES = {
    "partitions_owned": 1,
    "lag": 10,
    "lag_max": 10,
    "last_poll_age_seconds": 0.25,
    "membership_state": 1,
    "generation": 4,
    "consumer_info": 1,
}

SERVERS = {
    "gunicorn": ["-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:{port}", "worker_app:wsgi"],
    "uvicorn": ["-m", "uvicorn", "--workers", "2", "--port", "{port}", "worker_app:asgi"],
}


@pytest.fixture(params=SERVERS)
def scrape(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scrape]:
    """Run two workers; scrape whichever answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(__file__).parent
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(folder)}
    command = [sys.executable, *(part.format(port=port) for part in SERVERS[request.param])]
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)

    def read() -> dict[tuple[str, str], float]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as response:
                text = response.read().decode()
        except OSError:  # a worker that is killed may have accepted the connection
            assert server.poll() is None, (tmp_path / "server.log").read_text()
            return {}
        return {
            (sample.name.removeprefix("groupwright_"), sample.labels.get("client_id", "")): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.labels.get("state", "stable") == "stable"
            and sample.labels.get("outcome", "completed") == "completed"
            and sample.labels.get("protocol", "range") == "range"
        }

    try:
        yield read
    finally:
        server.terminate()
        try:
            server.wait(PATIENCE)
        finally:
            server.kill()


def await_workers(scrape: Scrape, number: int, gone: str = "") -> dict[tuple[str, str], float]:
    """Return the first scrape with all gauges of so many workers, and none of the one that is gone.

    A worker's gauges are in several files, which are not replaced at the same moment.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        values = scrape()
        shown = [{client for name, client in values if name == gauge} for gauge in GAUGES]
        if len(set.intersection(*shown)) == number and gone not in set.union(*shown):
            return values
        assert time.monotonic() < deadline, values
        time.sleep(0.05)


@pytest.mark.medium
def test_one_scrape_has_the_gauges_of_all_workers_and_none_of_a_worker_that_died(scrape: Scrape) -> None:
    values = await_workers(scrape, 2)

    first, second = sorted({client for name, client in values if name == "lag"})
    counters = {"rebalances_total": 1, "rebalance_duration_seconds_sum": 0.5, "max_poll_exceeded_total": 2}
    for client in (first, second):
        assert {name: values.get((name, client)) for name in GAUGES | counters} == GAUGES | counters
    assert ("build_info", "") in values

    os.kill(int(first.removeprefix("worker-")), signal.SIGKILL)

    values = await_workers(scrape, 2, gone=first)
    assert {name: values.get((name, second)) for name in GAUGES} == GAUGES
    assert {name: values.get((name, first)) for name in counters} == counters, "counters never decrease"
