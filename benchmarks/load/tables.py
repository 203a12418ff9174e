"""Tables of the results, independent of the output format."""

from collections.abc import Callable
from statistics import mean

from benchmarks.consumer.results import Status
from benchmarks.layout import Table
from benchmarks.load.results import Outcome, Results, Run
from benchmarks.load.targets import findings_of

_NOTHING = "-"
_FAILURES = {Status.LACKING: "lacking", Status.TIMEOUT: "timed out", Status.FAILED: "failed"}


def tables(results: Results) -> list[Table]:
    """Return all tables."""
    return [
        _table(
            results,
            "Drain of a backlog",
            ["peak", "s", "ideal s", "of ideal", "messages/s"],
            _drain_row,
        ),
        _table(
            results,
            "Sustained throughput, messages/s",
            [
                "peak",
                "before drifts",
                "peak, mean",
                "after drifts, mean",
                "least",
                "ideal",
                "consumed",
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


def _table(results: Results, title: str, columns: list[str], row: Callable[[Run], list[str]]) -> Table:
    rows = [
        [f"{shape}: {name}", *(row(outcome.run) if outcome.run else _failure(outcome, len(columns)))]
        for shape, outcomes in results.shapes.items()
        for name, outcome in outcomes.items()
    ]
    return Table(title, ["traffic: contestant", *columns], rows)


def _failure(outcome: Outcome, columns: int) -> list[str]:
    return [_FAILURES.get(outcome.status, _NOTHING), *[_NOTHING] * (columns - 1)]


def _drain_row(run: Run) -> list[str]:
    drain = run.drain
    return [
        f"{drain.peak_over_bound:.2f}",
        f"{drain.seconds:.1f}",
        f"{drain.ideal_seconds:.1f}",
        f"{drain.seconds / drain.ideal_seconds:.2f}",
        f"{drain.rate:,.0f}",
    ]


def _throughput_row(run: Run) -> list[str]:
    first, *later = run.windows
    return [
        f"{first.peak_over_bound:.2f}",
        f"{first.sustained:,.0f}",
        f"{mean(window.peak_over_bound for window in later):.2f}" if later else _NOTHING,
        f"{mean(window.sustained for window in later):,.0f}" if later else _NOTHING,
        f"{min(window.sustained for window in run.windows):,.0f}",
        f"{mean(window.ideal for window in run.windows):,.0f}",
        f"{mean(window.consumed for window in run.windows):,.0f}",
        f"{run.lag[-1][1]:,}",
    ]


def _rebalance_row(run: Run) -> list[str]:
    return [
        ", ".join(str(each.moved) for each in run.rebalances),
        str(run.moved),
        str(run.revoked),
        str(run.twice),
    ]
