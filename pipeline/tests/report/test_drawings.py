"""Charts without Spark: labels never lie over one another, and few samples are visible."""

import re
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import combinations

import pytest

from groupwright.pipeline import _report
from groupwright.pipeline._report import findings
from groupwright.pipeline._report.charts import LAG_WIDTH, draw_churn, draw_lag, draw_ownership, draw_timeline
from groupwright.pipeline._report.drawing import WIDTH, Drawing, Text, text_width
from groupwright.pipeline._report.facts import Churn, Lag, LagSeries, Limits
from groupwright.pipeline._report.group_facts import Ownership, Rebalance, Timeline

START = datetime(2026, 11, 24, 22, 57, 13, tzinfo=UTC)
SIZES = {"tick": 11, "label": 12, "strong": 13.5, "name": 12.5, "gone": 11, "value": 10.5}


def overlaps(drawing: Drawing, width: float) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap, or a text with the edge that it exceeds."""

    def box(text: Text) -> tuple[float, float]:
        length = text_width(text.text, SIZES[text.css_class.split()[0]])
        start = text.x - {"start": 0.0, "middle": length / 2, "end": length}[text.anchor]
        return start, start + length

    found = [
        (one.text, two.text)
        for one, two in combinations(drawing.texts, 2)
        if abs(one.y - two.y) < 10 and box(one)[0] < box(two)[1] and box(two)[0] < box(one)[1]
    ]
    return found + [
        (text.text, "edge") for text in drawing.texts if box(text)[0] < 0 or box(text)[1] > width + 1
    ]


@pytest.mark.parametrize("generations", [1, 2, 9, 25, 60])
def test_labels_of_the_ownership_map(generations: int) -> None:
    times = [(number + 118, START + timedelta(minutes=number)) for number in range(generations)]
    members = [(f"member-{n}-{n:036d}", "a-client-with-a-very-long-name") for n in range(4)]
    counts = [[12] * generations] * 4
    drawing = draw_ownership(Ownership("orders", times, generations, members, counts, [12] * 4, 0))
    assert not overlaps(drawing, WIDTH)
    assert any(text.css_class == "tick" for text in drawing.texts)


@pytest.mark.parametrize("seconds", [0, 61, 3_000, 90_000, 86_400 * 40])
def test_labels_of_time_axes(seconds: int) -> None:
    until = START + timedelta(seconds=seconds)
    lag = Lag(START, until, [], 1)
    assert not overlaps(draw_lag(lag, LagSeries("orders", [3, 1], None)), LAG_WIDTH)
    interval = max(60, seconds // 60)
    rows = {"a-group-with-a-very-long-name": [1] * (seconds // interval + 1)}
    assert not overlaps(draw_churn(Churn(START, interval, rows, {}, 1, [])), WIDTH)


@pytest.mark.parametrize("rebalances", [1, 2, 6, 12])
def test_labels_of_the_timeline(rebalances: int) -> None:
    def rebalance(number: int) -> Rebalance:
        completed = START + timedelta(minutes=number)
        joined = [f"m-{number:036d}"]
        return Rebalance(
            generation=number,
            completed=completed,
            started=None,
            cause="subscription",
            duration=None,
            moved=12_345,
            fewest=1,
            handovers=0,
            reprocessed=0,
            joined=joined,
            left=[],
            clients={},
            timeouts={},
            losses=[],
            has_events=False,
            events=[],
        )

    timeline = Timeline("orders", rebalances, [rebalance(number) for number in range(rebalances)])
    assert not overlaps(draw_timeline(timeline, Limits()), WIDTH)


def test_a_group_with_two_samples_has_a_line_and_two_points() -> None:
    lag = Lag(START, START + timedelta(minutes=5), [], 1)
    drawing = draw_lag(lag, LagSeries("orders", [31, 4], None))
    kinds = [path.css_class for path in drawing.paths]
    assert (kinds.count("dot"), kinds.count("line")) == (2, 1)
    alone = draw_lag(Lag(START, START, [], 1), LagSeries("orders", [31], None))
    assert [path.css_class for path in alone.paths].count("dot") == 1
    gaps = draw_lag(lag, LagSeries("orders", [None, 3, *[None] * 40, 5], None))
    assert [path.css_class for path in gaps.paths].count("dot") == 2, "a sample between gaps is visible"


def test_a_group_without_lag_is_labelled_at_its_baseline() -> None:
    drawing = draw_lag(Lag(START, START + timedelta(minutes=5), [], 1), LagSeries("billing", [0, 0], None))
    (label,) = (text for text in drawing.texts if text.text == "0 messages")
    (axis,) = (path for path in drawing.paths if path.css_class == "axis")
    assert label.y == float(axis.d.rpartition(" ")[2]) - 6
    assert not any(path.css_class == "grid" for path in drawing.paths)


def test_a_storm_over_adjacent_intervals_is_one() -> None:
    storms = {"billing": frozenset({0, 1, 3}), "shipping": frozenset({1}), "returns": frozenset[int]()}
    found = Churn(START, 60, {name: [6, 6, 0, 6] for name in storms}, storms, 3, [])
    assert findings.churn(found) == "3 storms in 2 groups: 5 rebalances within 10 minutes"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_the_contrast_that_wcag_asks_of_them(scheme: str) -> None:
    style = files(_report).joinpath("page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colors = dict(re.findall(r"--(\w[\w-]*): (#\w{6})", light if scheme == "light" else dark))
    low = {
        (text, ground): round(ratio, 2)
        for text in ("ink", "soft", "faint", "accent", "storm", "good")
        for ground in ("card", "paper")
        if (ratio := contrast(colors[text], colors[ground])) < 4.5
    }
    assert not low


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
