"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator

from benchmarks.consumer.plan import (
    JOIN_PARTITIONS,
    JOIN_TIMINGS,
    KILL_TIMINGS,
    LOAD_INTERVALS,
    UNSTALLED,
)
from benchmarks.consumer.plot import draw
from benchmarks.consumer.results import Results
from benchmarks.consumer.tables import summary, tables
from benchmarks.layout import Report, markdown

_LOADS = ", ".join(f"{1000 * seconds:.0f} ms (group of {size})" for size, seconds in LOAD_INTERVALS.items())

_ABOUT = f"""\
All clients use the same broker, on this machine, in processes of their own, in turns: [what each table
measures, and how it is fair](../../benchmarks/consumer/README.md).

**Throughput.** *CPU s* is the CPU time of the consumer's whole process. Slow runs are stopped after a time
limit, and their rate until then counts. In the first two tables `{next(iter(UNSTALLED))}` is
{next(iter(UNSTALLED.values()))}, since librdkafka stops fetching for a second whenever its queue is full.

**Changes of members.** A group consumes {JOIN_PARTITIONS} partitions, each of which gets a message every
{_LOADS}. Times run from the member's `subscribe` or `close`, or from SIGKILL; a deploy's run from the first
`close`. *Settled*: the last partition changed owners. *All consumed*: each has delivered a message, produced
after the change, to its final owner. A *gap* is the longest time in which a partition delivered nothing: the
median over the partitions, and the maximum; *gap before* is that of the second before. *Twice* counts
messages that came again, *missing* those that never came. Each number is from the median run. Heartbeats are
sent every {JOIN_TIMINGS["heartbeat.interval.ms"]} ms. After a kill, most of the time is the wait for the end
of the session ({KILL_TIMINGS["session.timeout.ms"] // 1000} s), and what comes twice is chance.

**Load checks.** *Wait* is the time from the writing of a message until a member has it, in partitions that
stay: its median and maximum, before the weights change and until a second after the last partition moved.
"""


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# The consumer: Groupwright, confluent-kafka, kafka-python, aiokafka, Java\n"
    yield f"Made by `{results.command}` on {results.date}; {results.messages:,} messages.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.clients).items())
    yield ""
    yield _ABOUT
    yield "## Summary\n"
    yield from (f"- {line}" for line in summary(results))
    if plot is not None:
        yield f"\n![Messages a second, and changes of groups' members]({plot})"
    for table in tables(results):
        yield f"\n## {table.title}\n"
        yield from markdown(table)
    yield ""


REPORT = Report("consumer", Results, tables, summary, _page, draw)
