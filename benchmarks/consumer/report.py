"""Shows results on the terminal, and keeps them as a page, a plot and numbers."""

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

_ABOUT = f"""\
All meet the same broker (one node, Kafka's own jars, on this machine), each in processes of its own, in turns.

**Throughput.** A topic of {FILLED_PARTITIONS} partitions holds messages of {MESSAGE_BYTES} bytes. A lone member consumes it and
reads each message's error and value. The clock runs from the first message (or batch, which does not count) to the
last; *CPU s* is what the consumer's whole process took. What is slow is given up on after a while, and its rate counts.
The configuration is everyone's default, with one exception: librdkafka stops fetching for a second whenever its queue
is full, which hides what the clients do, so `{next(iter(UNSTALLED))}` is {next(iter(UNSTALLED.values()))} there; the second table is without.

**Joins.** A group consumes {JOIN_PARTITIONS} partitions, each of which gets a message every
{_LOADS}; one more member joins. Times run from its `subscribe`: *settled* is when the last partition changed hands and the loads differ by one at
most, *all consumed* when each partition has delivered a message, written since the join, to the owner who then
kept it. A *gap* is the longest time a partition delivered nothing, from the last message before the join on: the median
over the partitions, and the longest; *gap before* is the same of the second before the join. *Twice* are messages that
came again, *missing* those that never came. Each is the run in the middle. All members have
{", ".join(f"`{name}={value}`" for name, value in JOIN_TIMINGS.items())}; the broker has `group.initial.rebalance.delay.ms={INITIAL_REBALANCE_DELAY_MS}`.
Each member in Python is a process, so that none waits for another's lock; in Java all of a group are threads of one JVM. The
machine's cores serve the broker and all members at once, so that large groups are slower here than on machines of their own.

**Events.** A lone member waits in `poll(10)` on an empty topic, while another joins and leaves. The time is from the
event's arrival, off the network thread, until the callback begins.

**Idle.** A member with partitions waits in `poll(1)`, and nothing comes. Its process's time counts, native threads
included.
"""


def show(console: Console, results: Results) -> None:
    """Print the tables."""
    for table in tables(results):
        console.print(printed(table))
    for line in summary(results):
        console.print(line, highlight=False)


def keep(folder: Path, results: Results) -> list[Path]:
    """Write the page, the numbers, and the plot if matplotlib is there; return their paths."""
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
