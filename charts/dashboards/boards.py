"""The dashboards, and the paths of what is made of them."""

from pathlib import Path

from charts.dashboards import cluster, fleet, group, rebalance, services
from charts.dashboards.model import Board

FOLDER = Path(__file__).parents[1] / "groupwright" / "dashboards"
OUTLINE = Path(__file__).parents[2] / "docs" / "dashboards" / f"{group.BOARD.uid}.svg"
BOARDS = (group.BOARD, fleet.BOARD, rebalance.BOARD, cluster.BOARD, services.BOARD)


def path(board: Board) -> Path:
    """Return the path of a dashboard's JSON, from which the chart installs it.

    The name has the project in it: the sidecar puts the files of all charts into one folder.
    """
    return FOLDER / f"{board.uid}.json"
