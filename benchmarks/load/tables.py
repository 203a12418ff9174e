"""Tables of the results, independent of the output format."""

from collections.abc import Callable
from statistics import mean

from benchmarks.consumer.results import Status
from benchmarks.layout import Table
from benchmarks.load.plan import COUNTS
from benchmarks.load.results import Outcome, Results, Run
from benchmarks.load.targets import findings_of, worst_of_ideal

_NOTHING = "-"
_Row = Callable[[Run, Run | None], list[str]]
"""The cells of a run, beside the run of `cooperative-sticky` with the same traffic."""
_FAILURES = {Status.LACKING: "lacking", Status.TIMEOUT: "timed out", Status.FAILED: "failed"}


def tables(results: Results) -> list[Table]:
    """Return all tables."""
    return [
        _table(
            results,
            "Drain of a backlog",
            ["peak", "s", "of ideal", "messages/s", "of cooperative-sticky"],
            _drain_row,
        ),
        _table(
            results,
            "Sustained throughput, messages/s",
            [
                "peak",
                "before drifts",
                "of cooperative-sticky",
                "after drifts, mean",
                "ideal",
                "worst of ideal",
                "lag",
            ],
            _throughput_row,
        ),
        _table(
            results,
            "Enforced rebalances, one after each drift",
            ["moved", "in all", "revoked", "twice"],
            _rebalance_row,
        ),
    ]


def summary(results: Results) -> list[str]:
    """Return what was to be reached, each with a mark."""
    return list(map(str, findings_of(results)))


def _table(results: Results, title: str, columns: list[str], row: _Row) -> Table:
    rows = []
    for shape, outcomes in results.shapes.items():
        counts = outcomes[COUNTS].run if COUNTS in outcomes else None
        for name, outcome in outcomes.items():
            cells = row(outcome.run, counts) if outcome.run else _failure(outcome, len(columns))
            rows.append([f"{shape}: {name}", *cells])
    return Table(title, ["traffic: contestant", *columns], rows)


def _failure(outcome: Outcome, columns: int) -> list[str]:
    return [_FAILURES.get(outcome.status, _NOTHING), *[_NOTHING] * (columns - 1)]


def _drain_row(run: Run, counts: Run | None) -> list[str]:
    drain = run.drain
    return [
        f"{drain.peak_over_bound:.2f}",
        f"{drain.seconds:.1f}",
        f"{drain.seconds / drain.ideal_seconds:.2f}",
        f"{drain.rate:,.0f}",
        _times(drain.rate, counts.drain.rate if counts else None),
    ]


def _throughput_row(run: Run, counts: Run | None) -> list[str]:
    first, *later = run.windows
    return [
        f"{first.peak_over_bound:.2f}",
        f"{first.sustained:,.0f}",
        _times(first.sustained, counts.windows[0].sustained if counts else None),
        f"{mean(window.sustained for window in later):,.0f}" if later else _NOTHING,
        f"{mean(window.ideal for window in run.windows):,.0f}",
        f"{worst_of_ideal(run):.2f}",
        f"{run.lag[-1][1]:,}",
    ]


def _rebalance_row(run: Run, _counts: Run | None) -> list[str]:
    return [
        ", ".join(str(each.moved) for each in run.rebalances),
        str(run.moved),
        str(run.revoked),
        str(run.twice),
    ]


def _times(number: float, other: float | None) -> str:
    return f"{number / other:.2f}" if other else _NOTHING
