"""One run of the demo: Kafka, groups, the streaming job, the batch job and the report."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from pyspark.sql import SparkSession
from rich.console import Console

from groupwright.assignors import GroupwrightError
from groupwright.cli.pipeline.demo.groups import groups_under_load, perform
from groupwright.cli.pipeline.demo.scenario import TOPICS, scenario
from groupwright.cli.pipeline.demo.summary import show
from groupwright.cli.pipeline.reading import replay
from groupwright.pipeline.jobs import FEW_ROWS, Settings, local_session, read_history, run_batch, run_stream
from groupwright.pipeline.report import write_report
from groupwright.pipeline.what_if import compare, findings
from groupwright.testing import LocalKafka
from groupwright.testing.groups import LoadedGroup

_EVENTS = "groupwright.rebalances"
_STOP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices.

    Attributes:
        out: Folder for the tables and the page.
        flaps: Number of times a member joins and leaves.
        messages_per_second: Rate per topic.
    """

    out: Path
    flaps: int
    messages_per_second: int


def run(options: Options, console: Console) -> int:
    """Run the demo, and return the number of rebalances in the tables.

    Raises:
        GroupwrightError: The demo cannot start or continue.
    """
    console.print("starting Kafka and Spark on 127.0.0.1")
    # Spark runs one task per partition of the offsets topic, and a laptop has few cores.
    kafka = LocalKafka(
        config={"offsets.topic.num.partitions": 2},
        on_download=lambda name: console.print(f"  downloading {name}"),
    )
    with kafka, local_session("groupwright demo", settings=FEW_ROWS) as spark:
        for topic, partitions in {**dict(TOPICS.values()), _EVENTS: 1}.items():
            kafka.create_topic(topic, partitions=partitions)
        settings = Settings(
            bootstrap_servers=kafka.bootstrap_servers,
            tables=str(options.out / "tables"),
            trigger_seconds=2.0,
            end_offsets_seconds=4.0,
            derive_seconds=3600.0,  # longer than the demo: derived tables are computed once, at the end
        )
        with groups_under_load(kafka.bootstrap_servers, options.messages_per_second) as groups:
            _perform_scenario(options, console, groups, spark, settings)
        return _conclude(options, console, spark, settings)


def _perform_scenario(
    options: Options,
    console: Console,
    groups: Mapping[str, LoadedGroup],
    spark: SparkSession,
    settings: Settings,
) -> None:
    """Perform the scenario. The streaming job starts after the first step."""
    first, *others = scenario(options.flaps)
    console.print(f"  {first.words}")
    perform(first, groups)  # the job needs an offsets topic, which the first group creates
    with _streaming_job(spark, settings, console):
        for step in others:
            console.print(f"  {step.words}")
            perform(step, groups)


@contextmanager
def _streaming_job(spark: SparkSession, settings: Settings, console: Console) -> Iterator[None]:
    """Run the streaming job in a thread until the end of the context."""
    stop = Event()
    errors: list[GroupwrightError] = []

    def run_job() -> None:
        try:
            run_stream(
                spark, settings, stop, lambda line: console.print(f"  [dim]{line}[/dim]", soft_wrap=True)
            )
        except GroupwrightError as error:
            errors.append(error)

    thread = threading.Thread(target=run_job, name="stream", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS)
    if errors:
        raise errors[0]


def _conclude(options: Options, console: Console, spark: SparkSession, settings: Settings) -> int:
    """Ingest the remaining records, replay the history, write the page, and print the findings."""
    with ExitStack() as stack:
        with console.status("the last records, and what other assignors would have done"):
            _catch_up(spark, settings)
            tables = stack.enter_context(read_history(spark, settings))
            tables["what_if"] = compare(replay(tables, None)).persist()
            page = write_report(
                tables, options.out / "report.html", made_at=datetime.now(UTC), source=settings.tables
            )
        rebalances = show(console, tables)
        console.print()
        for sentence in findings(tables["what_if"]):
            console.print(sentence, soft_wrap=True)
    console.print(f"\nreport: [bold]{page}[/bold]; tables: {settings.tables}", soft_wrap=True)
    return rebalances


def _catch_up(spark: SparkSession, settings: Settings) -> None:
    """Ingest the records after the stream's last batch: the batch job starts where the tables end."""
    run_batch(spark, settings, lambda _: None)
