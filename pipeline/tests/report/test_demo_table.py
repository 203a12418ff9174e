"""The demo's table of groups: handovers belong to their rebalances, and unknown is not 0."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from rich.console import Console

from groupwright.cli.pipeline.demo.summary import show

START = datetime(2026, 11, 2, 6, tzinfo=UTC)


def rebalance(group: str, generation: int, cause: str, **known: Any) -> dict[str, Any]:
    completed = START + timedelta(seconds=generation)
    return {"group_id": group, "generation": generation, "cause": cause, "completed": completed, **known}


def test_totals_count_no_handover_and_say_what_is_unknown(frames: Any) -> None:
    timed = {"started": START, "duration_seconds": 2.0, "moved": 3, "min_moves": 3}
    tables = frames(
        {
            "rebalances": [
                rebalance("billing", 1, "first", **timed),
                rebalance("billing", 2, "join", **timed),
                rebalance("billing", 3, "handover", **timed),
                rebalance("billing", 4, "leave", moved=1, min_moves=1),
                rebalance("shipping", 1, "first"),
            ],
            "churn": [],
            "lag": [{"group_id": "billing", "lag_messages": 0}],
        }
    )
    console = Console(file=StringIO(), width=120)
    assert show(console, tables) == 4
    lines = [line.split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    (billing,) = [line for line in lines if line[:1] == ["billing"]]
    (shipping,) = [line for line in lines if line[:1] == ["shipping"]]
    assert billing == ["billing", "3", "first,", "join,", "leave", "10", "10", "≥", "4.0", "-", "0"]
    assert shipping == ["shipping", "1", "first", "unknown", "unknown", "unknown", "-", "unknown"]
