"""The chart's dashboards: every query is valid, and every metric is shown."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.dashboards import fleet, group, known, promql
from charts.dashboards.boards import BOARDS, FOLDER, OUTLINE, path
from charts.dashboards.grafana import page
from charts.dashboards.limits import VALUES, alerts
from charts.dashboards.model import Board, Scope
from charts.dashboards.outline import outline

CHART = Path(__file__).parents[1] / "groupwright"
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"

every_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)

Json = dict[str, Any]


def committed(board: Board) -> Json:
    read: Json = json.loads(path(board).read_text(encoding="utf-8"))
    return read


def panels(board: Board) -> list[Json]:
    return [panel for panel in committed(board)["panels"] if panel["type"] != "row"]


def queries(board: Board) -> Iterator[tuple[str, str]]:
    """Every expression with its legend, of panels and annotations."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield target["expr"], target.get("legendFormat", "")
    for annotation in committed(board)["annotations"]["list"]:
        yield annotation["expr"], ""


def labels() -> dict[str, frozenset[str]]:
    """The labels of everything that may be queried."""
    template = (CHART / "templates" / "prometheusrule.yaml").read_text(encoding="utf-8")
    records = [line.split()[-1] for line in template.splitlines() if line.strip().startswith("- record:")]
    return known.series() | known.recorded(records, alerts()["groupLabels"])


@every_board
def test_what_is_committed_is_what_the_code_makes(board: Board) -> None:
    assert path(board).read_text(encoding="utf-8") == page(board), "run: make docs"


def test_the_outline_on_the_page_is_what_the_code_makes() -> None:
    assert OUTLINE.read_text(encoding="utf-8") == outline(group.BOARD), "run: make docs"


def test_nothing_else_is_installed() -> None:
    assert sorted(FOLDER.glob("*")) == sorted(map(path, BOARDS))


@every_board
def test_every_query_parses_and_every_metric_label_and_value_in_it_exists(board: Board) -> None:
    by_metric = labels()

    wrong = {text: [*known.mistakes(text, by_metric, legend)] for text, legend in queries(board)}

    assert {text: mistakes for text, mistakes in wrong.items() if mistakes} == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("groupwright_rebalance_total", "no such metric: groupwright_rebalance_total"),
        ('groupwright_lag{member="m"}', "groupwright_lag has no label member"),
        ('groupwright_membership_state{state=~"stable|ready"}', "the label state is never ready"),
        ("sum by (assignor) (groupwright_lag)", "none of groupwright_lag has the label assignor"),
        (
            "groupwright_lag * on (groups) groupwright_lag_max",
            "none of groupwright_lag, groupwright_lag_max has the label groups",
        ),
    ],
)
def test_a_wrong_name_would_be_found(text: str, wrong: str) -> None:
    assert list(known.mistakes(text, labels())) == [wrong]


@every_board
def test_every_panel_is_explained_measured_and_leads_to_a_runbook(board: Board) -> None:
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        (link,) = panel["links"]
        assert panel["description"].endswith("."), panel["title"]
        assert defaults["unit"], panel["title"]
        assert defaults["thresholds"]["steps"], panel["title"]
        assert link["url"].startswith("${runbooks}/")
        assert (RUNBOOKS / link["url"].removeprefix("${runbooks}/")).is_file(), link["url"]


@every_board
def test_panels_lie_beside_each_other_and_fill_their_rows(board: Board) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in committed(board)["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at.get("x", 0), at.get("x", 0) + at["w"])
            for y in range(at.get("y", 0), at.get("y", 0) + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells

    height = max(y for _, y in taken) + 1
    assert len(taken) == 24 * height


@every_board
def test_every_query_is_narrowed_by_the_variables_of_the_dashboard(board: Board) -> None:
    variables = {each["name"]: each for each in committed(board)["templating"]["list"]}

    narrower = {Scope.SERVICES: [], Scope.CLUSTER: ["group"]}.get(board.scope, ["group", "client"])
    assert list(variables) == ["datasource", "cluster", "namespace", *narrower, "runbooks"]
    assert variables["runbooks"]["query"] == yaml.safe_load(VALUES.read_text())["alerts"]["runbookUrl"]
    for text, _ in queries(board):
        selected = promql.matchers(promql.parse(text))
        for metric in promql.metrics(promql.parse(text)):
            assert {"cluster", "namespace"} <= {each.label for each in selected if each.metric == metric}, (
                text
            )
    for name in ("cluster", "namespace", *narrower):
        query = variables[name]["query"]["query"]
        selector, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        found = known.selected(selector, labels())
        assert found
        assert all(label in labels()[metric] for metric in found)
    # Series without the labels, as a single cluster's, match "All".
    assert {variables[name]["allValue"] for name in ("cluster", "namespace")} == {".*"}


@every_board
def test_groups_of_different_clusters_are_never_aggregated(board: Board) -> None:
    for text, _ in queries(board):
        for naming in promql.namings(promql.parse(text)):
            assert ("cluster" in naming.labels) == ("namespace" in naming.labels), text


def test_a_group_in_the_table_leads_to_the_group_of_its_cluster_and_namespace() -> None:
    """Another cluster or namespace may have a group of the same name."""
    (columns,) = (
        panel["fieldConfig"]["overrides"]
        for panel in panels(fleet.BOARD)
        if panel["title"] == "Groups" and panel["type"] == "table"
    )
    (links,) = (
        each["value"]
        for column in columns
        if column["matcher"] == {"id": "byName", "options": "group"}
        for each in column["properties"]
    )

    row = (
        "var-group=${__value.raw:percentencode}"
        "&var-cluster=${__data.fields.cluster:percentencode}"
        "&var-namespace=${__data.fields.namespace:percentencode}"
    )
    assert {each["url"].partition("?")[0] for each in links} == {
        f"/d/{board.uid}" for board in BOARDS if board.scope is Scope.GROUP
    }
    for link in links:
        assert link["url"].partition("?")[2] == f"{row}&${{datasource:queryparam}}&${{__url_time_range}}"


@every_board
def test_a_time_that_is_not_known_yet_is_no_age(board: Board) -> None:
    """Gauges of the last refresh and the last progress are 0 before the first: 56 years ago."""
    gauges = (
        r"groupwright_(?:exporter_last_refresh|pipeline_last_progress)_timestamp_seconds\{[^}]*\}(.{0,4})"
    )
    for text, _ in queries(board):
        assert set(re.findall(gauges, text)) <= {" > 0"}, text


def test_what_is_measured_is_shown_or_alerted_on_or_left_out_for_a_reason() -> None:
    template = (CHART / "templates" / "prometheusrule.yaml").read_text(encoding="utf-8")
    helpers = (CHART / "templates" / "_alerts.tpl").read_text(encoding="utf-8")
    series = known.series()
    used = {
        name for board in BOARDS for text, _ in queries(board) for name in promql.metrics(promql.parse(text))
    }
    used |= {name for name in series if name in template + helpers}

    shown = {known.family(name) for name in used if name in series}
    catalogued = {known.family(name) for name in series}
    assert catalogued - shown == set(known.UNSHOWN)
    assert all(known.UNSHOWN.values())
