"""Results of a what-if study, in sentences."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._what_if.replay import ACTUAL

_COLUMNS = (
    "rebalances",
    "partition_seconds",
    "partition_seconds_actual",
    "stopped",
    "stopped_actual",
    "moved",
    "moved_actual",
    "errors",
)
_COST = ("partition_seconds", "stopped")
"""Columns that are null if they are unknown for one of the groups."""


def findings(what_if: DataFrame, *, span: str = "the history's") -> list[str]:
    """Return one sentence per assignor, the one that costs least first.

    Example: "with cooperative-sticky this month's 412 rebalances would have stopped 9,300 partitions for
    18,600 partition-seconds instead of 81,000 for 243,000, and moved 9,300 instead of 81,000".

    Args:
        what_if: The table `what_if`, of any groups.
        span: Text before the number of rebalances, such as `this month's`.
    """
    rows = (
        what_if.where(F.col("assignor") != ACTUAL)
        .groupBy("assignor")
        .agg(*(total(name) for name in _COLUMNS))
        .collect()
    )
    results = [(row["assignor"], {name: row[name] for name in _COLUMNS}) for row in rows]
    results.sort(key=lambda one: (bool(one[1]["errors"]), *cost(one[1]), one[0]))
    return [sentence(assignor, span, numbers) for assignor, numbers in results]


def total(name: str) -> Column:
    """Return the sum of a column over groups; null if the cost of one of them is unknown."""
    is_cost = name.removesuffix("_actual") in _COST
    sum_ = F.sum(name)
    return (F.when(F.count(name) == F.count("*"), sum_) if is_cost else sum_).alias(name)


def cost(numbers: Mapping[str, float | None]) -> tuple[float, float, float]:
    """Return the key by which results are ordered: partition-seconds, stopped, then moved partitions."""
    unknown = float("inf")
    seconds, stopped = numbers["partition_seconds"], numbers["stopped"]
    return (
        unknown if seconds is None else seconds,
        unknown if stopped is None else stopped,
        numbers["moved"] or 0,
    )


def sentence(assignor: str, span: str, numbers: Mapping[str, float | None]) -> str:
    """Return the sentence for one assignor.

    Args:
        assignor: Its name.
        span: Text before the number of rebalances.
        numbers: Totals by column of the table `what_if`.
    """
    rebalances, errors = numbers["rebalances"] or 0, numbers["errors"] or 0
    if errors:
        return f"{assignor} has no result for {errors:,} of {span} {rebalances:,} rebalances"
    count = "1 rebalance" if rebalances == 1 else f"{rebalances:,} rebalances"
    moved, moved_actual = numbers["moved"] or 0, numbers["moved_actual"] or 0
    start = f"with {assignor} {span} {count} would have"
    if numbers["stopped"] is None:
        return f"{start} moved {_partitions(moved)} instead of {moved_actual:,}"
    stopped = f"{start} stopped {_partitions(numbers['stopped'])}{_for(numbers['partition_seconds'])}"
    if numbers["stopped_actual"] is not None:
        actual = _for(numbers["partition_seconds_actual"]).removesuffix(" partition-seconds")
        stopped += f" instead of {numbers['stopped_actual']:,}{actual}"
    return f"{stopped}, and moved {moved:,} instead of {moved_actual:,}"


def _partitions(number: float) -> str:
    return "1 partition" if number == 1 else f"{number:,} partitions"


def _for(seconds: float | None) -> str:
    return "" if seconds is None else f" for {seconds:,.0f} partition-seconds"
