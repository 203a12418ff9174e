"""Tables of the results, independent of the output format."""

from collections.abc import Callable

from benchmarks.assignors.cases import (
    AIOKAFKA,
    CONTESTANTS,
    FRANZ_GO,
    GROUPWRIGHT,
    JAVA,
    KAFKA_PYTHON,
    MEMORY_PARTITIONS,
)
from benchmarks.assignors.results import Outcome, Quality, Row, Status
from benchmarks.assignors.targets import findings_of, ratio
from benchmarks.layout import MARKS, Finding, Table

_NOTHING = "-"


def speed_table(rows: list[Row]) -> Table:
    """Return the times of the leader's whole step beside Java and franz-go, with a mark for the targets."""
    contestants = (GROUPWRIGHT, JAVA, FRANZ_GO)
    columns = ["cell", *(f"{name} ms" for name in contestants), f"vs {JAVA}", f"vs {FRANZ_GO}", "reached"]
    return Table(
        "Time of the leader's whole step, bytes to bytes (the shortest run)",
        columns,
        [
            [
                row.case.name,
                *(_time(row.outcomes.get(name)) for name in contestants),
                str(ratio(row, JAVA) or _NOTHING),
                str(ratio(row, FRANZ_GO) or _NOTHING),
                _mark(findings_of(row)),
            ]
            for row in rows
            if not row.case.is_weighted
        ],
    )


def pure_python_table(rows: list[Row]) -> Table:
    """Return the times beside kafka-python and aiokafka, in the cells in which one of them ran."""
    contestants = (GROUPWRIGHT, KAFKA_PYTHON, AIOKAFKA)
    return Table(
        "The same step beside clients in pure Python",
        ["cell", *(f"{name} ms" for name in contestants)],
        [
            [row.case.name, *(_time(row.outcomes.get(name)) for name in contestants)]
            for row in rows
            if any(_has_run(row.outcomes.get(name)) for name in contestants[1:])
        ],
    )


def quality_table(rows: list[Row]) -> Table:
    """Return the quality of the sticky assignors, for the cells in which a contestant's differs."""
    others = [name for name in CONTESTANTS if name != GROUPWRIGHT]
    columns = ["cell", "Σ load²"]
    columns += [f"{name}: more Σ" for name in others]
    columns += [f"{name} moved" for name in CONTESTANTS]
    shown = [row for row in rows if row.case.is_sticky and _differs(row)]
    return Table(
        "Balance and moves (sticky assignors)",
        columns,
        [
            [
                row.case.name,
                _of(row, GROUPWRIGHT, lambda quality: _number(quality.squares)),
                *(_of(row, name, _excess(row)) for name in others),
                *(_of(row, name, lambda quality: _number(quality.moved)) for name in CONTESTANTS),
            ]
            for row in shown
        ],
    )


def racks_table(rows: list[Row]) -> Table:
    """Return the partitions whose owner is in the rack of a replica, and the moves."""
    contestants = (GROUPWRIGHT, JAVA)
    return Table(
        "Partitions with an owner in a rack of one of their replicas",
        ["cell", *contestants, *(f"{name} moved" for name in contestants)],
        [
            [
                row.case.name,
                *(_of(row, name, lambda quality: _number(quality.local)) for name in contestants),
                *(_of(row, name, lambda quality: _number(quality.moved)) for name in contestants),
            ]
            for row in rows
            if row.case.racks
        ],
    )


def load_table(rows: list[Row]) -> Table:
    """Return the time, the balance and the moves of the cells with weights."""
    return Table(
        "Balance by load",
        ["cell", "ms", "busiest of average", "moved or withheld", "reached"],
        [
            [
                row.case.name,
                _time(row.outcomes.get(GROUPWRIGHT)),
                _of(row, GROUPWRIGHT, lambda quality: f"{quality.peak:.3f}" if quality.peak else _NOTHING),
                _of(row, GROUPWRIGHT, lambda quality: _number(quality.moved)),
                _mark(findings_of(row)),
            ]
            for row in rows
            if row.case.is_weighted
        ],
    )


def memory_table(rows: list[Row]) -> Table:
    """Return the processes' peak memory in the largest groups: the most of all their events."""
    contestants = (GROUPWRIGHT, JAVA, FRANZ_GO)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.case.partitions >= MEMORY_PARTITIONS:
            groups.setdefault(row.case.name.rpartition("/")[0], []).append(row)
    return Table(
        "Peak memory of the whole process, inputs included, in MB "
        f"({MEMORY_PARTITIONS:,} partitions, the most of all events)",
        ["group", *contestants],
        [[group, *(_peak(events, name) for name in contestants)] for group, events in groups.items()],
    )


def summary(rows: list[Row]) -> list[str]:
    """Return how many cells reach their targets and in how many a peer is faster, and the missed targets."""
    findings = {row.case.name: findings_of(row) for row in rows}
    missed = {name: [f.text for f in found if f.reached is False] for name, found in findings.items()}
    open_ = {name: [f.text for f in found if f.reached is None] for name, found in findings.items()}
    reached = sum(not missed[name] and not open_[name] for name in findings)
    lines = [f"{reached} of {len(rows)} cells reach all that they should."]
    for name in (JAVA, FRANZ_GO):
        ratios = [found for row in rows if (found := ratio(row, name))]
        slower = sum(found.times < 1 for found in ratios)
        lines.append(f"Groupwright is slower than {name} in {slower} of {len(ratios)} cells.")
    lines += [f"{name} misses: {'; '.join(texts)}." for name, texts in missed.items() if texts]
    lines += [f"{name} leaves open: {'; '.join(texts)}." for name, texts in open_.items() if texts]
    return lines


def _mark(findings: list[Finding]) -> str:
    """Return the mark of the cell: the worst of its targets."""
    reached = {finding.reached for finding in findings}
    return MARKS[False if False in reached else None if None in reached else True]


def _has_run(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status not in {Status.LACKING, Status.LEFT_OUT}


def _differs(row: Row) -> bool:
    """Tell whether two contestants' assignments differ in balance, moves or validity."""
    found = [outcome.quality for outcome in row.outcomes.values() if outcome.quality]
    return len({(quality.fault, quality.squares, quality.moved) for quality in found}) > 1


def _time(outcome: Outcome | None) -> str:
    if outcome is None:
        return _NOTHING
    if outcome.best is not None:
        return milliseconds(outcome.best)
    match outcome.status:
        case Status.TIMEOUT:
            return f">{outcome.limit:.0f} s"
        case Status.FAILED:
            return f"fails: {outcome.note.partition(':')[0]}"
        case Status.LACKING:
            return "lacking"
        case _:
            return _NOTHING


def milliseconds(seconds: float) -> str:
    """Format a time with three significant digits."""
    number = seconds * 1000
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three digits


def _of(row: Row, name: str, show: Callable[[Quality], str]) -> str:
    outcome = row.outcomes.get(name)
    if outcome is None or outcome.quality is None:
        return _NOTHING
    return outcome.quality.fault or show(outcome.quality)


def _excess(row: Row) -> Callable[[Quality], str]:
    """Return a formatter of the excess of a sum of squares over Groupwright's."""
    own = row.outcomes[GROUPWRIGHT].quality

    def show(quality: Quality) -> str:
        if own is None or own.squares is None or quality.squares is None:
            return _NOTHING
        return f"{quality.squares - own.squares:+,}" if quality.squares != own.squares else "0"

    return show


def _number(number: int | None) -> str:
    return _NOTHING if number is None else f"{number:,}"


def _peak(rows: list[Row], name: str) -> str:
    most = max((row.outcomes[name].peak for row in rows if name in row.outcomes), default=0)
    return f"{most / 1e6:,.0f}" if most else _NOTHING
