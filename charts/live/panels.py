"""The panels as they are committed, asked of a Prometheus as Grafana would ask."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from charts.dashboards.boards import path
from charts.dashboards.model import Board
from charts.live.prometheus import Prometheus, Series

RATE_INTERVAL = "5s"
"""Four scrapes and more, as Grafana would choose."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a dashboard shows, in seconds since the epoch."""

    start: float
    end: float

    @property
    def step(self) -> float:
        """Seconds between two points."""
        return max(1.0, (self.end - self.start) / 240)


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one query of a panel."""

    target: dict[str, Any]
    series: list[Series]


def panels(board: Board) -> Iterator[dict[str, Any]]:
    """Yield a dashboard's panels, and its rows, as they are committed."""
    yield from json.loads(path(board).read_text(encoding="utf-8"))["panels"]


def ask(
    prometheus: Prometheus, panel: Mapping[str, Any], window: Window, variables: Mapping[str, str]
) -> list[Answer]:
    """Return the answers to all queries of a panel."""
    answers = []
    for target in panel["targets"]:
        expr = _with(target["expr"], window, variables)
        if target.get("instant"):
            series = prometheus.query(expr, window.end)
        else:
            series = prometheus.query_range(expr, window.start, window.end, window.step)
        answers.append(Answer(target, series))
    return answers


def _with(expr: str, window: Window, variables: Mapping[str, str]) -> str:
    expr = expr.replace("$__rate_interval", RATE_INTERVAL)
    expr = expr.replace("$__range", f"{int(window.end - window.start)}s")
    for name, value in variables.items():
        expr = expr.replace(f"${name}", value)
    return expr
