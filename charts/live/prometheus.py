"""A real Prometheus on loopback, which scrapes given ports by given rules."""

import http.client
import json
import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import yaml

from groupwright.testing._kafka.ports import HOST, free_port
from integration_tests.harness.waiting import wait_until

PATIENCE_SECONDS = 60.0
INTERVAL_SECONDS = 1
"""Between two scrapes, and between two evaluations."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a result: its labels, and values at times in seconds since the epoch."""

    labels: dict[str, str]
    points: list[tuple[float, float]]


class Prometheus:
    """Runs for as long as the block; scrapes and evaluates every second."""

    def __init__(
        self, program: str, folder: Path, targets: Mapping[str, int], rules: Mapping[str, Any]
    ) -> None:
        """Prepare it.

        Args:
            program: Prometheus' own.
            folder: an empty directory for configuration, data and log.
            targets: ports on loopback by the job's name.
            rules: groups of rules, as a PrometheusRule's ``spec`` has them.
        """
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        scrapes = [
            {
                "job_name": job,
                "static_configs": [{"targets": [f"{HOST}:{port}"], "labels": {"namespace": "shop"}}],
            }
            for job, port in targets.items()
        ]
        interval = f"{INTERVAL_SECONDS}s"
        config = {
            "global": dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), interval),
            "rule_files": ["rules.yaml"],
            "scrape_configs": scrapes,
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        (folder / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))

    def __enter__(self) -> Self:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: it has ended, with what its log says.
            TimeoutError: it does not answer.
        """
        arguments = [
            self._program,
            "--config.file=prometheus.yaml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={HOST}:{self._port}",
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(arguments, cwd=self._folder, stdout=log, stderr=log)
        try:
            wait_until(self._ready, "Prometheus answers")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        if self._process is not None:
            end_process(self._process)

    def query(self, expr: str, at: float | None = None) -> list[Series]:
        """Return what an expression says at a time, by default now."""
        time_of_it = {} if at is None else {"time": at}
        result = self._get("/api/v1/query", query=expr, **time_of_it)["result"]
        return [Series(each["metric"], [_point(each["value"])]) for each in result]

    def query_range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """Return what an expression says from `start` to `end`."""
        result = self._get("/api/v1/query_range", query=expr, start=start, end=end, step=step)["result"]
        return _series(result)

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {each.labels["alertname"] for each in self.query('ALERTS{alertstate="firing"}')}

    def evaluations(self, seconds: float) -> list[Series]:
        """Return the alerts that fired in the last seconds, with the times of the evaluations that saw it."""
        selector = f'ALERTS{{alertstate="firing"}}[{math.ceil(seconds * 1000)}ms]'
        return _series(self._get("/api/v1/query", query=selector)["result"])

    def evaluated(self) -> float:
        """Return when all rules had been evaluated, in seconds since the epoch; 0 before that."""
        groups = self._get("/api/v1/rules")["groups"]
        times = (datetime.fromisoformat(group["lastEvaluation"]) for group in groups)
        return min(0.0 if each.year == 1 else each.timestamp() for each in times)

    def rule_errors(self) -> list[str]:
        """Return what went wrong in evaluating rules."""
        groups = self._get("/api/v1/rules")["groups"]
        return [rule["lastError"] for group in groups for rule in group["rules"] if rule.get("lastError")]

    def _ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"Prometheus has ended:\n{(self._folder / 'log').read_text()[-2000:]}")
        try:
            return self._request("/-/ready")[0] == http.client.OK
        except OSError:
            return False

    def _get(self, path: str, **parameters: Any) -> Any:
        status, body = self._request(f"{path}?{urlencode(parameters)}")
        answer = json.loads(body)
        if status != http.client.OK:
            raise ValueError(f"{parameters}: {answer.get('error', status)}")
        return answer["data"]

    def _request(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def end_process(process: subprocess.Popen[bytes], patience: float = PATIENCE_SECONDS) -> None:
    """Terminate a process, and kill it if it has not ended after so many seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _series(matrix: list[dict[str, Any]]) -> list[Series]:
    return [Series(each["metric"], [_point(value) for value in each["values"]]) for each in matrix]


def _point(value: tuple[float, str]) -> tuple[float, float]:
    return float(value[0]), float(value[1])
