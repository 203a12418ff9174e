"""A real Kubernetes API server on loopback, with etcd, and without nodes and controllers.

It validates, defaults, admits and stores objects as a cluster's does. Nothing runs: a Deployment creates no
pods.
"""

import json
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import yaml

from charts.live.prometheus import PATIENCE_SECONDS, end_process
from groupwright.testing._kafka.certificates import write_certificates
from groupwright.testing._kafka.ports import HOST, free_port
from integration_tests.harness.waiting import wait_until

Manifest = dict[str, Any]

_LIFETIME_SECONDS = 3600
"""After this time the servers end by themselves, if what started them was killed."""
_LOG_LINES = 20
_TOO_MANY_REQUESTS = 429
_TOKEN = "upgrade"  # noqa: S105 - of a server on loopback, which ends with the test
_ADMINISTRATOR = f"{_TOKEN},administrator,1,system:masters\n"
_SIGNER = "service-accounts"


@dataclass(frozen=True, slots=True)
class Response:
    """The API server's response: HTTP status, body, and warnings, of a deprecated version for instance."""

    status: int
    body: Manifest
    warnings: list[str]


class KubernetesApi:
    """Runs for as long as the block; its data, keys and logs are in one folder.

    Attributes:
        kubeconfig: The configuration of clients, as the administrator.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        """Write keys and configuration, and start nothing yet.

        Args:
            programs: The folder of ``etcd`` and ``kube-apiserver``.
            folder: An empty directory.
        """
        self._programs = programs
        self._folder = folder
        self._certificates = write_certificates(folder / "keys", HOST, [_SIGNER])
        self._tls = ssl.create_default_context(cafile=str(self._certificates.authority))
        self._processes = ExitStack()
        self._etcd = f"http://{HOST}:{free_port()}"
        self._port = free_port()
        self._resources: dict[str, list[Manifest]] = {}
        self.kubeconfig = folder / "kubeconfig.yaml"
        (folder / "tokens.csv").write_text(_ADMINISTRATOR)
        self.kubeconfig.write_text(yaml.safe_dump(self._client_configuration()))

    def __enter__(self) -> Self:
        """Start etcd and the API server, and wait until both are ready.

        Raises:
            RuntimeError: A server has ended; the message has the last lines of its log.
            TimeoutError: A server is not ready in time; the message has the last lines of its log.
        """
        with self._processes:
            self._start(
                "etcd",
                f"--data-dir={self._folder / 'etcd'}",
                f"--listen-client-urls={self._etcd}",
                f"--advertise-client-urls={self._etcd}",
                f"--listen-peer-urls=http://{HOST}:0",
                "--unsafe-no-fsync",  # the data is of use to one test
                "--log-level=warn",
                ready=f"{self._etcd}/health",
            )
            broker = self._certificates.broker
            signer_certificate, signer_key = self._certificates.of(_SIGNER)
            self._start(
                "kube-apiserver",
                f"--etcd-servers={self._etcd}",
                f"--bind-address={HOST}",
                f"--advertise-address={HOST}",
                f"--secure-port={self._port}",
                f"--tls-cert-file={broker}",
                f"--tls-private-key-file={broker}",
                f"--cert-dir={self._folder / 'keys'}",
                f"--token-auth-file={self._folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.0.0.0/24",
                f"--service-account-issuer=https://{HOST}",
                f"--service-account-key-file={signer_certificate}",
                f"--service-account-signing-key-file={signer_key}",
                ready=f"https://{HOST}:{self._port}/readyz",
            )
            self._processes = self._processes.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End both servers, the API server first."""
        self._processes.close()

    def log(self) -> str:
        """Return the last lines of each server's log."""
        return "".join(
            f"--- {path.name}\n{_last_lines(path)}\n" for path in sorted(self._folder.glob("*.log"))
        )

    def request(
        self, method: str, path: str, body: Manifest | None = None, content_type: str = "application/json"
    ) -> Response:
        """Send a request, and return the response, also if the server refuses it.

        As other clients do, repeat it while the server is too busy, for instance as it starts to serve a
        kind.

        Raises:
            TimeoutError: The server is too busy for a minute.
        """
        response = Response(_TOO_MANY_REQUESTS, {}, [])

        def done() -> bool:
            nonlocal response
            response = self._send(method, path, body, content_type)
            return response.status != _TOO_MANY_REQUESTS

        wait_until(done, f"{method} {path}")
        return response

    def create(self, manifest: Manifest, namespace: str = "", **options: str) -> Response:
        """Create an object; `options` are those of the API, such as ``dryRun``."""
        collection = self._collection(manifest["apiVersion"], self._resource(manifest), namespace)
        return self.request("POST", f"{collection}?{urlencode(options)}", manifest)

    def apply_dry(self, manifest: Manifest) -> Response:
        """Send an object as ``kubectl apply --server-side --dry-run=server --validate=strict`` does."""
        options = {
            "dryRun": "All",
            "fieldManager": "test",
            "fieldValidation": "Strict",
            "force": "true",
        }
        path = f"{self._path(manifest)}?{urlencode(options)}"
        return self.request("PATCH", path, manifest, "application/apply-patch+yaml")

    def set_status(self, manifest: Manifest, status: Manifest) -> Response:
        """Merge fields into an object's status, in the place of the controller that does not run."""
        path = f"{self._path(manifest)}/status"
        return self.request("PATCH", path, {"status": status}, "application/merge-patch+json")

    def get(self, manifest: Manifest) -> Manifest | None:
        """Return the stored object of a manifest's kind, namespace and name, or None if there is none.

        Raises:
            ValueError: The server refuses the request.
        """
        response = self.request("GET", self._path(manifest))
        if response.status not in {200, 404}:
            raise ValueError(f"{self._path(manifest)}: {response.body}")
        return response.body if response.status == 200 else None

    def list_all(self, namespace: str) -> Iterator[Manifest]:
        """Yield all objects of a namespace, of every kind that the server knows.

        Raises:
            ValueError: The server refuses a request.
        """
        groups = self.request("GET", "/apis").body["groups"]
        for version in ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]:
            for resource in self._discover(version):
                if resource["namespaced"] and "list" in resource["verbs"]:
                    listed = self.request("GET", self._collection(version, resource, namespace))
                    if listed.status != 200:
                        raise ValueError(f"{resource['name']} of {version}: {listed.body}")
                    for each in listed.body["items"]:
                        yield {"apiVersion": version, "kind": resource["kind"], **each}

    def _send(self, method: str, path: str, body: Manifest | None, content_type: str) -> Response:
        request = urllib.request.Request(
            f"https://{HOST}:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {_TOKEN}", "Content-Type": content_type},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=self._tls) as response:  # noqa: S310
                warnings = response.headers.get_all("Warning", [])
                return Response(response.status, json.load(response), warnings)
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, json.load(error), [])

    def _path(self, manifest: Manifest) -> str:
        metadata = manifest["metadata"]
        resource = self._resource(manifest)
        collection = self._collection(manifest["apiVersion"], resource, metadata.get("namespace", ""))
        return f"{collection}/{metadata['name']}"

    def _resource(self, manifest: Manifest) -> Manifest:
        return next(
            each for each in self._discover(manifest["apiVersion"]) if each["kind"] == manifest["kind"]
        )

    def _collection(self, version: str, resource: Manifest, namespace: str) -> str:
        inside = f"namespaces/{namespace}/" if resource["namespaced"] else ""
        return f"{_root(version)}/{inside}{resource['name']}"

    def _discover(self, version: str) -> list[Manifest]:
        """Return the kinds of an API version, without subresources such as ``deployments/status``."""
        if version not in self._resources:
            found = self.request("GET", _root(version)).body["resources"]
            self._resources[version] = [each for each in found if "/" not in each["name"]]
        return self._resources[version]

    def _client_configuration(self) -> Mapping[str, Any]:
        cluster = {
            "server": f"https://{HOST}:{self._port}",
            "certificate-authority": str(self._certificates.authority),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "administrator", "user": {"token": _TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "administrator"}}],
            "current-context": "test",
        }

    def _start(self, program: str, *arguments: str, ready: str) -> None:
        path = self._folder / f"{program}.log"
        limit = [timeout, str(_LIFETIME_SECONDS)] if (timeout := shutil.which("timeout")) else []
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*limit, self._programs / program, *arguments], cwd=self._folder, stdout=log, stderr=log
            )
        self._processes.callback(end_process, process)

        def answers() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"{program} has ended:\n{_last_lines(path)}")
            headers = {"Authorization": f"Bearer {_TOKEN}"}
            request = urllib.request.Request(ready, headers=headers)  # noqa: S310 - the scheme is fixed
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=self._tls):  # noqa: S310
                    return True
            except OSError:
                return False

        try:
            wait_until(answers, f"{program} is ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{_last_lines(path)}") from None


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _last_lines(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_LOG_LINES:])
