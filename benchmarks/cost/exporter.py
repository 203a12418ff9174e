"""The exporter as a process: its processor time, its memory, its refreshes and its scrapes."""

import gzip
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles

import psutil  # type: ignore[import-untyped]

_PATIENCE_SECONDS = 300.0
_SCRAPE_SECONDS = 0.2
"""Between two scrapes, so that many fall into refreshes. Prometheus scrapes every 15 to 60 seconds."""


@dataclass(frozen=True)
class Run:
    """Results of one run.

    Attributes:
        series: Series on the page.
        page_bytes: Size of the page.
        compressed_bytes: Its size as Prometheus fetches it.
        first_refresh_seconds: From the command's start to the first page.
        refresh_seconds: Median duration of a refresh after the first.
        cpu_seconds: Processor time for each refresh, with the scrapes of its interval.
        memory_bytes: Resident memory at the end.
        scrape_ms: Median of all scrapes.
        scrape_p99_ms: Their 99th percentile.
        scrape_max_ms: The slowest.
        scrapes: Their number.
        refreshes: Number of refreshes while it was measured.
    """

    name: str
    series: int
    page_bytes: int
    compressed_bytes: int
    first_refresh_seconds: float
    refresh_seconds: float
    cpu_seconds: float
    memory_bytes: int
    scrape_ms: float
    scrape_p99_ms: float
    scrape_max_ms: float
    scrapes: int
    refreshes: int


def measure(name: str, servers: str, options: Sequence[str], interval: float, refreshes: int) -> Run:
    """Run the exporter until it has refreshed so many times after the first.

    Args:
        name: What to call the run.
        servers: The brokers.
        options: Options of the command.
        interval: Seconds between refreshes.
        refreshes: Number of refreshes to measure.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "groupwright.cli", "exporter", "--port=0", f"--interval={interval}"]
        with log.open("wb") as output:
            began = time.monotonic()
            process = subprocess.Popen(  # noqa: S603 - this project's own program
                [*command, f"--bootstrap-servers={servers}", "--timeout=60", *options],
                stdout=output,
                stderr=output,
            )
        try:
            return _measure(name, process, log, began, refreshes)
        finally:
            process.terminate()
            process.wait(_PATIENCE_SECONDS)


def _measure(name: str, process: "subprocess.Popen[bytes]", log: Path, began: float, refreshes: int) -> Run:
    port = _port(process, log)
    while _scrape(port, "/ready")[0] != b"ready\n":
        if time.monotonic() - began > _PATIENCE_SECONDS:
            raise TimeoutError(f"no page in {_PATIENCE_SECONDS} s: {log.read_text()}")
        time.sleep(0.1)
    first = time.monotonic() - began
    observed = psutil.Process(process.pid)
    page = _scrape(port, "/metrics")[0].decode()
    start, cpu = _value(page, 'refreshes_total{outcome="succeeded"}'), observed.cpu_times()
    durations: dict[int, float] = {}
    times: list[float] = []
    done = 0
    changed = time.monotonic()
    while done < refreshes:
        if time.monotonic() - changed > _PATIENCE_SECONDS:
            raise TimeoutError(f"no refresh in {_PATIENCE_SECONDS} s: {log.read_text()}")
        time.sleep(_SCRAPE_SECONDS)
        body, seconds = _scrape(port, "/metrics")
        times.append(seconds)
        own = body[body.rindex(b"# HELP groupwright_exporter_build_info") :].decode()
        before, done = done, round(_value(own, 'refreshes_total{outcome="succeeded"}') - start)
        if done > before:
            changed = time.monotonic()
            durations[done] = _value(own, "last_refresh_duration_seconds")
        if _value(own, 'refreshes_total{outcome="failed"}'):
            raise RuntimeError(f"a refresh has failed: {log.read_text()}")
    used = observed.cpu_times()
    page = _scrape(port, "/metrics")[0].decode()
    seconds_used = used.user + used.system - cpu.user - cpu.system
    return Run(
        name=name,
        series=round(_value(page, "series")),
        page_bytes=len(page),
        compressed_bytes=len(gzip.compress(page.encode(), 1)),
        first_refresh_seconds=first,
        refresh_seconds=median(durations.values()),
        cpu_seconds=seconds_used / refreshes,
        memory_bytes=observed.memory_info().rss,
        scrape_ms=median(times) * 1000,
        scrape_p99_ms=quantiles(times, n=100)[98] * 1000,
        scrape_max_ms=max(times) * 1000,
        scrapes=len(times),
        refreshes=refreshes,
    )


def _port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    while (found := re.search(r"http://127.0.0.1:(\d+)/metrics", log.read_text())) is None:
        if process.poll() is not None:
            raise RuntimeError(f"the exporter has ended: {log.read_text()}")
        time.sleep(0.05)
    return int(found[1])


def _scrape(port: int, path: str) -> tuple[bytes, float]:
    """Return a page, and the seconds until it has come, as Prometheus fetches it: compressed."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
    began = time.perf_counter()
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    response = connection.getresponse()
    body = response.read()
    seconds = time.perf_counter() - began
    connection.close()
    return (gzip.decompress(body) if response.headers.get("Content-Encoding") else body), seconds


def _value(page: str, name: str) -> float:
    found = re.search(rf"^groupwright_exporter_{re.escape(name)} (\S+)$", page, re.MULTILINE)
    if found is None:
        raise ValueError(f"the page has no groupwright_exporter_{name}")
    return float(found[1])
