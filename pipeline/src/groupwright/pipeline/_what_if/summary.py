"""Results of a what-if study, in sentences."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._what_if.replay import ACTUAL


def findings(what_if: DataFrame, *, span: str = "the history's") -> list[str]:
    """Return one sentence per assignor, ordered by the number of moves.

    Example: "with cooperative-sticky this month's 412 rebalances would have moved 9,300 partitions instead of
    81,000".

    Args:
        what_if: The table `what_if`, of any groups.
        span: Text before the number of rebalances, such as `this month's`.
    """
    rows = (
        what_if.where(F.col("assignor") != ACTUAL)
        .groupBy("assignor")
        .agg(
            F.sum("rebalances").alias("rebalances"),
            F.sum("moved").alias("moved"),
            F.sum("moved_actual").alias("moved_actual"),
            F.sum("errors").alias("errors"),
        )
        .orderBy(F.coalesce(F.col("errors"), F.lit(0)) > 0, "moved", "assignor")
        .collect()
    )
    return [
        sentence(row["assignor"], span, row["rebalances"], row["moved"], row["moved_actual"], row["errors"])
        for row in rows
    ]


def sentence(
    assignor: str, span: str, rebalances: int, moved: int | None, moved_actual: int | None, errors: int
) -> str:
    """Return the sentence for one assignor."""
    if errors:
        return f"{assignor} has no result for {errors:,} of {span} {rebalances:,} rebalances"
    count = "1 rebalance" if rebalances == 1 else f"{rebalances:,} rebalances"
    parts = "1 partition" if moved == 1 else f"{moved or 0:,} partitions"
    return f"with {assignor} {span} {count} would have moved {parts} instead of {moved_actual or 0:,}"
