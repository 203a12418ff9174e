"""Options on the workloads' command lines exist in the commands that they call."""

import json
from typing import Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from charts.tests.conftest import EXAMPLES
from charts.tools.rendering import CHART, render
from groupwright.cli.app import app
from groupwright.pipeline.jobs import SETTINGS, settings_from


def _containers(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each workload's only container, by the workload's name; a Spark application has its arguments."""
    found = {}
    for each in manifests:
        spec = each.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            (found[each["metadata"]["name"]],) = template["spec"]["containers"]
    return found


def _arguments(manifests: list[dict[str, Any]], job: str) -> list[str]:
    """The arguments of a job of the pipeline, without those of the image's entrypoint."""
    for each in manifests:
        if each["kind"] == "SparkApplication" and job == "stream":
            return list(each["spec"]["arguments"])
        if each["kind"] == "ScheduledSparkApplication" and job == "batch":
            return list(each["spec"]["template"]["arguments"])
    (container,) = (each for name, each in _containers(manifests).items() if name.endswith(f"-{job}"))
    return list(container["args"][1:])


def _given(arguments: list[str], *before: str) -> list[str]:
    """The arguments after these, without the file of a Secret."""
    assert arguments[: len(before)] == list(before)
    return [each for each in arguments[len(before) :] if not each.startswith("--config=")]


@pytest.mark.parametrize(
    ("example", "job"),
    [
        ("stream-local", "stream"),
        ("bare", "batch"),
        ("kubernetes-executors", "stream"),
        ("kubernetes-executors", "batch"),
        ("spark-operator", "stream"),
        ("spark-operator", "batch"),
    ],
)
def test_a_jobs_settings_are_the_pipelines(example: str, job: str) -> None:
    values = yaml.safe_load(EXAMPLES[example])

    settings = settings_from(_given(_arguments(render(EXAMPLES[example]), job), job))

    wanted = values["pipeline"]["settings"] | values[job].get("settings", {})
    assert {name: getattr(settings, name) for name in wanted} == wanted
    assert settings.kafka == values["pipeline"].get("kafka", {})
    assert settings.metrics_address == ("0.0.0.0:9096" if job == "stream" else "")


def test_the_schema_has_the_pipelines_settings_and_no_others() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(schema["definitions"]["settings"]["properties"]) == set(SETTINGS) - {
        "kafka",
        "spark",
        "metrics_address",  # the chart's own, with the port of the probes
    }


def test_big_numbers_reach_a_command_in_full() -> None:
    """Helm reads every number as a float, and prints a million as 1e+06, which no setting takes."""
    values = (
        "stream: {enabled: true}\n"
        "pipeline: {settings: {bootstrap_servers: 'kafka:9092', max_offsets_per_trigger: 25000000}}\n"
        "doctor: {enabled: true, consumers: {billing: {settings: {max.poll.interval.ms: 3600000}}}}\n"
    )
    containers = _containers(render(values))
    assert "max_offsets_per_trigger=25000000" in containers["tower-groupwright-stream"]["args"]
    assert "max.poll.interval.ms=3600000" in containers["tower-groupwright-doctor-billing"]["args"]


def test_probes_and_monitors_have_ports_that_the_containers_serve() -> None:
    for example in ("stream-local", "exporter"):
        manifests = render(EXAMPLES[example])
        served = {
            port["name"]: port["containerPort"]
            for container in _containers(manifests).values()
            for port in container.get("ports", ())
        }
        probed = {
            container[probe]["httpGet"]["port"]
            for container in _containers(manifests).values()
            for probe in ("startupProbe", "readinessProbe", "livenessProbe")
            if probe in container
        }
        monitored = {
            endpoint["port"]
            for each in manifests
            if each["kind"] == "PodMonitor"
            for endpoint in each["spec"]["podMetricsEndpoints"]
        }
        assert probed == {"metrics"}
        assert "metrics" in monitored
        assert monitored <= served.keys()


def test_the_exporter_takes_its_arguments() -> None:
    containers = _containers(render(EXAMPLES["exporter"]))
    given = _given(containers["tower-groupwright-exporter"]["args"], "exporter")
    command = get_command(app).commands["exporter"]  # type: ignore[attr-defined] # of a group
    with command.make_context("exporter", given) as context:
        assert context.params["groups"] == ["billing-.*", "orders"]
        assert context.params["max_series"] == 25_000_000
        assert (context.params["source"], context.params["by_partition"]) == ("offsets-topic", True)


def test_the_exporters_defaults_are_the_commands() -> None:
    enabled = "exporter: {enabled: true, bootstrapServers: 'kafka:9092'}"
    given = _given(_containers(render(enabled))["tower-groupwright-exporter"]["args"], "exporter")
    command = get_command(app).commands["exporter"]  # type: ignore[attr-defined] # as above
    with (
        command.make_context("exporter", given) as context,
        command.make_context("exporter", []) as without,
    ):
        differing = {name for name, value in context.params.items() if value != without.params[name]}
        assert differing == {"host", "bootstrap_servers"}


def test_the_doctor_takes_its_arguments() -> None:
    containers = _containers(render(EXAMPLES["doctor"]))
    orders = _given(containers["tower-groupwright-doctor-orders"]["args"], "doctor")
    answer = CliRunner().invoke(app, ["doctor", *orders, "--offline"])
    assert answer.exit_code == 1, answer.output
    assert "warning: static-membership" in answer.output  # from --restarts-often
    assert "1 warning, " in answer.output
