"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator

from benchmarks.consumer.plan import (
    FILLED_PARTITIONS,
    INITIAL_REBALANCE_DELAY_MS,
    JOIN_PARTITIONS,
    JOIN_TIMINGS,
    KILL_TIMINGS,
    KIP_848,
    LOAD_CHECK_MEMBERS,
    LOAD_INTERVALS,
    MESSAGE_BYTES,
    UNSTALLED,
)
from benchmarks.consumer.plot import draw
from benchmarks.consumer.results import Results
from benchmarks.consumer.tables import summary, tables
from benchmarks.layout import Report, markdown

_LOADS = ", ".join(f"{1000 * seconds:.0f} ms (group of {size})" for size, seconds in LOAD_INTERVALS.items())
_TIMINGS = ", ".join(f"`{name}={value}`" for name, value in JOIN_TIMINGS.items())

_ABOUT = f"""\
All clients use the same broker (one node, Kafka's own jars, on this machine), in processes of their own, in
turns: [how it is fair](../../benchmarks/consumer/README.md#how-it-is-fair).

**Throughput.** A single member consumes a topic of {FILLED_PARTITIONS} partitions with messages of
{MESSAGE_BYTES} bytes, and reads each message's error and value. *CPU s* is the CPU time of the consumer's
whole process. Slow runs are stopped after a time limit, and their rate until then counts. Every client has
its default configuration, with one exception: librdkafka stops fetching for a second whenever its queue is
full, which hides the clients' own cost, so `{next(iter(UNSTALLED))}` is {next(iter(UNSTALLED.values()))} in
the first two tables.

**A frozen heap.** Python's garbage collector passes over all objects of the process every few ten thousand
messages: 15,000 objects in this program with confluent-kafka alone, 26,000 with Groupwright; a service often
has hundreds of thousands with either. `gc.freeze()` has it leave out what was there at the start.

**Joins.** A group consumes {JOIN_PARTITIONS} partitions, each of which gets a message every {_LOADS}. One
more member joins. Times are measured from its `subscribe`. *Settled*: the last partition changed owners, and
the loads differ by at most one. *All consumed*: each partition has delivered a message, produced after the
join, to its final owner. A *gap* is the longest time in which a partition delivered nothing: the median over
the partitions, and the maximum. *Gap before* is the same for the second before the join. *Twice* counts
messages that were delivered again, *missing* those that were never delivered. Each number is from the median
run. All members have {_TIMINGS}; the broker has
`group.initial.rebalance.delay.ms={INITIAL_REBALANCE_DELAY_MS}`. The broker and all members share the
machine's cores, so large groups are slower here than on separate machines.

**Load checks.** A group of {LOAD_CHECK_MEMBERS} consumes as many partitions by `load-aware`. All weigh the
same, until those of one member weigh three times as much. *Wait* is the time from the writing of a message
until a member has it, in partitions that stay: its median and maximum, before the weights change and until a
second after the last partition moved.

**Events.** A single member waits in `poll(10)` on an empty topic, while another joins and leaves.

**Idle.** A member with partitions waits in `poll(1)` and gets no messages. The CPU time is that of its
process, including native threads.
"""


_BY_KIP_848 = f"""\
**Leaves, kills, deploys.** These are measured like joins, but from the call of `close`, or from SIGKILL. In
a deploy, each member closes its consumer; then its successor, a process that is ready and waits, subscribes;
the next member follows once the successor has its first message. The time runs from the first close, and a
gap is the longest single one of a partition. Where a member is killed, all have
`session.timeout.ms={KILL_TIMINGS["session.timeout.ms"]}`, and most of the time is the wait for the end of
its session. What it has consumed since its last commit comes *twice*. It commits every 5 s, so that this
number is chance.

**KIP-848.** confluent-kafka's members have `group.protocol=consumer` and the broker's assignor `uniform`.
Their timings are the broker's: `consumer.heartbeat.interval.ms` and `consumer.session.timeout.ms` are set
for each group, to the values of the other groups' members. Kafka's default for the least time between two
assignments of such a group applies; in 4.3 it is 1 s (`group.consumer.assignment.interval.ms`).
"""


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# The consumer: Groupwright, confluent-kafka, kafka-python, aiokafka, Java\n"
    yield f"Made by `{results.command}` on {results.date}; {results.messages:,} messages.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.clients).items())
    yield ""
    yield _ABOUT
    if any(
        contestant.endswith(KIP_848) for rivals in results.member_changes.values() for contestant in rivals
    ):
        yield _BY_KIP_848
    yield "## Summary\n"
    yield from (f"- {line}" for line in summary(results))
    if plot is not None:
        yield f"\n![Messages a second, and changes of groups' members]({plot})"
    for table in tables(results):
        yield f"\n## {table.title}\n"
        yield from markdown(table)
    yield ""


REPORT = Report("consumer", Results, tables, summary, _page, draw)
