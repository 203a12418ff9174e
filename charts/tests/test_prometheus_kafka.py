"""A real Prometheus scrapes real consumers during a rebalance storm, which rules and dashboards show."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from charts.dashboards.boards import BOARDS
from charts.live.panels import Window, ask, panels
from charts.live.prometheus import Prometheus
from charts.live.scene import BROKER, Scene
from charts.tools.rendering import render
from groupwright.testing import LocalKafka
from integration_tests.harness.tools import find_program
from integration_tests.harness.waiting import wait_until

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
SETTINGS = Path(__file__).parents[1] / "live" / "settings.yaml"

EXPECTED = {
    "GroupwrightRebalanceStorm",
    "GroupwrightMemberFlapping",
    "GroupwrightPartitionsLost",
    "GroupwrightMaxPollExceeded",
    "GroupwrightMemberFenced",
    "GroupwrightSlowRebalance",
    "GroupwrightPipelineDataLoss",
    "GroupwrightPipelineQuarantining",
}
"""What the scene is bound to bring about. The other alerts' scenarios are promtool's."""

CULPRITS = {
    "max-poll-exceeded": {"billing-3", "mail-3"},
    "member-fenced": {"billing-static-a", "mail-static-a"},
    "member-flapping": {"billing-3", "mail-3"},
    "partitions-lost": {"billing-3", "mail-3"},
    "rebalance-storm": {"billing-3", "mail-3"},
    "slow-rebalance": {"billing-3", "mail-3"},
}
"""By runbook, the members that its queries have to show: of each group the third one stalls, and is the
slowest in its callbacks; the first static one is fenced."""

MAY_BE_SILENT = {
    ("Time to catch up, top ten", "{{group}} {{topic}}"),
    ("Oldest open transaction, top ten", "{{topic}} {{transactional_id}}"),
}
"""The storm may end before any lag shrinks, and has no transactions."""

SCRAPED_WITHIN = 2.0
"""Seconds after which a scrape has ended, so that what it brings is there."""

ROUNDS = 40
"""At most: the storm ends as soon as all of them have fired."""


@pytest.fixture
def scene() -> Iterator[Scene]:
    with LocalKafka(config=BROKER) as kafka, Scene(kafka) as scene:
        yield scene


@pytest.mark.endurance
@pytest.mark.integration
@pytest.mark.kafka
def test_a_storm_makes_the_alerts_fire_and_every_panel_shows_it(scene: Scene, tmp_path: Path) -> None:
    (rule,) = render(SETTINGS.read_text(encoding="utf-8"), template="prometheusrule.yaml")
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
        window = Window(begin, begin)

        def assignments_are_read() -> bool:
            # Tables show the end of the time, and while a group rebalances it is not known which members own
            # nothing.
            nonlocal window
            window = Window(begin, time.time() - SCRAPED_WITHIN)
            return len(prometheus.query("groupwright_cluster_group_idle_members", window.end)) == 2

        wait_until(assignments_are_read, "the exporter has read the groups' assignments")
        assert silent(prometheus, window) <= MAY_BE_SILENT
        shown = members_shown(prometheus, window)
        assert {page for page, culprits in CULPRITS.items() if not culprits & shown[page]} == set()
        assert shown["member-fenced"] <= CULPRITS["member-fenced"]
        slowest = max(
            prometheus.query(
                "sum by (client_id)"
                ' (rate(groupwright_rebalance_callback_duration_seconds_sum{group="mail"}[30m]))'
            ),
            key=lambda series: series.points[-1][1],
        )
        assert slowest.labels == {"client_id": "mail-3"}


def members_shown(prometheus: Prometheus, window: Window) -> dict[str, set[str]]:
    """The members in what the queries of each page have returned; an invalid query raises."""
    return {
        page.stem: {
            series.labels.get("client_id", "")
            for query in re.findall(r"```promql\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for series in prometheus.query_range(query, window.start, window.end, window.step)
        }
        for page in RUNBOOKS.glob("*.md")
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
