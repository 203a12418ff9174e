"""The dashboards there are, and where each is committed."""

from pathlib import Path

from charts.dashboards import fleet, group, rebalance
from charts.dashboards.model import Board

FOLDER = Path(__file__).parents[1] / "groupwright" / "dashboards"
BOARDS = (group.BOARD, fleet.BOARD, rebalance.BOARD)


def path(board: Board) -> Path:
    """Return where a dashboard's JSON is committed; the chart installs what is there.

    The name has the project in it: the sidecar puts the files of all charts into one folder.
    """
    return FOLDER / f"{board.uid}.json"
