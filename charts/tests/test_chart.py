"""The chart's manifests, for each of its example values: complete, valid, and with least privileges."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from charts.dashboards.boards import BOARDS
from charts.tests.conftest import EXAMPLES, HelmProgram
from charts.tools.rendering import CHART, Manifest, render, warnings
from groupwright.pipeline.jobs import CONNECTOR

KUBERNETES = ("1.25", kubernetes_validate.latest_version())
"""The oldest that Chart.yaml allows, and the newest whose schemas there are."""


@pytest.fixture(scope="module", params=EXAMPLES.values(), ids=[*EXAMPLES])
def example(request: pytest.FixtureRequest) -> str:
    """The values, as YAML."""
    return str(request.param)


@pytest.fixture(scope="module")
def manifests(example: str) -> list[Manifest]:
    return render(example)


@pytest.fixture(scope="session")
def operator(charts_tools: Path) -> dict[str, jsonschema.Draft7Validator]:
    """What checks each of the operator's kinds; an unknown field is an error."""
    definitions = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in charts_tools.glob("*.yaml")]
    return {
        each["spec"]["names"]["kind"]: jsonschema.Draft7Validator(
            _strict(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        )
        for each in definitions
    }


def _strict(schema: Any) -> Any:
    """As the API server takes it with `fieldValidation=Strict`."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items()}
    if isinstance(pattern := strict.get("pattern"), str):
        strict["pattern"] = pattern.replace("^(?i)", "(?i)^")  # Python has flags at the start alone
    if isinstance(strict.get("properties"), dict) and not strict.get("x-kubernetes-preserve-unknown-fields"):
        strict.setdefault("additionalProperties", False)
    return strict


def _pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """The specification of every pod that will be: of workloads, and of the executors that a driver makes."""
    for each in manifests:
        match each["kind"]:
            case "Deployment":
                yield each["spec"]["template"]["spec"]
            case "CronJob":
                yield each["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            case "SparkApplication" | "ScheduledSparkApplication":
                yield from (template["spec"] for template in spark_templates(each))
            case "ConfigMap" if "executor.yaml" in each["data"]:
                yield yaml.safe_load(each["data"]["executor.yaml"])["spec"]


def spark_templates(manifest: Manifest) -> list[Manifest]:
    """The templates of a Spark application's driver and executors."""
    spec = manifest["spec"].get("template", manifest["spec"])
    return [spec[role]["template"] for role in ("driver", "executor")]


def test_helm_finds_nothing_to_complain_of(example: str) -> None:
    assert warnings(example) == []


@pytest.mark.integration
def test_helm_3_makes_the_same_objects(helm: HelmProgram, example: str, manifests: list[Manifest]) -> None:
    def by_name(each: Manifest) -> tuple[str, str]:
        return each["kind"], each["metadata"]["name"]

    assert sorted(helm.template(example), key=by_name) == sorted(manifests, key=by_name)


@pytest.mark.slow
@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field(manifests: list[Manifest], version: str) -> None:
    operators = ("monitoring.coreos.com/", "grafana.integreatly.org/", "sparkoperator.k8s.io/")
    core = [each for each in manifests if not each["apiVersion"].startswith(operators)]
    for each in core:
        _validate(json.dumps(each), version)
    executors = [
        yaml.safe_load(each["data"]["executor.yaml"])
        for each in core
        if "executor.yaml" in each.get("data", {})
    ]
    for each in manifests:
        if each["apiVersion"].startswith("sparkoperator.k8s.io/"):
            pods = {"apiVersion": "v1", "kind": "Pod"}
            executors += [{**pods, **template} for template in spark_templates(each)]
    for pod in executors:
        _validate(json.dumps(pod), version)


@cache  # half of the objects are the same in several examples
def _validate(manifest: str, version: str) -> None:
    kubernetes_validate.validate(json.loads(manifest), version, strict=True)


@pytest.mark.integration
def test_the_operator_knows_every_field(
    manifests: list[Manifest], operator: dict[str, jsonschema.Draft7Validator]
) -> None:
    for each in manifests:
        if each["apiVersion"].startswith("monitoring.coreos.com/"):
            operator[each["kind"]].validate(each)


@pytest.mark.integration
def test_a_field_that_the_operator_does_not_know_is_found(
    operator: dict[str, jsonschema.Draft7Validator],
) -> None:
    monitor = next(each for each in render(EXAMPLES["monitors"]) if each["kind"] == "PodMonitor")
    monitor["spec"]["podMetricsEndpoints"][0]["intervall"] = "15s"
    with pytest.raises(jsonschema.ValidationError, match="intervall"):
        operator["PodMonitor"].validate(monitor)


def test_the_spark_operator_knows_every_field_and_misses_none(manifests: list[Manifest]) -> None:
    known = operators_fields()
    for each in manifests:
        if each["apiVersion"] == "sparkoperator.k8s.io/v1beta2":
            spec = each["spec"].get("template", each["spec"])
            assert wrong_fields(spec, known["SparkApplication"]) == []
            assert {
                name for name, type_ in known["SparkApplication"].items() if str(type_).endswith("!")
            } <= {*spec}
            if each["kind"] == "ScheduledSparkApplication":
                own = {name: value for name, value in each["spec"].items() if name != "template"}
                assert wrong_fields(own, known["ScheduledSparkApplication"]) == []
                assert "schedule" in own


def test_the_grafana_operator_knows_every_field(manifests: list[Manifest]) -> None:
    for each in manifests:
        if each["kind"] == "GrafanaDashboard":
            assert each["apiVersion"] == "grafana.integreatly.org/v1beta1"
            assert wrong_fields(each["spec"], operators_fields()["GrafanaDashboard"]) == []


def operators_fields() -> Manifest:
    """Return the fields of the kinds whose definitions no pinned package has."""
    fields: Manifest = yaml.safe_load((Path(__file__).parent / "operators.yaml").read_text(encoding="utf-8"))
    return fields


def wrong_fields(value: Any, known: Any) -> list[str]:
    """Return the fields that are unknown or of another type; those of pod templates are Kubernetes'."""
    if isinstance(known, dict):
        return [
            f"{name}{wrong and '.' + wrong}"
            for name, field in value.items()
            for wrong in (wrong_fields(field, known[name]) if name in known else [""])
        ]
    types: dict[str, Callable[[Any], Any]] = {
        "string": lambda each: isinstance(each, str),
        "integer": lambda each: isinstance(each, int),
        "strings": lambda each: isinstance(each, list) and all(isinstance(one, str) for one in each),
        "texts": lambda each: all(isinstance(one, str) for one in each.values()),
        "pod": lambda each: {*each} <= {"metadata", "spec"},
        "boolean": lambda each: isinstance(each, bool),
        "duration": lambda each: re.fullmatch(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+", each),
        "expressions": lambda each: all({*one} <= {"key", "operator", "values"} for one in each),
    }
    kind, _, choices = known.removesuffix("!").partition(" ")
    return [] if types[kind](value) and (not choices or value in choices.split("|")) else [""]


@pytest.mark.parametrize(
    ("kind", "change", "wrong"),
    [
        ("SparkApplication", {"imagePullSecrets": [{"name": "registry"}]}, ["imagePullSecrets"]),
        ("SparkApplication", {"driver": {"memmory": "3g"}}, ["driver.memmory"]),
        ("SparkApplication", {"restartPolicy": {"type": "Sometimes"}}, ["restartPolicy.type"]),
        ("SparkApplication", {"executor": {"instances": "4"}}, ["executor.instances"]),
        ("GrafanaDashboard", {"instanceSelector": {"matchLabel": {}}}, ["instanceSelector.matchLabel"]),
        ("GrafanaDashboard", {"allowCrossNamespaceImport": "yes"}, ["allowCrossNamespaceImport"]),
        ("GrafanaDashboard", {"resyncPeriod": "10"}, ["resyncPeriod"]),
    ],
)
def test_a_field_that_an_operator_does_not_know_is_found(
    kind: str, change: Manifest, wrong: list[str]
) -> None:
    assert wrong_fields(change, operators_fields()[kind]) == wrong


def test_the_spark_operator_is_told_the_version_of_spark() -> None:
    manifests = render(EXAMPLES["spark-operator"])
    applications = [each for each in manifests if each["kind"] == "SparkApplication"]
    assert [each["spec"]["sparkVersion"] for each in applications] == [CONNECTOR.rpartition(":")[2]]


def test_everything_is_in_the_releases_namespace_and_has_its_labels(
    manifests: list[Manifest], example: str
) -> None:
    elsewhere = yaml.safe_load(example).get("dashboards", {}).get("namespace")
    for each in manifests:
        labels = each["metadata"]["labels"]
        assert each["metadata"]["namespace"] in {"operations", elsewhere}
        assert labels["app.kubernetes.io/name"] == "groupwright"
        assert labels["app.kubernetes.io/instance"] == "tower"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["helm.sh/chart"].startswith("groupwright-")
    assert len({(each["kind"], each["metadata"]["name"]) for each in manifests}) == len(manifests)


def test_what_runs_has_no_rights_and_writes_to_volumes_alone(manifests: list[Manifest]) -> None:
    for pod in _pods(manifests):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            mounts = {mount["name"] for mount in container["volumeMounts"]}
            assert mounts == {volume["name"] for volume in pod["volumes"]}
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}  # noqa: S108 - the container's


def test_every_container_that_spark_does_not_complete_says_what_it_needs(manifests: list[Manifest]) -> None:
    for pod in _pods(manifests):
        for container in pod["containers"]:
            # Spark adds those of its own: by memory, cores and overhead.
            if not container["name"].startswith(("executor", "spark-kubernetes-")):
                assert container["resources"]["requests"].keys() == {"cpu", "memory"}
                assert container["resources"]["limits"]["memory"]


def test_only_drivers_that_make_executors_have_a_token_and_a_role(
    manifests: list[Manifest], example: str
) -> None:
    spark = yaml.safe_load(example).get("pipeline", {}).get("spark", {})
    executors = spark.get("mode", "local") != "local"
    pods = list(_pods(manifests))
    tokens = {pod["containers"][0]["name"] for pod in pods if pod["automountServiceAccountToken"]}
    assert {name.removeprefix("spark-kubernetes-") for name in tokens} == ({"driver"} if executors else set())
    kinds = {each["kind"] for each in manifests}
    assert ({"Role", "RoleBinding"} <= kinds) == executors
    assert not kinds & {"ClusterRole", "ClusterRoleBinding"}


def test_every_pod_has_the_users_variables_volumes_and_init_containers() -> None:
    values = EXAMPLES["extras"]
    wanted = yaml.safe_load(values)["pod"]

    pods = list(_pods(render(values)))

    assert sorted(pod["containers"][0]["name"] for pod in pods) == [
        "doctor",
        "driver",
        "executor",
        "exporter",
    ]
    for pod in pods:
        (container,) = pod["containers"]
        assert pod["initContainers"] == wanted["initContainers"]
        assert wanted["extraVolumes"][0] in pod["volumes"]
        assert wanted["extraVolumeMounts"][0] in container["volumeMounts"]
        assert wanted["extraEnv"][0] in container["env"]


def test_a_grafana_dashboard_refers_to_its_config_map() -> None:
    manifests = render(EXAMPLES["extras"])
    maps = [each for each in manifests if each["kind"] == "ConfigMap"]
    files = {each["metadata"]["name"]: each.get("data", {}) for each in maps}

    references = [each["spec"]["configMapRef"] for each in manifests if each["kind"] == "GrafanaDashboard"]

    assert len(references) == len(BOARDS)
    assert all(each["key"] in files[each["name"]] for each in references)


def test_additional_objects_may_contain_templates() -> None:
    manifests = render(EXAMPLES["extras"])

    names = {each["metadata"]["name"] for each in manifests if each["kind"] == "ConfigMap"}
    assert {"tower-groupwright-authorities", "tower-groupwright-notes"} <= names


def test_no_example_starts_two_writers_on_one_volume(manifests: list[Manifest]) -> None:
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for pod in _pods(manifests)
        for volume in pod["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert len(claims) == len(set(claims))


def test_no_secret_is_made(manifests: list[Manifest]) -> None:
    assert "Secret" not in {each["kind"] for each in manifests}


def test_nothing_runs_unless_it_is_asked_for() -> None:
    kinds = {each["kind"] for each in render()}
    assert kinds == {"ConfigMap", "PrometheusRule"}


def test_the_chart_has_the_packages_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = (CHART.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}"' in re.findall(r"^version = .+$", project, re.MULTILINE)
