"""Draws messages a second, and how long changes of a group's members take and what they interrupt."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.consumer.plan import JOINERS, MEMBERSHIPS, Cell, Contestant, MemberChange
from benchmarks.consumer.results import MemberChangeRun, Outcomes, Results
from benchmarks.consumer.targets import best_rate
from benchmarks.pictures import new_figure, save

_COLUMNS = 3
_COLUMN_WIDTH, _ROW_HEIGHT = 13 / _COLUMNS, 4.2

Number = Callable[[MemberChangeRun], float]


def draw(path: Path, results: Results) -> bool:
    """Draw the plot into an SVG file; return whether there is anything to draw."""
    joins, others = {}, {}
    for cell, outcomes in results.member_changes.items():
        if MemberChange.of(cell).kind is Cell.JOIN:
            joins[MemberChange.of(cell).size] = outcomes
        else:
            others[cell] = outcomes
    panels: list[Callable[[Any], None]] = []
    if results.throughput:
        panels.append(partial(_draw_throughput, results))
    if joins:
        panels.append(partial(_draw_joins, joins, _consumed, "a member joins: until all is consumed"))
        panels.append(partial(_draw_joins, joins, _kept_gap, "longest gap of partitions that stay"))
    if others:
        panels.append(partial(_draw_others, others, _consumed, "until all is consumed"))
        panels.append(partial(_draw_others, others, _gap, "longest gap of any partition"))
    if not panels:
        return False
    rows = -(-len(panels) // _COLUMNS)
    figure = new_figure(_COLUMN_WIDTH * min(_COLUMNS, len(panels)), _ROW_HEIGHT * rows)
    for number, panel in enumerate(panels):
        panel(figure.add_subplot(rows, min(_COLUMNS, len(panels)), number + 1))
    save(figure, path)
    return True


def _draw_throughput(results: Results, axes: Any) -> None:
    rates = {name: best_rate(outcome) or 0.0 for name, outcome in results.throughput.items()}
    bars = axes.barh(list(rates), list(rates.values()))
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates.values()], padding=2, fontsize="small")
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set(title="throughput: the fastest run", xlabel="messages/s")


def _draw_joins(joins: dict[int, Outcomes[MemberChangeRun]], number: Number, title: str, axes: Any) -> None:
    for each in JOINERS:
        points = {
            size: median(map(number, outcomes[each.name].runs))
            for size, outcomes in joins.items()
            if each.name in outcomes and outcomes[each.name].runs
        }
        if points:
            color = _color(each)
            axes.plot(list(points), list(points.values()), marker="o", color=color, label=each.name)
    axes.set(title=title, xlabel="members before", ylabel="s", ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    if number is _consumed:
        axes.legend(fontsize="small")


def _draw_others(
    changes: dict[str, Outcomes[MemberChangeRun]], number: Number, title: str, axes: Any
) -> None:
    height = 0.8 / len(MEMBERSHIPS)
    for place, each in enumerate(MEMBERSHIPS):
        bars = {
            row + place * height: median(map(number, outcomes[each.name].runs))
            for row, outcomes in enumerate(changes.values())
            if each.name in outcomes and outcomes[each.name].runs
        }
        drawn = axes.barh(list(bars), list(bars.values()), height, color=_color(each), label=each.name)
        axes.bar_label(drawn, [f"{seconds:.1f}" for seconds in bars.values()], padding=2, fontsize="small")
    axes.set(title=title, xlabel="s")
    axes.set_yticks([row + height for row in range(len(changes))], list(changes))
    axes.invert_yaxis()
    axes.margins(x=0.2)
    if number is _consumed:
        axes.legend(fontsize="small")


def _color(contestant: Contestant) -> str:
    return f"C{JOINERS.index(contestant)}"


def _consumed(run: MemberChangeRun) -> float:
    return run.consumed


def _kept_gap(run: MemberChangeRun) -> float:
    return run.kept.longest


def _gap(run: MemberChangeRun) -> float:
    return max(run.kept.longest, run.moved.longest)
