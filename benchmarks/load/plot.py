"""Draws the drain, the sustained throughput, the moves, and the lag over time."""

from pathlib import Path
from typing import Any

from benchmarks.load.plan import CONTESTANTS
from benchmarks.load.results import Results, Run
from benchmarks.pictures import new_figure, save

_COLORS = ("tab:gray", "tab:orange", "tab:blue", "tab:green")
_BAR = 0.2
_MIDDLE = (len(CONTESTANTS) - 1) / 2


def draw(path: Path, results: Results) -> bool:
    """Draw the plot into an SVG file; return whether there is anything to draw."""
    runs = {
        shape: {name: outcome.run for name, outcome in outcomes.items() if outcome.run is not None}
        for shape, outcomes in results.shapes.items()
    }
    runs = {shape: by_name for shape, by_name in runs.items() if by_name}
    if not runs:
        return False
    figure = new_figure(14, 8)
    (drain, throughput), (moves, lag) = figure.subplots(2, 2)
    _bars(drain, runs, lambda run: run.drain.seconds, lambda run: run.drain.ideal_seconds, "{:.1f}")
    drain.set(title="time to drain a backlog: less is better", ylabel="s")
    _bars(
        throughput,
        runs,
        lambda run: run.windows[0].sustained,
        lambda run: run.windows[0].ideal,
        "{:,.0f}",
    )
    throughput.set(title="sustained throughput: more is better", ylabel="messages/s")
    _bars(moves, runs, lambda run: run.moved, None, "{:.0f}")
    moves.set(title="partitions that changed owner in all rebalances: less is better", ylabel="partitions")
    shape, by_name = next(iter(runs.items()))
    for name, color in zip(CONTESTANTS, _COLORS, strict=True):
        if name in by_name:
            seconds, lags = zip(*by_name[name].lag, strict=True)
            lag.plot(seconds, lags, label=name, color=color)
    lag.set(title=f"lag of the group: {shape}", xlabel="s since the traffic began", ylabel="messages")
    lag.set_ylim(bottom=0)
    lag.grid(visible=True, alpha=0.3)
    figure.legend(*drain.get_legend_handles_labels(), loc="outside lower center", ncols=len(CONTESTANTS) + 1)
    save(figure, path)
    return True


def _bars(axes: Any, runs: dict[str, dict[str, Run]], number: Any, ideal: Any, form: str) -> None:
    for place, (name, color) in enumerate(zip(CONTESTANTS, _COLORS, strict=True)):
        points = [
            (left + (place - _MIDDLE) * _BAR, by_name[name])
            for left, by_name in enumerate(runs.values())
            if name in by_name
        ]
        if not points:
            continue
        bars = axes.bar(
            [at for at, _ in points], [number(run) for _, run in points], _BAR, label=name, color=color
        )
        labels = [form.format(number(run)) for _, run in points]
        if ideal is None:
            axes.bar_label(bars, labels, padding=2, fontsize="small")
        else:  # inside, where the line of the ideal does not cross them
            axes.bar_label(bars, labels, label_type="center", color="white", fontsize="small")
    if ideal is not None:
        levels = [ideal(next(iter(by_name.values()))) for by_name in runs.values()]
        reach = len(CONTESTANTS) / 2 * _BAR
        ends = [(left - reach, left + reach) for left in range(len(runs))]
        axes.hlines(levels, *zip(*ends, strict=True), color="black", linestyle="--", label="ideal")
    axes.set_xticks(range(len(runs)), list(runs))
    axes.margins(y=0.15)
