"""The chart's example values, and Helm 3 as users run it, built from Go."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from charts.tools import programs
from charts.tools.rendering import CHART, Manifest
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import lacking

README = (CHART / "README.md").read_text(encoding="utf-8")
README_EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
"""The values in the chart's README."""
EXAMPLES = {
    path.name.removesuffix("-values.yaml"): path.read_text(encoding="utf-8")
    for path in sorted((CHART / "ci").glob("*-values.yaml"))
} | {f"readme-{number}": text for number, text in enumerate(README_EXAMPLES, 1)}
"""Values by name, as YAML: those of the chart's folder `ci`, and of its README."""


@dataclass(frozen=True)
class HelmProgram:
    """Helm's command in the pinned version, with nothing of the user's own configuration."""

    path: Path
    home: Path
    kubeconfig: Path = Path("/dev/null")  # no cluster

    def run(self, *arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command, with `given` on standard input."""
        return subprocess.run(
            [self.path, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            # No plug-ins, no repositories.
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(self.kubeconfig)},
        )

    def template(self, values: str = "") -> list[Manifest]:
        """Return the objects of an installation, as `render` does."""
        options = ("--namespace=operations", "--values=-")
        rendered = self.run("template", "tower", CHART, *options, given=values)
        assert rendered.returncode == 0, rendered.stderr
        return [each for each in yaml.load_all(rendered.stdout, yaml.CSafeLoader) if each]


@pytest.fixture(scope="session")
def charts_tools() -> Path:
    """The folder of the programs that `make charts-tools` builds."""
    folder = programs.folder()
    if not folder.exists():
        lacking("helm is not built (make charts-tools; it needs Go)")
    return folder


@pytest.fixture(scope="session")
def helm(charts_tools: Path, tmp_path_factory: pytest.TempPathFactory) -> HelmProgram:
    return HelmProgram(charts_tools / "helm", tmp_path_factory.mktemp("helm"))
