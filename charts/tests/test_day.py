"""The day of operations: its programme is in the charts' README. `make endure` plays it."""

from pathlib import Path

from charts.dashboards.limits import alerts
from charts.live.day import DAY, PLANS, Alert, Event, Result, minutes_of, rules, table

PAGE = Path(__file__).parents[1] / "README.md"
STORM = Event("08:00", "A storm", lambda _: None, {"RebalanceStorm": ("billing",)})


def test_the_page_has_the_programme() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert f"\n{table()}\n" in page, "copy the output of python -m charts.live.day --table to the page"


def test_the_programme_is_in_order_and_its_alerts_and_groups_exist() -> None:
    names = {rule["alert"] for group in rules()["groups"] for rule in group["rules"] if "alert" in rule}
    expected = {each for event in DAY for each in event.expected}

    assert sorted(DAY, key=lambda event: minutes_of(event.time)) == list(DAY)
    assert {f"Groupwright{each.name}" for each in expected} <= names
    assert {each.group for each in expected} <= {*PLANS, ""}
    assert all(bool(event.until) == bool(event.alerts) for event in DAY)


def test_the_rules_are_those_of_the_chart_with_shorter_times() -> None:
    fast = {
        rule["alert"]: rule for group in rules(30)["groups"] for rule in group["rules"] if "alert" in rule
    }

    assert alerts()["rules"]["rebalanceStorm"]["window"] == "15m"
    assert "[30000ms]" in fast["GroupwrightRebalanceStorm"]["expr"]
    assert fast["GroupwrightRebalanceStorm"]["for"] == "2000ms"
    assert fast["GroupwrightRebalanceStorm"]["keep_firing_for"] == "10000ms"


def test_an_alert_that_does_not_fire_or_is_not_expected_is_a_difference() -> None:
    storm, other = Alert("RebalanceStorm", "billing"), Alert("ExporterSlow")

    assert Result(STORM, 1.0, frozenset({storm})).differences == []
    assert Result(STORM, 1.0, frozenset({other})).differences == [
        "RebalanceStorm (billing) did not fire",
        "ExporterSlow fired",
    ]
    assert Result(STORM, 1.0, frozenset({storm}), "all alerts end: not within 1 s").differences == [
        "all alerts end: not within 1 s"
    ]
