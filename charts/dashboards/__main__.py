"""Writes the chart's dashboards: ``python -m charts.dashboards``."""

import sys

from charts.dashboards.boards import BOARDS, FOLDER, path
from charts.dashboards.grafana import page

FOLDER.mkdir(exist_ok=True)
for board in BOARDS:
    path(board).write_text(page(board), encoding="utf-8")
    sys.stdout.write(f"{path(board)}\n")
