"""Writes the chart's dashboards, and the outline of one for its page: ``python -m charts.dashboards``."""

import sys

from charts.dashboards import group
from charts.dashboards.boards import BOARDS, FOLDER, OUTLINE, path
from charts.dashboards.grafana import page
from charts.dashboards.outline import outline

FOLDER.mkdir(exist_ok=True)
for written, text in [*((path(board), page(board)) for board in BOARDS), (OUTLINE, outline(group.BOARD))]:
    written.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{written}\n")
