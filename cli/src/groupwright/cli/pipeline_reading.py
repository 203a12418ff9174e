"""The commands that read the tables: what-if studies and the report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline.errors import spark_errors
from groupwright.pipeline.jobs import Settings, with_consumer_members
from groupwright.pipeline.report import write_report
from groupwright.pipeline.what_if import compare, findings, run_what_if

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The default assignors of what-if studies."""


def print_what_if(
    spark: SparkSession, settings: Settings, assignors: Sequence[str], out: Path | None
) -> None:
    """Replay the history, print the findings, and write the what-if tables to `out` if given.

    Raises:
        GroupwrightError: An assignor cannot be loaded, or the tables cannot be read.
    """
    console = Console(highlight=False)
    with spark_errors("what-if"), console.status("replaying the history"):
        replayed = _replay(read_all(spark, settings), assignors)
        summary = compare(replayed).persist()
        if out is not None:
            replayed.write.mode("overwrite").parquet(str(out / "what_if_generations"))
            summary.write.mode("overwrite").parquet(str(out / "what_if"))
        sentences = findings(summary)
    for sentence in sentences:
        console.print(sentence, soft_wrap=True)


def make_report(
    spark: SparkSession, settings: Settings, assignors: Sequence[str], out: Path, group: str | None = None
) -> Path:
    """Write the report, and return its path.

    Raises:
        GroupwrightError: An assignor cannot be loaded, or the tables cannot be read.
    """
    with spark_errors("the report"):
        tables = dict(read_all(spark, settings))
        if assignors:
            tables["what_if"] = compare(_replay(tables, assignors)).persist()
        return write_report(tables, out, made_at=datetime.now(UTC), source=settings.tables, group=group)


def read_all(spark: SparkSession, settings: Settings) -> Mapping[str, DataFrame]:
    """Return all tables by name; `group_members` includes the members of KIP-848 groups.

    Raises:
        TablesError: The tables cannot be opened.
    """
    tables = open_tables(spark, settings.tables, settings.format)
    found = {name: tables.read(table) for name, table in schemas.TABLES.items()}
    return {**found, schemas.GROUP_MEMBERS.name: with_consumer_members(tables)}


def _replay(tables: Mapping[str, DataFrame], assignors: Sequence[str]) -> DataFrame:
    generations = tables[schemas.GROUP_GENERATIONS.name]
    return run_what_if(generations, tables[schemas.GROUP_MEMBERS.name], assignors).persist()
