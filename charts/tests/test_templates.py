"""Values and what each template makes of them."""

import time
from typing import Any

import pytest

from charts.dashboards.boards import BOARDS
from charts.tools.rendering import Manifest, from_settings, notes, render

DOCTOR = "doctor.enabled=true,doctor.consumers.billing.settings.group\\.id=billing"
EXPORTER = "exporter.enabled=true,exporter.bootstrapServers=kafka:9092"
STREAM = "stream.enabled=true,pipeline.settings.bootstrap_servers=kafka:9092"
BATCH = "batch.enabled=true,batch.settings.tables=/var/lib/groupwright/daily"
LAKE = "pipeline.settings.tables=s3a://history/tables,pipeline.storage.enabled=false"
OPERATOR = (
    f"{STREAM},{LAKE},pipeline.spark.mode=operator"
    ",batch.enabled=true,batch.schedule=@daily,batch.settings.tables=s3a://history/daily"
)


def values(*settings: str) -> str:
    return from_settings(",".join(settings))


def made(template: str, *settings: str) -> list[Manifest]:
    return render(values(*settings), template=template)


def only(template: str, *settings: str) -> Manifest:
    (manifest,) = made(template, *settings)
    return manifest


def pod(manifest: Manifest) -> Manifest:
    """The specification of a workload's pod."""
    spec = manifest["spec"]
    return dict(spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"])


def container(manifest: Manifest) -> Manifest:
    (found,) = pod(manifest)["containers"]
    return dict(found)


def secret(volume: str, name: str) -> Manifest:
    return {"name": volume, "secret": {"secretName": name, "defaultMode": 0o440}}


@pytest.mark.parametrize(
    ("template", "settings"),
    [
        ("dashboards.yaml", "dashboards.enabled=false"),
        ("doctor/cronjob.yaml", ""),
        ("exporter/deployment.yaml", ""),
        ("exporter/podmonitor.yaml", ""),
        ("exporter/podmonitor.yaml", EXPORTER),
        ("monitors/podmonitor.yaml", ""),
        ("monitors/servicemonitor.yaml", ""),
        ("networkpolicy.yaml", ""),
        ("networkpolicy.yaml", f"{STREAM},networkPolicy.enabled=false"),
        ("pipeline/podmonitor.yaml", "stream.podMonitor.enabled=true"),
        ("pipeline/pdb.yaml", STREAM),
        ("pipeline/pvc.yaml", f"{STREAM},pipeline.storage.existingClaim=history"),
        ("pipeline/deployment.yaml", OPERATOR),
        ("pipeline/cronjob.yaml", OPERATOR),
        ("pipeline/configmap.yaml", OPERATOR),
        ("serviceaccount.yaml", ""),
    ],
)
def test_a_template_makes_nothing(template: str, settings: str) -> None:
    assert made(template, settings) == []


# --- Dashboards -----------------------------------------------------------------------------------------


def test_each_dashboard_is_a_config_map_for_the_sidecar() -> None:
    maps = made("dashboards.yaml")

    assert {each["metadata"]["name"]: list(each["data"]) for each in maps} == {
        f"tower-groupwright-dashboard-{board.uid.removeprefix('groupwright-')}": [f"{board.uid}.json"]
        for board in BOARDS
    }
    for each in maps:
        assert each["kind"] == "ConfigMap"
        assert each["metadata"]["namespace"] == "operations"
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "Groupwright"}


def test_dashboards_have_the_namespace_and_labels_of_another_sidecar() -> None:
    for each in made(
        "dashboards.yaml",
        "dashboards.namespace=monitoring,dashboards.label=dashboards,dashboards.labelValue=kafka",
        "dashboards.folder=,dashboards.additionalLabels.team=streaming",
    ):
        metadata = each["metadata"]
        assert metadata["namespace"] == "monitoring"
        assert metadata["labels"].items() >= {"dashboards": "kafka", "team": "streaming"}.items()
        assert "annotations" not in metadata


def test_dashboards_lead_to_the_runbooks_of_the_alerts() -> None:
    maps = made("dashboards.yaml", "alerts.runbookUrl=https://wiki.example/kafka/")

    for each in maps:
        (text,) = each["data"].values()
        assert '"https://wiki.example/kafka"' in text
        assert "groupwright/blob/main" not in text


@pytest.mark.parametrize(
    ("labels", "cluster", "namespace"),
    [
        (
            "cluster,namespace,group",
            "var-cluster=${__data.fields.cluster:percentencode}",
            "var-namespace=${__data.fields.namespace:percentencode}",
        ),
        (
            "namespace,group",
            "${cluster:queryparam}",
            "var-namespace=${__data.fields.namespace:percentencode}",
        ),
        ("group", "${cluster:queryparam}", "${namespace:queryparam}"),
    ],
)
def test_a_link_passes_labels_that_the_recorded_series_have(
    labels: str, cluster: str, namespace: str
) -> None:
    maps = made("dashboards.yaml", f"alerts.groupLabels={{{labels}}}")

    (fleet,) = (each["data"] for each in maps if "groupwright-fleet.json" in each["data"])
    links = [line for line in fleet["groupwright-fleet.json"].splitlines() if "/d/groupwright-" in line]
    assert len(links) == 2
    assert all(f"&{cluster}&{namespace}&" in each for each in links)


def test_grafanas_operator_loads_each_dashboard_and_the_sidecar_none() -> None:
    manifests = made(
        "dashboards.yaml",
        "dashboards.namespace=monitoring,dashboards.grafanaOperator.enabled=true",
        "dashboards.grafanaOperator.instanceSelector.matchLabels.dashboards=kafka",
    )

    maps = [each for each in manifests if each["kind"] == "ConfigMap"]
    dashboards = [each for each in manifests if each["kind"] == "GrafanaDashboard"]
    assert len(maps) == len(dashboards) == len(BOARDS)
    assert not any("grafana_dashboard" in each["metadata"]["labels"] for each in maps)
    for each in dashboards:
        assert each["metadata"]["namespace"] == "monitoring"
        assert {name: value for name, value in each["spec"].items() if name != "configMapRef"} == {
            "instanceSelector": {"matchLabels": {"dashboards": "kafka"}},
            "allowCrossNamespaceImport": False,
            "folder": "Groupwright",
            "resyncPeriod": "10m",
        }


# --- Doctor and exporter --------------------------------------------------------------------------------


def test_the_doctor_has_a_job_for_each_consumer_which_is_not_tried_again() -> None:
    jobs = made("doctor/cronjob.yaml", DOCTOR, "doctor.consumers.orders.settings.group\\.id=orders")

    assert [each["metadata"]["name"] for each in jobs] == [
        "tower-groupwright-doctor-billing",
        "tower-groupwright-doctor-orders",
    ]
    for each in jobs:
        assert each["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
        assert pod(each)["restartPolicy"] == "Never"


def test_the_doctor_reads_a_consumers_configuration_from_a_secret() -> None:
    job = only(
        "doctor/cronjob.yaml",
        "doctor.enabled=true,doctor.consumers.billing.longestProcessing=30",
        "doctor.consumers.billing.existingSecret.name=billing",
        "doctor.consumers.billing.existingSecret.key=consumer.toml",
    )

    assert container(job)["args"] == [
        "doctor",
        "--config=/etc/groupwright/consumer/consumer.toml",
        "--longest-processing=30",
        "--timeout=10",
    ]
    assert secret("consumer", "billing") in pod(job)["volumes"]


def test_the_exporter_is_one_pod_which_ends_before_its_successor_starts() -> None:
    exporter = only("exporter/deployment.yaml", EXPORTER)

    assert exporter["spec"]["replicas"] == 1
    assert exporter["spec"]["strategy"] == {"type": "Recreate"}
    assert "--bootstrap-servers=kafka:9092" in container(exporter)["args"]
    assert "--by-partition" not in container(exporter)["args"]
    assert len(pod(exporter)["volumes"]) == 1


@pytest.mark.parametrize(("address", "host_and_port"), [("0.0.0.0", "0.0.0.0:9096"), ("::", "[::]:9096")])  # noqa: S104 - of a container
def test_the_exporter_and_the_streaming_driver_listen_at_the_given_address(
    address: str, host_and_port: str
) -> None:
    listen = f"pod.listenAddress={address}"

    assert f"--host={address}" in container(only("exporter/deployment.yaml", EXPORTER, listen))["args"]
    assert f"metrics_address={host_and_port}" in container(stream(listen))["args"]
    operators = only("pipeline/sparkapplication.yaml", OPERATOR, listen)["spec"]["arguments"]
    assert f"metrics_address={host_and_port}" in operators


def test_the_exporter_reads_its_configuration_from_a_secret() -> None:
    settings = "exporter.existingSecret.name=admin,exporter.existingSecret.key=admin.toml"
    exporter = only("exporter/deployment.yaml", "exporter.enabled=true", settings)

    assert "--config=/etc/groupwright/exporter/admin.toml" in container(exporter)["args"]
    assert secret("settings", "admin") in pod(exporter)["volumes"]


# --- Monitors -------------------------------------------------------------------------------------------

POD_MONITOR = "podMonitor.enabled=true,podMonitor.selector.matchLabels.app=billing"
SERVICE_MONITOR = "serviceMonitor.enabled=true,serviceMonitor.selector.matchLabels.app=billing"
ENDPOINT = {
    "port": "metrics",
    "path": "/metrics",
    "scheme": "http",
    "interval": "15s",
    "scrapeTimeout": "10s",
}
EAST = {"targetLabel": "cluster", "replacement": "east"}


def test_a_pod_monitor_selects_pods_of_the_releases_namespace() -> None:
    monitor = only("monitors/podmonitor.yaml", POD_MONITOR, "podMonitor.additionalLabels.release=prometheus")

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"] == {"matchLabels": {"app": "billing"}}
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["operations"]}
    assert monitor["spec"]["podMetricsEndpoints"] == [ENDPOINT]


def test_a_service_monitor_selects_services_of_the_given_namespaces() -> None:
    settings = "serviceMonitor.namespaces={billing},serviceMonitor.port=http,serviceMonitor.scheme=https"
    monitor = only("monitors/servicemonitor.yaml", SERVICE_MONITOR, settings)

    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["billing"]}
    assert monitor["spec"]["endpoints"] == [{**ENDPOINT, "port": "http", "scheme": "https"}]


def test_the_streams_monitor_scrapes_the_job_and_its_spark() -> None:
    monitor = only("pipeline/podmonitor.yaml", STREAM, "stream.podMonitor.enabled=true")

    job, spark = monitor["spec"]["podMetricsEndpoints"]
    assert monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] == "stream"
    assert (job["port"], job["path"]) == ("metrics", "/metrics")
    assert spark["path"] == "/metrics/prometheus/"


def test_the_exporters_monitor_scrapes_the_exporter() -> None:
    settings = "exporter.podMonitor.enabled=true,exporter.podMonitor.interval=1m"
    monitor = only("exporter/podmonitor.yaml", EXPORTER, settings)

    assert monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] == "exporter"
    assert [each["interval"] for each in monitor["spec"]["podMetricsEndpoints"]] == ["1m"]


@pytest.mark.parametrize(
    ("template", "settings"),
    [
        ("monitors/podmonitor.yaml", POD_MONITOR),
        ("exporter/podmonitor.yaml", f"{EXPORTER},exporter.podMonitor.enabled=true"),
        ("pipeline/podmonitor.yaml", f"{STREAM},stream.podMonitor.enabled=true"),
    ],
)
def test_every_series_has_the_name_of_the_cluster(template: str, settings: str) -> None:
    monitor = only(template, settings, "cluster=east")

    assert all(each["relabelings"] == [EAST] for each in monitor["spec"]["podMetricsEndpoints"])


def test_the_users_relabelings_come_before_the_clusters_name() -> None:
    tier = "podMonitor.relabelings[0].targetLabel=tier,podMonitor.relabelings[0].replacement=one"
    monitor = only("monitors/podmonitor.yaml", POD_MONITOR, tier, "cluster=east")

    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "tier", "replacement": "one"}, EAST]


# --- Names and labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "settings", "name"),
    [
        ("tower", "", "tower-groupwright"),
        ("groupwright-eu", "", "groupwright-eu"),
        ("tower", "nameOverride=kafka", "tower-kafka"),
        ("tower", "fullnameOverride=history", "history"),
        # Cut, so that suffixes of objects fit into Kubernetes' limit of names.
        (
            "tower",
            "fullnameOverride=a-name-that-somebody-found-good-and-that-has-no-end-at-all",
            "a-name-that-somebody-found-good-and-that",
        ),
    ],
)
def test_names_join_the_releases_name_and_the_charts(release: str, settings: str, name: str) -> None:
    (account,) = render(values(STREAM, settings), template="serviceaccount.yaml", release=release)

    assert account["metadata"]["name"] == name


def test_objects_have_the_users_labels_and_name() -> None:
    account = only("serviceaccount.yaml", STREAM, "nameOverride=kafka,commonLabels.team=streaming")

    labels = account["metadata"]["labels"]
    assert labels.items() >= {"app.kubernetes.io/name": "kafka", "team": "streaming"}.items()


# --- Network policy -------------------------------------------------------------------------------------


def policy(*settings: str) -> Any:
    return only("networkpolicy.yaml", STREAM, *settings)["spec"]


PROMETHEUS = "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus"
METRICS = {"port": "metrics", "protocol": "TCP"}


def test_pods_reach_dns_and_kafka_and_nothing_reaches_them() -> None:
    spec = policy("networkPolicy.kafkaPorts={9093}")

    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert not spec.get("ingress")
    assert spec["egress"] == [
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
        {"ports": [{"port": 9093, "protocol": "TCP"}]},
    ]


def test_pods_reach_kafka_at_the_given_addresses_alone() -> None:
    spec = policy("networkPolicy.kafkaTo[0].ipBlock.cidr=10.0.0.0/24")

    assert spec["egress"][1]["to"] == [{"ipBlock": {"cidr": "10.0.0.0/24"}}]


def test_prometheus_reaches_the_metrics() -> None:
    ui = {"port": "spark-ui", "protocol": "TCP"}
    assert policy(PROMETHEUS)["ingress"][0]["ports"] == [ui, METRICS]
    assert METRICS in policy(PROMETHEUS, EXPORTER)["ingress"][0]["ports"]


def test_a_driver_its_executors_and_the_api_server_reach_each_other() -> None:
    spec = policy("pipeline.spark.mode=kubernetes,pipeline.storage.accessModes={ReadWriteMany}")

    (source,) = spec["ingress"][0]["from"]
    assert source["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "tower"
    assert len(spec["egress"]) == 4


# --- Jobs of the pipeline -------------------------------------------------------------------------------


def stream(*settings: str) -> Manifest:
    return only("pipeline/deployment.yaml", STREAM, *settings)


def batch(*settings: str) -> Manifest:
    return only("pipeline/cronjob.yaml", STREAM, BATCH, *settings)


def spark_defaults(*settings: str) -> str:
    data = only("pipeline/configmap.yaml", STREAM, *settings)["data"]
    assert "executor.yaml" not in data
    return str(data["spark-defaults.conf"])


def test_there_are_never_two_streaming_drivers() -> None:
    spec = stream()["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_the_image_is_this_versions_or_that_of_a_digest() -> None:
    digest = f"sha256:{'9f86d081' * 8}"
    other = f"image.repository=registry.example.com/groupwright,image.tag=edge,image.digest={digest}"

    assert container(stream())["image"] == "groupwright:0.1.0"
    assert container(stream(other))["image"] == f"registry.example.com/groupwright@{digest}"


def test_a_job_reads_its_settings_from_a_secret() -> None:
    job = stream("pipeline.existingSecret.name=pipeline,pipeline.existingSecret.key=settings.toml")

    assert "--config=/etc/groupwright/settings/settings.toml" in container(job)["args"]
    assert secret("settings", "pipeline") in pod(job)["volumes"]


def test_a_jobs_own_settings_override_the_common_ones() -> None:
    job = stream("pipeline.settings.trigger_seconds=10,stream.settings.trigger_seconds=60")

    assert [each for each in container(job)["args"] if "trigger" in each] == ["trigger_seconds=60"]


def test_the_users_settings_of_spark_override_the_charts() -> None:
    lines = spark_defaults("pipeline.spark.conf.spark\\.driver\\.memory=3g").splitlines()

    assert [each for each in lines if each.startswith("spark.driver.memory ")] == ["spark.driver.memory 3g"]


def test_the_volumes_claim_is_kept_when_the_release_is_uninstalled() -> None:
    claim = only("pipeline/pvc.yaml", STREAM)

    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert claim["spec"]["resources"] == {"requests": {"storage": "20Gi"}}


def test_two_batches_never_run_at_once_and_failures_are_bounded() -> None:
    job = batch("batch.backoffLimit=0")

    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert pod(job)["restartPolicy"] == "Never"


def test_the_batch_runs_beside_the_streaming_driver_if_one_node_has_the_volume() -> None:
    assert "podAffinity" in pod(batch())["affinity"]
    assert "affinity" not in pod(batch("pipeline.storage.accessModes={ReadWriteMany}"))


def test_the_batch_also_has_the_affinity_of_every_pod() -> None:
    term = "pod.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    near_kafka = f"{term}.topologyKey=zone,{term}.labelSelector.matchLabels.app=kafka"
    anti = "pod.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1"
    kafka = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "kafka"}}}

    affinity = pod(batch(near_kafka, anti))["affinity"]

    first, beside = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert first == kafka
    assert beside == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {
            "matchLabels": {
                "app.kubernetes.io/name": "groupwright",
                "app.kubernetes.io/instance": "tower",
                "app.kubernetes.io/component": "stream",
            }
        },
    }
    assert affinity["podAntiAffinity"] == pod(stream(near_kafka, anti))["affinity"]["podAntiAffinity"]
    others = pod(stream(near_kafka, anti))["affinity"]["podAffinity"]
    assert others == {"requiredDuringSchedulingIgnoredDuringExecution": [kafka]}


@pytest.mark.parametrize(
    "settings",
    [
        "stream.settings.tables=/var/lib/groupwright/stream",
        "pipeline.settings.tables=/history/tables,pipeline.storage.mountPath=/history/",
        "pipeline.settings.tables=/mnt/tables,pod.extraVolumeMounts[0].name=a,pod.extraVolumeMounts[0].mountPath=/mnt",
        # The batch job does not run.
        "batch.settings.tables=/daily",
    ],
)
def test_tables_may_be_on_any_mounted_volume(settings: str) -> None:
    assert container(stream(settings))["args"][0] == "driver"


def test_the_streaming_driver_is_probed_and_the_batch_is_not() -> None:
    driver = container(stream())

    assert "metrics_address=0.0.0.0:9096" in driver["args"]
    assert {"name": "metrics", "containerPort": 9096} in driver["ports"]
    assert driver["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "metrics"}
    for probe in ("livenessProbe", "startupProbe"):
        assert driver[probe]["httpGet"] == {"path": "/healthy", "port": "metrics"}
    assert "livenessProbe" not in container(batch())
    assert not [each for each in container(batch())["args"] if each.startswith("metrics_address=")]


def test_a_disruption_budget_keeps_the_driver_on_its_node() -> None:
    budget = only("pipeline/pdb.yaml", STREAM, "stream.podDisruptionBudget.enabled=true")

    assert budget["spec"]["maxUnavailable"] == 0


def test_a_driver_may_create_pods_and_nothing_else() -> None:
    executors = "pipeline.spark.mode=kubernetes,pipeline.storage.accessModes={ReadWriteMany}"
    role, _ = made("pipeline/rbac.yaml", STREAM, executors)

    assert [each["resources"] for each in role["rules"]] == [["pods"]]


def test_the_spark_operator_restarts_the_streaming_driver_after_any_end() -> None:
    spec = only("pipeline/sparkapplication.yaml", OPERATOR)["spec"]
    (driver,) = spec["driver"]["template"]["spec"]["containers"]

    assert spec["restartPolicy"]["type"] == "Always"
    assert spec["driver"]["memory"] == "1g"
    assert driver["livenessProbe"]["httpGet"] == {"path": "/healthy", "port": "metrics"}
    assert "spark.master" not in spec["sparkConf"]
    assert len(made("pipeline/rbac.yaml", OPERATOR)) == 2


def test_the_ports_of_a_drivers_template_are_none_that_spark_adds() -> None:
    """Spark adds its three without a comparison, and Kubernetes rejects two ports of one name."""
    sparks = {"driver-rpc-port": 7078, "blockmanager": 7079, "spark-ui": 4040}

    stream_spec = only("pipeline/sparkapplication.yaml", OPERATOR)["spec"]
    batch_spec = only("pipeline/scheduledsparkapplication.yaml", OPERATOR)["spec"]["template"]

    for spec, wanted in ((stream_spec, {"metrics": 9096}), (batch_spec, {})):
        (driver,) = spec["driver"]["template"]["spec"]["containers"]
        ports = {each["name"]: each["containerPort"] for each in driver.get("ports", ())}
        assert ports == wanted
        assert not ports.keys() & sparks.keys()
        assert not set(ports.values()) & set(sparks.values())
        assert spec["sparkConf"]["spark.driver.port"] == str(sparks["driver-rpc-port"])
        assert spec["sparkConf"]["spark.driver.blockManager.port"] == str(sparks["blockmanager"])
    # Prometheus finds both endpoints of the monitor by these names.
    monitor = only("pipeline/podmonitor.yaml", OPERATOR, "stream.podMonitor.enabled=true")
    monitored = {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]}
    assert monitored == {"metrics", "spark-ui"}


def test_the_spark_operators_runs_have_names_that_fit_into_a_label() -> None:
    longest = "n" * 37

    application = only("pipeline/scheduledsparkapplication.yaml", OPERATOR, f"fullnameOverride={longest}")

    run = f"{application['metadata']['name']}-{time.time_ns()}"
    assert len(run) == 63


def test_the_spark_operator_runs_one_batch_at_a_time_and_ends_it_at_its_deadline() -> None:
    application = only("pipeline/scheduledsparkapplication.yaml", OPERATOR)
    spec = application["spec"]

    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["template"]["restartPolicy"]["onFailureRetries"] == 1
    assert spec["template"]["driver"]["template"]["spec"]["activeDeadlineSeconds"] == 3000


def test_the_spark_operator_does_not_retry_a_batch_without_retries() -> None:
    application = only("pipeline/scheduledsparkapplication.yaml", OPERATOR, "batch.backoffLimit=0")

    assert application["spec"]["template"]["restartPolicy"] == {"type": "Never"}


# --- Notes ----------------------------------------------------------------------------------------------


def test_the_notes_name_what_is_left_to_do() -> None:
    text = notes()

    assert "This release does not make Prometheus scrape your consumers" in text
    assert "ruleSelector" in text
    assert "which is in no registry" not in text


def test_the_notes_have_the_command_that_runs_a_scheduled_job_at_once() -> None:
    text = notes(values(DOCTOR))

    assert "create job --from=cronjob/tower-groupwright-doctor-billing billing-now" in text
    assert "which is in no registry" in text


def test_the_notes_name_the_spark_operators_driver() -> None:
    text = notes(values(STREAM, LAKE, "pipeline.spark.mode=operator"))

    assert "logs pod/tower-groupwright-stream-driver" in text
    assert "get sparkapplications" in text
