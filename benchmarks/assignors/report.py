"""Reports: tables on the terminal; a page, a plot and raw numbers as files."""

from collections.abc import Iterator

from benchmarks.assignors.plot import draw
from benchmarks.assignors.results import Results
from benchmarks.assignors.tables import (
    load_table,
    memory_table,
    pure_python_table,
    quality_table,
    racks_table,
    speed_table,
    summary,
)
from benchmarks.layout import Report, Table, markdown

_ABOUT = """\
The leader's work between JoinGroup and SyncGroup: from the bytes of all members' subscriptions to the bytes
of all members' assignments. All read the same bytes, each in its own process: [how it is
fair](../../benchmarks/assignors/README.md#how-it-is-fair).

A cell is named by assignor, subscriptions, partitions (p), members (m, before the event), topics (t) and
event. The members subscribe to everything (`equal`), each to a random half of the topics (`half`), half of
them to one half (`disjoint`), each tenth of them to more (`nested`), or to everything but for one member
(`narrow`). `LEAVE_MANY`: a quarter leaves. `>30 s`: the contestant did not finish. `lacking`: it cannot be
given racks from outside. ✓ means that Groupwright is no slower than Java and franz-go where it takes more
than 5 ms, that it reaches every target set for the cell, that the assignment is valid and not worse than any
contestant's, and that for `range` and `roundrobin` it equals Java's.
"""

_ABOUT_QUALITY = """\
Only the cells in which contestants differ: in all others, those that finish have equal sums and moves.
Σ load² is Groupwright's sum of squares of all members' loads; *more Σ* is another contestant's difference to
it. *Moved* counts the partitions that did not stay with an owner that is still a member.
"""

_ABOUT_LOAD = """\
Groupwright alone has `load-aware`. Its targets are times: 200 ms for 10,000 partitions and 200 members, 2 s
for 100,000 and 1,000. Weights are log-normal with a sigma of 1, and known before the clock starts. Before an
event, partitions are balanced by counts, so that even the step of `STABLE` has to find partitions that move.
The balance is missing where partitions are withheld for one round.
"""


def tables(results: Results) -> list[Table]:
    """Return all tables."""
    makers = (speed_table, pure_python_table, quality_table, load_table, racks_table, memory_table)
    return [table for table in (maker(results.rows) for maker in makers) if table.rows]


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# The leader's step: Groupwright, Java, franz-go, kafka-python, aiokafka\n"
    yield f"Made by `{results.command}` on {results.date}.\n"
    yield from (f"- {name}: {value}" for name, value in (results.machine | results.contestants).items())
    yield ""
    yield _ABOUT
    yield "## Summary\n"
    yield from (f"- {line}" for line in summary(results.rows))
    if plot is not None:
        yield f"\n![Time against partitions, both on logarithmic scales]({plot})"
    for table in tables(results):
        yield f"\n## {table.title}\n"
        if table.title.startswith("Balance and moves"):
            yield _ABOUT_QUALITY
        if table.title.startswith("Balance by load"):
            yield _ABOUT_LOAD
        yield from markdown(table)
    yield ""


REPORT = Report("assignors", Results, tables, lambda results: summary(results.rows), _page, draw)
