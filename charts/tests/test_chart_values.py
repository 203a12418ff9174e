"""Values that are wrong are refused before anything is installed, and the message names the key."""

import json
import re
import shlex
from typing import Any

import pytest
import yaml

from charts.tests.conftest import README, README_EXAMPLES
from charts.tools.rendering import CHART, RejectedError, from_settings, render, warnings
from charts.tools.values_table import described, page

_RUNS: dict[str, dict[str, Any]] = {
    "pipeline": {"settings": {"bootstrap_servers": "kafka:9092"}},
    "stream": {"enabled": True},
}

_LAKE: dict[str, Any] = {"settings": {**_RUNS["pipeline"]["settings"], "tables": "s3a://history/tables"}}

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a section that is none": ({"dashboard": {"enabled": True}}, "dashboard"),
    "a key with a typo": ({"dashboards": {"enable": True}}, "enable"),
    "text for a switch": ({"dashboards": {"enabled": "yes please"}}, "dashboards/enabled"),
    "a number for a label": ({"commonLabels": {"team": 7}}, "commonLabels/team"),
    "an alert that is none": (
        {"alerts": {"rules": {"rebalanceStrom": {"enabled": False}}}},
        "rebalanceStrom",
    ),
    "a threshold of another alert": ({"alerts": {"rules": {"rebalanceStorm": {"ratio": 2}}}}, "ratio"),
    "text for a threshold": (
        {"alerts": {"rules": {"rebalanceStorm": {"rebalances": "five"}}}},
        "alerts/rules/rebalanceStorm/rebalances",
    ),
    "a duration without a unit": (
        {"alerts": {"rules": {"slowRebalance": {"for": "60"}}}},
        "alerts/rules/slowRebalance/for",
    ),
    "a monitor that selects nothing": ({"podMonitor": {"enabled": True}}, "podMonitor/selector"),
    "a scheme that is none": ({"serviceMonitor": {"scheme": "tcp"}}, "serviceMonitor/scheme"),
    "an interval as a number": ({"serviceMonitor": {"interval": 15}}, "serviceMonitor/interval"),
    "a label selector's typo": ({"podMonitor": {"selector": {"matchLabel": {"app": "a"}}}}, "matchLabel"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "image/digest"),
    "a pull policy that is none": ({"image": {"pullPolicy": "Sometimes"}}, "image/pullPolicy"),
    "a security context's typo": ({"pod": {"securityContext": {"runAsNonroot": True}}}, "runAsNonroot"),
    "a volume without a name": ({"pod": {"extraVolumes": [{"emptyDir": {}}]}}, "pod/extraVolumes/0"),
    "an init container without an image": (
        {"pod": {"initContainers": [{"name": "wait"}]}},
        "pod/initContainers/0",
    ),
    "an object without a kind": ({"extraObjects": [{"metadata": {}}]}, "extraObjects/0"),
    "a port that is none": ({"networkPolicy": {"kafkaPorts": [99092]}}, "networkPolicy/kafkaPorts/0"),
    "resources in words": (
        {"stream": {"resources": {"limits": {"memory": "much"}}}},
        "resources/limits/memory",
    ),
    "a schedule with a field too few": ({"batch": {"schedule": "0 5 * *"}}, "batch/schedule"),
    "a doctor without consumers": ({"doctor": {"enabled": True}}, "doctor/consumers"),
    "a doctor's consumer without a configuration": (
        {"doctor": {"enabled": True, "consumers": {"billing": {"restartsOften": True}}}},
        "doctor/consumers/billing",
    ),
    "an exporter without a cluster": ({"exporter": {"enabled": True}}, "exporter/bootstrapServers"),
    "a source that is none": ({"exporter": {"source": "zookeeper"}}, "exporter/source"),
    "a Secret without a key": (
        {"pipeline": {"existingSecret": {"name": "kafka"}}},
        "pipeline/existingSecret",
    ),
    "a job without a cluster": ({"stream": {"enabled": True}}, "bootstrap_servers"),
    "a setting that the pipeline has not": ({"stream": {"settings": {"trigger": 5}}}, "trigger"),
    "a setting out of range": (
        {"pipeline": {"settings": {"max_offsets_per_trigger": 0}}},
        "pipeline/settings/max_offsets_per_trigger",
    ),
    "a Spark mode that is none": ({"pipeline": {"spark": {"mode": "yarn"}}}, "pipeline/spark/mode"),
    "a Spark setting that is none": ({"pipeline": {"spark": {"conf": {"sql.x": "1"}}}}, "sql.x"),
    "a disruption budget of two drivers": (
        {"stream": {"podDisruptionBudget": {"maxUnavailable": 2}}},
        "stream/podDisruptionBudget/maxUnavailable",
    ),
    "executors on a volume of one node": (
        {**_RUNS, "pipeline": {**_RUNS["pipeline"], "spark": {"mode": "kubernetes"}}},
        "pipeline.storage.accessModes",
    ),
    "tables in a container without a volume": (
        {**_RUNS, "pipeline": {**_RUNS["pipeline"], "storage": {"enabled": False}}},
        "pipeline.settings.tables",
    ),
    "tables of one job in a container without a volume": (
        {
            "pipeline": {**_LAKE, "storage": {"enabled": False}},
            "stream": {"enabled": True, "settings": {"tables": "/history"}},
        },
        "stream.settings.tables is /history, a folder in a read-only container",
    ),
    "tables beside the volume": (
        {**_RUNS, "batch": {"enabled": True, "settings": {"tables": "/var/lib/groupwright-daily"}}},
        "/var/lib/groupwright-daily, a folder in a read-only container: let it be below pipeline.storage",
    ),
    "a mount path without the tables": (
        {**_RUNS, "pipeline": {**_RUNS["pipeline"], "storage": {"mountPath": "/history"}}},
        "pipeline.settings.tables is /var/lib/groupwright/tables, a folder in a read-only container",
    ),
    "a stream and a batch on a volume of one pod": (
        {
            "pipeline": {**_LAKE, "storage": {"accessModes": ["ReadWriteOncePod"]}},
            "stream": {"enabled": True},
            "batch": {"enabled": True, "settings": {"tables": "s3a://history/daily"}},
        },
        "for a stream and a batch make it [ReadWriteOnce] or [ReadWriteMany], or enable one of the jobs",
    ),
    "a name that is too long for the Spark operator's runs": (
        {
            "fullnameOverride": "n" * 38,
            "pipeline": {**_LAKE, "storage": {"enabled": False}, "spark": {"mode": "operator"}},
            "batch": {"enabled": True},
        },
        f"would name a run {'n' * 38}-batch-<time>",
    ),
    "an address that is a name": ({"pod": {"listenAddress": "localhost"}}, "pod/listenAddress"),
    "a stream and a batch on the same tables": (
        {**_RUNS, "batch": {"enabled": True}},
        "stream and batch both write the tables /var/lib/groupwright/tables",
    ),
    "a format that is none": ({"pipeline": {"settings": {"format": "parquet"}}}, "pipeline/settings/format"),
    "a doctor's name that is too long": (
        {"doctor": {"enabled": True, "consumers": {"b" * 40: {"settings": {"group.id": "billing"}}}}},
        f"doctor.consumers.{'b' * 40}",
    ),
}


@pytest.mark.parametrize(("values", "key"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_refused_by_name(values: dict[str, Any], key: str) -> None:
    with pytest.raises(RejectedError) as refused:
        render(yaml.safe_dump(values))

    assert key in str(refused.value).replace("'", "")


def test_the_linter_refuses_a_wrong_value() -> None:
    assert "dashboard" in "".join(warnings("dashboard: {enabled: true}"))


def test_every_object_in_the_schema_refuses_what_it_does_not_name() -> None:
    """But for maps of the user's own keys, whose values have a type."""
    open_ended = []

    def walk(schema: Any, path: str) -> None:
        if isinstance(schema, list):
            for number, each in enumerate(schema):
                walk(each, f"{path}/{number}")
        if not isinstance(schema, dict):
            return
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            open_ended.append(path)
        for key, value in schema.items():
            walk(value, f"{path}/{key}")

    walk(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")), "")

    kubernetes = {
        f"/definitions/affinity/properties/{kind}"
        for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    } | {
        f"/definitions/env/properties/valueFrom/properties/{kind}"
        for kind in ("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef")
    }
    kubernetes |= {f"/definitions/{kind}" for kind in ("container", "manifest", "volume", "volumeMount")}
    assert set(open_ended) == kubernetes | {"/properties/global"}


def test_the_readme_has_the_present_values() -> None:
    assert page(README, (CHART / "values.yaml").read_text(encoding="utf-8")) == README, "run `make docs`"


def test_a_value_without_a_description_is_found() -> None:
    with pytest.raises(ValueError, match=r"line 3: dashboards\.folder has no description"):
        described("dashboards:\n\n  folder: Groupwright\n")


@pytest.mark.parametrize("example", README_EXAMPLES)
def test_the_readmes_examples_are_values_that_the_chart_takes(example: str) -> None:
    assert len(render(example)) > len(render())


def test_the_readmes_command_installs_the_chart() -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    program, command, release, chart, *options = shlex.split(block)
    assert (program, command, chart) == ("helm", "install", "charts/groupwright")

    given = dict(zip(options[::2], options[1::2], strict=True))

    values = from_settings(given["--set"])
    (rule,) = render(values, template="prometheusrule.yaml", release=release, namespace=given["--namespace"])

    assert rule["metadata"]["namespace"] == "monitoring"
    assert rule["metadata"]["labels"]["release"] == "prometheus"
