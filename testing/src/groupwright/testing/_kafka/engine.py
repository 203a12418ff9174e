"""Image and network of a cluster in containers, and the removal of clusters whose process is gone."""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Collection, Iterator
from pathlib import Path

try:
    import docker
    import docker.constants
    import docker.errors
    from docker.types import EndpointConfig, IPAMConfig, IPAMPool
    from testcontainers.core.network import Network
except ImportError as error:
    raise ImportError(
        "groupwright.testing.KafkaContainers needs an extra: pip install 'groupwright[containers]'"
    ) from error

from groupwright.testing.errors import ContainersUnavailableError

_CLUSTER_LABEL, _OWNER_LABEL, _HOST_LABEL = "groupwright.cluster", "groupwright.owner", "groupwright.host"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROCESS_NAMESPACE = Path("/proc/self/ns/pid")
_ENGINE_REQUEST_SECONDS = 60
"""Timeout of one request to the container engine."""
_NETWORK_TRIES = 10
_FIRST_HOST = 10  # after the gateway's address


def labels(cluster: str) -> dict[str, str]:
    """Return the labels of a cluster's containers and network: the cluster, and the process that owns it."""
    return {_CLUSTER_LABEL: cluster, _OWNER_LABEL: str(os.getpid()), _HOST_LABEL: _host()}


def require_image(image: str) -> None:
    """Pull an image, unless the engine has it.

    Raises:
        ContainersUnavailableError: No engine responds, or the image cannot be pulled.
    """
    with _engine() as engine:
        try:
            engine.images.get(image)
        except docker.errors.ImageNotFound:
            try:
                engine.images.pull(image)
            except (docker.errors.DockerException, OSError) as error:
                raise ContainersUnavailableError(
                    f"The engine does not have the image {image!r}, and cannot pull it: build an image "
                    "(integration_tests/image/build), and set GROUPWRIGHT_KAFKA_IMAGE to its name"
                ) from error


def create_network(cluster: str, nodes: Collection[int]) -> tuple[Network, dict[int, str]]:
    """Create a cluster's network, and return it with the addresses for its nodes.

    The nodes know each other by address, not by name. The engine takes many seconds to fail to resolve the
    name of a stopped node, and the other nodes elect no leader while they wait.

    Raises:
        DockerException: The engine rejects a request.
    """
    for _ in range(_NETWORK_TRIES):
        # Fixed addresses need a network with an explicit subnet; the engine chooses a free one.
        found = Network(docker_network_kw={"labels": labels(cluster)}).create()
        subnet = _subnet(found)
        found.remove()
        ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))])
        with contextlib.suppress(docker.errors.APIError):  # another network has taken the subnet since
            network = Network(docker_network_kw={"labels": labels(cluster), "ipam": ipam}).create()
            return network, {node: str(subnet[_FIRST_HOST + node]) for node in nodes}
    raise docker.errors.DockerException(f"no subnet stayed free in {_NETWORK_TRIES} tries")


def networking_config(network: Network, address: str) -> dict[str, EndpointConfig]:
    """Return the `networking_config` that gives a container this address on the network."""
    return {network.name: EndpointConfig(docker.constants.DEFAULT_DOCKER_API_VERSION, ipv4_address=address)}


def remove(cluster: str) -> None:
    """Remove the containers and the network of a cluster, in any state.

    Raises:
        ContainersUnavailableError: No engine responds.
    """
    with _engine() as engine:
        _remove(engine, f"{_CLUSTER_LABEL}={cluster}")


def remove_orphans() -> None:
    """Remove containers and networks whose owner, a process of this host, has ended.

    Clusters of an earlier boot and of another PID namespace remain: their owners' process ids mean nothing
    here.

    Raises:
        ContainersUnavailableError: No engine responds.
    """
    with _engine() as engine:
        host = f"{_HOST_LABEL}={_host()}"
        ours = {"label": host}
        found = [
            *engine.containers.list(all=True, filters=ours, ignore_removed=True),
            *engine.networks.list(filters=ours),
        ]
        for owner in {_labels_of(each).get(_OWNER_LABEL, "") for each in found}:
            if owner.isdecimal() and not _is_alive(int(owner)):
                _remove(engine, f"{_OWNER_LABEL}={owner}", host)


@contextlib.contextmanager
def _engine() -> Iterator["docker.DockerClient"]:
    try:
        engine = docker.from_env(timeout=_ENGINE_REQUEST_SECONDS)
    except docker.errors.DockerException as error:
        raise ContainersUnavailableError(
            "No container engine responds: start one, or set DOCKER_HOST to its address"
        ) from error
    try:
        yield engine
    finally:
        engine.close()


def _remove(engine: "docker.DockerClient", *with_labels: str) -> None:
    filters = {"label": list(with_labels)}
    for container in engine.containers.list(all=True, filters=filters, ignore_removed=True):
        # Another process may be removing it too.
        with contextlib.suppress(docker.errors.APIError):
            container.remove(force=True, v=True)
    for network in engine.networks.list(filters=filters):
        # It has active endpoints until another process has removed a container. The next start tries again.
        with contextlib.suppress(docker.errors.APIError):
            network.remove()


def _subnet(network: Network) -> ipaddress.IPv4Network:
    with _engine() as engine:
        found = engine.networks.get(network.id).attrs["IPAM"]["Config"]
    return next(
        subnet
        for subnet in (ipaddress.ip_network(each["Subnet"]) for each in found)
        if isinstance(subnet, ipaddress.IPv4Network)
    )


def _labels_of(found: "docker.models.resource.Model") -> dict[str, str]:
    attributes = found.attrs
    return dict(attributes.get("Labels") or attributes.get("Config", {}).get("Labels") or {})


def _host() -> str:
    """Return the host's name, and on Linux its boot and its PID namespace, in which process ids are unique.

    A container with the host's network has the host's name, and process ids of its own.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(_BOOT_ID.read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(_PROCESS_NAMESPACE.readlink()))
    return " ".join(parts)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
