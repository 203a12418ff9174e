"""Serving by prometheus-client: files, WSGI and ASGI, exemplars, several processes."""

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import (
    CollectorRegistry,
    Histogram,
    make_asgi_app,
    make_wsgi_app,
    write_to_textfile,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from groupwright.consumer import Rebalance
from groupwright.instrumentation import Instrumentation, MembershipSnapshot, instrument
from integration_tests.harness.patience import PATIENCE

SERIES = (
    b"groupwright_rebalances_total"
    b'{client_id="c-1",group="billing",outcome="completed",protocol="range"} 1.0\n'
)


@pytest.fixture
def consumer(new_consumer: Callable[..., Any]) -> Any:
    snapshot = MembershipSnapshot(state="stable", coordinator=1, poll_seconds=1.0, max_poll_interval=300.0)
    return new_consumer(membership_snapshot=snapshot)


@pytest.fixture
def listener(
    registry: CollectorRegistry, consumer: Any, new_rebalance: Callable[..., Rebalance]
) -> Instrumentation:
    handle = instrument(consumer, registry=registry)
    handle.partitions_assigned({"orders": [0, 1, 2]}, 0.1)
    handle.rebalanced(new_rebalance())
    return handle


@pytest.mark.usefixtures("listener")
def test_a_text_file_has_it_all(registry: CollectorRegistry, tmp_path: Path) -> None:
    path = tmp_path / "groupwright.prom"
    write_to_textfile(str(path), registry)

    assert SERIES in path.read_bytes()


@pytest.mark.usefixtures("listener")
def test_wsgi_and_asgi_serve_it(registry: CollectorRegistry) -> None:
    statuses: list[str] = []
    environment = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": ""}
    body = b"".join(make_wsgi_app(registry)(environment, lambda status, _: statuses.append(status)))
    assert statuses == ["200 OK"]
    assert SERIES in body

    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
        await make_asgi_app(registry)(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 200
    assert SERIES in sent[1]["body"]


@pytest.mark.usefixtures("listener")
def test_a_bucket_of_durations_points_to_a_generation(registry: CollectorRegistry) -> None:
    """From a slow rebalance on a dashboard to its record in the log or among the events."""
    text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call] # prometheus-client's gap

    (bucket,) = [line for line in text.splitlines() if "_duration_seconds_bucket" in line and " # {" in line]
    assert bucket.startswith("groupwright_rebalance_duration_seconds_bucket{")
    assert 'le="0.5"' in bucket
    assert ' # {generation="7"} 0.3' in bucket


@pytest.mark.medium
def test_with_several_processes_counters_and_histograms_add_up_and_gauges_are_left_out(
    tmp_path: Path,
) -> None:
    """As under gunicorn: prometheus-client keeps counters in files there, and has no custom collectors."""
    worker = """
import sys
from dataclasses import dataclass
from prometheus_client import CollectorRegistry
from groupwright.core import MembershipSnapshot, Outcome, Phase, Rebalance
from groupwright.instrumentation import instrument

class Consumer:
    group_id, client_id, poll_age = "billing", "c-1", 0.5
    settings, membership_snapshot = {}, MembershipSnapshot()
    def add_listener(self, listener):
        self.listener = listener

consumer = Consumer()
instrument(consumer, CollectorRegistry())
consumer.listener.rebalanced(Rebalance(
    group="billing", client_id="c-1", member_id="c-1-5d0c", generation=1, protocol="range",
    outcome=Outcome.COMPLETED, reason="", duration=0.3, phases={Phase.JOIN: 0.2},
    partitions={"orders": [0]}, ended_at=1.0))
"""
    reader = """
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def run(program: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=environment,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    run(worker)
    run(worker)
    text = run(reader)

    labels = 'client_id="c-1",group="billing"'
    assert f'groupwright_rebalances_total{{{labels},outcome="completed",protocol="range"}} 2.0' in text
    assert f'groupwright_rebalance_duration_seconds_count{{{labels},protocol="range"}} 2.0' in text
    assert "groupwright_partitions_owned" not in text


def test_prometheus_client_neither_records_native_histograms_nor_serves_them() -> None:
    """Once it does, the durations should be native histograms, and the README's section on them changes.

    It has samples of them for OpenMetrics 2.0 alone, which no Prometheus requests: Prometheus takes native
    histograms in protobuf (prometheus/client_python, pull request 1104).
    """
    wanted = (
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.5"
    )

    _, served = choose_encoder(f"{wanted},application/openmetrics-text;version=1.0.0;q=0.4")

    assert served.startswith("application/openmetrics-text")
    assert [name for name in inspect.signature(Histogram).parameters if "native" in name] == []
