"""Derives tables of a fleet, and prints in a line of JSON what it took.

Arguments: what to do, the cores (Spark's, and those that the process may use), a folder, the number of
groups, and the number of days, two or more. `make` writes the base tables of all days (`old`) and of the
first two (`young`), and derives the days before the last one. `old` and `young` derive the last day.
`every` derives all days of `old`, one after another. A day of the fleet has 6 commits of each of the 100
partitions of a group, 6 samples of the log-end offsets of all topics, and 20 generations of each group; a
topic has 100 partitions, and 20 groups read 3 topics.
"""

import json
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import date
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession

from benchmarks.pipeline.programs.session import local_session
from benchmarks.pipeline.programs.watch import Watch, use_cores
from benchmarks.pipeline.synthetic import Fleet
from benchmarks.pipeline.synthetic.tables import add_fleet, copy_days, day
from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._tables import Tables
from groupwright.pipeline.schemas import Table

YOUNG_DAYS = 2
_PARTITIONS, _COMMITS_A_DAY, _GENERATIONS_A_DAY, _MEMBERS = 100, 6, 20, 5
_LOOKBACK_DAYS = 7
_TASKS = 32


def fleet_of(groups: int, days: int) -> Fleet:
    """Return the fleet."""
    return Fleet(
        groups=groups,
        members=_MEMBERS,
        topics=1,
        partitions=_PARTITIONS,
        cluster_topics=max(1, groups * 3 // 20),
        days=days,
        generations=_GENERATIONS_A_DAY * days,
        commits=groups * _PARTITIONS * _COMMITS_A_DAY * days,
    )


def main(what: str, cores: int, folder: Path, groups: int, days: int) -> None:
    """Do it, and print."""
    use_cores(cores)
    spark = local_session(cores, memory="4g", tasks=_TASKS)
    fleet = fleet_of(groups, days)
    match what:
        case "make":
            done = make(spark, fleet, folder)
        case "every":
            done = derive_every_day(spark, fleet, folder / "old")
        case _:
            done = measure(spark, fleet, folder, what)
    print(json.dumps(done))
    spark.stop()


def make(spark: SparkSession, fleet: Fleet, folder: Path) -> dict[str, Any]:
    """Write the base tables, unless an earlier run has; return the seconds."""
    began = time.perf_counter()
    complete = folder / "complete"
    if not complete.exists():
        with suppress(FileNotFoundError):
            rmtree(folder)
        days = int(fleet.days)
        young = open_tables(spark, str(folder / "young"))
        made = [(young, YOUNG_DAYS)]
        if days == YOUNG_DAYS:
            add_fleet(spark, young, fleet)
        else:
            old = open_tables(spark, str(folder / "old"))
            add_fleet(spark, old, fleet)
            copy_days(old, young, [day(fleet, number) for number in range(YOUNG_DAYS)])
            made.append((old, days))
        for tables, last in made:
            # The day after a derived one is derived too.
            derive(tables, [day(fleet, last - 2)], lookback_days=_LOOKBACK_DAYS)
        complete.touch()
    return {"seconds": time.perf_counter() - began}


def measure(spark: SparkSession, fleet: Fleet, folder: Path, what: str) -> dict[str, Any]:
    """Derive the last day; return times, and the numbers of rows and bytes."""
    last = day(fleet, (int(fleet.days) if what == "old" else YOUNG_DAYS) - 1)
    tables = open_tables(spark, str(folder / what))
    with Watch() as watch:
        timed = _Timed(tables, watch)
        began, used = time.perf_counter(), watch.cpu_seconds()
        derive(timed, [last], lookback_days=_LOOKBACK_DAYS)
        took = {"seconds": time.perf_counter() - began, "cpu_seconds": watch.cpu_seconds() - used}
    return {
        **took,
        "cpu_by_table": timed.cpu,
        "python_mib": watch.python,
        "jvm_mib": watch.jvm,
        "rows": {
            table.name: tables.read(table, since=last, until=last).count()
            for table in schemas.TABLES.values()
        },
        "bytes": _sizes(tables, last),
    }


def derive_every_day(spark: SparkSession, fleet: Fleet, folder: Path) -> dict[str, Any]:
    """Derive all days of a fleet's tables, one after another; return the seconds of each day."""
    tables = open_tables(spark, str(folder))
    for table in schemas.DERIVED_TABLES:
        tables.retain(table, date.max)
    seconds = []
    with Watch() as watch:
        used = watch.cpu_seconds()
        for number in range(int(fleet.days)):
            began = time.perf_counter()
            derive(tables, [day(fleet, number)], lookback_days=_LOOKBACK_DAYS)
            seconds.append(time.perf_counter() - began)
        cpu = watch.cpu_seconds() - used
    return {
        "seconds": sum(seconds),
        "cpu_seconds": cpu,
        "seconds_of_days": seconds,
        "python_mib": watch.python,
        "jvm_mib": watch.jvm,
        "rows": {table.name: tables.read(table).count() for table in schemas.DERIVED_TABLES},
    }


class _Timed:
    """Tables that record the processor time of each replaced table: derivation is lazy until then."""

    def __init__(self, tables: Tables, watch: Watch) -> None:
        self._tables = tables
        self._watch = watch
        self.cpu: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """Replace rows, and record the time."""
        began = self._watch.cpu_seconds()
        self._tables.replace(table, rows, dates)
        self.cpu[table.name] = self.cpu.get(table.name, 0.0) + self._watch.cpu_seconds() - began


def _sizes(tables: Tables, last: date) -> dict[str, int]:
    """Return the bytes of a day's valid files by table."""
    return {
        table.name: sum(
            Path(unquote(urlsplit(file).path)).stat().st_size
            for file in tables.read(table, since=last, until=last).inputFiles()
        )
        for table in schemas.TABLES.values()
    }


if __name__ == "__main__":
    _, _what, _cores, _folder, _groups, _days = sys.argv
    main(_what, int(_cores), Path(_folder), int(_groups), int(_days))
