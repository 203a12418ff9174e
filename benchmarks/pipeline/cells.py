"""Cells of the benchmark: decoding and its memory, what-if, derived tables, log-end offsets."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pipeline import plain
from benchmarks.pipeline.programs.derive import YOUNG_DAYS
from benchmarks.pipeline.programs.what_if import ASSIGNORS
from benchmarks.pipeline.results import Run
from benchmarks.pipeline.synthetic import Fleet
from benchmarks.pipeline.synthetic.commits import commit_batch
from groupwright.pipeline import decode_batch
from groupwright.testing import compile_java

ONE_CORE, TWO_CORES, MEMORY, WHAT_IF, DERIVE, EVERY_DAY, ENDS = CELLS = (
    "decode/one-core",
    "decode/two-cores",
    "decode/memory",
    "what-if",
    "derive/one-day",
    "derive/every-day",
    "ends",
)
"""All decoders on one core; Spark on two; Spark with more and more records; a what-if study; one more day of
a fleet's derived tables, of old ones on one core and on two, and of young ones; every day of a smaller fleet,
one after another; samples of log ends."""

SPARK, SPARK_COMMITS, CORE, PLAIN_COLUMNS, PLAIN, FORMATTER = (
    "Spark, decode",
    "Spark, decode_offset_commits",
    "decode_batch, no Spark",
    "plain Python loop, columns to columns",
    "plain Python loop, bytes to tuples",
    "Kafka's OffsetsMessageFormatter",
)

_TOOLS = "org.apache.kafka:kafka-tools:4.3.1"
_ROOT = Path(__file__).parents[2]
_PROGRAMS = Path(__file__).parent / "programs"
_BATCH = 10_000
_FILES = 4
_WHAT_IF_CORES = 2
_PARTITIONS_A_TOPIC = 100
_PATIENCE = 7200.0
_ONE_DAY = "one more day"
FLEETS = _ROOT / "build" / "benchmarks" / "pipeline-fleets"
"""Base tables of fleets, which later runs use again."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Size of a run.

    Attributes:
        records: Number of records decoded on one core and on two.
        rounds: Repetitions; the best one counts.
        formatted: Number of records for Kafka's formatter and the plain loop, which are slower.
        memory: Numbers of records generated on the fly and decoded, for memory.
        played: Number of groups that what-if replays, and of generations of each.
        fleet: Groups and days of the fleet whose last day is derived on one core and on two, and compared
            with its second day.
        every_day: Groups and days of the fleet of which all days are derived, one after another.
        ends: Topics, of 100 partitions each, whose log-end offsets are sampled, and their brokers.
    """

    records: int
    rounds: int
    formatted: int
    memory: tuple[int, ...]
    played: tuple[int, int]
    fleet: tuple[int, int]
    every_day: tuple[int, int]
    ends: tuple[tuple[int, int], ...]


FULL = Effort(
    records=8_000_000,
    rounds=4,
    formatted=1_000_000,
    memory=(1_000_000, 10_000_000, 100_000_000),
    played=(10_000, 100),
    fleet=(10_000, 30),
    every_day=(1_000, 30),
    ends=((150, 1), (1500, 10)),
)
QUICK = Effort(
    records=1_000_000,
    rounds=2,
    formatted=200_000,
    memory=(1_000_000, 4_000_000),
    played=(200, 20),
    fleet=(100, 4),
    every_day=(100, 4),
    ends=((5, 1),),
)


def run(cell: str, effort: Effort, folder: Path, progress: Callable[[str], None]) -> Iterator[Run]:
    """Run a cell; `folder` is for files."""
    runners = {
        MEMORY: lambda: _memory(effort.memory, progress),
        WHAT_IF: lambda: _what_if(*effort.played, progress),
        DERIVE: lambda: _derive(*effort.fleet, progress),
        EVERY_DAY: lambda: _derive_every_day(*effort.every_day, progress),
        ENDS: lambda: _ends(effort.ends, progress),
    }
    return runners.get(cell, lambda: _decode(cell, effort, folder, progress))()


def _memory(sizes: Iterable[int], progress: Callable[[str], None]) -> Iterator[Run]:
    for records in sizes:
        progress(f"{records:,} records on the fly")
        yield _spark(MEMORY, f"{SPARK}, {records:,}", 2, records, 1, str(records))


def _decode(cell: str, effort: Effort, folder: Path, progress: Callable[[str], None]) -> Iterator[Run]:
    parquet = folder / "records"
    if not parquet.exists():
        progress("writing records")
        _write(parquet, effort.records)
    cores = CELLS.index(cell) + 1
    for what in (SPARK, SPARK_COMMITS):
        progress(f"{what} on {cores}")
        yield _spark(cell, what, cores, effort.records, effort.rounds, str(parquet))
    if cell == ONE_CORE:
        fleet = Fleet(commits=effort.formatted, groups=1000)
        for what, others in ((CORE, _core), (PLAIN_COLUMNS, _plain_columns), (PLAIN, _plain)):
            progress(what)
            yield Run(cell, what, effort.formatted, 1, others(fleet, effort.rounds))
        progress(FORMATTER)
        yield Run(cell, FORMATTER, effort.formatted, 1, _formatter(fleet, effort.rounds + 2, folder))


def _batches(fleet: Fleet) -> Iterator[pa.RecordBatch]:
    for first in range(0, fleet.commits, _BATCH):
        yield commit_batch(fleet, np.arange(first, min(first + _BATCH, fleet.commits)))


def _write(folder: Path, records: int) -> None:
    folder.mkdir()
    batches = _batches(Fleet(commits=records, groups=1000))
    first = next(batches)
    writers = [pq.ParquetWriter(folder / f"{number}.parquet", first.schema) for number in range(_FILES)]
    for number, batch in enumerate([first, *batches]):
        writers[number * _BATCH * _FILES // records].write_batch(batch)
    for writer in writers:
        writer.close()


def _spark(cell: str, what: str, cores: int, records: int, rounds: int, source: str) -> Run:
    function = "decode_offset_commits" if what == SPARK_COMMITS else "decode"
    said = _said_by("decode", cores, function, rounds, source)
    best = min(said["rounds"], key=lambda taken: taken["seconds"])
    return Run(cell, what, records, cores, **best, python_mib=said["python_mib"], jvm_mib=said["jvm_mib"])


def _what_if(groups: int, generations: int, progress: Callable[[str], None]) -> Iterator[Run]:
    what = f"{groups:,} groups of {generations} generations, {len(ASSIGNORS)} assignors"
    progress(what)
    said = _said_by("what_if", _WHAT_IF_CORES, groups, generations)
    yield Run(WHAT_IF, what, groups * generations * len(ASSIGNORS), _WHAT_IF_CORES, said["seconds"])


def _derive(groups: int, days: int, progress: Callable[[str], None]) -> Iterator[Run]:
    """Derive one more day: of old tables on one core and on two, and of young ones."""
    folder = _fleet_tables(groups, days, progress)
    for age, cores in (("old", 1), ("old", 2), ("young", 2)):
        day = YOUNG_DAYS if age == "young" else days
        what = f"{_ONE_DAY}, day {day} of {groups:,} groups"
        progress(f"{what} on {cores}")
        said = _said_by("derive", age, cores, folder, groups, days)
        yield _derived(DERIVE, what, cores, said, ("cpu_by_table", "rows", "bytes"))


def _derive_every_day(groups: int, days: int, progress: Callable[[str], None]) -> Iterator[Run]:
    folder = _fleet_tables(groups, days, progress)
    what = f"{days} days of {groups:,} groups, one after another"
    progress(what)
    said = _said_by("derive", "every", _WHAT_IF_CORES, folder, groups, days)
    yield _derived(EVERY_DAY, what, _WHAT_IF_CORES, said, ("seconds_of_days", "rows"))


def _derived(cell: str, what: str, cores: int, said: Mapping[str, Any], more: Iterable[str]) -> Run:
    """Return the run that the program of derived tables describes; `more` names its further numbers."""
    return Run(
        cell,
        what,
        said["rows"]["lag"] + said["rows"]["rebalances"],
        cores,
        said["seconds"],
        said["cpu_seconds"],
        said["python_mib"],
        said["jvm_mib"],
        {name: said[name] for name in more},
    )


def _fleet_tables(groups: int, days: int, progress: Callable[[str], None]) -> Path:
    """Return the folder of a fleet's tables, which are made unless an earlier run has."""
    folder = FLEETS / f"{groups}-groups-{days}-days"
    progress(f"making {groups:,} groups of {days} days; tables in {folder} are used again")
    _said_by("derive", "make", _WHAT_IF_CORES, folder, groups, days)
    return folder


def _ends(clusters: Iterable[tuple[int, int]], progress: Callable[[str], None]) -> Iterator[Run]:
    for topics, brokers in clusters:
        partitions = topics * _PARTITIONS_A_TOPIC
        what = f"{partitions:,} partitions of {brokers} broker{'s' if brokers > 1 else ''}"
        progress(f"creating {what}")
        said = _said_by("ends", topics, _PARTITIONS_A_TOPIC, brokers)
        first, *others = said["rounds"]
        best = min(others, key=lambda taken: taken["seconds"])
        for name, taken in (("the first time", first), ("again", best)):
            yield Run(ENDS, f"{what}, {name}", partitions, 2, taken["seconds"], more=taken)


def _said_by(program: str, *arguments: object) -> Any:
    """Run one of the programs, and return its output."""
    ran = subprocess.run(  # noqa: S603 - this project's own program
        [sys.executable, "-m", f"benchmarks.pipeline.programs.{program}", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_PATIENCE,
        check=True,
        cwd=_ROOT,
        text=True,
    )
    return json.loads(ran.stdout.splitlines()[-1])


def _core(fleet: Fleet, rounds: int) -> float:
    batches = list(_batches(fleet))
    return min(_timed(lambda: [decode_batch(batch) for batch in batches]) for _ in range(rounds))


def _plain_columns(fleet: Fleet, rounds: int) -> float:
    batches = list(_batches(fleet))
    return min(_timed(lambda: [plain.decode_batch(batch) for batch in batches]) for _ in range(rounds))


def _plain(fleet: Fleet, rounds: int) -> float:
    records = [
        record
        for batch in _batches(fleet)
        for record in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
    ]
    return min(_timed(lambda: plain.decode(records)) for _ in range(rounds))


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _formatter(fleet: Fleet, rounds: int, folder: Path) -> float:
    """Return the seconds of the best round after JIT warm-up."""
    file = folder / "records.bin"
    with file.open("wb") as out:
        out.write(fleet.commits.to_bytes(4, "big"))
        for batch in _batches(fleet):
            for key, value in zip(
                batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
            ):
                for data in (key, value):
                    out.write(
                        (-1 if data is None else len(data)).to_bytes(4, "big", signed=True) + (data or b"")
                    )
    program = compile_java(folder, [_PROGRAMS / "java" / "Formatter.java"], _TOOLS)
    command = program.command("Formatter", "-Xmx2g", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1")
    ran = subprocess.run(  # noqa: S603 - this project's own program
        [*command, str(file), str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_PATIENCE,
        check=True,
        text=True,
    )
    return min(map(int, ran.stdout.split())) / 1e9
