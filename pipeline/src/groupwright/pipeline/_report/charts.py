"""Charts of the page, as drawings."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from groupwright.pipeline._report.drawing import (
    WIDTH,
    Drawing,
    Path,
    Rect,
    Text,
    count,
    day,
    line,
    seconds,
    short,
    time_ticks,
)
from groupwright.pipeline._report.facts import (
    PHASES,
    Alternative,
    Churn,
    Lag,
    LagSeries,
    MemberEvent,
    Ownership,
    Timeline,
)

_LABELS = 176.0
_NAME = 24


def draw_timeline(timeline: Timeline, lanes: int) -> Drawing:
    """Draw one panel per rebalance with one lane per member, on a common time scale."""
    members = _with_unique_names(_lanes(timeline))
    shown = members[:lanes]
    head, step = 72.0, 22.0
    foot = head + step * max(1, len(shown))
    drawing = Drawing(foot + 26, f"Timeline of rebalances of {timeline.group}")
    panel = (WIDTH - _LABELS) / len(timeline.rebalances)
    scale = max((_ends(events) for r in timeline.rebalances if (events := r.events)), default=0.0) or 1.0
    for place, (_, name) in enumerate(shown):
        drawing.texts.append(
            Text(_LABELS - 12, head + step * place + 14, short(name, _NAME), "name", "end", name)
        )
    for number, rebalance in enumerate(timeline.rebalances):
        left, width = _LABELS + panel * number, panel - 12
        took = "time unknown" if rebalance.duration is None else seconds(rebalance.duration)
        drawing.texts += [
            Text(left, 12, f"{day(rebalance.completed)} {rebalance.completed:%H:%M:%S}", "label"),
            Text(left, 30, took, "strong"),
            Text(left, 46, rebalance.trigger, "label"),
            Text(left, 61, f"{rebalance.moved:,} moved", "label"),
        ]
        event_of = {event.member: event for event in rebalance.events}
        begin = min((event.start for event in rebalance.events), default=rebalance.completed)
        for place, (member, name) in enumerate(shown):
            top = head + step * place
            drawing.rects.append(Rect(left, top + 3, width, step - 6, "track"))
            for x, size, phase, title in _segments(event_of.get(member), begin, width / scale):
                drawing.rects.append(
                    Rect(left + x, top + 3, max(size, 1.5), step - 6, f"phase {phase}", title)
                )
            if member in rebalance.joined:
                drawing.rects.append(Rect(left - 5, top + 3, 3, step - 6, "joined", f"{name} joined"))
            if member in rebalance.left:
                drawing.texts.append(Text(left + 6, top + 15, "left", "gone", title=f"{name} left"))
        drawing.texts += [
            Text(left, foot + 16, "0", "tick"),
            Text(left + width, foot + 16, seconds(scale), "tick", "end"),
        ]
    return drawing


def _lanes(timeline: Timeline) -> list[tuple[str, str]]:
    """Return ids and names of the members to show, those with events first."""
    names: dict[str, str] = {}
    for rebalance in timeline.rebalances:
        for event in rebalance.events:
            names.setdefault(event.member, event.client)
    for rebalance in timeline.rebalances:
        for member in (*rebalance.joined, *rebalance.left):
            names.setdefault(member, member)
    return list(names.items())


def _with_unique_names(members: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return ids and names. Equal names, as after a restart, get the end of the member id appended."""
    times = Counter(name for _, name in members)
    return [
        (id_, f"{short(name, _NAME - 6)} ·{id_[-4:]}" if times[name] > 1 else name) for id_, name in members
    ]


def _ends(events: Sequence[MemberEvent]) -> float:
    begin = min(event.start for event in events)
    return max((event.start - begin).total_seconds() + sum(event.phases.values()) for event in events)


def _segments(
    event: MemberEvent | None, begin: datetime, scale: float
) -> list[tuple[float, float, str, str]]:
    """Return position, length, name and tooltip of each phase of a member's event."""
    if event is None:
        return []
    at = event.start
    segments = []
    for phase in PHASES:
        if phase in event.phases:
            length = event.phases[phase]
            title = f"{event.client}: {phase.replace('_', ' ')} {seconds(length)}"
            failed = (
                ""
                if event.outcome == "completed"
                else f" ({event.outcome}{f': {event.error}' if event.error else ''})"
            )
            offset = (at - begin).total_seconds()
            segments.append((offset * scale, length * scale, phase, title + failed))
            at += timedelta(seconds=length)
    return segments


def draw_ownership(ownership: Ownership) -> Drawing:
    """Draw one cell per member and generation, shaded by the number of partitions."""
    generations = len(ownership.generations)
    step, cell = 20.0, (WIDTH - _LABELS) / max(generations, 12)
    height = step * len(ownership.members)
    drawing = Drawing(height + 24, f"Partitions owned by the members of {ownership.group}, over generations")
    most = max((n for row in ownership.counts for n in row if n is not None), default=0) or 1
    members = _with_unique_names(ownership.members)
    for place, ((member, name), row) in enumerate(zip(members, ownership.counts, strict=True)):
        drawing.texts.append(
            Text(_LABELS - 12, step * place + 14, short(name, _NAME), "name", "end", f"{name} ({member})")
        )
        for number, owned in enumerate(row):
            if owned is None:
                continue
            generation, time = ownership.generations[number]
            title = f"{name}: {owned} partitions in generation {generation}, {day(time)} {time:%H:%M}"
            x, width = _LABELS + cell * number, max(cell - 1.5, 1)
            drawing.rects.append(
                Rect(x, step * place + 2, width, step - 4, "cell", title, 0.10 + 0.90 * owned / most)
            )
            if cell >= 22:  # noqa: PLR2004 - wide enough for two digits
                css_class = "value deep" if owned / most > 0.55 else "value"  # noqa: PLR2004 - where dark ink is lost
                drawing.texts.append(Text(x + width / 2, step * place + 14, str(owned), css_class, "middle"))
    every = max(1, -(-generations // 8))
    for number in range(0, generations, every):
        generation, time = ownership.generations[number]
        drawing.texts.append(
            Text(_LABELS + cell * number, height + 17, f"{generation} · {day(time)} {time:%H:%M}", "tick")
        )
    return drawing


def draw_lag(lag: Lag, series: LagSeries) -> Drawing:
    """Draw one group's lag as an area chart."""
    left, height = 8.0, 132.0
    drawing = Drawing(height + 26, f"Lag of {series.group}")
    width, peak = 500.0 - left, series.peak or 1
    places = len(series.messages)
    points = [
        None
        if value is None
        else (left + width * number / max(1, places - 1), 20 + (height - 20) * (1 - value / peak))
        for number, value in enumerate(series.messages)
    ]
    for run in _runs(points):
        drawing.paths.append(Path(f"{line(run)}L{run[-1][0]:.1f} {height}L{run[0][0]:.1f} {height}Z", "area"))
        drawing.paths.append(Path(line([*run] if len(run) > 1 else [run[0], run[0]]), "line"))
    drawing.paths.append(Path(f"M{left} {height}L{left + width} {height}", "axis"))
    drawing.paths.append(Path(f"M{left} 20L{left + width} 20", "grid"))
    drawing.texts.append(Text(left, 14, f"{count(series.peak)} messages", "tick"))
    for place, name in time_ticks(lag.since, lag.until, 5):
        anchor = "start" if place < 0.04 else "end" if place > 0.96 else "middle"  # noqa: PLR2004 - the edges
        drawing.texts.append(Text(left + width * place, height + 18, name, "tick", anchor))
    return drawing


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def draw_churn(churn: Churn) -> Drawing:
    """Draw one cell per group and interval, shaded by the number of rebalances, with storms marked."""
    step = 22.0
    intervals = max((len(row) for row in churn.rows.values()), default=1)
    cell = (WIDTH - _LABELS) / intervals
    height = step * len(churn.rows)
    drawing = Drawing(height + 24, "Rebalances over time, by group")
    most = max((n for row in churn.rows.values() for n in row), default=0) or 1
    for place, (group, row) in enumerate(churn.rows.items()):
        drawing.texts.append(Text(_LABELS - 12, step * place + 15, short(group, _NAME), "name", "end", group))
        drawing.rects.append(Rect(_LABELS, step * place + 2, WIDTH - _LABELS, step - 4, "track"))
        for number, times in enumerate(row):
            if not times:
                continue
            storm = number in churn.storms.get(group, frozenset())
            at = churn.since + timedelta(hours=churn.hours * number)
            title = f"{group}: {times} rebalances from {day(at)} {at:%H:%M}{', a storm' if storm else ''}"
            css_class, x = "cell storm" if storm else "cell", _LABELS + cell * number
            strength = 0.22 + 0.78 * times / most
            drawing.rects.append(
                Rect(x, step * place + 2, max(cell - 1, 1), step - 4, css_class, title, strength)
            )
    until = churn.since + timedelta(hours=churn.hours * intervals)
    for fraction, name in time_ticks(churn.since, until):
        drawing.texts.append(Text(_LABELS + (WIDTH - _LABELS) * fraction, height + 17, name, "tick"))
    return drawing


def draw_alternatives(alternatives: Sequence[Alternative]) -> Drawing:
    """Draw one bar per assignor: the moves, and inside it the moves needed."""
    step, right = 34.0, 90.0
    drawing = Drawing(step * len(alternatives), "Partitions moved, by assignor")
    most = max((one.moved for one in alternatives), default=0) or 1
    width = WIDTH - _LABELS - right
    for place, one in enumerate(alternatives):
        top, bar = step * place, width * one.moved / most
        needed = width * min(one.fewest, one.moved) / most
        css_class = "bar fact" if one.actual else "bar"
        drawing.texts.append(
            Text(_LABELS - 12, top + 21, short(one.assignor, _NAME), "name", "end", one.assignor)
        )
        drawing.rects.append(
            Rect(_LABELS, top + 6, max(bar, 1.5), step - 12, css_class, f"{one.moved:,} partitions moved")
        )
        drawing.rects.append(
            Rect(_LABELS, top + 6, needed, step - 12, "needed", f"{one.fewest:,} of them needed")
        )
        label = "no result" if one.errors and one.errors == one.rebalances else f"{one.moved:,}"
        drawing.texts.append(Text(_LABELS + max(bar, 1.5) + 8, top + 21, label, "strong"))
    return drawing
