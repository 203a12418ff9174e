"""Outline of a dashboard for the documentation: its rows and the titles of its panels, as SVG."""

import json
import textwrap
from html import escape
from typing import Any

from charts.dashboards.grafana import page
from charts.dashboards.model import Board

_CELL_WIDTH, _CELL_HEIGHT = 40, 9
"""Size of a cell of Grafana's grid, in pixels."""
_COLUMNS = 24
_CHARACTERS_PER_CELL = 6
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#1f2328}.row{font-weight:600}"
    "rect{fill:#f6f8fa;stroke:#d1d9e0}"
    "@media(prefers-color-scheme:dark){text{fill:#d1d7e0}rect{fill:#151b23;stroke:#3d444d}}"
)


def outline(board: Board) -> str:
    """Return the picture of a dashboard's layout."""
    panels = json.loads(page(board))["panels"]
    width = _COLUMNS * _CELL_WIDTH
    height = _CELL_HEIGHT * max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(board.title)}">\n<style>{_STYLE}</style>\n'
    )
    return head + "\n".join(_panel(each) for each in panels) + "\n</svg>\n"


def _panel(panel: dict[str, Any]) -> str:
    at = panel["gridPos"]
    x, y = at["x"] * _CELL_WIDTH + 2, at["y"] * _CELL_HEIGHT
    if panel["type"] == "row":
        return f'<text class="row" x="{x}" y="{y + 10}">{escape(panel["title"])}</text>'
    lines = textwrap.wrap(panel["title"], at["w"] * _CHARACTERS_PER_CELL)
    texts = "".join(
        f'<text x="{x + 6}" y="{y + 18 + 13 * number}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    wide, high = at["w"] * _CELL_WIDTH - 4, at["h"] * _CELL_HEIGHT - 4
    return f'<rect x="{x}" y="{y + 4}" width="{wide}" height="{high}" rx="2"/>{texts}'
