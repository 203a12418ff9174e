"""Drawings as lists of shapes, which the template renders as SVG and the style sheet styles."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

WIDTH = 1040.0
"""Width of every drawing, in SVG user units; the page scales it."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle. `title` is its tooltip, `strength` its opacity from 0 to 1, `css_class` its style."""

    x: float
    y: float
    width: float
    height: float
    css_class: str
    title: str = ""
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """A text. `anchor` is `start`, `middle` or `end`."""

    x: float
    y: float
    text: str
    css_class: str = "label"
    anchor: str = "start"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A path, in SVG's path syntax."""

    d: str
    css_class: str
    title: str = ""


@dataclass(slots=True)
class Drawing:
    """Shapes, in drawing order."""

    height: float
    label: str
    rects: list[Rect] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def legible(value: object) -> str:
    """Replace control, formatting and unpaired surrogate characters by U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(char)[0] == "C" else char for char in str(value))


def short(text: str, most: int) -> str:
    """Shorten a name in the middle: member ids often differ only at the end."""
    text = legible(text)
    if len(text) <= most:
        return text
    head = most * 3 // 5
    return f"{text[:head]}…{text[-(most - head - 1) :]}"


def count(number: float) -> str:
    """Format a number with three digits: 950, 12.3 k, 4.1 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            scaled = number / (1e3 if unit == "k" else size)
            return f"{scaled:.0f} {unit}" if scaled >= 100 else f"{scaled:.1f} {unit}"  # noqa: PLR2004 - three digits
    return f"{number:,.0f}"


def seconds(duration: float) -> str:
    """Format a duration with a suitable unit."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if duration >= 2 * size:
            return f"{duration / size:.1f} {unit}"
    return f"{duration:.1f} s" if duration >= 1 else f"{duration * 1000:.0f} ms"


def day(time: datetime) -> str:
    """Format a date as `3 Nov`."""
    return f"{time.day} {time:%b}"


def time_ticks(since: datetime, until: datetime, most: int = 8) -> list[tuple[float, str]]:
    """Return the positions, from 0 to 1, and labels of round times between `since` and `until`."""
    span = (until - since).total_seconds()
    if span <= 0:
        return [(0.0, f"{day(since)} {since:%H:%M}")]
    steps = (
        60,
        300,
        900,
        1800,
        3600,
        3 * 3600,
        6 * 3600,
        12 * 3600,
        86400,
        2 * 86400,
        4 * 86400,
        7 * 86400,
        14 * 86400,
        30 * 86400,
    )
    step = next((size for size in steps if span / size <= most), span / most)
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    first = -(-(since - midnight).total_seconds() // step) * step
    ticks = []
    while (at := midnight + timedelta(seconds=first)) <= until:
        is_day = step >= 86400 or (at.hour, at.minute) == (0, 0)  # noqa: PLR2004 - a day
        ticks.append(((at - since).total_seconds() / span, day(at) if is_day else f"{at:%H:%M}"))
        first += step
    return ticks


def line(points: Sequence[tuple[float, float] | None]) -> str:
    """Return the SVG path through the points, with gaps at None."""
    words, pen_is_up = [], True
    for point in points:
        if point is not None:
            words.append(f"{'M' if pen_is_up else 'L'}{point[0]:.1f} {point[1]:.1f}")
        pen_is_up = point is None
    return "".join(words)
