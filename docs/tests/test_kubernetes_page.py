"""The manifests of docs/kubernetes.md are valid, and ask for metrics that exist."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from promql_parser import AggregateExpr, VectorSelector, parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
MANIFESTS = {
    each["kind"]: each for each in map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_workload_is_what_kubernetes_takes(kind: str) -> None:
    kubernetes_validate.validate(MANIFESTS[kind], kubernetes_validate.latest_version(), strict=True)


def test_the_scaler_asks_for_a_metric_of_the_exporter() -> None:
    (trigger,) = MANIFESTS["ScaledObject"]["spec"]["triggers"]
    query: Any = parse(trigger["metadata"]["query"])

    assert isinstance(query, AggregateExpr)
    assert isinstance(query.expr, VectorSelector)
    assert f"| `{query.expr.name}` | gauge | `group`, `topic` |" in (ROOT / "cli" / "EXPORTER.md").read_text(
        encoding="utf-8"
    )
    assert (
        MANIFESTS["ScaledObject"]["spec"]["scaleTargetRef"]["name"]
        == MANIFESTS["Deployment"]["metadata"]["name"]
    )


def test_the_metrics_in_the_text_exist() -> None:
    metrics = set(re.findall(r"`(groupwright_cluster_\w+)`", PAGE))

    assert metrics
    known = (ROOT / "cli" / "EXPORTER.md").read_text(encoding="utf-8")
    assert [name for name in metrics if f"| `{name}` |" not in known] == []


def test_the_probes_are_those_of_the_example() -> None:
    (container,) = MANIFESTS["Deployment"]["spec"]["template"]["spec"]["containers"]
    example = (ROOT / "examples" / "fastapi_service.py").read_text(encoding="utf-8")

    for probe in ("readinessProbe", "livenessProbe"):
        assert f'@app.get("{container[probe]["httpGet"]["path"]}")' in example
