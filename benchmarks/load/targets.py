"""Judges what was measured by what `load-aware` set out to reach."""

from collections.abc import Iterator

from benchmarks.consumer.results import Status
from benchmarks.layout import Finding
from benchmarks.load.plan import (
    BY_TIME,
    COUNTS,
    LAG_BASED,
    LEAST_TIMES,
    LOAD_AWARE,
    MOST_MOVES,
    MOST_OF_IDEAL,
    UNEVEN,
)
from benchmarks.load.results import Outcome, Results, Run


def findings_of(results: Results) -> list[Finding]:
    """Return what was to be reached, and whether it was."""
    return [
        finding for shape, outcomes in results.shapes.items() for finding in _judge_shape(shape, outcomes)
    ]


def worst_of_ideal(run: Run) -> float:
    """Return the ideal throughput over the sustained one, in the worst window."""
    return max(window.ideal / window.sustained if window.sustained else 999.0 for window in run.windows)


def _judge_shape(shape: str, outcomes: dict[str, Outcome]) -> Iterator[Finding]:
    for name, outcome in outcomes.items():
        if outcome.status is not Status.OK:
            yield Finding(f"{shape}: {name} {outcome.status}: {outcome.note}", reached=False)
    runs = {name: outcome.run for name, outcome in outcomes.items() if outcome.run is not None}
    counts, lag_based = runs.get(COUNTS), runs.get(LAG_BASED)
    for name in LOAD_AWARE, BY_TIME:
        ours, subject = runs.get(name), f"{shape}: {name.removeprefix('Groupwright ')}"
        if ours is None:
            continue
        if counts is not None:
            yield from _beside_counts(subject, ours, counts)
        yield from _beside_ideal(subject, ours)
        if lag_based is not None and lag_based.rebalances:
            text = (
                f"{subject} moves {ours.moved} partitions in {len(ours.rebalances)} rebalances, the "
                f"lag-based assignor {lag_based.moved}, wanted at most a fifth of them"
            )
            yield Finding(text, ours.moved <= MOST_MOVES * lag_based.moved)


def _beside_counts(subject: str, ours: Run, counts: Run) -> Iterator[Finding]:
    if counts.drain.peak_over_bound >= UNEVEN:
        times = ours.drain.rate / counts.drain.rate
        text = (
            f"{subject} drains the backlog {times:.2f} times as fast as cooperative-sticky, where counts "
            f"leave {counts.drain.peak_over_bound:.2f} of the bound, wanted {LEAST_TIMES:g}"
        )
        yield Finding(text, times >= LEAST_TIMES)
    mine, theirs = ours.windows[0], counts.windows[0]
    if theirs.peak_over_bound >= UNEVEN:
        times = mine.sustained / theirs.sustained
        text = (
            f"{subject} sustains {times:.2f} times the traffic of cooperative-sticky, where counts leave "
            f"{theirs.peak_over_bound:.2f} of the bound, wanted {LEAST_TIMES:g}"
        )
        yield Finding(text, times >= LEAST_TIMES)


def _beside_ideal(subject: str, ours: Run) -> Iterator[Finding]:
    slower = ours.drain.seconds / ours.drain.ideal_seconds
    text = f"{subject} drains the backlog in {slower:.2f} of the ideal time, wanted {MOST_OF_IDEAL:g}"
    yield Finding(text, slower <= MOST_OF_IDEAL)
    worst = worst_of_ideal(ours)
    text = (
        f"{subject} stays within {worst:.2f} of the ideal throughput in the worst of {len(ours.windows)} "
        f"windows, wanted {MOST_OF_IDEAL:g}"
    )
    yield Finding(text, worst <= MOST_OF_IDEAL)
