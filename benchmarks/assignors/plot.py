"""Draws time against partitions, both on logarithmic scales."""

from pathlib import Path

from benchmarks.assignors.cases import CONTESTANTS, SERIES, Event, Subscriptions
from benchmarks.assignors.results import Results, Row, Status
from benchmarks.pictures import new_figure, save

_PANELS = (
    ("sticky", Event.FULL, "sticky: no member owns anything"),
    ("sticky", Event.LEAVE_ONE, "sticky: one of the members leaves"),
    ("range", Event.FULL, "range"),
    ("roundrobin", Event.FULL, "roundrobin"),
)
_MARKERS = ("o", "s", "^", "D", "v")


def draw(path: Path, results: Results) -> bool:
    """Draw the plot into an SVG file; return whether there is anything to draw."""
    panels = [(title, _series(results, assignor, event)) for assignor, event, title in _PANELS]
    panels = [(title, rows) for title, rows in panels if rows]
    if not panels:
        return False
    figure = new_figure(10, 4.2 * -(-len(panels) // 2))
    grid = figure.subplots(-(-len(panels) // 2), 2, squeeze=False)
    for axes, (title, rows) in zip(grid.flat, panels, strict=False):
        for name, marker in zip(CONTESTANTS, _MARKERS, strict=True):
            outcomes = [(row.case.partitions, row.outcomes[name]) for row in rows if name in row.outcomes]
            answers = [(size, 1000 * outcome.best) for size, outcome in outcomes if outcome.best is not None]
            late = [
                (size, 1000 * outcome.limit) for size, outcome in outcomes if outcome.status is Status.TIMEOUT
            ]
            (line,) = axes.plot(*_columns(answers), marker=marker, label=name)
            color = line.get_color()
            axes.plot(*_columns([*answers[-1:], *late]), linestyle=":", color=color)
            axes.plot(*_columns(late), linestyle="", marker=marker, markerfacecolor="white", color=color)
        axes.set(title=title, xlabel="partitions", ylabel="ms", xscale="log", yscale="log")
        axes.minorticks_off()
        axes.grid(visible=True, alpha=0.3)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    grid.flat[0].legend()
    figure.suptitle(
        "The leader's whole step, bytes to bytes; equal subscriptions (hollow: no answer by then)"
    )
    save(figure, path)
    return True


def _columns(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [size for size, _ in points], [time for _, time in points]


def _series(results: Results, assignor: str, event: Event) -> list[Row]:
    """Return the cells that differ in size alone."""
    return [
        row
        for row in results.rows
        if (row.case.assignor, row.case.event, row.case.subscriptions)
        == (assignor, event, Subscriptions.EQUAL)
        and (row.case.partitions, row.case.members, row.case.topics) in SERIES
        and not (row.case.skewed or row.case.racks)
    ]
