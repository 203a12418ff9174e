"""docs/another-exporter.md: its metrics exist, and its rules record what they say."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from groupwright.cli.exporter.reference import CATALOGUE
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

DOCS = Path(__file__).parents[1]
PAGE = (DOCS / "another-exporter.md").read_text(encoding="utf-8")
RULES = DOCS / "another-exporter.yaml"
GROUPS: dict[str, list[dict[str, str]]] = {
    group["name"]: group["rules"] for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
}
RECORDED = {rule["record"]: rule["expr"] for rules in GROUPS.values() for rule in rules}

LABELS = {
    "kafka-lag-exporter": {"cluster": "cluster_name"},
    "kafka_exporter": {"group": "consumergroup"},
    "kminion": {"group": "group_id", "topic": "topic_name", "partition": "partition_id"},
    "burrow": {"group": "consumer_group"},
    "klag": {"group": "consumer_group"},
}
"""By group of rules, the other exporter's names of labels."""
VALUES = {"cluster": "east", "group": "billing", "topic": "orders", "partition": "3"}
FACTORS = {"klag_consumer_lag_ms": 1000, "klag_consumer_lag_velocity": 100}
"""Other units than ours."""


def metric(expr: str) -> str:
    """Return the metric of an expression."""
    (name,) = set(re.findall(r"groupwright_\w+", expr))
    return str(name)


def labels(spec: Any) -> dict[str, str]:
    return {name: VALUES[name] for name in ("cluster", *spec.labels)}


def test_every_metric_of_ours_exists_and_every_recorded_one_is_in_a_table() -> None:
    ours = {spec.name for spec in CATALOGUE}

    assert set(re.findall(r"groupwright_\w+", PAGE)) <= ours
    assert {metric(expr) for expr in RECORDED.values()} <= ours
    assert set(RECORDED) <= set(re.findall(r"`(\w+)`", PAGE))
    assert len(RECORDED) == sum(map(len, GROUPS.values()))
    assert GROUPS.keys() == LABELS.keys()


@pytest.mark.integration
def test_the_rules_record_our_values_under_the_other_names(tmp_path: Path) -> None:
    """Of two topics or partitions, which a rule may sum, or take the larger of; and of two exporters."""
    specs = {spec.name: spec for spec in CATALOGUE}
    names = sorted({metric(expr) for expr in RECORDED.values()})
    series = []
    for name in names:
        for pod in ("exporter-1", "exporter-2"):  # a restart of the exporter, as Prometheus sees it
            for topic, value in (("orders", 7), ("refunds", 5)):
                made = {**labels(specs[name]), "pod": pod}
                if "topic" in made:
                    made["topic"] = topic
                elif topic == "refunds":
                    continue
                text = ", ".join(f'{key}="{each}"' for key, each in made.items())
                series.append({"series": f"{name}{{{text}}}", "values": f"{value}x9"})
    tests = []
    for group, rules in GROUPS.items():
        for rule in rules:
            record, expr = rule["record"], rule["expr"]
            kept = re.search(r"by \(([^)]*)\)", expr)
            assert kept
            by = {label: VALUES[label] for label in kept[1].split(", ")}
            new = {LABELS[group][label]: value for label, value in by.items() if label in LABELS[group]}
            wanted = {**by, **new}
            text = ", ".join(f'{key}="{each}"' for key, each in wanted.items())
            value = (12 if expr.find("sum by") >= 0 else 7) * FACTORS.get(record, 1)
            topic = LABELS[group].get("topic", "topic")
            query = f'{record}{{{topic}="orders"}}' if "topic" in by else record
            samples = [{"labels": f"{record}{{{text}}}", "value": value}]
            tests.append({"expr": query, "eval_time": "5m", "exp_samples": samples})
    document = {
        "rule_files": [str(RULES)],
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    promtool = find_program("promtool", hint="Debian's package prometheus has it")

    for arguments in (["check", "rules", str(RULES)], ["test", "rules", "test.yaml"]):
        ran = subprocess.run(
            [promtool, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
