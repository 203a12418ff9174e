"""The chart, as helm renders it, and the programs that check it."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tools import programs

from harness.patience import PATIENCE
from harness.tools import lacking

CHART = Path(__file__).parents[1] / "groupwright"
README = (CHART / "README.md").read_text(encoding="utf-8")
README_EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
"""The values in the chart's README."""


@dataclass(frozen=True)
class Helm:
    """Helm in the pinned version, on this chart, with nothing of the user's own configuration."""

    program: Path
    home: Path
    kubeconfig: Path = Path("/dev/null")  # no cluster

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            # No plug-ins, no repositories.
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(self.kubeconfig)},
        )

    def template(
        self, *arguments: str | Path, release: str = "tower", chart: Path = CHART
    ) -> list[dict[str, Any]]:
        """Return what an installation in the namespace `operations` would be, object by object."""
        rendered = self.run("template", release, chart, "--namespace=operations", *arguments)
        assert rendered.returncode == 0, rendered.stderr
        return [each for each in yaml.safe_load_all(rendered.stdout) if each]


@pytest.fixture(scope="session")
def charts_tools() -> Path:
    """The folder of the programs that `make charts-tools` builds."""
    folder = programs.folder()
    if not folder.exists():
        lacking("helm and helm-unittest are not built (make charts-tools; it needs Go)")
    return folder


@pytest.fixture(scope="session")
def helm(charts_tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(charts_tools / "helm", tmp_path_factory.mktemp("helm"))
