"""Targets are judged where they apply, and what is missed or missing is said."""

from dataclasses import replace

import pytest

from benchmarks.consumer.results import Status
from benchmarks.load.plan import BY_TIME, COUNTS, LAG_BASED, LOAD_AWARE
from benchmarks.load.results import Drain, Outcome, Rebalance, Results, Run, Window
from benchmarks.load.tables import tables
from benchmarks.load.targets import findings_of


def measured(seconds: float, sustained: float, peak: float, moved: int) -> Run:
    return Run(
        drain=Drain(1_000, seconds, 10.0, peak),
        windows=(Window(1_000, 900, sustained, 1_000, peak),) * 2,
        rebalances=(Rebalance(moved, 48),),
        lag=((0.0, 0), (0.5, 7)),
        twice=0,
    )


def results(counts: Run, lag_based: Run, ours: Run) -> Results:
    outcomes = {COUNTS: counts, LAG_BASED: lag_based, LOAD_AWARE: ours}
    found = Results(command="", date="", machine={}, contestants={})
    found.shapes["hot"] = {name: Outcome(run=run) for name, run in outcomes.items()}
    return found


FINE = results(
    measured(18.0, 550, 1.8, 0),
    measured(10.5, 990, 1.0, 40),
    measured(10.5, 980, 1.04, 8),
)


def test_all_is_reached() -> None:
    findings = findings_of(FINE)

    assert all(finding.reached for finding in findings)
    assert [finding.text.partition(", ")[0] for finding in findings] == [
        "hot: load-aware drains the backlog 1.71 times as fast as cooperative-sticky",
        "hot: load-aware sustains 1.78 times the traffic of cooperative-sticky",
        "hot: load-aware drains the backlog in 1.05 of the ideal time",
        "hot: load-aware stays within 1.02 of the ideal throughput in the worst of 2 windows",
        "hot: load-aware moves 8 partitions in 1 rebalances",
    ]


@pytest.mark.parametrize(
    ("ours", "missed"),
    [
        (measured(12.1, 980, 1.2, 8), ["drains the backlog 1.49", "drains the backlog in 1.21"]),
        (measured(10.5, 820, 1.2, 8), ["sustains 1.49", "stays within 1.22"]),
        (measured(10.5, 980, 1.0, 9), ["moves 9 partitions"]),
    ],
)
@pytest.mark.parametrize(
    ("name", "subject"), [(LOAD_AWARE, "load-aware"), (BY_TIME, "load-aware by processing time")]
)
def test_what_is_missed_is_told(name: str, subject: str, ours: Run, missed: list[str]) -> None:
    outcomes = FINE.shapes["hot"]
    found = replace(FINE, shapes={"hot": outcomes | {name: Outcome(run=ours)}})

    texts = [
        finding.text.removeprefix(f"hot: {subject} ") for finding in findings_of(found) if not finding.reached
    ]

    assert [text[: len(start)] for text, start in zip(texts, missed, strict=True)] == missed


def test_where_counts_are_nearly_even_no_gain_is_wanted() -> None:
    even = results(measured(11.0, 950, 1.2, 0), measured(10.5, 990, 1.0, 40), measured(10.5, 980, 1.04, 8))

    assert len(findings_of(even)) == 3


def test_a_contestant_that_is_missing_is_told() -> None:
    found = Results(command="", date="", machine={}, contestants={})
    found.shapes["hot"] = {LAG_BASED: Outcome(Status.LACKING, "no Java")}

    assert [(finding.text, finding.reached) for finding in findings_of(found)] == [
        ("hot: Java lag-based lacking: no Java", False)
    ]
    assert all(table.rows[0][1] == "lacking" for table in tables(found))


def test_tables_show_what_was_measured() -> None:
    drain, throughput, moves = tables(FINE)

    assert drain.rows[0] == ["hot: Groupwright cooperative-sticky", "1.80", "18.0", "1.80", "56", "1.00"]
    assert throughput.rows[2][1:] == ["1.04", "980", "1.78", "980", "1,000", "1.02", "7"]
    assert moves.rows[1] == ["hot: Java lag-based", "40", "40", "48", "0"]
