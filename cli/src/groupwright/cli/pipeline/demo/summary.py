"""Summary of the tables, on the terminal."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from rich.console import Console
from rich.table import Table

from groupwright.pipeline.report import rebalance_events

_COLUMNS = {
    "group": "left",
    "rebalances": "right",
    "by": "left",
    "moved": "right",
    "needed": "right",
    "seconds": "right",
    "flaps": "left",
    "lag at most": "right",
}

_TOTALS = {"moved": ",", "min_moves": ",", "duration_seconds": ".1f"}
"""Columns of which the table shows the total, with their format."""


def show(console: Console, tables: Mapping[str, DataFrame]) -> int:
    """Print a line for each group, and return the number of rebalances, without handovers."""
    shown = Table(title="Summary of the tables", title_justify="left", box=None, pad_edge=False)
    for name, side in _COLUMNS.items():
        shown.add_column(name, justify="right" if side == "right" else "left")
    total = 0
    for row in _groups(tables).collect():
        total += row.rebalances
        shown.add_row(
            row.group_id,
            f"{row.rebalances:,}",
            ", ".join(sorted(row.causes)),
            *(_total(row, name, form) for name, form in _TOTALS.items()),
            ", ".join(sorted(row.flapping or ())) or "-",
            "unknown" if row.lag is None else f"{row.lag:,}",
        )
    console.print()
    console.print(shown)
    return total


def _total(row: Row, name: str, form: str) -> str:
    """Return the total of a column; at least that if it is unknown for some rebalances."""
    value = row[name]
    if value is None:
        return "unknown"
    return f"{'' if row[f'known_{name}'] == row.rebalances else '≥ '}{value:{form}}"


def _groups(tables: Mapping[str, DataFrame]) -> DataFrame:
    rebalances = (
        rebalance_events(tables["rebalances"])
        .groupBy("group_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.collect_set("cause").alias("causes"),
            *(F.sum(name).alias(name) for name in _TOTALS),
            *(F.count(name).alias(f"known_{name}") for name in _TOTALS),
        )
    )
    flapping = (
        tables["churn"]
        .where("flapping and member_id is not null")
        .groupBy("group_id")
        .agg(F.collect_set("client_id").alias("flapping"))
    )
    lag = tables["lag"].groupBy("group_id").agg(F.max("lag_messages").alias("lag"))
    return (
        rebalances.join(flapping, "group_id", "left")
        .join(lag, "group_id", "left")
        .orderBy(F.desc("rebalances"))
    )
