"""The commands that read the tables: what-if studies and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from groupwright.assignors import InvalidInputError
from groupwright.cli._command_line.output import console
from groupwright.cli.pipeline.deploys import simulated_deploys
from groupwright.core.assignor_traits import BROKERS, KAFKAS
from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline.errors import spark_errors
from groupwright.pipeline.jobs import Settings, read_history
from groupwright.pipeline.report import Compared, TimeRange, write_report
from groupwright.pipeline.what_if import (
    ASSUMPTIONS,
    JAVA_ASSIGNORS,
    compare,
    findings,
    run_what_if,
    topic_weights,
)

_SMALL_HISTORY = 2_000
"""Generations up to which Java's assignors are replayed by default: one group at a time."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The user's choices for a report.

    Attributes:
        groups: Groups with a section of their own.
        shown: The range of time to show.
        compared: Two ranges to compare.
        simulate: The group whose deploys are simulated.
        assignors: Assignors of the what-if section; None for the default ones.
    """

    groups: Sequence[str] = ()
    shown: TimeRange = field(default_factory=TimeRange)
    compared: Compared | None = None
    simulate: str | None = None
    assignors: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        *,
        groups: Sequence[str],
        since: str | None,
        until: str | None,
        deploy: str | None,
        hours: float,
        before: str | None,
        after: str | None,
        simulate: str | None,
        assignors: Sequence[str] | None,
    ) -> "ReportOptions":
        """Return the choices from the command's options.

        Raises:
            InvalidInputError: A time or range is invalid, or options contradict each other.
        """
        shown = TimeRange(
            None if since is None else _time("--since", since),
            None if until is None else _time("--until", until),
        )
        if shown.since and shown.until and shown.since >= shown.until:
            raise InvalidInputError(f"--since {since} is not before --until {until}: exchange them")
        compared = None
        if (before is None) != (after is None):
            raise InvalidInputError("--before and --after belong together: give both, or neither")
        if deploy is not None and before is not None:
            raise InvalidInputError("--deploy and --before exclude each other: give one of them")
        if deploy is not None:
            compared = Compared.around(_time("--deploy", deploy), hours)
        elif before is not None and after is not None:
            compared = Compared(_range("--before", before), _range("--after", after))
        return cls(groups, shown, compared, simulate, assignors)


def _time(option: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInputError(
            f"{option} is {text!r}, which is not an ISO 8601 time: write it as 2026-11-21T08:00Z"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _range(option: str, text: str) -> TimeRange:
    start, slash, end = text.partition("/")
    if not slash:
        raise InvalidInputError(
            f"{option} is {text!r}, which is not a range: write it as 2026-11-20T08:00Z/2026-11-21T08:00Z"
        )
    found = TimeRange(_time(option, start), _time(option, end))
    if found.since and found.until and found.since >= found.until:
        raise InvalidInputError(f"{option} is {text!r}, which ends before it starts: exchange the times")
    return found


def print_what_if(
    spark: SparkSession, settings: Settings, assignors: Sequence[str] | None, out: Path | None
) -> None:
    """Replay the history, print the findings, and write the what-if tables to `out` if given.

    Raises:
        GroupwrightError: An assignor cannot be loaded, or the tables cannot be read.
    """
    terminal = console()
    with (
        spark_errors("what-if"),
        terminal.status("replaying the history"),
        read_history(spark, settings) as tables,
    ):
        replayed = replay(tables, assignors)
        summary = compare(replayed).persist()
        if out is not None:
            replayed.write.mode("overwrite").parquet(str(out / "what_if_generations"))
            summary.write.mode("overwrite").parquet(str(out / "what_if"))
        sentences = findings(summary)
    for sentence in sentences:
        terminal.print(sentence, soft_wrap=True)
    terminal.print("\nassumptions:")
    for assumption in ASSUMPTIONS:
        terminal.print(f"- {assumption}", soft_wrap=True)


def make_report(spark: SparkSession, settings: Settings, options: ReportOptions, out: Path) -> Path:
    """Write the report, and return its path.

    Raises:
        GroupwrightError: An assignor cannot be loaded, a group cannot be simulated, or the tables cannot be
            read.
    """
    with spark_errors("the report"), read_history(spark, settings) as tables:
        chosen = options.assignors
        return write_report(
            tables,
            out,
            made_at=datetime.now(UTC),
            source=settings.tables,
            groups=options.groups,
            shown=options.shown,
            compared=options.compared,
            deploys=None if options.simulate is None else simulated_deploys(tables, options.simulate),
            what_if=None
            if chosen and "none" in chosen
            else lambda: compare(replay(options.shown.restrict(tables), chosen)),
        )


def known_tables(names: Sequence[str] | None) -> Sequence[str]:
    """Return names of tables; all for None.

    Raises:
        InvalidInputError: There is no such table.
    """
    names = names or [*schemas.TABLES]
    if unknown := sorted({*names} - schemas.TABLES.keys()):
        raise InvalidInputError(f"no table {', '.join(unknown)}; the tables are {', '.join(schemas.TABLES)}")
    return names


def export_tables(spark: SparkSession, settings: Settings, names: Sequence[str], out: Path) -> None:
    """Write tables as Parquet files, in a folder of each table with one of each date.

    Raises:
        GroupwrightError: The tables cannot be read, or a table's folder exists.
    """
    tables = open_tables(spark, settings.tables, settings.format)
    with spark_errors("the export"):
        for name in names:
            rows = tables.read(schemas.TABLES[name])
            rows.write.partitionBy(schemas.PARTITION_COLUMN).parquet(str(out / name))


def replay(tables: Mapping[str, DataFrame], assignors: Sequence[str] | None) -> DataFrame:
    """Replay the history, with durations and weights from the tables.

    Args:
        tables: Tables by name.
        assignors: The assignors; None for those of Kafka's clients, and also `broker:uniform` and those of
            Java if the history is small.
    """
    generations = tables[schemas.GROUP_GENERATIONS.name]
    is_small = generations.limit(_SMALL_HISTORY + 1).count() <= _SMALL_HISTORY
    if assignors is None:
        assignors = (*KAFKAS, BROKERS[0], *JAVA_ASSIGNORS) if is_small else KAFKAS
    return run_what_if(
        generations,
        tables[schemas.GROUP_MEMBERS.name],
        assignors,
        rebalances=tables[schemas.REBALANCES.name],
        topics=topic_weights(tables[schemas.END_OFFSETS.name]),
        tasks=generations.sparkSession.sparkContext.defaultParallelism if is_small else None,
    ).persist()
