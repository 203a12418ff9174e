"""Upgrades from former versions of the chart: their values are accepted, and no immutable field changes.

Each YAML file in `former/` has the example values of one version, and the immutable fields of its objects.
The version's package is beside it; `test_chart_api_server` installs it.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tests.conftest import Helm

FORMER = sorted((Path(__file__).parent / "former").glob("*.yaml"))
_FIELDS: dict[str, tuple[str, ...]] = {
    "Deployment": ("selector",),
    "PersistentVolumeClaim": ("accessModes", "storageClassName", "resources"),
    "RoleBinding": ("roleRef",),
    "GrafanaDashboard": ("instanceSelector",),
    "CronJob": (),
    "ServiceAccount": (),
}
"""Fields, by kind, that an upgrade must not change: the immutable ones, and the size of a claim."""

of_every_former_example = pytest.mark.parametrize(
    ("version", "example"),
    [(path, name) for path in FORMER for name in yaml.safe_load(path.read_text(encoding="utf-8"))],
    ids=lambda value: value.stem if isinstance(value, Path) else value,
)
"""Runs a test for each example of each former version."""

Manifest = dict[str, Any]


def immutable(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Return the immutable fields of every object that runs, stores or grants something, by kind and name."""
    return {
        f"{each['kind']}/{each['metadata']['name']}": {
            field: value
            for field, value in {**each, **each.get("spec", {})}.items()
            if field in _FIELDS[each["kind"]]
        }
        for each in manifests
        if each["kind"] in _FIELDS
    }


@of_every_former_example
def test_an_upgrade_changes_no_immutable_field(
    helm: Helm, tmp_path: Path, version: Path, example: str
) -> None:
    former = yaml.safe_load(version.read_text(encoding="utf-8"))[example]
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(former["values"]), encoding="utf-8")

    upgraded = helm.template("--is-upgrade", "--values", values)

    assert immutable(upgraded) == former["objects"]


@pytest.mark.parametrize("version", FORMER, ids=lambda path: path.stem)
def test_the_package_has_the_recorded_objects(helm: Helm, tmp_path: Path, version: Path) -> None:
    for former in yaml.safe_load(version.read_text(encoding="utf-8")).values():
        values = tmp_path / "values.yaml"
        values.write_text(yaml.safe_dump(former["values"]), encoding="utf-8")

        manifests = helm.template("--values", values, chart=version.with_suffix(".tgz"))

        assert immutable(manifests) == former["objects"]


def test_a_changed_selector_is_found(helm: Helm) -> None:
    """A release's pods are selected by the chart's name."""
    settings = ["--set=exporter.enabled=true", "--set=exporter.bootstrapServers=kafka:9092"]

    renamed = helm.template(*settings, "--set=nameOverride=other,fullnameOverride=tower-groupwright")

    assert immutable(renamed) != immutable(helm.template(*settings))
