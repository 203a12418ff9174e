"""Reports: tables on the terminal; a page and raw numbers as files."""

from collections.abc import Iterator
from statistics import median

from benchmarks.layout import Report, Table, markdown
from benchmarks.pipeline.cells import (
    CORE,
    DERIVE,
    ENDS,
    EVERY_DAY,
    FORMATTER,
    MEMORY,
    ONE_CORE,
    PLAIN,
    PLAIN_COLUMNS,
    SPARK,
    SPARK_COMMITS,
    TWO_CORES,
    WHAT_IF,
)
from benchmarks.pipeline.results import Results, Run

LEAST_RATE = 500_000
"""Committed offsets a second on one core, from Parquet to a sink that forgets them."""
LEAST_TIMES = 5.0
"""Over the plain loop."""
LEAST_SCALING = 1.7
"""From one core to two."""
MOST_GROWTH = 1.2
"""Of the memory, from the fewest records to the most."""
MOST_SECONDS = 600
"""For what-if."""
MOST_AGEING = 1.2
"""Time of one more day in old tables, over that in young ones."""
_SOME_DAYS = 10
"""Days at the start and at the end whose times are compared."""
MOST_ENDS_SECONDS = 10.0
"""For a sample of the log-end offsets of `ENDS_PARTITIONS`."""
ENDS_PARTITIONS = 150_000

_ABOUT = """\
Records are committed offsets of key version 1 and value version 3, including tombstones, with seven-digit
names of groups and topics. The best round counts.

- **One core**: Spark is `local[1]`. Its JVM and its Python worker share one core. It reads Parquet, decodes,
  and writes to Spark's `noop` sink. The others decode records that are already in memory: `decode_batch` and
  one loop from Arrow arrays to Arrow arrays, another loop from bytes objects to named tuples, and Kafka's
  formatter to JSON that is discarded, once its compiler is warm.
- **Two cores**: `local[2]` on two cores.
- **Memory**: records are generated while they are read. The number is the largest resident memory.
- **What-if**: from tables in Parquet to a table in Parquet, with `range`, `roundrobin`, `sticky` and
  `cooperative-sticky`. A record is one generation replayed by one assignor. A group has 2 to 16 members and 6
  to 192 partitions. In each generation a member joins, leaves or is replaced.
- **Derived tables**: one more day of a synthetic fleet, from base tables in Parquet to derived ones; [the
  fleet](../pipeline-at-scale.md#derived-tables). A record is a row of `lag` or `rebalances`. The last day is
  derived on one core and on two, and compared with the second one. **Every day**: all days of a fleet of the
  same kind, one after another in one process, on two cores.
- **Log-end offsets**: a sample of all partitions of one LocalKafka, whose limit of open files bounds them,
  and of ten brokers in containers. A record is a partition, without further replicas.
"""


def summary(results: Results) -> list[str]:
    """Return the results compared with the targets."""
    lines: list[str] = []
    spark, core = results.find(ONE_CORE, SPARK), results.find(ONE_CORE, CORE)
    commits = results.find(ONE_CORE, SPARK_COMMITS)
    lines += [
        _line(f"{run.what}: records a second on one core", run.rate, LEAST_RATE, ",.0f")
        for run in (spark, commits)
        if run is not None
    ]
    loop, tuples = results.find(ONE_CORE, PLAIN_COLUMNS), results.find(ONE_CORE, PLAIN)
    formatter = results.find(ONE_CORE, FORMATTER)
    if loop and tuples and core:
        what = "decode_batch over the plain loop from columns to columns, times"
        lines.append(_line(what, core.rate / loop.rate, LEAST_TIMES, ".1f"))
        lines.append(f"  over the loop from bytes objects to tuples, times: {core.rate / tuples.rate:.1f}")
    if formatter and core and spark:
        over = f"{core.rate / formatter.rate:.1f} and {spark.rate / formatter.rate:.1f}"
        lines.append(f"decode_batch and Spark's decode over Kafka's formatter, times: {over}")
    for what in (SPARK, SPARK_COMMITS):
        one, two = results.find(ONE_CORE, what), results.find(TWO_CORES, what)
        if one and two:
            lines.append(
                _line(f"{what}: two cores over one, times", two.rate / one.rate, LEAST_SCALING, ".2f")
            )
    memory = [run for run in results.runs if run.cell == MEMORY]
    if len(memory) > 1:
        grown = _held(memory[-1]) / _held(memory[0])
        held = (
            f"memory at {memory[-1].records:,} records over that at {memory[0].records:,}, times: {grown:.2f}"
        )
        lines.append(f"{'✓' if grown <= MOST_GROWTH else '✗'} {held} (at most {MOST_GROWTH})")
    played = next((run for run in results.runs if run.cell == WHAT_IF), None)
    if played:
        mark = "✓" if played.seconds <= MOST_SECONDS else "✗"
        each = played.seconds * played.cores / played.records * 1e6
        lines.append(
            f"{mark} what-if, {played.what}: {played.seconds:.0f} s on {played.cores} cores (at most "
            f"{MOST_SECONDS}); "
            f"{each:,.0f} µs of a core for each generation and assignor"
        )
    return [*lines, *_derived(results)]


def _derived(results: Results) -> list[str]:
    """Return the lines of derived tables and of samples."""
    lines = []
    derived, ends = ([run for run in results.runs if run.cell == cell] for cell in (DERIVE, ENDS))
    if len(derived) > 1:
        one, two = derived[:2]
        lines.append(
            _line(f"{one.what}: two cores over one, times", one.seconds / two.seconds, LEAST_SCALING, ".2f")
        )
        lines += _unit_costs(one)
    for young in derived[2:]:
        old = derived[1]
        grown = old.seconds / young.seconds
        mark = "✓" if grown <= MOST_AGEING else "✗"
        lines.append(f"{mark} {old.what}: over {young.what}, times: {grown:.2f} (at most {MOST_AGEING})")
    for every in (run for run in results.runs if run.cell == EVERY_DAY):
        # The first day is that of the JVM's start.
        _, *days = every.more["seconds_of_days"]
        some = min(_SOME_DAYS, len(days) // 2)
        first, last = median(days[:some]), median(days[-some:])
        mark = "✓" if last <= MOST_AGEING * first else "✗"
        lines.append(
            f"{mark} {every.what}: the last {some} take {last:.1f} s each, {last / first:.2f} times the "
            f"first {some} after the first day (at most {MOST_AGEING})"
        )
    # The first time, most of it is the start of Kafka's client and of Spark's code.
    for first, again in zip(ends[::2], ends[1::2], strict=True):
        lines.append(f"  ends of {first.what}: {first.seconds:.2f} s")
        described = f"ends of {again.what}: {again.seconds:.2f} s"
        if again.records == ENDS_PARTITIONS:
            mark = "✓" if again.seconds <= MOST_ENDS_SECONDS else "✗"
            described = f"{mark} {described} (at most {MOST_ENDS_SECONDS:.0f})"
        lines.append(described)
    return lines


def _unit_costs(run: Run) -> Iterator[str]:
    """Yield the processor time of each derived table for each row, and its bytes."""
    for name, cpu in run.more["cpu_by_table"].items():
        if rows := run.more["rows"][name]:
            size = run.more["bytes"].get(name, 0) / rows
            each = cpu / rows * 1e6
            yield f"  {name}: {cpu:.0f} s of processor time; a row {each:,.1f} µs, {size:.1f} bytes"


def _line(what: str, found: float, least: float, form: str) -> str:
    return f"{'✓' if found >= least else '✗'} {what}: {found:{form}} (at least {least:{form}})"


def _held(run: Run) -> float:
    return (run.python_mib or 0) + (run.jvm_mib or 0)


def table(results: Results) -> Table:
    """Return the table of all runs."""
    columns = ["cell", "what", "records", "cores", "s", "CPU s", "records/s", "Python MiB", "JVM MiB"]
    return Table("The pipeline", columns, [_row(run) for run in results.runs])


def _row(run: Run) -> list[str]:
    def shown(number: float | None, form: str) -> str:
        return "" if number is None else f"{number:{form}}"

    sizes = [shown(run.python_mib, ".0f"), shown(run.jvm_mib, ".0f")]
    times = [f"{run.seconds:.2f}", shown(run.cpu_seconds, ".2f"), f"{run.rate:,.0f}"]
    return [run.cell, run.what, f"{run.records:,}", str(run.cores), *times, *sizes]


def _page(results: Results, _plot: str | None) -> Iterator[str]:
    yield "# The pipeline: decoding `__consumer_offsets`, derived tables, and what-if\n"
    yield f"Made by `{results.command}` on {results.date}.\n"
    yield from (f"- {name}: {value}" for name, value in results.machine.items())
    yield ""
    yield _ABOUT
    yield "## Summary\n"
    yield from (f"- {line}" for line in summary(results))
    yield ""
    yield from markdown(table(results))
    yield ""


REPORT = Report("pipeline", Results, lambda results: [table(results)], summary, _page)
