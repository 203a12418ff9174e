"""A real Prometheus scrapes real consumers during a rebalance storm, which rules and dashboards show."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from charts.dashboards.boards import BOARDS
from charts.live.panels import Window, ask, panels
from charts.live.prometheus import Prometheus, wait_until
from charts.live.scene import BROKER, Scene

from groupwright.testing import LocalKafka
from harness.tools import find_program

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
SETTINGS = Path(__file__).parents[1] / "live" / "settings.yaml"

EXPECTED = {
    "GroupwrightRebalanceStorm",
    "GroupwrightMemberFlapping",
    "GroupwrightPartitionsLost",
    "GroupwrightMaxPollExceeded",
    "GroupwrightMemberFenced",
    "GroupwrightSlowRebalance",
}
"""What the scene is bound to bring about. The other alerts' scenarios are promtool's."""

ROUNDS = 40
"""At most: the storm ends as soon as all of them have fired."""


@pytest.fixture
def scene() -> Iterator[Scene]:
    with LocalKafka(config=BROKER) as kafka, Scene(kafka) as scene:
        yield scene


@pytest.mark.kafka
def test_a_storm_makes_the_alerts_fire_and_every_panel_shows_it(
    helm: Any, scene: Scene, tmp_path: Path
) -> None:
    (rule,) = helm.template("--show-only=templates/prometheusrule.yaml", "--values", SETTINGS)
    program = find_program("prometheus", hint="Debian's package prometheus")
    with Prometheus(program, tmp_path, scene.targets, rule["spec"]) as prometheus:
        begin = time.time()
        wait_until(lambda: len(prometheus.query("groupwright_consumer_info")) == 6, "all members are scraped")
        assert "GroupwrightRebalanceStorm" not in prometheus.firing()

        fired: set[str] = set()
        rounds = iter(range(ROUNDS))

        def over() -> bool:
            nonlocal fired
            fired |= prometheus.firing()
            return fired >= EXPECTED or next(rounds, None) is None

        scene.restart_broker()
        scene.storm(over)

        assert EXPECTED - fired == set()
        assert prometheus.rule_errors() == []
        window = Window(begin, time.time())
        assert silent(prometheus, window) == set()
        assert unanswered(prometheus, window) == set()


def unanswered(prometheus: Prometheus, window: Window) -> set[str]:
    """The pages of alerts that fired, of which no query has had data; an invalid query raises."""
    answered = {
        page.stem: [
            bool(prometheus.query_range(query, window.start, window.end, window.step))
            for query in re.findall(r"```promql\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        ]
        for page in RUNBOOKS.glob("*.md")
    }
    return {
        page
        for page, found in answered.items()
        if f"Groupwright{page.title().replace('-', '')}" in EXPECTED and not any(found)
    }


def silent(prometheus: Prometheus, window: Window) -> set[tuple[str, str]]:
    """The queries without data, neither of the one group nor of the other."""
    empty = set()
    for board in BOARDS:
        for panel in panels(board):
            if panel["type"] == "row":
                continue
            answers = [
                ask(
                    prometheus,
                    seen_in_time(panel),
                    window,
                    {"cluster": ".*", "namespace": "shop", "group": group, "client": ".*"},
                )
                for group in ("billing", "mail")
            ]
            for of_billing, of_mail in zip(*answers, strict=True):
                if not of_billing.series and not of_mail.series:
                    name = of_billing.target.get("legendFormat") or of_billing.target["refId"]
                    empty.add((panel["title"], name))
    return empty


def seen_in_time(panel: dict[str, Any]) -> dict[str, Any]:
    """Ask a panel that may be empty now, and says so, for the whole time instead."""
    if "noValue" not in panel["fieldConfig"]["defaults"]:
        return panel
    return {**panel, "targets": [{**target, "instant": False} for target in panel["targets"]]}
