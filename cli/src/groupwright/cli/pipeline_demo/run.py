"""One run of the demo: Kafka, groups, a stream that follows them, a report."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from pyspark.sql import SparkSession
from rich.console import Console

from groupwright.assignors import GroupwrightError
from groupwright.cli.pipeline_demo.groups import groups_under_load, play
from groupwright.cli.pipeline_demo.story import TOPICS, story
from groupwright.cli.pipeline_demo.summary import show
from groupwright.cli.pipeline_reading import ASSIGNORS, read_all
from groupwright.cli.pipeline_spark import local_spark
from groupwright.pipeline.jobs import Settings, run_batch, run_stream
from groupwright.pipeline.report import write_report
from groupwright.pipeline.what_if import compare, findings, run_what_if
from groupwright.testing import LocalKafka
from groupwright.testing.groups import LoadedGroup

_EVENTS = "groupwright.rebalances"
_STOP_SECONDS = 120.0
_SPARK = {
    # A short life: the compiler's first tier is enough, and fills more of its cache than one has by default.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user has chosen.

    Attributes:
        out: The folder where tables and page go.
        flaps: How often a member comes and goes.
        messages_per_second: To each topic.
    """

    out: Path
    flaps: int
    messages_per_second: int


def run(options: Options, console: Console) -> int:
    """Run it, and return how many rebalances the tables have.

    Raises:
        GroupwrightError: Something cannot start or go on; the message says what.
    """
    console.print("starting Kafka and Spark on 127.0.0.1")
    # One offsets partition is one task of Spark's: this machine has few cores.
    kafka = LocalKafka(
        config={"offsets.topic.num.partitions": 2},
        on_download=lambda name: console.print(f"  downloading {name}"),
    )
    with kafka, local_spark("demo", _SPARK) as spark:
        for topic, partitions in {**dict(TOPICS.values()), _EVENTS: 1}.items():
            kafka.create_topic(topic, partitions=partitions)
        settings = Settings(
            bootstrap_servers=kafka.bootstrap_servers,
            tables=str(options.out / "tables"),
            trigger_seconds=2.0,
            end_offsets_seconds=4.0,
            derive_seconds=3600.0,  # once, at the end
        )
        with groups_under_load(kafka.bootstrap_servers, options.messages_per_second) as groups:
            _tell(options, console, groups, spark, settings)
        return _conclude(options, console, spark, settings)


def _tell(
    options: Options,
    console: Console,
    groups: Mapping[str, LoadedGroup],
    spark: SparkSession,
    settings: Settings,
) -> None:
    """Play the story, with a stream that follows it from its first scene on."""
    first, *others = story(options.flaps)
    console.print(f"  {first.words}")
    play(first, groups)  # now there is something to read
    with _following(spark, settings, console):
        for scene in others:
            console.print(f"  {scene.words}")
            play(scene, groups)


@contextmanager
def _following(spark: SparkSession, settings: Settings, console: Console) -> Iterator[None]:
    stop = Event()
    errors: list[GroupwrightError] = []

    def follow() -> None:
        try:
            run_stream(
                spark, settings, stop, lambda line: console.print(f"  [dim]{line}[/dim]", soft_wrap=True)
            )
        except GroupwrightError as error:
            errors.append(error)

    thread = threading.Thread(target=follow, name="stream", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS)
    if errors:
        raise errors[0]


def _conclude(options: Options, console: Console, spark: SparkSession, settings: Settings) -> int:
    """Take in what is still in the log, play the history, write the page, and print what was found."""
    with console.status("the last records, and what other assignors would have done"):
        _catch_up(spark, settings)
        tables = dict(read_all(spark, settings))
        played = run_what_if(tables["group_generations"], tables["group_members"], ASSIGNORS)
        tables["what_if"] = compare(played).persist()
        page = write_report(
            tables, options.out / "report.html", made_at=datetime.now(UTC), source=settings.tables
        )
    rebalances = show(console, tables)
    console.print()
    for sentence in findings(tables["what_if"]):
        console.print(sentence, soft_wrap=True)
    console.print(
        f"\n[bold]{page}[/bold] has it as a page; the tables are in {settings.tables}", soft_wrap=True
    )
    return rebalances


def _catch_up(spark: SparkSession, settings: Settings) -> None:
    """Read what came after the stream's last batch: each job goes on where the other ended."""
    run_batch(spark, settings, lambda _: None)
