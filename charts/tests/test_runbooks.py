"""The runbooks: each has its parts, and names metrics, values and settings that exist."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from charts.dashboards import known
from charts.dashboards.boards import BOARDS
from charts.dashboards.limits import alerts
from groupwright.cli.app import app

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
OF_TOPICS = {"retention.bytes", "retention.ms"}

RULES = {
    "cooperative-sticky": "assignor-and-protocol",
    "load-aware": "assignor-and-protocol",
    "group.protocol": "assignor-and-protocol",
    "group.instance.id": "static-membership",
    "session.timeout.ms": "time-outs",
    "max.poll.interval.ms": "time-outs",
    "groupwright offsets": "offsets",
}
"""Changes that a page may advise only with the rules of the README that make them safe."""

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
    cells = re.findall(r"^\| (`[a-z].*?`) \|", CONFIGURATION.read_text(encoding="utf-8"), flags=re.MULTILINE)
    settings = {key for cell in cells for key in re.findall(r"`([a-z._]+)`", cell)}
    values: dict[str, Any] = alerts()["rules"]

    for name in quoted(page.read_text(encoding="utf-8")):
        key = name.partition("=")[0]
        if name.startswith("groupwright_"):
            assert known.family(name)
        elif name.startswith("alerts.rules."):
            _, _, rule, value = key.split(".")
            assert value in values[rule]
        elif re.fullmatch(r"[a-z]+(\.[a-z]+)+", key) and key != "groupwright.rebalances":
            assert key in settings | OF_BROKERS | OF_PRODUCERS | OF_TOPICS or key.startswith(
                ("groupwright.", "metadata.", "advanced.", "strategy.")
            ), key


@every_page
def test_advice_that_can_do_harm_refers_to_the_rules_that_make_it_safe(page: Path) -> None:
    advice = page.read_text(encoding="utf-8").partition("## What to change")[2]
    rules = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", rules, flags=re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}

    linked = set(re.findall(r"README\.md#([a-z-]+)\)", advice))
    needed = {anchor for name, anchor in RULES.items() if any(name in each for each in quoted(advice))}
    assert needed <= linked <= anchors


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "README.md"], ids=lambda page: page.stem)
def test_every_command_on_a_page_exists_with_its_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL))
    lines = (*quoted(text), *blocks.splitlines())
    commands = [each for each in lines if each.startswith("groupwright ")]

    assert [each for each in quoted(text) if "kafka-consumer-groups" in each] == []
    group: Any = typer.main.get_command(app)
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)[1:]
        group.commands[name].make_context(name, arguments)


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


@every_page
def test_the_dashboards_and_panels_that_a_page_names_exist(page: Path) -> None:
    """Each name in italics is a dashboard, and each quoted name after it is one of its rows or panels."""
    boards = {board.title.removeprefix("Groupwright / "): board for board in BOARDS}

    for paragraph in re.split(r"\n\n|\n- |\n\d\. ", page.read_text(encoding="utf-8")):
        named = re.findall(r"[Dd]ashboard \*([^*]+)\*", paragraph.replace("\n", " "))
        titles = {
            title
            for name in named
            for row in boards[name].rows
            for whole in (row.title, *(panel.title for panel in row.panels))
            for title in (whole, whole.partition(",")[0])  # without ", top ten"
        }
        if named:
            assert set(re.findall(r'"([^"]+)"', paragraph.replace("\n", " "))) <= titles


OPERATIONS = [
    *PAGES,
    RUNBOOKS / "README.md",
    RUNBOOKS.parent / "dashboards" / "README.md",
    TEMPLATE.parents[1] / "README.md",
    TEMPLATE.parents[2] / "README.md",
    RUNBOOKS.parents[1] / "pipeline" / "README.md",
    RUNBOOKS.parents[1] / "cli" / "EXPORTER.md",
]


@pytest.mark.parametrize("page", OPERATIONS, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_link_of_the_pages_for_operators_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            broken.append(link)

    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
