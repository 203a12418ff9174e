"""Shows results on the terminal, and keeps them as a page, a plot and numbers."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.assignors.plot import draw
from benchmarks.assignors.results import Results
from benchmarks.assignors.tables import (
    memory_table,
    quality_table,
    racks_table,
    speed_table,
    summary,
)
from benchmarks.layout import Table, keep_results, markdown, printed
from rich.console import Console

_ABOUT = """\
Each contestant does what a leader does between JoinGroup and SyncGroup: from the bytes of all members' subscriptions
to the bytes of all members' assignments. All read the same bytes, each in a process of its own, and repeat the step;
the shortest run counts, which for Java is one after its compiler has warmed up. The cluster's metadata is there
before the clock starts, in the form that each client keeps it in. What members owned before an event comes from no
contestant, but from the generator of the cells (`benchmarks/assignors/groups.py`), as balanced as the subscriptions allow.

A cell is named by assignor, subscriptions, partitions (p), members (m, before the event), topics (t) and event. `>30 s`
did not come back; `lacking` has no such assignor, or cannot be given racks from outside; `-` was not asked, since it
would take minutes. In the column *reached*, ✓ means: no slower than Java and than franz-go where Groupwright takes
more than 5 ms, every target set for the cell, an assignment that is valid and not worse than any contestant's, and
for `range` and `roundrobin` the same as Java's.
"""

_ABOUT_QUALITY = """\
The first column is Groupwright's sum of the squares of all members' loads, the next ones are what the others' is more
than that. *Moved* are the partitions that did not stay with an owner who is still there; `cooperative-sticky` withholds
them for one round, so that the loads of that round say nothing.
"""


def show(console: Console, results: Results) -> None:
    """Print the tables."""
    for table in _tables(results):
        console.print(printed(table, texts=["reached"]))
    for line in summary(results.rows):
        console.print(line, highlight=False)


def keep(folder: Path, results: Results) -> list[Path]:
    """Write the page, the numbers, and the plot if matplotlib is there; return their paths."""
    return keep_results(folder, "assignors", results, draw, _page)


def _tables(results: Results) -> list[Table]:
    makers = (speed_table, quality_table, racks_table, memory_table)
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
    for table in _tables(results):
        yield f"\n## {table.title}\n"
        if table.title.startswith("Balance"):
            yield _ABOUT_QUALITY
        yield from markdown(table)
    yield ""
