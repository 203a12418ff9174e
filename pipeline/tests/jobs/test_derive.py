"""Derivation date by date, from states of groups, against one derivation of the whole history."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs import derive as derivation
from groupwright.pipeline._jobs.derive import dates_that_follow, derive, group_history
from groupwright.pipeline._tables import Batch, Tables, kept, open_tables
from groupwright.pipeline.schemas import Table

pytestmark = pytest.mark.slow  # whole jobs, each many queries

START = datetime(2026, 11, 20, tzinfo=UTC)
DATES = [START.date() + timedelta(days=number) for number in range(2)]
DERIVED = (schemas.REBALANCES, schemas.GROUP_EPOCHS, schemas.LAG, schemas.CHURN, schemas.GROUP_STATES)
SHUFFLE = "spark.sql.shuffle.partitions"
GROUPS = {"billing": "consumer", "other": "consumer", "queue": "share"}
RECORDS = {"consumer": schemas.CONSUMER_GROUP_RECORDS, "share": schemas.SHARE_GROUP_RECORDS}


@pytest.fixture
def leave_out(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a derivation leave out tables that a test does not look at."""

    def leave_out(*names: str) -> None:
        for name in names:
            monkeypatch.setattr(derivation, f"_derive_{name}", lambda *_: None)

    return leave_out


@pytest.fixture
def opened(spark: SparkSession) -> Iterator[Callable[[Path], Tables]]:
    """Open the tables of a folder as a batch does."""
    with ExitStack() as stack:
        yield lambda folder: stack.enter_context(kept(open_tables(spark, str(folder))))


def history(seed: int) -> dict[Table, list[dict[str, Any]]]:
    """Records of groups whose members join and leave on each date, except that `other` ends on the first."""
    choose = random.Random(seed)  # noqa: S311 - reproducible, not secret
    found: dict[Table, list[dict[str, Any]]] = {table: [] for table in RECORDS.values()}
    for group_id, group_type in GROUPS.items():
        prefix = "" if group_type == "consumer" else "share_"
        kinds = {"member": f"{prefix or 'consumer_'}member", "group": f"{prefix or 'consumer_'}group"}
        epoch, members = 0, list[str]()
        for day in range(len(DATES)):
            if group_id == "other" and day:
                continue
            for step in range(6):
                values: list[tuple[str, dict[str, Any], bool]] = []
                if members and choose.random() < 0.4:
                    gone = members.pop(choose.randrange(len(members)))
                    values.append((kinds["member"], {"member_id": gone}, True))
                else:
                    members.append(f"{group_id}-{day}-{step}")
                    client = f"client-{choose.randrange(2)}"
                    value = {"member_id": members[-1], "client_id": client, "topics": ["orders"]}
                    values.append((kinds["member"], value, False))
                epoch += 1
                values.append((kinds["group"], {"epoch": epoch, "metadata_hash": 1}, False))
                for number, id_ in enumerate(members):
                    mine = list(range(6))[number :: len(members)]
                    assigned = [{"topic_id": "id-of-orders", "partitions": mine}]
                    current = {"member_id": id_, "epoch": epoch, "state": "stable", "assigned": assigned}
                    values.append((f"{prefix}current_member", current, False))
                for number, (kind, value, tombstone) in enumerate(values):
                    time = START + timedelta(days=day, hours=3 * step, seconds=number)
                    rows = found[RECORDS[group_type]]
                    rows.append(
                        {"group_id": group_id, "record_kind": kind, kind: value, "tombstone": tombstone}
                        | {"log_partition": 0, "log_offset": len(rows), "log_time": time, "date": time.date()}
                    )
    return found


def classic_history() -> dict[Table, list[dict[str, Any]]]:
    """Records of classic groups: `payments` hands partition 3 over at midnight, `audit` ends before.

    Before the handover, the last generation of the first date is written again, as for a static member.
    """
    generations: list[dict[str, Any]] = []
    members: list[dict[str, Any]] = []
    payments = [
        (1, 1, {"a": [0, 1, 2, 3]}),
        (2, 22, {"a": [0, 1, 2, 3], "b": []}),
        (3, 23, {"a": [0, 1, 2], "b": []}),
        (3, 23.5, {"a": [0, 1, 2], "b": []}),
        (4, 25, {"a": [0, 1, 2], "b": [3]}),
        (5, 26, {"b": [0, 1, 2, 3]}),
    ]
    for group_id, rows in (("payments", payments), ("audit", payments[:1])):
        for number, hour, assigned in rows:
            time = START + timedelta(hours=hour)
            key = {"group_id": group_id, "generation": number, "log_partition": 1, "log_time": time}
            key |= {"log_offset": len(generations), "date": time.date()}
            types = {"group_type": "classic", "protocol_type": "consumer", "protocol": "cooperative-sticky"}
            generations.append({**key, **types, "tombstone": False})
            members += [
                {**key, "member_id": id_, "client_id": id_, "subscribed": ["orders"]}
                | {"assigned": [{"topic": "orders", "partitions": partitions}] if partitions else []}
                for id_, partitions in assigned.items()
            ]
    return {schemas.GROUP_GENERATIONS: generations, schemas.GROUP_MEMBERS: members}


def offsets_history() -> dict[Table, list[dict[str, Any]]]:
    """A sample of a partition in every hour, and a commit half an hour before it.

    On the first date, `audit` commits for the last time after the last sample, and `gone` is deleted.
    """
    commits: list[tuple[str, float, int | None]] = []
    ends: list[dict[str, Any]] = []
    place = {"topic": "orders", "partition": 0}
    for hour in range(24 * len(DATES)):
        time = START + timedelta(hours=hour, minutes=30)
        ends.append({**place, "time": time, "end_offset": 1000 + 100 * hour, "date": time.date()})
        commits.append(("payments", hour, 870 + 100 * hour - 40 * (hour % 7 == 0)))
    commits += [("audit", 1, 900), ("audit", 23.75, 950), ("gone", 1, 900), ("gone", 20, None)]
    rows = [
        {**place, "group_id": group_id, "committed_offset": offset, "tombstone": offset is None}
        | {"log_partition": 1, "log_offset": number, "log_time": time, "date": time.date()}
        for number, (group_id, hour, offset) in enumerate(commits)
        for time in [START + timedelta(hours=hour)]
    ]
    return {schemas.OFFSET_COMMITS: rows, schemas.END_OFFSETS: ends}


def add(
    spark: SparkSession, tables: Tables, records: dict[Table, list[dict[str, Any]]], days: Sequence[date]
) -> None:
    for table, rows in records.items():
        chosen = [row for row in rows if row["date"] in days]
        arrow = pa.Table.from_pylist(chosen, to_arrow_schema(table.schema))
        tables.add(table, spark.createDataFrame(arrow, table.schema), Batch(f"test-{days[0]}", 0))


def rows_of(tables: Tables) -> dict[str, list[str]]:
    until = DATES[-1]
    return {
        table.name: sorted(str(row) for row in tables.read(table, until=until).collect()) for table in DERIVED
    }


def cut_off_at(last: Table, replace: Callable[..., None]) -> Callable[..., None]:
    """Return a `Tables.replace` that is interrupted before it writes a table."""

    def replace_until(table: Table, *arguments: Any) -> None:
        if table is last:
            raise InterruptedError
        replace(table, *arguments)

    return replace_until


def counting_tasks(replace: Callable[..., None], tasks: dict[str, int]) -> Callable[..., None]:
    """Return a `Tables.replace` that records the number of tasks that compute a table's rows."""

    def replace_and_count(table: Table, rows: DataFrame, *arguments: Any) -> None:
        tasks[table.name] = rows.rdd.getNumPartitions()
        replace(table, rows, *arguments)

    return replace_and_count


@pytest.mark.endurance
def test_dates_one_after_another_have_the_rows_of_the_whole_and_read_no_older_records(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[Path], Tables]
) -> None:
    """The last derivation is cut off after it has written the states, and repeated."""
    records = history(7) | classic_history() | offsets_history()
    tables = opened(tmp_path / "whole")
    add(spark, tables, records, DATES)
    tasks: dict[str, int] = {}
    spark.conf.set(SHUFFLE, 2)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "replace", counting_tasks(tables.replace, tasks))
        derive(tables, DATES, lookback_days=7)
    spark.conf.set(SHUFFLE, 1)
    assert tasks.keys() >= {table.name for table in DERIVED}
    # An empty table takes no task.
    assert set(tasks.values()) - {0} == {2}, "a table is computed by one task"
    whole = rows_of(tables)
    handovers = tables.read(schemas.REBALANCES).where("group_id = 'payments'").orderBy("generation").collect()
    assert [row.cause for row in handovers] == ["first", "join", "unknown", "handover", "leave"]
    behind = [tables.read(schemas.LAG).where(f"group_id = '{name}'") for name in ("audit", "gone")]
    offsets = [[row.committed_offset for row in rows.orderBy("time").collect()] for rows in behind]
    assert offsets == [[900] * 23 + [950] * 24, [900] * 19]
    assert all(len(rows) >= 2 * len(DATES) for rows in whole.values()), whole
    tables = opened(tmp_path / "dates")
    for day in DATES:
        add(spark, tables, records, [day])
        for table in RECORDS.values():
            tables.retain(table, day)  # none of the older records is needed
        if day == DATES[-1]:
            with monkeypatch.context() as patched:
                patched.setattr(tables, "replace", cut_off_at(schemas.CHURN, tables.replace))
                patched.setattr(derivation, "_derive_lag", lambda *_: None)
                with pytest.raises(InterruptedError):
                    derive(tables, [day], lookback_days=7)
        derive(tables, [day], lookback_days=7)
    assert rows_of(tables) == whole
    tomorrow = DATES[-1] + timedelta(days=1)
    assert dates_that_follow(tables, DATES[-1:], []) == {tomorrow}
    assert dates_that_follow(tables, [date(1970, 1, 1)], []) == set(), "no group has records of that date"
    derive(tables, [date.max], lookback_days=7)  # has no day after it


@pytest.mark.endurance
def test_a_group_s_records_are_in_the_order_of_the_log_although_a_coordinator_s_clock_is_behind(
    spark: SparkSession, tmp_path: Path, leave_out: Callable[..., None], opened: Callable[[Path], Tables]
) -> None:
    """The offsets topic is created again on the second date: offsets begin at 0 again."""
    leave_out("states", "churn")

    def time(day: int, seconds: float) -> datetime:
        return START + timedelta(days=day, hours=10, seconds=seconds)

    key = {"group_id": "payments", "log_partition": 1, "tombstone": False}
    place = {"topic": "orders", "partition": 0}
    generations = [(1, 100, time(0, 0)), (2, 103, time(0, -2)), (3, 5, time(1, 0))]
    commits = [(500, 99, time(0, -0.5)), (600, 101, time(0, 0.5)), (570, 104, time(0, -1)),
               (800, 6, time(1, 1))]  # fmt: skip
    positions = [("old", 1, time(0, 60)), ("old", 2, time(0, 120)), ("new", 3, time(1, 60))]
    records: dict[Table, list[dict[str, Any]]] = {
        schemas.GROUP_GENERATIONS: [
            {**key, "group_type": "classic", "protocol_type": "consumer", "protocol": "range"}
            | {"generation": number, "log_offset": log_offset, "log_time": at}
            for number, log_offset, at in generations
        ],
        schemas.GROUP_MEMBERS: [
            {**key, "generation": number, "log_offset": log_offset, "log_time": at, "subscribed": ["orders"]}
            | {"member_id": f"m{member}", "client_id": f"m{member}", "assigned": []}
            for number, log_offset, at in generations
            for member in range(number)
        ],
        schemas.OFFSET_COMMITS: [
            {**key, **place, "committed_offset": offset, "log_offset": log_offset, "log_time": at}
            for offset, log_offset, at in commits
        ],
        schemas.END_OFFSETS: [
            {**place, "end_offset": 1000, "time": time(day, 30 * 60)} for day in range(len(DATES))
        ],
        schemas.READ_POSITIONS: [
            {"sequence": number, "topic": "__consumer_offsets", "topic_id": id_, "log_partition": 1}
            | {"time": at}
            for id_, number, at in positions
        ],
    }  # fmt: skip
    for rows in records.values():
        for row in rows:
            row["date"] = (row.get("log_time") or row["time"]).date()
    for name, runs in (("whole", [DATES]), ("dates", [DATES[:1], DATES[1:]])):
        tables = opened(tmp_path / name)
        for days in runs:
            add(spark, tables, records, days)
            derive(tables, days, lookback_days=7)
        found = tables.read(schemas.REBALANCES).orderBy("generation").collect()
        assert [(row.previous_generation, len(row.joined), len(row.left)) for row in found] == [
            (None, 1, 0),
            (1, 1, 0),
            (2, 1, 0),
        ]
        assert [row.messages_reprocessed for row in found] == [0, 30, 0]
        behind = tables.read(schemas.LAG).orderBy("time").collect()
        assert [row.committed_offset for row in behind] == [570, 800]


@pytest.mark.endurance
def test_what_a_group_was_before_the_days_to_look_back_is_unknown(
    spark: SparkSession, tmp_path: Path, leave_out: Callable[..., None], opened: Callable[[Path], Tables]
) -> None:
    """`small` could have begun with this generation, and `new` did."""
    leave_out("states", "lag", "churn")
    groups = {"old": (41, ["a"]), "small": (3, ["a", "b", "c"])}
    records: dict[Table, list[dict[str, Any]]] = {schemas.GROUP_GENERATIONS: [], schemas.GROUP_MEMBERS: []}
    for day, more in ((0, 0), (8, 1)):
        time = START + timedelta(days=day)
        for group_id, (number, members) in (groups | ({"new": (0, [])} if more else {})).items():
            key = {"group_id": group_id, "generation": number + more, "log_partition": 1, "log_offset": day}
            key |= {"log_time": time, "date": time.date()}
            types = {"group_type": "classic", "protocol_type": "consumer", "protocol": "range"}
            records[schemas.GROUP_GENERATIONS].append({**key, **types, "tombstone": False})
            records[schemas.GROUP_MEMBERS] += [
                {**key, "member_id": id_, "client_id": id_, "subscribed": ["orders"], "assigned": []}
                for id_ in (*members, *["d"] * more)
            ]
    tables = opened(tmp_path)
    days = [START.date() + timedelta(days=day) for day in (0, 8)]
    add(spark, tables, records, days)
    derive(tables, days[1:], lookback_days=7)
    columns = ("group_id", "cause", "members_before", "joined", "left", "moved", "min_moves")
    assert sorted(map(tuple, tables.read(schemas.REBALANCES).select(*columns).collect())) == [
        ("new", "first", 0, ["d"], [], 0, 0),
        ("old", "unknown", None, None, None, None, None),
        ("small", "unknown", None, None, None, None, None),
    ]


@pytest.mark.endurance
@pytest.mark.parametrize("sampled", [(0, 3), (3,)])
def test_a_group_that_no_longer_commits_has_lag_after_days_without_samples(
    spark: SparkSession,
    tmp_path: Path,
    leave_out: Callable[..., None],
    sampled: Sequence[int],
    opened: Callable[[Path], Tables],
) -> None:
    """The second time, no sample was ever taken before."""
    leave_out("rebalances", "states", "churn")
    place = {"topic": "orders", "partition": 0}
    commits: list[dict[str, Any]] = [
        {**place, "group_id": group_id, "committed_offset": offset, "tombstone": False}
        | {"log_partition": 1, "log_offset": number, "log_time": START + timedelta(days=day)}
        for number, (group_id, offset, day) in enumerate(
            (("stuck", 100, 0), ("late", 90, 0), ("late", 95, 1))
        )
    ]
    ends: list[dict[str, Any]] = [
        {**place, "end_offset": 150, "time": START + timedelta(days=day, hours=1)} for day in sampled
    ]  # fmt: skip
    tables = opened(tmp_path)
    for row in commits:
        row["date"] = row["log_time"].date()
    for row in ends:
        row["date"] = row["time"].date()
    days = [START.date() + timedelta(days=number) for number in range(4)]
    add(spark, tables, {schemas.OFFSET_COMMITS: commits, schemas.END_OFFSETS: ends}, days)
    for day in days:
        derive(tables, [day], lookback_days=7)
    found = tables.read(schemas.LAG, since=days[-1]).orderBy("group_id").collect()
    assert [(row.group_id, row.committed_offset) for row in found] == [("late", 95), ("stuck", 100)]
    tables.retain(schemas.END_OFFSETS, days[-1] + timedelta(days=1))
    derive(tables, days[-1:], lookback_days=7)
    assert tables.read(schemas.LAG, since=days[-1]).isEmpty(), "lag of a date without samples"


@pytest.mark.endurance
def test_members_of_a_group_that_is_created_again_are_those_of_its_own_epochs(
    spark: SparkSession, tmp_path: Path, opened: Callable[[Path], Tables]
) -> None:
    """Both groups of the name have an epoch 1."""
    records: dict[Table, list[dict[str, Any]]] = {
        schemas.CONSUMER_GROUP_RECORDS: [],
        schemas.GROUP_GENERATIONS: [],
    }
    for start, member in ((10, "first"), (20, "second")):
        values: list[tuple[str, dict[str, Any], bool]] = [
            ("consumer_member", {"member_id": member, "client_id": member, "topics": ["orders"]}, False),
            ("consumer_group", {"epoch": 1}, False),
            ("current_member", {"member_id": member, "epoch": 1, "state": "stable", "assigned": []}, False),
            ("consumer_member", {"member_id": member}, True),
            ("consumer_group", {"epoch": None}, True),
        ]
        for number, (kind, value, tombstone) in enumerate(values):
            key = {"group_id": "billing", "log_partition": 1, "log_offset": start + number}
            key |= {"log_time": START, "date": START.date(), "tombstone": tombstone}
            records[schemas.CONSUMER_GROUP_RECORDS].append({**key, "record_kind": kind, kind: value})
            if kind == "consumer_group":
                of_group = {"group_type": "consumer", "generation": value["epoch"]}
                records[schemas.GROUP_GENERATIONS].append({**key, **of_group})
    tables = opened(tmp_path)
    add(spark, tables, records, DATES)
    found = group_history(tables)["group_members"].select("generation", "member_id", "log_offset").collect()
    assert sorted(map(tuple, found)) == [(1, "first", 11), (1, "second", 21)]


def test_generations_of_a_recreated_offsets_topic_come_after_those_of_the_former_one(
    spark: SparkSession, tmp_path: Path, opened: Callable[[Path], Tables]
) -> None:
    """The new topic begins at offset 0 again."""
    where = {"group_id": "billing", "log_partition": 1, "date": START.date()}
    generations = [
        {**where, "group_type": "classic", "generation": number, "log_offset": log_offset, "tombstone": False}
        | {"log_time": START + timedelta(hours=hour)}
        for number, log_offset, hour in ((7, 100, 1), (1, 0, 3))
    ]
    positions = [
        {"topic": "__consumer_offsets", "topic_id": id_, "sequence": hour, "log_partition": 1}
        | {"time": START + timedelta(hours=hour), "date": START.date()}
        for id_, hour in (("former", 2), ("new", 4))
    ]
    members = [
        {name: value for name, value in row.items() if name not in {"group_type", "tombstone"}}
        | {"member_id": "a"}
        for row in generations
    ]
    rows = {schemas.GROUP_GENERATIONS: generations, schemas.GROUP_MEMBERS: members}
    tables = opened(tmp_path)
    add(spark, tables, {**rows, schemas.READ_POSITIONS: positions}, DATES)
    for of_table in group_history(tables).values():
        assert [row.generation for row in of_table.orderBy("log_offset").collect()] == [7, 1]


@pytest.mark.endurance
def test_what_follows_a_rebalance_after_midnight_is_its_own(
    spark: SparkSession, tmp_path: Path, leave_out: Callable[..., None], opened: Callable[[Path], Tables]
) -> None:
    """Also if only the date before that of the rebalance is derived again."""
    leave_out("states", "lag", "churn")
    midnight = START + timedelta(days=1)
    key = {"group_id": "payments", "log_partition": 1, "tombstone": False}
    types = {"group_type": "classic", "protocol_type": "consumer", "protocol": "range"}
    event = {"id": "1", "client_id": "a", "member_id": "a", "generation": 1, "outcome": "completed"}
    place = {"topic": "orders", "partition": 0}
    records: dict[Table, list[dict[str, Any]]] = {
        schemas.GROUP_GENERATIONS: [{**key, **types, "generation": 1, "log_offset": 2, "log_time": -2}],
        schemas.GROUP_MEMBERS: [
            {**key, "generation": 1, "log_offset": 2, "log_time": -2, "member_id": "a", "assigned": []}
        ],
        schemas.CLIENT_EVENTS: [
            {**event, "group_id": "payments", "log_partition": 0, "log_offset": 0, "log_time": 1}
            | {"started_at": midnight - timedelta(seconds=5), "ended_at": midnight}
        ],
        schemas.OFFSET_COMMITS: [
            {**key, **place, "committed_offset": offset, "log_offset": number, "log_time": seconds}
            for offset, number, seconds in ((100, 1, -3), (60, 3, 3))
        ],
    }
    for rows in records.values():
        for row in rows:
            row["log_time"] = midnight + timedelta(seconds=row["log_time"])
            row["date"] = row["log_time"].date()
    tables = opened(tmp_path)
    add(spark, tables, records, DATES)
    for days in (DATES[:1], [DATES[0] - timedelta(days=1)]):
        derive(tables, days, lookback_days=7)
        (found,) = tables.read(schemas.REBALANCES).collect()
        assert (found.client_events, found.duration_seconds, found.messages_reprocessed) == (1, 5.0, 40)
