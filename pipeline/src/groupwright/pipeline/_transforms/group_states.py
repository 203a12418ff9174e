"""`group_states`: state of KIP-848, share and streams groups at the end of each date.

The records of a date are processed from the state of the date before, so that older records are not read.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline._transforms.consumer_groups import ConsumerGroup
from groupwright.pipeline._transforms.group_epochs import Record, all_records, rows_in_log_order, translated

_KEY = ("group_id", "group_type")


def consumer_states(
    states: DataFrame, records: DataFrame, names: DataFrame, dates: Sequence[date]
) -> DataFrame:
    """Return the rows of `group_states` for KIP-848 groups.

    Args:
        states: `group_states` of one date.
        records: `consumer_group_records` after that date.
        names: The result of `rebalances.names_by_group`.
        dates: The dates to return, ascending; the last date of the records is the last of them.
    """
    typed = records.withColumn("group_type", F.lit("consumer"))
    named = names.groupBy("group_id").agg(
        F.map_from_entries(F.collect_list(F.struct("topic_id", "topic"))).alias("names")
    )
    known = named.withColumn("group_type", F.lit("consumer"))
    return _apply(states.where("group_type = 'consumer'"), typed, known, dates, _consumer_records)


def other_states(states: DataFrame, share: DataFrame, streams: DataFrame, dates: Sequence[date]) -> DataFrame:
    """Return the rows of `group_states` for share and streams groups.

    Args:
        states: `group_states` of one date.
        share: `share_group_records` after that date.
        streams: `streams_group_records` after that date.
        dates: As for `consumer_states`.
    """
    return _apply(
        states.where("group_type <> 'consumer'"), all_records(share, streams), None, dates, translated
    )


def client_ids(states: DataFrame) -> DataFrame:
    """Return `group_id`, `member_id` and `client_id` of the members in states of groups."""
    members = F.from_json("state", "members map<string, struct<client_id: string>>").members
    return states.select("group_id", F.explode(members).alias("member_id", "member")).select(
        "group_id", "member_id", "member.client_id"
    )


Translation = Callable[[Sequence[Record]], tuple[Sequence[Record], dict[str, str]]]


def _consumer_records(records: Sequence[Record]) -> tuple[Sequence[Record], dict[str, str]]:
    return records, {}


def _apply(
    states: DataFrame,
    records: DataFrame,
    names: DataFrame | None,
    dates: Sequence[date],
    translate: Translation,
) -> DataFrame:
    def process_group(table: pa.Table) -> pa.Table:
        rows = rows_in_log_order(table)
        key = {name: rows[0][name] for name in _KEY}
        state = next((row["state"] for row in rows if row["state"]), None)
        names = next((dict(row["names"]) for row in rows if row["names"]), {})
        texts = states_by_date(state, [row for row in rows if row["record_kind"]], names, dates, translate)
        found = [{**key, "state": text, "date": day} for day, text in texts if text]
        return to_arrow(found, schemas.GROUP_STATES)

    rows = records.unionByName(states.select(*_KEY, "state"), allowMissingColumns=True)
    none = F.lit(None).cast("map<string, string>")
    if names is None:
        rows = rows.withColumn("names", none)
    else:
        rows = rows.unionByName(names, allowMissingColumns=True)
    return rows.groupBy(*_KEY).applyInArrow(process_group, schemas.GROUP_STATES.schema)


def states_by_date(
    state: str | None,
    records: Sequence[Record],
    names: dict[str, str],
    dates: Sequence[date],
    translate: Translation,
) -> list[tuple[date, str | None]]:
    """Return one group's state at the end of each date, which is None if it is deleted.

    Args:
        state: Its state before the records; None for the first.
        records: Its records, in log order.
        names: Topic names by id.
        dates: Dates, ascending.
        translate: Returns the records of KIP-848 that mean the same, and topic names by id.
    """
    if not records:
        return [(day, state) for day in dates]
    group = ConsumerGroup.from_json(state)
    listed, more_names = translate(records)
    group.learn_names({**names, **more_names})
    found: list[tuple[date, str | None]] = []
    position = 0
    for day in dates:
        first = position
        while position < len(listed) and _date(listed[position]) <= day:
            position += 1
        for _ in group.generations(listed[first:position]):
            pass
        found.append((day, group.to_json() if position > first or not found else found[-1][1]))
    return found


def _date(record: Record) -> date:
    time: Any = record["log_time"]
    day: date = time.date()
    return day
