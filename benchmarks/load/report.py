"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator

from benchmarks.layout import Report, markdown
from benchmarks.load.plan import (
    CAPACITY,
    LAG_HORIZON,
    LEAST_TIMES,
    MAX_POLL_RECORDS,
    MEMBERS,
    MOST_OF_IDEAL,
    PARTITIONS,
    SERVICE_SECONDS,
    TRAFFIC_SHARE,
    WEIGHT_WINDOW,
)
from benchmarks.load.plot import draw
from benchmarks.load.results import Results
from benchmarks.load.shapes import Shape
from benchmarks.load.tables import summary, tables
from benchmarks.load.targets import findings_of

_SERVICE = f"{1000 * SERVICE_SECONDS:g} ms"
_SOURCE = f"`Throughput(window={WEIGHT_WINDOW:g}) + Lag(horizon={LAG_HORIZON:g})`"

_ABOUT = f"""\
A group of {MEMBERS} members consumes {PARTITIONS} partitions with uneven traffic, on one broker on this
machine. A member sleeps for {_SERVICE} at each message. So its capacity is {CAPACITY:g} messages per second,
and that of the group {MEMBERS * CAPACITY:,.0f}. All contestants have the same traffic and the same timetable,
one after the other: [how it is fair](../../benchmarks/load/README.md#how-it-is-fair).

- **{Shape.NEIGHBOURS}**: six neighbouring partitions have 1.8 times a member's even share of the traffic.
  Balance by counts assigns all six to one member. This shape is made so that counts leave 1.8 of the bound.
- **{Shape.POWER_LAW}**: the partition of rank k has a share proportional to k to the power of -0.6, in random
  order.
- **{Shape.HOT}**: six random partitions have half of the traffic, and the others share the rest evenly.

**Contestants.** The weights of `load-aware` come from {_SOURCE}. *By processing time*, these rates are
multiplied by the seconds per message that the members measure themselves (`ProcessingTime`). All messages
take the same time here, so this source can at best do as well: what it measures is noisy, and missing at the
first join. The lag-based assignor is version 2.0.0 of the Java library `kafka-lag-based-assignor`. Its
members rebalance eagerly, since it supports no other protocol, and have
`max.poll.records={MAX_POLL_RECORDS}`, so that a rebalance does not wait for hundreds of messages.

**Peak** is the load of the busiest member over a certified lower bound (`evaluate_load`): no assignment has a
smaller busiest load. The **ideal** is computed from this bound.

**Drain.** The time from the start of the first message of a backlog to the end of the last one; it does not
include joining.

**Sustained throughput.** After the drain, messages are written at {TRAFFIC_SHARE:.0%} of the capacity of the
group. The sustained throughput is the rate of this traffic times the smallest share that a member consumes of
what is written to its partitions: with more traffic, the lag of that member grows. It is measured before the
first drift, and after each drift and its rebalance. *Lag* is the number of unconsumed messages at the end of
the run.

**Rebalances.** A drift exchanges the shares of a random half of the partitions. A member then enforces a
rebalance, at the same moment in each group; the load check of `load-aware` (`load.check.interval.ms`), which
finds a drift by itself, is off. *Moved* partitions have another owner afterwards. *Revoked* partitions are
not consumed during a rebalance: with the eager protocol, all. *Twice* is the number of messages that were
consumed again.

**Targets.** `load-aware` drains and sustains {LEAST_TIMES:g} times as much as `cooperative-sticky` where
counts leave 1.8 of the bound, stays within {MOST_OF_IDEAL:g} of the ideal, and moves at most a fifth of the
partitions that the lag-based assignor moves.
"""


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# Balance by load: load-aware, cooperative-sticky, and Java's lag-based assignor\n"
    yield f"Made by `{results.command}` on {results.date}.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.contestants).items())
    if plot is not None:
        yield f"\n![Time to drain, sustained throughput, moves, and lag over time]({plot})"
    yield "\n## Summary\n"
    findings = findings_of(results)
    reached = sum(finding.reached is True for finding in findings)
    yield f"- {reached} of {len(findings)} targets are reached."
    yield from (f"- {finding}" for finding in findings if not finding.reached)
    for table in tables(results):
        yield f"\n## {table.title}\n"
        yield from markdown(table)
    yield "\n## What is measured\n"
    yield _ABOUT


REPORT = Report("load", Results, tables, summary, _page, draw)
