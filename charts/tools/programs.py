"""Builds helm from pinned Go modules, and puts the Prometheus operator's definitions of its kinds beside it.

Run by ``make charts-tools``; ``--folder`` prints their folder, and builds nothing. They are cached outside
the checkout, in a folder named after a hash of `go.mod` and `go.sum`, and rebuilt if these change.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
_PINS = ("go.mod", "go.sum", "crds/go.mod", "crds/go.sum")
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_KINDS = ("podmonitors", "prometheusrules", "servicemonitors")
_PATIENCE_SECONDS = 1800
_CAPABILITIES = "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
_LDFLAGS = f"-s -w -X {_CAPABILITIES}Major=1 -X {_CAPABILITIES}Minor=36"
"""As in helm's own build: sets the default Kubernetes version for rendering."""
_GCFLAGS = "k8s.io/...=-N -l"
"""Kubernetes' packages, most of the build, are not optimised; rendering a chart hardly uses them."""


def folder() -> Path:
    """Return the folder of the pinned programs, in the user's cache; it may not exist yet."""
    return cached("charts-tools", [HERE / name for name in _PINS], _LDFLAGS)


def cached(name: str, pins: list[Path], flags: str) -> Path:
    """Return a folder in the user's cache, named after a hash of the files `pins` and the linker's flags."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pinned = b"".join(path.read_bytes() for path in pins) + flags.encode()
    return cache / "groupwright" / name / hashlib.sha256(pinned).hexdigest()[:16]


def build(made: Path) -> None:
    """Build all programs into the folder `made`.

    Raises:
        subprocess.CalledProcessError: if Go cannot; it has said why on standard error.
        subprocess.TimeoutExpired: if it takes longer than half an hour.
    """
    go(HERE, "install", f"-ldflags={_LDFLAGS}", f"-gcflags={_GCFLAGS}", "tool", GOBIN=str(made))
    module = Path(json.loads(go(HERE / "crds", "mod", "download", "-json", _OPERATOR))["Dir"])
    for kind in _KINDS:
        source = module / "example" / "prometheus-operator-crd" / f"monitoring.coreos.com_{kind}.yaml"
        shutil.copyfile(source, made / f"{kind}.yaml")


def go(where: Path, *arguments: str, **environment: str) -> str:
    """Run Go in a folder with a ``go.mod``, and return its output; raises as `build`."""
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


def build_once(target: Path, builder: Callable[[Path], None], progress: str) -> int:
    """Build programs if `target` does not exist, which is created atomically; return the exit status.

    Args:
        target: The folder of the programs.
        builder: Builds them into a folder that does not exist yet.
        progress: What is built, and how long it takes.
    """
    if target.exists():
        sys.stdout.write(f"{target} is up to date\n")
        return 0
    if shutil.which("go") is None:
        sys.stderr.write(
            "The programs that check the chart are built with Go 1.26 or later, which is not installed\n"
        )
        return 1
    sys.stdout.write(f"building {progress} ...\n")
    sys.stdout.flush()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="building-") as name:
            made = Path(name) / "made"
            builder(made)
            if not target.exists():
                made.rename(target)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{' '.join(error.cmd)} failed with status {error.returncode}\n")
        return 1
    except subprocess.TimeoutExpired as error:
        sys.stderr.write(f"{' '.join(error.cmd)} took more than {error.timeout:.0f} s, and was ended\n")
        return 1
    sys.stdout.write(f"{target} is built\n")
    return 0


def _main() -> int:
    target = folder()
    if "--folder" in sys.argv[1:]:
        sys.stdout.write(f"{target}\n")
        return 0
    return build_once(target, build, "helm: a minute and a half on two cores")


if __name__ == "__main__":
    sys.exit(_main())
