"""A month of three groups, as rows of the tables."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline import schemas
from groupwright.pipeline.what_if import WHAT_IF

START = datetime(2026, 11, 2, 6, tzinfo=UTC)
Tables = Mapping[str, DataFrame]


@pytest.fixture(scope="session")
def frames(
    spark: SparkSession,
) -> Callable[[Mapping[str, Iterable[Mapping[str, Any]]]], dict[str, DataFrame]]:
    """Make tables of rows; columns that a row does not have are null."""
    known = {**schemas.TABLES, WHAT_IF.name: WHAT_IF}

    def make(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, DataFrame]:
        return {
            name: spark.createDataFrame(
                pa.Table.from_pylist(list(of_table), to_arrow_schema(known[name].schema)), known[name].schema
            )
            for name, of_table in rows.items()
        }

    return make


@pytest.fixture(scope="session")
def month() -> dict[str, list[dict[str, Any]]]:
    """Rows of a busy group, a calm one and one of a single member."""
    dice = random.Random(7)  # noqa: S311 - rows of a test
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*_READ, "what_if")}
    for group, times, clients in (("payments.settlement", 34, 9), ("search-indexer", 12, 5), ("audit", 2, 2)):
        _add_group(rows, dice, group, times, clients)
        _add_lag(rows, dice, group, 40_000 * clients * times)
    moved_actual = sum(row["moved"] for row in rows["rebalances"])
    for assignor, stopped, seconds, moved, fewest, rounds in (
        ("actual", 1_900, 6_100.0, moved_actual, 102, 48),
        ("range", 1_900, 6_100.0, 1_084, 391, 48),
        ("sticky", 1_900, 6_100.0, 398, 398, 48),
        ("cooperative-sticky", 520, 1_300.0, 398, 398, 79),
    ):
        rows["what_if"].append(
            {
                "group_id": "payments.settlement",
                "assignor": assignor,
                "rebalances": 48,
                "stopped": stopped,
                "stopped_actual": 1_900,
                "partition_seconds": seconds,
                "partition_seconds_actual": 6_100.0,
                "moved": moved,
                "min_moves": fewest,
                "moved_actual": moved_actual,
                "imbalance_mean": 0.4,
                "imbalance_max": 1,
                "topic_spread_mean": 0.5,
                "rounds": rounds,
                "errors": 0,
            }
        )
    rows["what_if"].append(
        {
            **rows["what_if"][-1],
            "assignor": "our_rules:Pinning",
            "moved": 120,
            "errors": 3,
            "error": "RuntimeError: no pins for member consumer-3",
        }
    )
    return rows


_READ = ("rebalances", "group_generations", "group_members", "client_events", "lag", "churn")


def _add_group(
    rows: dict[str, list[dict[str, Any]]], dice: random.Random, group: str, times: int, clients: int
) -> None:
    members = [f"{group}-{n}-{dice.getrandbits(32):08x}" for n in range(clients)]
    time = START
    by_hour: dict[datetime, int] = {}
    for generation in range(1, times + 1):
        time += timedelta(minutes=dice.choice([3, 4, 40, 300, 900, 1500]))
        joined, left = [], []
        if len(members) < clients or generation == 1:
            cause = "join"
            joined = [f"{group}-{generation % clients}-{dice.getrandbits(32):08x}"]
            members += joined
        else:
            cause = dice.choice(("leave", "expiry"))
            left = [members.pop(dice.randrange(len(members)))]
        duration = dice.choice([0.4, 1.2, 2.6, 4.4]) + dice.random()
        rows["rebalances"].append(
            {
                "group_id": group,
                "group_type": "classic",
                "generation": generation,
                "completed": time + timedelta(seconds=duration),
                "started": time,
                "duration_seconds": duration,
                "cause": cause,
                "moved": dice.randrange(4, 40),
                "min_moves": dice.randrange(5),
                "messages_reprocessed": dice.randrange(900),
                "members_after": len(members),
                "joined": joined,
                "left": left,
            }
        )
        if cause == "expiry":
            rows["client_events"].append(
                {
                    "id": f"{group}-{generation}-lost",
                    "group_id": group,
                    "client_id": left[0].rsplit("-", 1)[0],
                    "member_id": left[0],
                    "generation": generation + 1,
                    "outcome": "lost",
                    "reason": "the application polls again after max.poll.interval.ms",
                    "started_at": time + timedelta(seconds=12),
                    "ended_at": time + timedelta(seconds=13),
                    "phases": {},
                }
            )
        share = 48 // len(members)
        for number, member in enumerate(members):
            owned = share + (number < 48 % len(members)) + (dice.choice([0, 0, 0, 3]) if number == 0 else 0)
            name = member.rsplit("-", 1)[0]
            rows["group_members"].append(
                {
                    "group_id": group,
                    "generation": generation,
                    "member_id": member,
                    "client_id": name,
                    "session_timeout_ms": 45_000,
                    "rebalance_timeout_ms": 300_000,
                    "assigned": [{"topic": "orders", "partitions": list(range(owned))}],
                    "log_partition": 1,
                    "log_offset": generation,
                    "log_time": time,
                }
            )
            late = dice.random() * 0.3
            revoke, sync, assign = dice.random() * 0.3, dice.random() * 0.2, dice.random() * 0.25
            join = max(0.05, duration - late - revoke - sync - assign)
            rows["client_events"].append(
                {
                    "id": f"{group}-{generation}-{number}",
                    "group_id": group,
                    "client_id": name,
                    "member_id": member,
                    "generation": generation,
                    "outcome": "completed",
                    "started_at": time + timedelta(seconds=late),
                    "ended_at": time + timedelta(seconds=duration),
                    "phases": {"revoke": revoke, "join": join, "sync": sync, "assign": assign},
                }
            )
        hour = time.replace(minute=0)
        by_hour[hour] = by_hour.get(hour, 0) + 1
    for hour, count in by_hour.items():
        rows["churn"].append(
            {
                "hour": hour,
                "group_id": group,
                "rebalances": count,
                "moved": 9 * count,
                "storm": count > 2,
                "flapping": False,
            }
        )
    if clients > 5:
        rows["churn"].append(
            {
                "hour": START,
                "group_id": group,
                "member_id": members[0],
                "client_id": f"{group}-4",
                "rebalances": 8,
                "flapping": True,
            }
        )


def _add_lag(rows: dict[str, list[dict[str, Any]]], dice: random.Random, group: str, most: int) -> None:
    behind = 0.0
    for number in range(120):
        behind = max(0.0, behind * 0.82 + (dice.random() < 0.07) * most * dice.random())
        for partition in range(2):
            rows["lag"].append(
                {
                    "group_id": group,
                    "topic": "orders",
                    "partition": partition,
                    "time": START + timedelta(hours=4 * number),
                    "lag_messages": int(behind / 2),
                    "lag_seconds": behind / 900,
                }
            )


@pytest.fixture(scope="session")
def sections() -> Sequence[str]:
    """The ids of the page's sections."""
    return ("groups", "what-if", "lag", "churn")
