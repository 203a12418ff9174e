"""Builds the chart's checkers from pinned Go modules: helm, helm-unittest, the Prometheus operator's CRDs.

Run by ``make charts-tools``; ``--folder`` prints the folder of the programs, and builds nothing. They are
cached outside the checkout, in a folder named after a hash of `go.mod` and `go.sum`, and rebuilt if these
change.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
_PINS = ("go.mod", "go.sum", "crds/go.mod", "crds/go.sum")
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_KINDS = ("podmonitors", "prometheusrules", "servicemonitors")
_PATIENCE_SECONDS = 1800
_CAPABILITIES = "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
_LDFLAGS = f"-s -w -X {_CAPABILITIES}Major=1 -X {_CAPABILITIES}Minor=36"
"""As in helm's own build: sets the default Kubernetes version for rendering."""


def folder() -> Path:
    """Return the folder of the pinned programs, in the user's cache; it may not exist yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pins = b"".join((HERE / name).read_bytes() for name in _PINS) + _LDFLAGS.encode()
    return cache / "groupwright" / "charts-tools" / hashlib.sha256(pins).hexdigest()[:16]


def build(target: Path) -> None:
    """Build all programs into `target`, which is created atomically.

    Raises:
        subprocess.CalledProcessError: if Go cannot; it has said why on standard error.
        subprocess.TimeoutExpired: if it takes longer than half an hour.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="building-") as name:
        made = Path(name) / "made"
        _go(HERE, "install", f"-ldflags={_LDFLAGS}", "tool", GOBIN=str(made))
        module = Path(json.loads(_go(HERE / "crds", "mod", "download", "-json", _OPERATOR))["Dir"])
        for kind in _KINDS:
            source = module / "example" / "prometheus-operator-crd" / f"monitoring.coreos.com_{kind}.yaml"
            shutil.copyfile(source, made / f"{kind}.yaml")
        if not target.exists():
            made.rename(target)


def _go(where: Path, *arguments: str, **environment: str) -> str:
    # readonly: what go.mod does not name is an error, never a newer version.
    settings = {"GOFLAGS": "-mod=readonly -buildvcs=false", **environment}
    return subprocess.run(
        ["go", *arguments],  # noqa: S607 - as above
        cwd=where,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_PATIENCE_SECONDS,
    ).stdout


def _main() -> int:
    target = folder()
    if "--folder" in sys.argv[1:]:
        sys.stdout.write(f"{target}\n")
        return 0
    if target.exists():
        sys.stdout.write(f"{target} is up to date\n")
        return 0
    if shutil.which("go") is None:
        sys.stderr.write(
            "The programs that check the chart are built with Go 1.26 or later, which is not installed\n"
        )
        return 1
    sys.stdout.write("building helm and helm-unittest: a minute and a half on two cores ...\n")
    sys.stdout.flush()
    try:
        build(target)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{' '.join(error.cmd)} failed with status {error.returncode}\n")
        return 1
    except subprocess.TimeoutExpired as error:
        sys.stderr.write(f"{' '.join(error.cmd)} took more than {error.timeout:.0f} s, and was ended\n")
        return 1
    sys.stdout.write(f"{target} is built\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
