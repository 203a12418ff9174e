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
    spaced_labels,
    time_ticks,
)
from groupwright.pipeline._report.facts import Alternative, Churn, Lag, LagSeries, Limits
from groupwright.pipeline._report.group_facts import PHASES, MemberEvent, Ownership, Rebalance, Timeline

_LABELS = 190.0
"""Width of the labels on the left of a chart."""
_NAME_LENGTH = 22
_FEW_SAMPLES = 24
"""Up to this number of samples, each is also drawn as a point."""
LAG_WIDTH = 508.0
"""Width of a lag chart, of which two are side by side."""


def draw_timeline(timeline: Timeline, limits: Limits) -> Drawing:
    """Draw one panel per rebalance with one lane per member, on a common time scale."""
    rebalances = timeline.rebalances[-limits.panels :]
    members = _with_unique_names(_lanes(rebalances))
    shown = members[: limits.lanes]
    head, step = 72.0, 22.0
    foot = head + step * max(1, len(shown))
    drawing = Drawing(foot + 26, f"Timeline of rebalances of {timeline.group}")
    panel = (WIDTH - _LABELS) / max(len(rebalances), 4)
    # A rebalance with a handover takes longer than its events, which are those of its first round.
    scale = max((max(_duration(r.events), r.duration or 0.0) for r in rebalances if r.events), default=0.0)
    for place, (_, name) in enumerate(shown):
        drawing.texts.append(
            Text(_LABELS - 12, head + step * place + 14, short(name, _NAME_LENGTH), "name", "end", name)
        )
    for number, rebalance in enumerate(rebalances):
        left, width = _LABELS + panel * number, panel - 14
        took = "duration unknown" if rebalance.duration is None else seconds(rebalance.duration)
        moved = "moves unknown" if rebalance.moved is None else f"{rebalance.moved:,} moved"
        moved = moved if rebalance.has_moves else ""
        drawing.texts += [
            Text(left, 12, f"{day(rebalance.completed)} {rebalance.completed:%H:%M:%S}", "label"),
            Text(left, 30, took, "label" if rebalance.duration is None else "strong"),
            Text(left, 46, rebalance.cause, "label"),
            Text(left, 61, moved, "label"),
        ]
        event_of = {event.member: event for event in rebalance.events}
        begin = min((event.start for event in rebalance.events), default=rebalance.completed)
        for place, (member, name) in enumerate(shown):
            top = head + step * place
            drawing.rects.append(Rect(left, top + 3, width, step - 6, "track"))
            for x, size, phase, title in _segments(event_of.get(member), begin, width / (scale or 1.0)):
                drawing.rects.append(
                    Rect(left + x, top + 3, max(size, 1.5), step - 6, f"phase {phase}", title)
                )
            if member in rebalance.joined:
                drawing.rects.append(Rect(left - 5, top + 3, 3, step - 6, "joined", f"{name} joined"))
            if member in rebalance.left and member not in event_of:
                drawing.texts.append(Text(left + 6, top + 15, "left", "gone", title=f"{name} left"))
        if scale:
            drawing.texts += [
                Text(left, foot + 16, "0", "tick"),
                Text(left + width, foot + 16, seconds(scale), "tick", "end"),
            ]
    return drawing


def _lanes(rebalances: Sequence[Rebalance]) -> list[tuple[str, str]]:
    """Return ids and names of the members to show, those with events first."""
    names: dict[str, str] = {}
    for rebalance in rebalances:
        for event in rebalance.events:
            names.setdefault(event.member, event.client)
    for rebalance in rebalances:
        for member in (*rebalance.joined, *rebalance.left):
            names.setdefault(member, rebalance.clients.get(member, member))
    return list(names.items())


def _with_unique_names(members: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return ids and names. Equal names, as after a restart, get the end of the member id appended."""
    times = Counter(name for _, name in members)
    return [
        (id_, f"{short(name, _NAME_LENGTH - 6)} ·{id_[-4:]}" if times[name] > 1 else name)
        for id_, name in members
    ]


def _duration(events: Sequence[MemberEvent]) -> float:
    """Return the seconds from the start of the first event to the end of the last."""
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


def draw_ownership(ownership: Ownership, unit: str = "partition") -> Drawing:
    """Draw one cell per member and generation, shaded by the number of partitions, or of another unit."""
    generations = len(ownership.generations)
    step, cell = 20.0, (WIDTH - _LABELS) / max(generations, 12)
    height = step * len(ownership.members)
    drawing = Drawing(height + 24, f"{unit.capitalize()}s of {ownership.group}'s members, over generations")
    most = max((n for row in ownership.counts for n in row if n is not None), default=0) or 1
    members = _with_unique_names(ownership.members)
    for place, ((member, name), row) in enumerate(zip(members, ownership.counts, strict=True)):
        drawing.texts.append(
            Text(
                _LABELS - 12,
                step * place + 14,
                short(name, _NAME_LENGTH),
                "name",
                "end",
                f"{name} ({member})",
            )
        )
        for number, owned in enumerate(row):
            if owned is None:
                continue
            generation, time = ownership.generations[number]
            title = f"{name}: {owned} {unit}s in generation {generation}, {day(time)} {time:%H:%M}"
            x, width = _LABELS + cell * number, max(cell - 1.5, 1)
            drawing.rects.append(
                Rect(x, step * place + 2, width, step - 4, "cell", title, 0.10 + 0.90 * owned / most)
            )
            if cell >= 22:  # noqa: PLR2004 - wide enough for two digits
                css_class = "value deep" if owned / most > 0.55 else "value"  # noqa: PLR2004 - dark text is illegible
                drawing.texts.append(Text(x + width / 2, step * place + 14, str(owned), css_class, "middle"))
    labels = [
        (_LABELS + cell * (number + 0.5), f"{generation} · {day(time)} {time:%H:%M}")
        for number, (generation, time) in enumerate(ownership.generations)
    ]
    drawing.texts += spaced_labels(labels, height + 17, _LABELS, WIDTH)
    return drawing


def draw_lag(lag: Lag, series: LagSeries, deploy: datetime | None = None) -> Drawing:
    """Draw one group's lag as an area chart; with few samples each is a point."""
    left, height = 8.0, 132.0
    drawing = Drawing(height + 26, f"Lag of {series.group}")
    width, peak = LAG_WIDTH - 2 * left, series.peak or 1
    places = len(series.messages)
    points = [
        None
        if value is None
        else (
            left + width * (number / (places - 1) if places > 1 else 0.5),
            20 + (height - 20) * (1 - value / peak),
        )
        for number, value in enumerate(series.messages)
    ]
    known = sum(point is not None for point in points)
    for run in _runs(points):
        if len(run) > 1:
            drawing.paths.append(
                Path(f"{line(run)}L{run[-1][0]:.1f} {height}L{run[0][0]:.1f} {height}Z", "area")
            )
            drawing.paths.append(Path(line(run), "line"))
        if len(run) == 1 or known <= _FEW_SAMPLES:
            drawing.paths += [Path(_dot(*point), "dot") for point in run]
    drawing.paths.append(Path(f"M{left} {height}L{left + width} {height}", "axis"))
    if series.peak:
        drawing.paths.append(Path(f"M{left} 20L{left + width} 20", "grid"))
    top = 20 if series.peak else height
    drawing.texts.append(Text(left, top - 6, f"{count(series.peak)} messages", "tick"))
    if deploy is not None and lag.since < deploy < lag.until:
        x = left + width * ((deploy - lag.since) / (lag.until - lag.since))
        drawing.paths.append(Path(f"M{x:.1f} 20L{x:.1f} {height}", "deploy"))
    ticks = [(left + width * place, name) for place, name in time_ticks(lag.since, lag.until, 5)]
    drawing.texts += spaced_labels(ticks, height + 18, 0, LAG_WIDTH)
    return drawing


def _dot(x: float, y: float) -> str:
    return f"M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z"


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def draw_churn(churn: Churn, deploy: datetime | None = None) -> Drawing:
    """Draw one cell per group and interval, shaded by the number of rebalances, with storms marked."""
    step = 22.0
    intervals = max((len(row) for row in churn.rows.values()), default=1)
    cell = (WIDTH - _LABELS) / max(intervals, 12)
    height = step * len(churn.rows)
    drawing = Drawing(height + 24, "Rebalances over time, by group")
    most = max((n for row in churn.rows.values() for n in row), default=0) or 1
    for place, (group, row) in enumerate(churn.rows.items()):
        drawing.texts.append(
            Text(_LABELS - 12, step * place + 15, short(group, _NAME_LENGTH), "name", "end", group)
        )
        drawing.rects.append(Rect(_LABELS, step * place + 2, cell * intervals, step - 4, "track"))
        for number, times in enumerate(row):
            if not times:
                continue
            storm = number in churn.storms.get(group, frozenset())
            at = churn.since + timedelta(seconds=churn.seconds * number)
            title = f"{group}: {times} rebalances from {day(at)} {at:%H:%M}{', a storm' if storm else ''}"
            css_class, x = "cell storm" if storm else "cell", _LABELS + cell * number
            strength = 0.22 + 0.78 * times / most
            drawing.rects.append(
                Rect(x, step * place + 2, max(cell - 1, 1), step - 4, css_class, title, strength)
            )
    width = cell * intervals
    until = churn.since + timedelta(seconds=churn.seconds * intervals)
    if deploy is not None and churn.since < deploy < until:
        x = _LABELS + width * ((deploy - churn.since) / (until - churn.since))
        drawing.paths.append(Path(f"M{x:.1f} 0L{x:.1f} {height}", "deploy"))
    ticks = [(_LABELS + width * place, name) for place, name in time_ticks(churn.since, until)]
    drawing.texts += spaced_labels(ticks, height + 17, _LABELS - 40, WIDTH)
    return drawing


def draw_alternatives(alternatives: Sequence[Alternative]) -> Drawing:
    """Draw two bars per assignor: the stopped partitions, and the moved ones with the necessary moves."""
    step, right, half = 46.0, 104.0, (WIDTH - _LABELS) / 2
    head = 22.0
    drawing = Drawing(head + step * len(alternatives), "Cost of the rebalances, by assignor")
    is_timed = all(
        one.numbers["partition_seconds"] is not None for one in alternatives if not one.numbers["errors"]
    )
    stop = "partition_seconds" if is_timed else "stopped"
    titles = ("Partition-seconds stopped" if is_timed else "Partitions stopped", "Partitions moved")
    width = half - right
    for column, (name, title) in enumerate(zip((stop, "moved"), titles, strict=True)):
        left = _LABELS + half * column
        drawing.texts.append(Text(left, 12, title, "label"))
        most = max((one.numbers[name] or 0 for one in alternatives), default=0) or 1
        for place, one in enumerate(alternatives):
            top, value = head + step * place + 6, one.numbers[name]
            is_failed = bool(one.numbers["errors"])
            label = "no result" if is_failed else "unknown" if value is None else count(value)
            bar = 0.0 if is_failed or value is None else max(width * value / most, 1.5)
            css_class = "bar fact" if one.actual else "bar"
            if bar:
                drawing.rects.append(Rect(left, top, bar, step - 16, css_class, f"{title}: {label}"))
            if bar and name == "moved":
                needed = min(one.numbers["min_moves"] or 0, value or 0)
                drawing.rects.append(
                    Rect(
                        left, top, width * needed / most, step - 16, "needed", f"{needed:,.0f} of them needed"
                    )
                )
            drawing.texts.append(Text(left + bar + 8, top + 19, label, "strong" if bar else "label"))
    for place, one in enumerate(alternatives):
        drawing.texts.append(
            Text(
                _LABELS - 12,
                head + step * place + 25,
                short(one.assignor, _NAME_LENGTH + 2),
                "name",
                "end",
                one.assignor,
            )
        )
    return drawing
