"""Makes the pictures of the dashboards in the documentation from a real storm: ``python -m charts.live``.

Needs what `make charts-tools` builds, and Debian's package ``prometheus``.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from charts.dashboards.boards import BOARDS
from charts.live.draw import draw
from charts.live.panels import Window, names
from charts.live.prometheus import Prometheus
from charts.live.scene import BROKER, Scene
from charts.live.stream import real_stream
from charts.tools import programs

from groupwright.testing import LocalKafka

HERE = Path(__file__).parent
CHART = HERE.parent / "groupwright"
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
    helm = programs.folder() / "helm"
    arguments = ["--show-only=templates/prometheusrule.yaml", "--values", str(HERE / "settings.yaml")]
    rendered = subprocess.run(
        [helm, "template", "pictures", CHART, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    rule: dict[str, dict[str, object]] = yaml.safe_load(rendered.stdout)
    return rule["spec"]


if __name__ == "__main__":
    sys.exit(main())
