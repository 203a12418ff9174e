"""Lays results out as tables, without saying yet in which form they are shown."""

from collections.abc import Callable, Iterable
from statistics import median

from benchmarks.consumer.plan import JOIN_PARTITIONS, Cell, MemberChange
from benchmarks.consumer.results import (
    AnyOutcome,
    FetchRun,
    Gaps,
    MemberChangeRun,
    Outcomes,
    Results,
    Status,
    Waits,
)
from benchmarks.consumer.targets import best_rate, findings_of, median_rate, paired_ratio, rival_of
from benchmarks.layout import Table

_NOTHING = "-"

_TITLES = {
    Cell.JOIN: "A member joins a group of {}",
    Cell.LEAVE: "A member leaves a group of {}",
    Cell.KILL: "A member is killed in a group of {}",
    Cell.DEPLOY: "All members are replaced, one after the other, in a group of {}",
}


def tables(results: Results) -> list[Table]:
    """Return all tables that have rows."""
    made = [
        _fetch_table("Throughput", results.throughput),
        _fetch_table("Throughput with a frozen heap", results.frozen),
        _fetch_table("Throughput with librdkafka's own settings", results.defaults),
        *(_member_change_table(cell, outcomes) for cell, outcomes in results.member_changes.items()),
        _load_check_table(results),
        _event_table(results),
        _idle_table(results),
    ]
    return [table for table in made if table.rows]


def summary(results: Results) -> list[str]:
    """Return what was to be reached, each with a mark."""
    return list(map(str, findings_of(results)))


def _fetch_table(title: str, outcomes: Outcomes[FetchRun]) -> Table:
    columns = [
        "consumer",
        "runs",
        "median s",
        "messages/s, best",
        "CPU s",
        "of confluent-kafka",
    ]
    rows = []
    for name, outcome in outcomes.items():
        if not outcome.runs:
            rows.append([name, *_failure(outcome, columns)])
            continue
        rival = outcomes.get(rival_of(name))
        rows.append(
            [
                name,
                str(len(outcome.runs)),
                _seconds_per_million(median_rate(outcome)),
                f"{best_rate(outcome):,.0f}",
                f"{min(1e6 * run.cpu_seconds / (run.messages - run.first) for run in outcome.runs):.2f}",
                _ratio(paired_ratio(outcome, rival)) if rival is not outcome else _NOTHING,
            ]
        )
    return Table(f"{title}, by a million messages", columns, rows)


def _member_change_table(cell: str, outcomes: Outcomes[MemberChangeRun]) -> Table:
    columns = [
        "group",
        "runs",
        "settled s",
        "all consumed s",
        "stayed",
        "their gap ms",
        "moved",
        "their gap ms",
        "gap before ms",
        "twice",
        "missing",
    ]
    rows = []
    for name, outcome in outcomes.items():
        runs = outcome.runs
        if not runs:
            rows.append([name, *_failure(outcome, columns)])
            continue
        rows.append(
            [
                name,
                str(len(runs)),
                _spread(run.settled for run in runs),
                _spread(run.consumed for run in runs),
                _middle(runs, lambda run: run.kept.partitions),
                _gap([run.kept for run in runs]),
                _middle(runs, lambda run: run.moved.partitions),
                _gap([run.moved for run in runs]),
                _gap([run.before for run in runs]),
                _middle(runs, lambda run: run.twice),
                _middle(runs, lambda run: run.missing),
            ]
        )
    change = MemberChange.of(cell)
    title = _TITLES[change.kind].format(change.size)
    return Table(f"{title} on {JOIN_PARTITIONS} partitions", columns, rows)


def _load_check_table(results: Results) -> Table:
    columns = ["group", "runs", "moved", "wait before ms", "wait meanwhile ms", "twice", "missing"]
    rows = []
    for name, outcome in results.load_checks.items():
        runs = outcome.runs
        if not runs:
            rows.append([name, *_failure(outcome, columns)])
            continue
        rows.append(
            [
                name,
                str(len(runs)),
                f"{median(run.moved for run in runs):.0f}",
                _wait([run.before for run in runs]),
                _wait([run.kept for run in runs]),
                f"{median(run.twice for run in runs):.0f}",
                f"{median(run.missing for run in runs):.0f}",
            ]
        )
    title = f"Load checks move some of {JOIN_PARTITIONS} partitions: how long messages of the others wait"
    return Table(title, columns, rows)


def _event_table(results: Results) -> Table:
    rows = []
    for name, outcome in results.events.items():
        for kind in ("revokes", "assigns"):
            waits = [1000 * wait for run in outcome.runs for wait in getattr(run, kind)]
            if waits:
                rows.append([f"{name} {kind}", str(len(waits)), f"{median(waits):.1f}", f"{max(waits):.1f}"])
    return Table(
        "From an event's arrival until poll(10) delivers it",
        ["event", "number", "median ms", "most ms"],
        rows,
    )


def _idle_table(results: Results) -> Table:
    rows = [
        [
            name,
            str(len(outcome.runs)),
            f"{1000 * median(run.start_cpu_seconds for run in outcome.runs):.0f}",
            f"{median(run.share for run in outcome.runs):.2%}",
            f"{median(run.resident for run in outcome.runs) / 1e6:.1f}",
            f"{median(run.objects for run in outcome.runs):,.0f}",
        ]
        for name, outcome in results.idle.items()
        if outcome.runs
    ]
    columns = ["consumer", "runs", "start, CPU ms", "idle, of a core", "memory MB", "objects"]
    return Table("An idle member in poll(1)", columns, rows)


def _failure(outcome: AnyOutcome, columns: list[str]) -> list[str]:
    words = {Status.LACKING: "lacking", Status.TIMEOUT: "no answer"}
    word = words.get(outcome.status, f"fails: {outcome.note.partition(':')[0]}")
    return [word, *[_NOTHING] * (len(columns) - 2)]


def _seconds_per_million(rate: float | None) -> str:
    return _NOTHING if rate is None else f"{1e6 / rate:.2f}"


def _ratio(number: float | None) -> str:
    return _NOTHING if number is None else f"{number:.2f}"


def _spread(numbers: Iterable[float]) -> str:
    """Return the number in the middle, and the least and the most if there are several."""
    ordered = sorted(numbers)
    if len(ordered) == 1:
        return f"{ordered[0]:.2f}"
    return f"{median(ordered):.2f} ({ordered[0]:.2f}-{ordered[-1]:.2f})"


def _middle(runs: list[MemberChangeRun], get: Callable[[MemberChangeRun], int]) -> str:
    return f"{median(map(get, runs)):.0f}"


def _gap(gaps: list[Gaps]) -> str:
    """Return the median over partitions and the longest of all; of each, the run in the middle."""
    if not any(gap.partitions for gap in gaps):
        return _NOTHING
    return (
        f"{1000 * median(gap.median for gap in gaps):.0f}, {1000 * median(gap.longest for gap in gaps):.0f}"
    )


def _wait(waits: list[Waits]) -> str:
    """Return the median and the maximum; of each, the run in the middle."""
    middle, longest = (median(each) for each in ((w.median for w in waits), (w.longest for w in waits)))
    return f"{1000 * middle:.0f}, {1000 * longest:.0f}"
