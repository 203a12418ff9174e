"""Builds etcd and the Kubernetes API server from pinned Go modules, for the upgrades' test on a real server.

Run only by ``make charts-upgrade``, because it takes minutes. The programs are cached like those of
`programs`. The pins are in `kubernetes/go.mod`. Its ``replace`` lines are needed: ``k8s.io/kubernetes``
requires version 0.0.0 of the modules that are developed in its repository.
"""

import re
import sys
from pathlib import Path

from charts.tools.programs import build_once, cached, go

HERE = Path(__file__).parent / "kubernetes"
_PROGRESS = "etcd and kube-apiserver: 9 minutes of processor time and 3 GB for Go's caches"


def folder() -> Path:
    """Return the folder of ``etcd`` and ``kube-apiserver``, in the user's cache; it may not exist yet."""
    return cached("charts-kubernetes", [HERE / "go.mod", HERE / "go.sum"], _ldflags())


def build(made: Path) -> None:
    """Build both programs into the folder `made`; raises as `programs.build`."""
    go(HERE, "install", f"-ldflags={_ldflags()}", "tool", GOBIN=str(made), CGO_ENABLED="0")
    (made / "server").rename(made / "etcd")  # Go names a program after its package's path


def _ldflags() -> str:
    """Return the linker's flags, which set the server's version as Kubernetes' own build does."""
    pins = (HERE / "go.mod").read_text(encoding="utf-8")
    version = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.\d+\b", pins, re.MULTILINE)
    if version is None:
        raise ValueError(f"{HERE / 'go.mod'} does not require a release of k8s.io/kubernetes")
    texts = {"gitVersion": version[0].split()[1], "gitMajor": version[1], "gitMinor": version[2]}
    places = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s -w", *(f"-X {place}.{name}={text}" for place in places for name, text in texts.items())]
    )


if __name__ == "__main__":
    sys.exit(build_once(folder(), build, _PROGRESS))
