"""Pictures of a dashboard for the documentation: Grafana's layout, with data queried from Prometheus."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from charts.dashboards.model import Board
from charts.live.numbers import readable
from charts.live.panels import Answer, Window, ask, panels
from charts.live.prometheus import Prometheus, Series
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter, MaxNLocator

_PAGE, _CARD, _EDGE, _TEXT, _FAINT = "#111217", "#181b1f", "#2c3235", "#d8d9e3", "#8e8fa0"
_PALETTE = (
    "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c",
    "#5794f2", "#b877d9", "#c0d8ff", "#96d98d", "#ffa6b0",
)  # fmt: skip
_COLOURS = {"green": "#73bf69", "orange": "#ff9830", "yellow": "#fade2a", "red": "#f2495c"}
_UNIT_WIDTH, _UNIT_HEIGHT = 0.75, 0.33
"""Inches of a cell of Grafana's grid."""
_HEAD = 2.2
"""Cells above the first row, for the title."""
_MOST_LEGENDS = 9

_Rectangle = tuple[float, float, float, float]


class _Page:
    """A figure with panels in Grafana's grid."""

    def __init__(self, board: Board, height: int, window: Window) -> None:
        self.window = window
        self.height = height + _HEAD
        self.figure = Figure(figsize=(24 * _UNIT_WIDTH, self.height * _UNIT_HEIGHT), facecolor=_PAGE, dpi=80)
        self.text(0.2, 1.0, board.title, size=17, weight="bold")

    def text(self, x: float, y: float, words: str, **style: Any) -> None:
        """Write text at a position of the grid, whose y axis points down."""
        style = {"color": _TEXT, "va": "center", "ha": "left", **style}
        self.figure.text(x / 24, 1 - y / self.height, words, **style)

    def card(self, at: Mapping[str, int], title: str) -> _Rectangle:
        """Draw a panel's frame and title; return the remaining area, in fractions of the figure."""
        x, y, width, height = at.get("x", 0), at.get("y", 0) + _HEAD, at["w"], at["h"]
        left, bottom = (x + 0.08) / 24, 1 - (y + height - 0.12) / self.height
        wide, high = (width - 0.16) / 24, (height - 0.24) / self.height
        frame = FancyBboxPatch(
            (left, bottom), wide, high, boxstyle="square,pad=0", transform=self.figure.transFigure,
            facecolor=_CARD, edgecolor=_EDGE, linewidth=0.8, zorder=-1,
        )  # fmt: skip
        self.figure.patches.append(frame)
        self.text(x + 0.25, y + 0.65, title, size=9 if width > 4 else 8, weight="bold")
        return left, bottom, wide, high - 1.1 / self.height

    def axes(self, inside: _Rectangle, margins: _Rectangle) -> Any:
        """Return axes within a panel; margins are left, bottom, right, top, in cells."""
        left, bottom, width, height = inside
        before, below, after, above = margins
        rectangle = (
            left + before / 24,
            bottom + below / self.height,
            width - (before + after) / 24,
            height - (below + above) / self.height,
        )
        axes = self.figure.add_axes(rectangle)
        axes.set_facecolor(_CARD)
        axes.tick_params(colors=_FAINT, labelsize=7, length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return axes

    def time_axis(self, axes: Any) -> None:
        axes.set_xlim(_moment(self.window.start), _moment(self.window.end))
        axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=6))  # type: ignore[no-untyped-call] # matplotlib
        axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S", tz=UTC))  # type: ignore[no-untyped-call] # matplotlib
        axes.grid(visible=True, color=_EDGE, linewidth=0.5)
        axes.set_axisbelow(True)


def draw(
    prometheus: Prometheus, board: Board, window: Window, variables: Mapping[str, str], to: Path
) -> None:
    """Write the picture of a dashboard with these values of its variables."""
    placed = list(panels(board))
    height = max(panel["gridPos"].get("y", 0) + panel["gridPos"]["h"] for panel in placed)
    page = _Page(board, height, window)
    shown = "    ".join(f"{name}: {'All' if value == '.*' else value}" for name, value in variables.items())
    page.text(23.8, 1.0, shown, ha="right", size=10, color=_FAINT)
    for panel in placed:
        if panel["type"] == "row":
            page.text(
                0.15,
                panel["gridPos"].get("y", 0) + _HEAD + 0.5,
                f"⌄  {panel['title']}",
                size=10,
                weight="bold",
            )
            continue
        answers = ask(prometheus, panel, window, variables)
        inside = page.card(panel["gridPos"], panel["title"])
        if not any(answer.series for answer in answers):
            _nothing(page, inside, panel)
            continue
        _DRAWN[panel["type"]](page, inside, panel, answers)
    page.figure.savefig(to, facecolor=_PAGE)


# --- Kinds of panels ----------------------------------------------------------------------------------


def _nothing(page: _Page, inside: _Rectangle, panel: Mapping[str, Any]) -> None:
    axes = page.axes(inside, (0, 0, 0, 0))
    axes.axis("off")
    words = panel["fieldConfig"]["defaults"].get("noValue", "No data")
    axes.text(0.5, 0.5, words, color=_FAINT, ha="center", va="center", size=10)


def _stat(page: _Page, inside: _Rectangle, panel: Mapping[str, Any], answers: list[Answer]) -> None:
    points = answers[0].series[0].points
    value = next((value for _, value in reversed(points) if not math.isnan(value)), math.nan)
    colour = _limit_colour(panel, value)
    axes = page.axes(inside, (0, 0, 0, 1.1))
    axes.axis("off")
    axes.set_xlim(_moment(page.window.start), _moment(page.window.end))
    times, values = [_moment(time) for time, _ in points], [value for _, value in points]
    axes.plot(times, values, color=colour, linewidth=1, alpha=0.7)
    axes.fill_between(times, values, 0, color=colour, alpha=0.15)
    axes.set_ylim(0, max([value for value in values if not math.isnan(value)] or [1]) * 2.2 or 1)
    left, bottom, width, height = inside
    text = readable(value, _unit(panel), panel["fieldConfig"]["defaults"].get("decimals"))
    page.figure.text(
        left + width / 2,
        bottom + height * 0.62,
        text,
        color=colour,
        size=19,
        weight="bold",
        ha="center",
        va="center",
    )


def _lines(page: _Page, inside: _Rectangle, panel: Mapping[str, Any], answers: list[Answer]) -> None:
    drawn = [(answer.name(series), series) for answer in answers for series in answer.series]
    drawn.sort(key=lambda each: each[0])
    rows = min(math.ceil(len(drawn) / 3), math.ceil(_MOST_LEGENDS / 3))
    axes = page.axes(inside, (0.75, 0.85 + 0.55 * rows, 0.2, 0.1))
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    if stacked:
        _stack(axes, page.window, drawn, bars=custom.get("drawStyle") == "bars")
    else:
        for (name, series), colour in zip(drawn, _colours(drawn), strict=True):
            times, values = _with_gaps(series, page.window.step)
            axes.plot(
                times,
                values,
                color=colour,
                linewidth=1.1,
                label=name,
                marker="." if len(values) < 8 else None,
            )
            axes.fill_between(times, values, 0, color=colour, alpha=0.08, linewidth=0)
    page.time_axis(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0), high if high > low else low + 1)
    for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]:
        if step["value"] <= axes.get_ylim()[1]:
            axes.axhline(step["value"], color=_COLOURS[step["color"]], linestyle="--", linewidth=0.9)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value, _unit(panel), None)))
    handles, names = axes.get_legend_handles_labels()
    legend = axes.legend(
        handles[:_MOST_LEGENDS], names[:_MOST_LEGENDS], loc="upper left", bbox_to_anchor=(-0.06, -0.13),
        ncols=3, fontsize=7, frameon=False, labelcolor=_TEXT, handlelength=1, columnspacing=1.2,
        borderaxespad=0,
    )  # fmt: skip
    legend.set_in_layout(False)


def _stack(axes: Any, window: Window, drawn: list[tuple[str, Series]], *, bars: bool) -> None:
    """Draw stacked series; negative ones are stacked downwards."""
    step = window.step
    grid = [window.start + number * step for number in range(int((window.end - window.start) / step) + 1)]
    times = [_moment(time) for time in grid]
    above, below = [0.0] * len(grid), [0.0] * len(grid)
    for (name, series), colour in zip(drawn, _colours(drawn), strict=True):
        at = {
            round((time - window.start) / step): value
            for time, value in series.points
            if not math.isnan(value)
        }
        values = [at.get(number, 0.0) for number in range(len(grid))]
        base = [below[number] if value < 0 else above[number] for number, value in enumerate(values)]
        top = [start + value for start, value in zip(base, values, strict=True)]
        if bars:
            width = step / 86400 * 0.9
            axes.bar(
                times, values, width=width, bottom=base, color=colour, alpha=0.85, label=name, linewidth=0
            )
        else:
            axes.fill_between(
                times, base, top, color=colour, alpha=0.55, label=name, linewidth=0, step="post"
            )
        for number, value in enumerate(values):
            (below if value < 0 else above)[number] += value


def _states(page: _Page, inside: _Rectangle, panel: Mapping[str, Any], answers: list[Answer]) -> None:
    drawn = sorted(
        (answer.name(series), series) for answer in answers for series in answer.series if series.points
    )
    mapping = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    axes = page.axes(inside, (1.9, 1.3, 0.2, 0.1))
    width = page.window.step / 86400
    for row, (_, series) in enumerate(drawn):
        for state, result in mapping.items():
            here = [time for time, value in series.points if value == float(state)]
            colour = _COLOURS.get(result["color"], result["color"])
            spans = [(_moment(time), width * 1.02) for time in here]
            axes.broken_barh(spans, (len(drawn) - row - 0.9, 0.8), facecolor=colour)
    page.time_axis(axes)
    axes.grid(visible=False)
    axes.set_ylim(0, len(drawn))
    axes.set_yticks([len(drawn) - row - 0.5 for row in range(len(drawn))], [name for name, _ in drawn])
    for place, result in enumerate(mapping.values()):
        colour = _COLOURS.get(result["color"], result["color"])
        axes.text(
            0.02 + 0.16 * place, -0.17, f"■ {result['text']}", color=colour, size=8, transform=axes.transAxes
        )


def _table(page: _Page, inside: _Rectangle, panel: Mapping[str, Any], answers: list[Answer]) -> None:
    names = _column_names(panel)
    units = {
        override["matcher"]["options"]: each["value"]
        for override in panel["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "unit"
    }
    rows: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for answer, name in zip(answers, names, strict=True):
        for series in answer.series:
            rows.setdefault(tuple(sorted(series.labels.items())), {})[name] = series.points[-1][1]
    labels = list(dict.fromkeys(label for key in rows for label, _ in key))
    ordered = sorted(rows.items(), key=lambda row: -row[1].get(names[0], -math.inf))
    cells = [[(name, "#6e9fff") for name in [*labels, *names]]]
    for key, values in ordered[:8]:
        plain = [(dict(key).get(label, ""), _TEXT) for label in labels]
        cells.append([*plain, *(_cell(panel, units, name, values.get(name, math.nan)) for name in names)])
    _write(page.axes(inside, (0.2, 0.1, 0.2, 0.1)), cells)


def _cell(panel: Mapping[str, Any], units: Mapping[str, str], name: str, value: float) -> tuple[str, str]:
    """Return a number's text and colour."""
    decimals = None if name in units else panel["fieldConfig"]["defaults"].get("decimals")
    colour = _limit_colour(panel, value) if len(_steps(panel)) > 1 else _TEXT
    return readable(value, units.get(name, _unit(panel)), decimals), colour


def _write(axes: Any, cells: list[list[tuple[str, str]]]) -> None:
    """Write rows of (text, colour), the header first, with columns as wide as their contents."""
    axes.axis("off")
    axes.set_ylim(0, 1)
    axes.set_xlim(0, 1)
    line = 1 / 9
    widths = [max(len(text) for text, _ in column) + 3 for column in zip(*cells, strict=True)]
    for row, texts in enumerate(cells):
        if row:
            axes.axhline(1 - line * row, color=_EDGE, linewidth=0.6)
        for column, (text, colour) in enumerate(texts):
            left = sum(widths[:column]) / sum(widths)
            weight = "normal" if row else "bold"
            axes.text(left, 1 - line * (row + 0.5), text, color=colour, size=8, weight=weight, va="center")


_DRAWN = {"stat": _stat, "timeseries": _lines, "state-timeline": _states, "table": _table}


# --- Parts --------------------------------------------------------------------------------------------


def _column_names(panel: Mapping[str, Any]) -> list[str]:
    (renamed,) = [
        each["options"]["renameByName"] for each in panel["transformations"] if each["id"] == "organize"
    ]
    return [renamed[f"Value #{target['refId']}"] for target in panel["targets"]]


def _unit(panel: Mapping[str, Any]) -> str:
    unit: str = panel["fieldConfig"]["defaults"]["unit"]
    return unit


def _steps(panel: Mapping[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return steps


def _limit_colour(panel: Mapping[str, Any], value: float) -> str:
    if math.isnan(value):
        return _FAINT
    reached = [step for step in _steps(panel) if step["value"] is None or value >= step["value"]]
    return _COLOURS[reached[-1]["color"]]


def _colours(drawn: Iterable[tuple[str, Series]]) -> list[str]:
    return [_PALETTE[number % len(_PALETTE)] for number, _ in enumerate(drawn)]


def _with_gaps(series: Series, step: float) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    for time, value in series.points:
        if times and time - times[-1] > step * 1.5:
            times.append(time - step / 2)
            values.append(math.nan)
        times.append(time)
        values.append(value)
    return [_moment(time) for time in times], values


def _moment(time: float) -> float:
    """Return a time in days, as matplotlib expects."""
    return float(date2num(datetime.fromtimestamp(time, UTC)))  # type: ignore[no-untyped-call] # matplotlib
