"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator

from benchmarks.layout import Report, markdown
from benchmarks.load.plan import (
    CAPACITY,
    LAG_HORIZON,
    MAX_POLL_RECORDS,
    MEMBER_TIMINGS,
    MEMBERS,
    PARTITIONS,
    SERVICE_SECONDS,
    TRAFFIC_SHARE,
    WEIGHT_WINDOW,
)
from benchmarks.load.plot import draw
from benchmarks.load.results import Results
from benchmarks.load.shapes import Shape
from benchmarks.load.tables import summary, tables

_TIMINGS = ", ".join(f"`{name}={value}`" for name, value in MEMBER_TIMINGS.items())

_SERVICE = f"{1000 * SERVICE_SECONDS:g} ms"
_SOURCE = f"`Throughput(window={WEIGHT_WINDOW:g}) + Lag(horizon={LAG_HORIZON:g})`"

_ABOUT = f"""\
A group of {MEMBERS} members consumes {PARTITIONS} partitions with uneven traffic, on one broker on this
machine. A member spends {_SERVICE} on each message. It sleeps, so {MEMBERS} members fit on two cores. Its
capacity is {CAPACITY:g} messages per second, and that of the group {MEMBERS * CAPACITY:,.0f}. Each contestant
has its own topic and group, the same traffic and the same timetable. The contestants run one after the other.

The traffic has these shapes. Random numbers have a fixed seed.

- **{Shape.NEIGHBOURS}**: six neighbouring partitions have 1.8 times a member's even share of the traffic.
  Balance by counts assigns all six to one member. This shape is made so that counts leave 1.8 of the bound.
- **{Shape.POWER_LAW}**: the partition of rank k has a share proportional to k to the power of -0.6, in random
  order.
- **{Shape.HOT}**: six random partitions have half of the traffic, and the others share the rest evenly.

**Contestants.** `cooperative-sticky` and `load-aware` run in the same client, Groupwright's consumer, so that
only the assignor and its weights differ. The weights of `load-aware` come from {_SOURCE}.
The default window, 300 s, is longer than the run. *By processing time*, these rates are multiplied by the
seconds per message that the members measure themselves (`ProcessingTime`). All messages take the same time
here, so this source can at best do as well: what it measures is noisy, and missing at the first join. The
lag-based assignor is version 2.0.0 of the Java library `kafka-lag-based-assignor`. Its members are threads of
one JVM. They rebalance eagerly, since it supports no other protocol, and have
`max.poll.records={MAX_POLL_RECORDS}`, so that a rebalance does not wait for hundreds of messages. All
members have {_TIMINGS}.

**Bound.** *Peak* is the load of the busiest member over a certified lower bound (`evaluate_load`): no
assignment has a smaller busiest load. It is computed from the members' partitions and the written messages.

**Drain.** The group has committed offset 0, and has a backlog. The time runs from the start of the first
message to the end of the last one; it does not include joining. The ideal time is the bound times {_SERVICE}.

**Sustained throughput.** After the drain, messages are written at {TRAFFIC_SHARE:.0%} of the capacity of the
group. One window without rebalances is measured before the first drift, and one after each drift and its
rebalance. A member falls behind if it consumes less than is written to its partitions. The sustained
throughput is the rate of the traffic times the smallest share that a member consumes of what is written to
its partitions. With more traffic of this shape, the lag of that member grows. The *ideal* is the sustained
throughput of the best possible assignment. *Consumed* is the rate at which the group consumes messages of any
age. *Lag* is the number of unconsumed messages at the end of the run.

**Rebalances.** A drift exchanges the shares of a random half of the partitions. A member then enforces a
rebalance, at the same moment in each group. The load check of `load-aware` (`load.check.interval.ms`), which
finds a drift by itself, is off, so that all groups rebalance equally often. *Moved* partitions have another
owner afterwards. *Revoked* partitions are not consumed during a rebalance: with the eager protocol, all.
*Twice* is the number of messages that were consumed again.
"""


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# Balance by load: load-aware, cooperative-sticky, and Java's lag-based assignor\n"
    yield f"Made by `{results.command}` on {results.date}.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.contestants).items())
    if plot is not None:
        yield f"\n![Time to drain, sustained throughput, moves, and lag over time]({plot})"
    yield "\n## Summary\n"
    yield from (f"- {line}" for line in summary(results))
    for table in tables(results):
        yield f"\n## {table.title}\n"
        yield from markdown(table)
    yield "\n## What is measured\n"
    yield _ABOUT


REPORT = Report("load", Results, tables, summary, _page, draw)
