"""The chart as an OCI package: pushed as a release does it, and installed from the registry."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from charts.tests.conftest import HelmProgram
from charts.tools.rendering import CHART
from groupwright.testing._kafka.ports import HOST, free_port
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program
from integration_tests.harness.waiting import wait_until


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Run a registry, and return its address."""
    program = find_program("docker-registry", hint="Debian's package docker-registry")
    address = f"{HOST}:{free_port()}"
    settings = tmp_path / "registry.yml"
    storage = {"filesystem": {"rootdirectory": str(tmp_path / "registry")}}
    settings.write_text(yaml.safe_dump({"version": 0.1, "storage": storage, "http": {"addr": address}}))
    with (tmp_path / "registry.log").open("wb") as log:
        server = subprocess.Popen([program, "serve", settings], stdout=log, stderr=log)

    def answers() -> bool:
        assert server.poll() is None, (tmp_path / "registry.log").read_text()
        try:
            with urllib.request.urlopen(f"http://{address}/v2/", timeout=PATIENCE) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    try:
        wait_until(answers, "the registry answers")
        yield address
    finally:
        server.terminate()
        server.wait(PATIENCE)


@pytest.mark.integration
def test_a_release_pushes_the_chart_and_helm_installs_it_from_the_registry(
    helm: HelmProgram, registry: str, tmp_path: Path
) -> None:
    pushed = subprocess.run(
        [
            *("make", "publish-chart", f"REGISTRY={registry}/groupwright", "ARGS=--plain-http"),
            # Both are there, as this test runs.
            *(f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.dev", "--old-file=charts-tools"),
            *(f"HELM={helm.path}", f"HOME={tmp_path}"),
        ],
        cwd=CHART.parents[1],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["version"]

    package = f"oci://{registry}/groupwright/charts/groupwright"
    options = ["--namespace=operations", f"--version={version}", "--plain-http"]
    installed = helm.run("template", "tower", package, *options)

    assert installed.returncode == 0, installed.stderr
    assert [each for each in yaml.safe_load_all(installed.stdout) if each] == helm.template()
