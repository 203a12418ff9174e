"""What a cluster leaves with a container engine, and how it is found again and removed."""

import contextlib
import os
import socket
from collections.abc import Iterator

try:
    import docker
    import docker.errors
except ImportError as error:
    raise ImportError(
        "groupwright.testing.KafkaContainers needs its extra; install it with: pip install 'groupwright[containers]'"
    ) from error

from groupwright.testing.errors import ContainersUnavailableError

_CLUSTER, _OWNER, _HOST = "groupwright.cluster", "groupwright.owner", "groupwright.host"
_ANSWER_SECONDS = 60


def labels(cluster: str) -> dict[str, str]:
    """Return what marks the containers and networks of a cluster, and whose they are."""
    return {_CLUSTER: cluster, _OWNER: str(os.getpid()), _HOST: socket.gethostname()}


def require_image(image: str) -> None:
    """Have an image, from a registry if the engine does not have it yet.

    Raises:
        ContainersUnavailableError: No engine answers, or the image is not to be had.
    """
    with _engine() as engine:
        try:
            engine.images.get(image)
        except docker.errors.ImageNotFound:
            try:
                engine.images.pull(image)
            except (docker.errors.DockerException, OSError) as error:
                raise ContainersUnavailableError(
                    f"There is no image {image!r}, nor a registry to get it from: build one "
                    "(integration_tests/image/build), and name it in GROUPWRIGHT_KAFKA_IMAGE"
                ) from error


def remove(cluster: str) -> None:
    """Remove everything of a cluster, whatever its state.

    Raises:
        ContainersUnavailableError: No engine answers.
    """
    with _engine() as engine:
        _remove(engine, f"{_CLUSTER}={cluster}")


def remove_orphans() -> None:
    """Remove what processes of this machine have left that are no more: killed, they could not.

    Raises:
        ContainersUnavailableError: No engine answers.
    """
    with _engine() as engine:
        ours = {"label": f"{_HOST}={socket.gethostname()}"}
        found = [
            *engine.containers.list(all=True, filters=ours, ignore_removed=True),
            *engine.networks.list(filters=ours),
        ]
        for owner in {_labels_of(each).get(_OWNER, "") for each in found}:
            if owner.isdecimal() and not _is_alive(int(owner)):
                _remove(engine, f"{_OWNER}={owner}", f"{_HOST}={socket.gethostname()}")


@contextlib.contextmanager
def _engine() -> Iterator["docker.DockerClient"]:
    try:
        engine = docker.from_env(timeout=_ANSWER_SECONDS)
    except docker.errors.DockerException as error:
        raise ContainersUnavailableError(
            "No container engine answers: start one, or name it in DOCKER_HOST"
        ) from error
    try:
        yield engine
    finally:
        engine.close()


def _remove(engine: "docker.DockerClient", *with_labels: str) -> None:
    filters = {"label": list(with_labels)}
    for container in engine.containers.list(all=True, filters=filters, ignore_removed=True):
        # Another may be removing it too.
        with contextlib.suppress(docker.errors.NotFound, docker.errors.APIError):
            container.remove(force=True, v=True)
    for network in engine.networks.list(filters=filters):
        with contextlib.suppress(docker.errors.NotFound):
            network.remove()


def _labels_of(found: "docker.models.resource.Model") -> dict[str, str]:
    attributes = found.attrs
    return dict(attributes.get("Labels") or attributes.get("Config", {}).get("Labels") or {})


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
