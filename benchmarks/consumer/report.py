"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.consumer.plan import (
    FILLED_PARTITIONS,
    INITIAL_REBALANCE_DELAY_MS,
    JOIN_PARTITIONS,
    JOIN_TIMINGS,
    LOAD_INTERVALS,
    MESSAGE_BYTES,
    UNSTALLED,
)
from benchmarks.consumer.plot import draw
from benchmarks.consumer.results import Results
from benchmarks.consumer.tables import summary, tables
from benchmarks.layout import keep_results, markdown, printed
from rich.console import Console

_LOADS = ", ".join(f"{1000 * seconds:.0f} ms (group of {size})" for size, seconds in LOAD_INTERVALS.items())
_TIMINGS = ", ".join(f"`{name}={value}`" for name, value in JOIN_TIMINGS.items())
_SETTING = ", ".join(f"`{name}` is {value}" for name, value in UNSTALLED.items())

_ABOUT = f"""\
All clients use the same broker (one node, Apache Kafka's jars, on this machine), in separate processes,
in turns.

**Throughput.** A topic of {FILLED_PARTITIONS} partitions holds messages of {MESSAGE_BYTES} bytes. A single
member consumes it and reads each message's error and value. The clock runs from the first message (or batch,
which does not count) to the last; *CPU s* is the processor time of the whole process. A slow consumer is
stopped after a time limit, and its rate up to then counts. All clients have their default configuration, with
one exception: librdkafka pauses fetching for a second whenever its queue is full, which would hide the
differences between clients, so {_SETTING} there. The second table is without this setting.

**Joins.** A group consumes {JOIN_PARTITIONS} partitions with a steady load; one more member joins. The
interval between two messages of a partition is {_LOADS}. Times run from the new member's `subscribe`:
*settled* is the time of the last assignment or revocation, after which the loads differ by at most one; *all
consumed* is the time by which each partition has delivered a message, written since the join, to its final
owner. A *gap* is the longest time for which a partition delivered nothing, counted from the last message
before the join: the median over the partitions, and the longest. *Gap before* is the same for the second
before the join. *Twice* counts duplicates, *missing* counts messages never delivered. Each figure is of the
median run. All members have {_TIMINGS}; the broker has
`group.initial.rebalance.delay.ms={INITIAL_REBALANCE_DELAY_MS}`. In Python each member is a process, so that
members do not share a GIL; in Java all members of a group are threads of one JVM. The broker and all members
share the machine's cores, so large groups are slower here than on separate machines.

**Events.** A single member waits in `poll(10)` on an empty topic, while another one joins and leaves. The
time runs from the event's arrival in the member's inbox to the beginning of the callback.

**Idle.** A member with partitions waits in `poll(1)` on an empty topic. The figure is the processor time of
its process, native threads included.
"""


def show(console: Console, results: Results) -> None:
    """Print the tables."""
    for table in tables(results):
        console.print(printed(table))
    for line in summary(results):
        console.print(line, highlight=False)


def keep(folder: Path, results: Results) -> list[Path]:
    """Write the page, the numbers, and the plot if matplotlib is installed; return their paths."""
    return keep_results(folder, "consumer", results, draw, _page)


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# The consumer: Groupwright, confluent-kafka, kafka-python, aiokafka, Java\n"
    yield f"Made by `{results.command}` on {results.date}; {results.messages:,} messages.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.clients).items())
    yield ""
    yield _ABOUT
    yield "## Summary\n"
    yield from (f"- {line}" for line in summary(results))
    if plot is not None:
        yield f"\n![Messages a second, and joins]({plot})"
    for table in tables(results):
        yield f"\n## {table.title}\n"
        yield from markdown(table)
    yield ""
