"""The chart's alerts: each fires exactly when it should, and names the remedy."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.dashboards import known, promql
from charts.dashboards.boards import BOARDS
from charts.dashboards.limits import alerts as alert_values
from charts.tests.conftest import README
from charts.tools.rendering import render
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

SCENARIOS = Path(__file__).parent / "rules"
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
RUNBOOK_URL = "https://runbooks.example/"
PAGES = sorted(scenario.stem for scenario in SCENARIOS.glob("*.yaml"))

OF_NO_GROUP = re.compile("Groupwright(OffsetsTopicHeld|Exporter.+|Pipeline.+)")
"""Alerts about the cluster, the exporter or the pipeline."""

Rule = dict[str, Any]


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    """What Prometheus reads of the rendered PrometheusRule."""
    return rendered(f"alerts: {{runbookUrl: '{RUNBOOK_URL}'}}")


@pytest.fixture(scope="module")
def rules(spec: dict[str, Any]) -> list[Rule]:
    return [rule for group in spec["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def alerts(rules: list[Rule]) -> dict[str, Rule]:
    """The alerts by the page of their runbook."""
    return {Path(rule["annotations"]["runbook_url"]).stem: rule for rule in rules if "alert" in rule}


@pytest.fixture(scope="module")
def promtool() -> str:
    return find_program("promtool", hint="Debian's package prometheus has it")


def queries_of(page: Path) -> list[str]:
    """Return the queries on a page."""
    return re.findall(r"```promql\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def rendered(values: str) -> dict[str, Any]:
    (rule,) = render(values, template="prometheusrule.yaml")
    spec: dict[str, Any] = rule["spec"]
    return spec


def run(program: str, *arguments: str | Path, within: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], cwd=within, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


# --- What Prometheus says of them ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(spec: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules, and the scenarios beside them.

    Without an order, promtool takes the groups of rules by chance, and an alert may see its recording rule an
    evaluation late.
    """
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    order = yaml.safe_dump({"group_eval_order": [group["name"] for group in spec["groups"]]})
    for page in PAGES:
        (folder / f"{page}.yaml").write_text(order + (SCENARIOS / f"{page}.yaml").read_text())
    return folder


@pytest.mark.integration
def test_prometheus_can_read_all_rules(promtool: str, folder: Path, rules: list[Rule]) -> None:
    checked = run(promtool, "check", "rules", "--lint-fatal", "rules.yaml", within=folder)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"SUCCESS: {len(rules)} rules found" in checked.stdout


@pytest.mark.integration
@pytest.mark.slow
def test_every_scenario_comes_out_as_it_says(promtool: str, folder: Path) -> None:
    tested = run(promtool, "test", "rules", *(f"{page}.yaml" for page in PAGES), within=folder)

    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.count("SUCCESS") == len(PAGES)


@pytest.mark.integration
def test_every_query_of_a_runbook_shows_what_the_page_says(promtool: str, folder: Path) -> None:
    """All of them after one bad night: the series that a page speaks of, the largest value first."""
    night = yaml.safe_load((SCENARIOS.parent / "runbooks.yaml").read_text())
    tests = []
    for page, expected in night["pages"].items():
        queries = queries_of(RUNBOOKS / f"{page}.md")
        for query, series in zip(queries, expected, strict=True):
            # `* 0`: which series are shown, whatever their values are.
            all_of_them = [{"labels": each, "value": 0} for each in series]
            first = [{"labels": series[0], "value": 0}]
            tests += [
                {"expr": f"({query}) * 0", "eval_time": "40m", "exp_samples": all_of_them},
                {"expr": f"topk(1, {query}) * 0", "eval_time": "40m", "exp_samples": first},
            ]
    document = {
        **yaml.safe_load((folder / f"{PAGES[0]}.yaml").read_text()),
        "tests": [
            {"interval": "1m", "input_series": night["input_series"], "promql_expr_test": tests},
        ],
    }
    (folder / "runbooks.yaml").write_text(yaml.safe_dump(document))

    tested = run(promtool, "test", "rules", "runbooks.yaml", within=folder)

    assert night["pages"].keys() == set(PAGES)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("page", PAGES)
def test_every_alert_has_a_scenario_in_which_it_fires_and_one_in_which_it_stays_silent(
    page: str, alerts: dict[str, Rule]
) -> None:
    scenarios = yaml.safe_load((SCENARIOS / f"{page}.yaml").read_text())["tests"]

    fires = {
        bool(each.get("exp_alerts")) for scenario in scenarios[:1] for each in scenario["alert_rule_test"]
    }
    silent = {
        bool(each.get("exp_alerts")) for scenario in scenarios[1:] for each in scenario["alert_rule_test"]
    }
    named = {each["alertname"] for scenario in scenarios for each in scenario["alert_rule_test"]}

    assert named == {alerts[page]["alert"]}
    assert True in fires
    assert silent == {False}


def test_there_is_a_scenario_and_a_runbook_for_every_alert_and_for_nothing_else(
    alerts: dict[str, Rule],
) -> None:
    runbooks = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}

    assert set(alerts) == set(PAGES) == runbooks


# --- What they hold -----------------------------------------------------------------------------------


def test_every_alert_waits_has_a_severity_and_says_what_is_wrong_in_whole_sentences(
    alerts: dict[str, Rule],
) -> None:
    for alert in alerts.values():
        annotations = alert["annotations"]
        assert alert["for"]
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        of_group = not OF_NO_GROUP.fullmatch(alert["alert"])
        assert ("{{ $labels.group }}" in annotations["summary"]) == of_group
        assert annotations["description"].endswith(".")
        assert annotations["runbook_url"].startswith("https://runbooks.example/")
        assert "//" not in annotations["runbook_url"].removeprefix("https://")


def test_every_metric_and_label_in_the_rules_is_in_the_catalogue(rules: list[Rule]) -> None:
    records = [rule["record"] for rule in rules if "record" in rule]
    labels = known.series() | known.recorded(records, alert_values()["groupLabels"])

    assert [wrong for rule in rules for wrong in known.mistakes(rule["expr"], labels)] == []


def test_names_of_recording_rules_say_level_metric_and_operation(rules: list[Rule]) -> None:
    for rule in rules:
        if "record" in rule:
            level, metric, operation = rule["record"].split(":")
            assert level in {"group", "member"}
            assert metric.startswith("groupwright_")
            assert operation


# --- Values -------------------------------------------------------------------------------------------


def test_every_value_of_an_alert_is_in_its_rule() -> None:
    """A threshold that no rule reads would have no effect, silently."""
    changed = {
        name: {
            key: value for number, key in enumerate(rule) if (value := other(rule[key], number)) is not None
        }
        for name, rule in alert_values()["rules"].items()
    }

    spec = rendered(yaml.safe_dump({"alerts": {"rules": changed}}))
    texts = [json.dumps(rule) for group in spec["groups"] for rule in group["rules"] if "alert" in rule]

    assert len(texts) == len(changed)
    for text, (name, rule) in zip(texts, changed.items(), strict=True):
        for key, value in rule.items():
            for each in value if isinstance(value, (list, dict)) else [value]:
                assert str(each) in text, (name, key)


def other(value: object, number: int) -> object:
    """Another value of the same kind, that is found nowhere else; None for a switch."""
    match value:
        case bool():
            return None
        case dict():
            return {f"team{number}": f"team{number}"}
        case int() | float() if value < 1 and value:
            return 0.0317 + number / 1000
        case int() | float():
            return 31700 + number
        case list():
            return ["SOME_ERROR", "OTHER_ERROR"]
        case _:
            return f"{317 + number}m"


@pytest.mark.parametrize("name", alert_values()["rules"])
def test_any_alert_can_be_turned_off(name: str, alerts: dict[str, Rule]) -> None:
    spec = rendered(f"alerts: {{rules: {{{name}: {{enabled: false}}}}}}")

    left = {rule["alert"] for group in spec["groups"] for rule in group["rules"] if "alert" in rule}
    (gone,) = {alert["alert"] for alert in alerts.values()} - left
    assert gone == f"Groupwright{name[0].upper()}{name[1:]}"


def test_groups_are_told_apart_by_the_labels_that_the_values_name(rules: list[Rule]) -> None:
    spec = rendered("alerts: {groupLabels: [namespace, group]}")

    by_namespace = [rule["expr"] for group in spec["groups"] for rule in group["rules"]]
    by_default = [rule["expr"] for rule in rules]
    assert [expr.replace("cluster, namespace, ", "namespace, ") for expr in by_default] == by_namespace
    assert sum("cluster, namespace, group" in expr for expr in by_default) >= len(by_default) // 2


@pytest.mark.parametrize("cluster", ["east", 'east "1"'])
def test_rules_of_a_release_with_a_cluster_select_its_series_alone(cluster: str) -> None:
    """Releases for several clusters in one Prometheus have thresholds of their own."""
    spec = rendered(yaml.safe_dump({"cluster": cluster}))

    for rule in (rule for group in spec["groups"] for rule in group["rules"]):
        expr = promql.parse(rule["expr"])
        selecting = [each for each in promql.matchers(expr) if each.label == "cluster"]
        assert {each.values for each in selecting} == {(cluster,)}, rule
        assert len(selecting) == len(re.findall(r"\bgroupwright_\w+", rule["expr"])), rule


@pytest.mark.parametrize("values", ["", "cluster: east\nalerts: {groupLabels: [namespace, group]}"])
def test_rules_select_every_cluster_if_groups_have_none(values: str) -> None:
    """Recorded series without the label would match no selector with it."""
    spec = rendered(values)

    matchers = [
        matcher
        for group in spec["groups"]
        for rule in group["rules"]
        for matcher in promql.matchers(promql.parse(rule["expr"]))
    ]
    assert matchers
    assert "cluster" not in {each.label for each in matchers}


def test_the_readme_counts_the_alerts_of_the_exporter_and_the_pipeline(alerts: dict[str, Rule]) -> None:
    words = ("no", "one", "two", "three", "four", "five", "six")
    about = {
        prefix: {page for page, rule in alerts.items() if prefix in rule["expr"]}
        for prefix in ("groupwright_cluster_", "groupwright_exporter_", "groupwright_pipeline_")
    }
    fed, watching, pipeline = about.values()
    of_groups = [page for page in fed if not OF_NO_GROUP.fullmatch(alerts[page]["alert"])]
    text = " ".join(README.split())

    assert f"to {words[len(fed)]} alerts: {words[len(of_groups)]} about groups, and one" in text
    assert f"{words[len(watching)].title()} more alerts and the dashboard" in text
    assert f"which {words[len(pipeline)]} alerts and the dashboard" in text


def test_labels_of_the_values_are_on_every_alert() -> None:
    spec = rendered("alerts: {labels: {team: streams}}")

    alerts = [rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule]
    assert {alert["labels"]["team"] for alert in alerts} == {"streams"}


def test_labels_of_an_alert_override_those_of_all() -> None:
    spec = rendered("alerts: {labels: {team: streams}, rules: {clusterLag: {labels: {team: billing}}}}")

    teams = {rule["alert"]: rule["labels"]["team"] for group in spec["groups"][1:] for rule in group["rules"]}
    assert teams.pop("GroupwrightClusterLag") == "billing"
    assert set(teams.values()) == {"streams"}


@pytest.fixture(scope="module")
def linked() -> dict[str, Any]:
    """The rules with links to dashboards."""
    return rendered("alerts: {grafanaUrl: 'https://grafana.example/'}")


@pytest.mark.integration
def test_groups_of_two_clusters_have_alerts_with_links_of_their_own(
    linked: dict[str, Any], promtool: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(linked))
    series = 'groupwright_last_rebalance_{}{{cluster="%s", namespace="shop", group="a&b", client_id="c"}}'
    clusters = {"east": "1m 0s", "west": "2m 0s"}

    def slow(cluster: str, took: str) -> dict[str, Any]:
        link = "https://grafana.example/d/groupwright-group?from=now-6h"
        return {
            "exp_labels": {"severity": "warning", "cluster": cluster, "namespace": "shop", "group": "a&b"},
            "exp_annotations": {
                "summary": f"Group a&b took {took} to rebalance",
                "description": f"The last rebalance of group a&b took {took}; more than 45 s is slow. The "
                "phases tell whether it waited for members or for their callbacks.",
                "runbook_url": f"{alert_values()['runbookUrl']}/slow-rebalance.md",
                "dashboard_url": f"{link}&var-cluster={cluster}&var-namespace=shop&var-group=a%26b",
            },
        }

    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump(
            {
                "rule_files": ["rules.yaml"],
                "tests": [
                    {
                        "interval": "1m",
                        "input_series": [
                            {"series": series.format(name) % cluster, "values": f"{value}x9"}
                            for cluster, took in clusters.items()
                            for name, value in (
                                ("duration_seconds", 60 * int(took[0])),
                                ("timestamp_seconds", 0),
                            )
                        ],
                        "alert_rule_test": [
                            {
                                "eval_time": "5m",
                                "alertname": "GroupwrightSlowRebalance",
                                "exp_alerts": [slow(cluster, text) for cluster, text in clusters.items()],
                            }
                        ],
                    }
                ],
            }
        )
    )

    tested = run(promtool, "test", "rules", "test.yaml", within=tmp_path)

    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_leads_to_its_dashboard(linked: dict[str, Any]) -> None:
    """A panel of that dashboard leads to the alert's runbook, which names the dashboard and that panel."""
    for rule in linked["groups"][1]["rules"]:
        board = re.match(r"https://grafana.example/d/([\w-]+)\?", rule["annotations"]["dashboard_url"])
        assert board
        (opened,) = (each for each in BOARDS if each.uid == board[1])
        runbook = RUNBOOKS / Path(rule["annotations"]["runbook_url"]).name
        leading = {
            panel.title for row in opened.rows for panel in row.panels if panel.runbook == runbook.stem
        }
        text = runbook.read_text(encoding="utf-8").partition("## Likely causes")[0].replace("\n", " ")
        # The page names the dashboard, and there one of the panels that lead to the page.
        named = text.partition(f"*{opened.title.removeprefix('Groupwright / ')}*")[2]
        assert leading & set(re.findall(r'"([^"]+)"', named)), runbook.stem


def test_without_alerts_there_is_no_rule() -> None:
    kinds = {each["kind"] for each in render("alerts: {enabled: false}")}

    assert "PrometheusRule" not in kinds
