"""Drawings as lists of shapes, which the template renders as SVG and the style sheet styles."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

_TICK, _GAP = 11.0, 10.0
"""Font size of an axis' labels, and the smallest gap between two of them."""

WIDTH = 1040.0
"""Width of every drawing, in SVG user units; the page scales it."""


_EXACT = 20.0
"""Duration in seconds from which fractions are left out."""


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


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of a text's width: the font is the system's, and unknown."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return size * (0.62 * (len(text) - wide) + 1.05 * wide)


def spaced_labels(labels: Iterable[tuple[float, str]], y: float, left: float, right: float) -> list[Text]:
    """Return the labels of an axis that fit side by side; others are left out.

    Args:
        labels: Positions and texts, ascending.
        y: The baseline.
        left: Left end of the drawing.
        right: Right end of the drawing, which no label exceeds.
    """
    kept: list[Text] = []
    end = left - _GAP
    for x, text in labels:
        width = text_width(text, _TICK)
        start = min(max(x - width / 2, left), right - width)
        if start >= end + _GAP:
            kept.append(Text(start, y, text, "tick"))
            end = start + width
    return kept


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
    if duration >= _EXACT:
        return f"{duration:.0f} s"
    return f"{duration:.1f} s" if duration >= 1 else f"{duration * 1000:.0f} ms"


def exact_seconds(duration: float) -> str:
    """Format a duration in seconds, as timeouts are: 300 s, 2.5 s."""
    return f"{duration:,.0f} s" if duration >= _EXACT else f"{duration:.1f} s".replace(".0 s", " s")


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
