"""The parts of the dashboards' pictures that need no real Prometheus."""

import math
import re
from pathlib import Path

import pytest
from charts.dashboards.boards import BOARDS
from charts.live.numbers import readable
from charts.live.panels import Answer
from charts.live.prometheus import Series

DOCS = Path(__file__).parents[2] / "docs" / "dashboards"


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.0004, "s", None, "400 µs"),
        (0.25, "s", None, "250 ms"),
        (90, "s", None, "1.5 min"),
        (0.124, "percentunit", None, "12.4%"),
        (12_345, "short", None, "12.3 K"),
        (3.9, "short", 0, "4"),
        (2.5, "ops", None, "2.5 ops/s"),
        (0, "dateTimeAsIso", None, "1970-01-01 00:00:00"),
        (math.nan, "s", None, "-"),
    ],
)
def test_numbers_are_shown_in_their_unit(value: float, unit: str, decimals: int | None, text: str) -> None:
    assert readable(value, unit, decimals) == text


def test_a_legend_shows_labels_and_nothing_for_those_that_a_series_has_not() -> None:
    answer = Answer({"legendFormat": "{{client}} {{kind}} of {{client_id}}"}, [])

    assert answer.name(Series({"client": "librdkafka", "client_id": "b-1"}, [])) == "librdkafka  of b-1"


def test_every_dashboard_has_its_picture_on_the_page() -> None:
    shown = re.findall(r"\((.+\.png)\)", (DOCS / "README.md").read_text(encoding="utf-8"))

    assert (
        sorted(shown)
        == sorted(f"{board.uid}.png" for board in BOARDS)
        == sorted(p.name for p in DOCS.glob("*.png"))
    )
