"""Draws messages a second, and how long joins take and what they interrupt."""

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.consumer.plan import JOINERS
from benchmarks.consumer.results import JoinRun, Results
from benchmarks.consumer.targets import best_rate
from benchmarks.pictures import new_figure, save


def draw(path: Path, results: Results) -> bool:
    """Draw the plot into an SVG file; return whether there is anything to draw."""
    if not results.throughput or not results.joins:
        return False
    figure = new_figure(13, 4.2)
    throughput, joins, gaps = figure.subplots(1, 3)
    _draw_throughput(throughput, results)
    _draw_joins(joins, results, "consumed")
    joins.set(title="a member joins: until all is consumed by its owner", ylabel="s")
    _draw_joins(gaps, results, "gap")
    gaps.set(title="longest gap of the partitions that stay", ylabel="s")
    joins.legend(fontsize="small")
    save(figure, path)
    return True


def _draw_throughput(axes: Any, results: Results) -> None:
    rates = {name: best_rate(outcome) or 0.0 for name, outcome in results.throughput.items()}
    bars = axes.barh(list(rates), list(rates.values()))
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates.values()], padding=2, fontsize="small")
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set(title="throughput: the fastest run", xlabel="messages/s")


def _draw_joins(axes: Any, results: Results, what: str) -> None:
    for each in JOINERS:
        points = {
            size: median(_number(run, what) for run in outcomes[each.name].runs)
            for size, outcomes in results.joins.items()
            if each.name in outcomes and outcomes[each.name].runs
        }
        axes.plot(list(points), list(points.values()), marker="o", label=each.name)
    axes.set(xlabel="members before", ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)


def _number(run: JoinRun, what: str) -> float:
    return run.consumed if what == "consumed" else run.kept.longest
