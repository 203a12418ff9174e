"""The chart on a real Kubernetes API server: installation, upgrades, rollback, removal.

`make charts-upgrade` builds the server and runs these tests.
"""

import itertools
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from charts.live.kubernetes import KubernetesApi, Manifest
from charts.tests.conftest import EXAMPLES, HelmProgram
from charts.tools import api_server
from charts.tools.rendering import CHART, render
from integration_tests.harness.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RELEASE = "tower"
_NUMBERS = itertools.count(1)
_NEEDED = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low"},
        "value": -1,
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disks",
        "allowVolumeExpansion": True,
    },
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}},
]
"""Objects to which the example values refer, beside the service accounts."""
_OPERATORS = {
    "grafanadashboards.grafana.integreatly.org": ("GrafanaDashboard", "v1beta1"),
    "scheduledsparkapplications.sparkoperator.k8s.io": ("ScheduledSparkApplication", "v1beta2"),
    "sparkapplications.sparkoperator.k8s.io": ("SparkApplication", "v1beta2"),
}
"""Kinds whose definitions accept all fields here: `test_chart` compares their fields with a list."""


def definition(name: str, kind: str, version: str) -> Manifest:
    """Return a definition of a kind that accepts all fields."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Kubernetes requires the annotation for groups that end with k8s.io.
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def established(server: KubernetesApi, definitions: list[Manifest]) -> bool:
    """Return whether the server serves all kinds."""
    stored = [server.get(each) or {} for each in definitions]
    conditions = [each.get("status", {}).get("conditions", []) for each in stored]
    return all(
        any(each["type"] == "Established" and each["status"] == "True" for each in of_kind)
        for of_kind in conditions
    )


@pytest.fixture(scope="module")
def server(charts_tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    """An API server with the operators' kinds, real ones for Prometheus' operator."""
    programs = api_server.folder()
    if not programs.exists():
        pytest.skip("etcd and kube-apiserver are not built (make charts-upgrade; it needs Go)")
    definitions = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in charts_tools.glob("*.yaml")]
    definitions += [definition(name, *kind) for name, kind in _OPERATORS.items()]
    with KubernetesApi(programs, tmp_path_factory.mktemp("kubernetes")) as server:
        for each in (*definitions, *_NEEDED):
            created = server.create(each)
            assert created.status == 201, created.body
        wait_until(lambda: established(server, definitions), "the operators' kinds are served")
        yield server


@pytest.fixture
def api(server: KubernetesApi) -> Iterator[KubernetesApi]:
    """The server; the report of a failed test has the last lines of its log."""
    yield server
    print(server.log())  # noqa: T201 - pytest shows it if the test has failed


@dataclass(frozen=True)
class Release:
    """The release `tower` in a namespace of its own."""

    helm: HelmProgram
    api: KubernetesApi
    namespace: str

    def helm_run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.helm.run(*arguments, f"--namespace={self.namespace}")

    def succeed(self, *arguments: str | Path) -> None:
        """Run helm, which must succeed without a warning."""
        done = self.helm_run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")

    def refused(self, *arguments: str | Path) -> str:
        """Run helm, which must fail, and return what it says."""
        done = self.helm_run(*arguments)
        assert done.returncode != 0
        return done.stderr

    def revisions(self) -> dict[int, str]:
        """Return the status of each revision."""
        history = json.loads(self.helm_run("history", RELEASE, "--output=json").stdout)
        return {each["revision"]: each["status"] for each in history}

    def manifests(self) -> list[Manifest]:
        """Return the manifests of the release's present revision."""
        text = self.helm_run("get", "manifest", RELEASE).stdout
        return [
            {**each, "metadata": {"namespace": self.namespace, **each["metadata"]}}
            for each in yaml.safe_load_all(text)
            if each
        ]

    def objects(self) -> dict[str, Manifest]:
        """Return the stored objects of the present manifests by kind and name; each must be there."""
        stored = {}
        for manifest in self.manifests():
            found = self.api.get(manifest)
            assert found is not None, manifest["metadata"]
            stored[f"{manifest['kind']}/{manifest['metadata']['name']}"] = found
        return stored

    def left(self) -> dict[str, Manifest]:
        """Return the objects of any kind with this release's label, by kind and name.

        Without those that are being deleted: a claim waits for a controller, which does not run.
        """
        return {
            f"{each['kind']}/{each['metadata']['name']}": each
            for namespace in (self.namespace, "monitoring")
            for each in self.api.list_all(namespace)
            if each["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == RELEASE
            and "deletionTimestamp" not in each["metadata"]
        }

    def secrets(self) -> list[str]:
        """Return the names of the namespace's Secrets, in which helm keeps its revisions."""
        return [
            each["metadata"]["name"] for each in self.api.list_all(self.namespace) if each["kind"] == "Secret"
        ]

    def dry_run(self) -> None:
        """Send every manifest once more: the server must know all fields, and have nothing to change."""
        for manifest in self.manifests():
            stored = self.api.get(manifest)
            applied = self.api.apply_dry(manifest)
            assert applied.status == 200, applied.body
            assert applied.warnings == []
            assert stored is not None
            assert content(applied.body) == content(stored)


def content(stored: Manifest) -> Manifest:
    """Return what a user sets of an object: without what the server adds to it."""
    metadata = stored["metadata"]
    annotations = metadata.get("annotations", {})
    return {
        **{key: value for key, value in stored.items() if key not in {"metadata", "status"}},
        "labels": metadata["labels"],
        "annotations": annotations,
    }


def contents(objects: dict[str, Manifest]) -> dict[str, Manifest]:
    return {name: content(each) for name, each in objects.items()}


def uids(objects: dict[str, Manifest]) -> dict[str, str]:
    return {name: each["metadata"]["uid"] for name, each in objects.items()}


@pytest.fixture
def release(helm: HelmProgram, api: KubernetesApi, tmp_path: Path) -> Release:
    """No release yet, and a namespace for one that admits no privileged pods."""
    namespace = f"operations-{next(_NUMBERS)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for each in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
    ):
        created = api.create(each, namespace)
        assert created.status == 201, created.body
    return Release(HelmProgram(helm.path, tmp_path / "home", api.kubeconfig), api, namespace)


def values_file(release: Release, folder: Path, values: Manifest) -> Path:
    """Write values, and create the service account that they name if the chart does not."""
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    account = values.get("serviceAccount", {})
    if not account.get("create", True):
        metadata = {"name": account["name"]}
        manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        assert release.api.create(manifest, release.namespace).status == 201
    return path


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yield the pod of each workload, and of each executor."""
    for each in manifests:
        match each["kind"]:
            case "Deployment":
                template = each["spec"]["template"]
            case "CronJob":
                template = each["spec"]["jobTemplate"]["spec"]["template"]
            case "ConfigMap" if "executor.yaml" in each.get("data", {}):
                template = yaml.safe_load(each["data"]["executor.yaml"])
                template["spec"]["containers"][0].setdefault("image", "spark-adds-it")
            case _:
                continue
        metadata = {**template["metadata"], "name": "pod"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["nameOverride=other", "fullnameOverride=tower-groupwright"], "field is immutable"),
        (["pipeline.storage.storageClassName=slow"], "spec is immutable after creation"),
        (["pipeline.storage.accessModes={ReadWriteMany}"], "spec is immutable after creation"),
    ],
    ids=["selector", "storage-class", "access-modes"],
)
def test_the_server_refuses_a_changed_immutable_field(
    release: Release, tmp_path: Path, changes: list[str], reason: str
) -> None:
    values = values_file(release, tmp_path, yaml.safe_load(EXAMPLES["stream-local"]))
    release.succeed("install", RELEASE, CHART, "--values", values)
    installed = release.objects()

    said = release.refused("upgrade", RELEASE, CHART, "--values", values, f"--set={','.join(changes)}")

    assert reason in said
    assert release.revisions() == {1: "deployed", 2: "failed"}
    assert uids(release.left()).items() >= uids(installed).items()

    # Not by an upgrade: helm compares custom resources with the last deployed revision, and would not see
    # what the failed one has changed in them.
    release.succeed("rollback", RELEASE, "1")

    assert release.revisions() == {1: "superseded", 2: "failed", 3: "deployed"}
    assert uids(release.objects()) == uids(installed)
    assert contents(release.objects()) == contents(installed)
    release.succeed("uninstall", RELEASE)


def test_an_upgrade_after_a_failed_one_leaves_its_changes_in_custom_resources(
    release: Release, tmp_path: Path
) -> None:
    values = values_file(release, tmp_path, yaml.safe_load(EXAMPLES["stream-local"]))
    release.succeed("install", RELEASE, CHART, "--values", values)
    renamed = "--set=nameOverride=other,fullnameOverride=tower-groupwright"
    release.refused("upgrade", RELEASE, CHART, "--values", values, renamed)

    release.succeed("upgrade", RELEASE, CHART, "--values", values)

    changed = {
        each["kind"]
        for each in release.objects().values()
        if each["metadata"]["labels"]["app.kubernetes.io/name"] == "other"
    }
    assert changed == {"PodMonitor", "PrometheusRule"}
    release.succeed("uninstall", RELEASE)


def test_the_claim_outlives_a_release_that_does_not_use_it(release: Release, tmp_path: Path) -> None:
    values = values_file(release, tmp_path, yaml.safe_load(EXAMPLES["stream-local"]))
    elsewhere = [
        "--set=pipeline.storage.enabled=false",
        "--set=pipeline.spark.mode=kubernetes",
        "--set=pipeline.settings.tables=s3a://history/tables",
    ]
    claim, deployment = (
        "PersistentVolumeClaim/tower-groupwright-pipeline",
        "Deployment/tower-groupwright-stream",
    )
    release.succeed("install", RELEASE, CHART, "--values", values)
    installed = uids(release.objects())

    release.succeed("upgrade", RELEASE, CHART, "--values", values, *elsewhere)

    assert claim not in release.objects()
    assert uids(release.left())[claim] == installed[claim]
    assert uids(release.left())[deployment] == installed[deployment]

    release.succeed("upgrade", RELEASE, CHART, "--values", values)

    assert uids(release.objects()) == installed
    release.succeed("uninstall", RELEASE)
    assert uids(release.left()) == {claim: installed[claim]}

    # The next release of this name adopts it.
    release.succeed("install", RELEASE, CHART, "--values", values)
    assert uids(release.objects())[claim] == installed[claim]
    release.succeed("uninstall", RELEASE)


def test_a_claim_grows_where_its_storage_class_lets_it(release: Release, tmp_path: Path) -> None:
    values = values_file(release, tmp_path, yaml.safe_load(EXAMPLES["stream-local"]))
    release.succeed("install", RELEASE, CHART, "--values", values)
    claim = next(each for each in release.objects().values() if each["kind"] == "PersistentVolumeClaim")
    bound = release.api.set_status(claim, {"phase": "Bound", "capacity": {"storage": "100Gi"}})
    assert bound.status == 200, bound.body

    said = release.refused("upgrade", RELEASE, CHART, "--values", values, "--set=pipeline.storage.size=50Gi")
    assert "field can not be less than" in said

    release.succeed("upgrade", RELEASE, CHART, "--values", values, "--set=pipeline.storage.size=200Gi")

    grown = release.api.get(claim)
    assert grown is not None
    assert grown["metadata"]["uid"] == claim["metadata"]["uid"]
    assert grown["spec"]["resources"]["requests"] == {"storage": "200Gi"}
    release.succeed("uninstall", RELEASE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_server_accepts_every_field_and_every_pod(release: Release, tmp_path: Path, example: str) -> None:
    values = values_file(release, tmp_path, yaml.safe_load(EXAMPLES[example]))

    release.succeed("install", RELEASE, CHART, "--values", values)

    release.dry_run()
    for pod in pods(release.manifests()):
        admitted = release.api.create(pod, release.namespace, dryRun="All", fieldValidation="Strict")
        assert admitted.status == 201, admitted.body
    release.succeed("uninstall", RELEASE)
    assert {each["kind"] for each in release.left().values()} <= {"PersistentVolumeClaim"}
    assert release.secrets() == []


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("Deployment", {"stategy": {}}, ".spec.stategy: field not declared"),
        ("PodMonitor", {"selectors": {}}, ".spec.selectors: field not declared"),
    ],
)
def test_the_server_refuses_an_unknown_field(
    release: Release, kind: str, change: Manifest, reason: str
) -> None:
    manifest = next(each for each in render(EXAMPLES["stream-local"]) if each["kind"] == kind)
    manifest["metadata"]["namespace"] = release.namespace

    assert release.api.apply_dry(manifest).status == 201
    refused = release.api.apply_dry({**manifest, "spec": {**manifest["spec"], **change}})

    assert refused.status >= 400
    assert reason in refused.body["message"]


def test_the_server_refuses_a_pod_with_privileges(release: Release) -> None:
    (pod,) = pods(render(f"{EXAMPLES['stream-local']}\nserviceAccount: {{create: false}}\n"))
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True

    refused = release.api.create(pod, release.namespace, dryRun="All")

    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert "allowPrivilegeEscalation" in refused.body["message"]
