"""Summary of the tables, on the terminal."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from rich.console import Console
from rich.table import Table

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


def show(console: Console, tables: Mapping[str, DataFrame]) -> int:
    """Print a line for each group, and return the number of rebalances."""
    shown = Table(title="Summary of the tables", title_justify="left", box=None, pad_edge=False)
    for name, side in _COLUMNS.items():
        shown.add_column(name, justify="right" if side == "right" else "left")
    total = 0
    for row in _groups(tables).collect():
        total += row.rebalances
        shown.add_row(
            row.group_id,
            f"{row.rebalances:,}",
            ", ".join(sorted(row.triggers)),
            f"{row.moved or 0:,}",
            f"{row.fewest_moves or 0:,}",
            f"{row.seconds or 0:.1f}",
            ", ".join(sorted(row.flapping or ())) or "-",
            f"{row.lag or 0:,}",
        )
    console.print()
    console.print(shown)
    return total


def _groups(tables: Mapping[str, DataFrame]) -> DataFrame:
    rebalances = (
        tables["rebalances"]
        .groupBy("group_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.collect_set("trigger").alias("triggers"),
            F.sum("moved").alias("moved"),
            F.sum("fewest_moves").alias("fewest_moves"),
            F.sum("duration_seconds").alias("seconds"),
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
