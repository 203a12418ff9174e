"""The runbooks: each has its parts, and names metrics, values and settings that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
from charts.dashboards import known
from charts.dashboards.limits import alerts

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
CONFIGURATION = RUNBOOKS.parent / "configuration.md"
TEMPLATE = Path(__file__).parents[1] / "groupwright" / "templates" / "prometheusrule.yaml"
PARTS = ["What it means", "How to look", "Likely causes, in order", "What to change"]
PAGES = sorted(page for page in RUNBOOKS.glob("*.md") if page.stem != "README")

OF_BROKERS = {
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "offsets.topic.replication.factor",
    "min.insync.replicas",
    "log.cleaner.enable",
}
OF_PRODUCERS = {"transactional.id"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def quoted(text: str) -> list[str]:
    """What stands between backticks in the text, code blocks apart."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def labels() -> dict[str, frozenset[str]]:
    template = TEMPLATE.read_text(encoding="utf-8")
    records = re.findall(r"- record: (\S+)", template)
    return known.series() | known.recorded(records, alerts()["groupLabels"])


@every_page
def test_a_page_says_what_an_alert_means_how_to_look_what_causes_it_and_what_to_change(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    title, *parts = re.findall(r"^##? (.+)$", text, flags=re.MULTILINE)
    assert title == "Groupwright" + page.stem.title().replace("-", "")
    assert parts == PARTS
    assert len(re.findall(r"^\d\. ", text.partition("## Likely causes")[2], flags=re.MULTILINE)) >= 3


@every_page
def test_every_query_on_a_page_can_be_pasted(page: Path) -> None:
    queries = re.findall(r"```promql\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)

    assert queries or page.stem == "instrumentation-silent", "nothing of it is left to query"
    assert [wrong for query in queries for wrong in known.mistakes(query, labels())] == []


@every_page
def test_every_metric_value_and_setting_that_a_page_names_exists(page: Path) -> None:
    settings = set(
        re.findall(r"^\| `([a-z._]+)` \|", CONFIGURATION.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    values: dict[str, Any] = alerts()["rules"]

    for name in quoted(page.read_text(encoding="utf-8")):
        key = name.partition("=")[0]
        if name.startswith("groupwright_"):
            assert known.family(name)
        elif name.startswith("alerts.rules."):
            _, _, rule, value = key.split(".")
            assert value in values[rule]
        elif re.fullmatch(r"[a-z]+(\.[a-z]+)+", key) and key != "groupwright.rebalances":
            assert key in settings | OF_BROKERS | OF_PRODUCERS or key.startswith(
                ("groupwright.", "metadata.", "advanced.", "strategy.")
            ), key


def test_the_list_has_every_page_with_its_severity() -> None:
    listed = re.findall(
        r"^\| \[(\w+)\]\((.+)\.md\) \| (\w+) \|", (RUNBOOKS / "README.md").read_text(), flags=re.MULTILINE
    )
    by_page = {page: (alert, severity) for alert, page, severity in listed}
    rules: dict[str, Any] = alerts()["rules"]

    assert by_page == {
        page.stem: (
            alert := "Groupwright" + page.stem.title().replace("-", ""),
            rules[_key(alert)]["severity"],
        )
        for page in PAGES
    }


def _key(alert: str) -> str:
    name = alert.removeprefix("Groupwright")
    return name[0].lower() + name[1:]
