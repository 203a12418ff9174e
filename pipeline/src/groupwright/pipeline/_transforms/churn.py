"""`churn`: rebalances by hour, for groups and for their members."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.base import select_columns

STORM_REBALANCES = 5
"""This many rebalances within `STORM_SECONDS` are a storm."""
STORM_SECONDS = 600
FLAPS = 6
"""A client that joins or leaves this often within an hour is flapping."""

_HOUR = ("hour", "group_id")


def churn(rebalances: DataFrame, events: DataFrame, members: DataFrame) -> DataFrame:
    """Return the rows of `churn`.

    Args:
        rebalances: `rebalances`.
        events: `client_events`.
        members: `group_id`, `member_id` and `client_id` of the members.
    """
    timed = rebalances.withColumn("hour", _hour("completed"))
    of_members = _of_members(timed, events, members)
    flapping = of_members.groupBy(*_HOUR).agg(F.max("flapping").alias("flapping"))
    of_groups = _of_groups(timed).join(flapping, [*_HOUR], "left")
    both = of_groups.unionByName(of_members, allowMissingColumns=True)
    rows = both.select(
        "*",
        *(
            F.coalesce(
                F.col(name),
                F.lit(False),  # noqa: FBT003 - a value of the table
            ).alias(f"{name}_")
            for name in ("storm", "flapping")
        ),
        F.to_date("hour").alias("date"),
    )
    return select_columns(
        rows.drop("storm", "flapping").withColumnsRenamed({"storm_": "storm", "flapping_": "flapping"}),
        schemas.CHURN,
    )


def _hour(name: str) -> Column:
    return F.date_trunc("hour", F.col(name))


def _of_groups(timed: DataFrame) -> DataFrame:
    recent = (
        Window.partitionBy("group_id")
        .orderBy(F.col("completed").cast("bigint"))
        .rangeBetween(-STORM_SECONDS, Window.currentRow)
    )
    return (
        timed.withColumn("storm", F.count("*").over(recent) >= STORM_REBALANCES)
        .groupBy(*_HOUR)
        .agg(
            F.count("*").alias("rebalances"),
            F.sum("moved").alias("moved"),
            F.sum("min_moves").alias("min_moves"),
            F.sum("duration_seconds").alias("seconds_not_consuming"),
            F.max("storm").alias("storm"),
        )
    )


def _of_members(timed: DataFrame, events: DataFrame, members: DataFrame) -> DataFrame:
    """Return the rows of members: those that joined or left, and those with events, which have durations."""
    clients = members.groupBy("group_id", "member_id").agg(F.max("client_id").alias("client_id"))
    attributed = events.where("member_id is not null").dropDuplicates(["id"])
    # A clock that was set back during a rebalance makes its length unknown.
    length = F.when(F.col("duration_seconds") >= 0, F.col("duration_seconds"))
    durations = attributed.groupBy(_hour("ended_at").alias("hour"), "group_id", "member_id").agg(
        F.sum(length).alias("seconds_not_consuming")
    )
    joined_or_left = (
        timed.withColumn("member_id", F.explode(F.array_union("joined", "left")))
        .groupBy(*_HOUR, "member_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.sum("moved").alias("moved"),
            F.sum("min_moves").alias("min_moves"),
        )
    )
    of_client = Window.partitionBy(*_HOUR, "client_id")
    return (
        joined_or_left.join(durations, [*_HOUR, "member_id"], "full")
        .join(clients, ["group_id", "member_id"], "left")
        .fillna(0, ["rebalances", "moved", "min_moves"])
        .withColumn(
            "flapping", F.col("client_id").isNotNull() & (F.sum("rebalances").over(of_client) >= FLAPS)
        )
    )
