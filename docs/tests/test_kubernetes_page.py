"""The manifests of docs/kubernetes.md are valid, and ask for metrics that exist."""

import re
import subprocess
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

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
    names = re.search(r'__name__=~"groupwright_cluster_\((.+?)\)"', trigger["metadata"]["query"])
    reference = (ROOT / "cli" / "EXPORTER.md").read_text(encoding="utf-8")

    assert names
    for name in names[1].split("|"):
        assert f"| `groupwright_cluster_{name}` | gauge | `group`, `topic` |" in reference
    assert (
        MANIFESTS["ScaledObject"]["spec"]["scaleTargetRef"]["name"]
        == MANIFESTS["Deployment"]["metadata"]["name"]
    )


LAG = 'groupwright_cluster_lag{group="billing", topic="orders", pod="%s"}'
UNCOMMITTED = 'groupwright_cluster_uncommitted_messages{group="billing", topic="orders", pod="%s"}'


@pytest.mark.integration
@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ({LAG % "a": "900x20", UNCOMMITTED % "a": "0x20"}, 900),
        ({LAG % "a": "0x20", 'groupwright_cluster_lag{group="billing", topic="old"}': "900x20"}, 0),
        ({UNCOMMITTED % "a": "400x20"}, 400),
        ({LAG % "a": "100x20", UNCOMMITTED % "a": "400x20"}, 500),
        ({UNCOMMITTED % "a": "400x9 _x10"}, 400),  # absent during a rebalance
        ({LAG % "a": "900x7 stale", LAG % "b": "_x9 800x5"}, 900),  # the largest of 5 minutes
        ({LAG % "a": "900x8 stale"}, 900),
        ({LAG % "a": "900x2 stale"}, None),
        ({}, None),
    ],
    ids=["lag", "left", "new", "both", "rebalance", "restarted", "restarting", "gone", "never"],
)
def test_the_scaler_counts_what_is_known_and_nothing_else(
    tmp_path: Path, series: dict[str, str], expected: int | None
) -> None:
    """KEDA takes one value; without any, `ignoreNullValues: "false"` makes it an error instead of 0."""
    (trigger,) = MANIFESTS["ScaledObject"]["spec"]["triggers"]
    samples = [] if expected is None else [{"labels": "{}", "value": expected}]
    query = {"expr": trigger["metadata"]["query"], "eval_time": "12m", "exp_samples": samples}
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": [query]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"tests": [test]}))
    promtool = find_program("promtool", hint="Debian's package prometheus has it")

    ran = subprocess.run(
        [promtool, "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert ran.returncode == 0, ran.stdout + ran.stderr


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
