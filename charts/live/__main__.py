"""Makes the pictures of the dashboards in the documentation from a real storm: ``python -m charts.live``.

Needs Debian's package ``prometheus``.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from charts.dashboards.boards import BOARDS
from charts.live.draw import draw
from charts.live.panels import Window, names
from charts.live.prometheus import Prometheus
from charts.live.scene import BROKER, Scene
from charts.live.stream import real_stream
from charts.tools.rendering import render

from groupwright.testing import LocalKafka

HERE = Path(__file__).parent
PICTURES = HERE.parents[1] / "docs" / "dashboards"
GROUPS = {
    "groupwright-group": "billing",
    "groupwright-fleet": ".*",
    "groupwright-rebalance": "mail",
    "groupwright-cluster": ".*",
    "groupwright-services": ".*",
}
"""Group shown by each dashboard."""


def main() -> int:
    """Play the scene, and draw every dashboard of it."""
    parser = argparse.ArgumentParser(description="Pictures of the dashboards, from a real storm.")
    parser.add_argument("--seconds", type=float, default=150.0, help="how long the scene lasts (150)")
    parser.add_argument("--board", action="append", choices=[*GROUPS], help="draw these alone")
    options = parser.parse_args()
    program = shutil.which("prometheus")
    if program is None:
        sys.stderr.write("prometheus is not installed (Debian's package prometheus has it)\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalKafka(config=BROKER) as kafka,
        Scene(kafka, real_stream) as scene,
        Prometheus(program, Path(folder), scene.targets, _rules()) as prometheus,
    ):
        begin = time.time()
        _play(scene, begin + options.seconds)
        window = Window(begin, time.time())
        for board in BOARDS:
            if board.uid not in (options.board or GROUPS):
                continue
            values = {"cluster": ".*", "namespace": "shop", "group": GROUPS[board.uid], "client": ".*"}
            variables = {name: value for name, value in values.items() if name in names(board)}
            picture = PICTURES / f"{board.uid}.png"
            draw(prometheus, board, window, variables, picture)
            sys.stdout.write(f"{picture}\n")
    return 0


def _play(scene: Scene, until: float) -> None:
    """A quiet start, a broker that restarts, and a storm with everything in it until the end."""
    time.sleep((until - time.time()) / 5)
    scene.restart_broker()
    time.sleep((until - time.time()) / 5)
    scene.storm(lambda: time.time() > until)


def _rules() -> dict[str, object]:
    values = (HERE / "settings.yaml").read_text(encoding="utf-8")
    (rule,) = render(values, template="prometheusrule.yaml", release="pictures")
    spec: dict[str, object] = rule["spec"]
    return spec


if __name__ == "__main__":
    sys.exit(main())
