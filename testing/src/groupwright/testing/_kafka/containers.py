"""A Kafka cluster in containers: a test may stop, kill, pause and restart each node."""

import contextlib
import os
import tempfile
import time
import uuid
import weakref
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from groupwright.testing._kafka import broker_log, engine, ports, settings
from groupwright.testing._kafka.kafka import Kafka
from groupwright.testing._kafka.storage import new_id
from groupwright.testing.errors import KafkaContainersError, KafkaNotReadyError

try:
    import docker.errors
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network
except ImportError as error:
    raise ImportError(
        "groupwright.testing.KafkaContainers needs an extra: pip install 'groupwright[containers]'"
    ) from error

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import PartitionMetadata

    from groupwright.testing._kafka.security import SecuredListeners, Security

IMAGE_VARIABLE = "GROUPWRIGHT_KAFKA_IMAGE"
"""The environment variable that names the image."""

DEFAULT_IMAGE = "apache/kafka:4.4.0"

_CERTIFICATES = Path("/etc/kafka/secrets")
_DISK = "/mnt/data"
_PROBE = "groupwright.testing"
"""Group id and topic of readiness checks; neither need exist."""
_REQUEST_SECONDS = 1.0
"""Timeout of one request of the readiness checks, which repeat it."""
_STOP_SECONDS = 30
"""Time for a clean shutdown of a node, after which the engine kills it."""
_FREEZE_SECONDS = 30.0
"""Time in which a node is suspended: on a busy machine, the engine may fail to stop all of its threads."""
_TAIL_LINES = 50


class KafkaContainers(Kafka):
    """A KRaft cluster, each node of which is broker and controller in a container of its own.

    ```python
    with KafkaContainers() as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        kafka.kill(kafka.coordinator_of("billing"))
    ```

    Clients reach each node on a port of 127.0.0.1. A node keeps its port and its data when it is stopped and
    started. Containers and network are removed when the block ends, or at the latest when the interpreter
    exits. If the process is killed, the next cluster on this machine removes them; on Linux, the next one of
    the same boot and PID namespace. An instance belongs to one thread.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        image: str | None = None,
        security: "Security | None" = None,
        proxied: bool = False,
        config: Mapping[str, settings.Setting] | None = None,
        disk: str | None = None,
        startup_timeout: float = 180.0,
        heap: str = "256m",
    ) -> None:
        """Describe the cluster; `with` or `start_all` starts it.

        Args:
            nodes: Number of nodes. Their ids are 1 to `nodes`.
            image: An image that is configured as `apache/kafka` is; by default what the environment variable
                GROUPWRIGHT_KAFKA_IMAGE names, else `apache/kafka:4.4.0`.
            security: Opens listeners with TLS and SASL beside the plain one; `secure_config` returns their
                clients' configuration.
            proxied: Opens a listener whose clients connect through a proxy: `proxied_servers` are its
                addresses, and `link` controls the connections to a node.
            config: Settings of all brokers, which override the defaults (`settings.cluster_node` lists them).
            disk: The size of each node's data directory, as in ``256m``. With a size, the directory is in
                memory and is lost when the node stops; `fill_disk` fills it.
            startup_timeout: Time in seconds for the cluster to become ready, without the image's download.
            heap: Maximum heap of each JVM, as in `-Xmx`.

        Raises:
            ValueError: `nodes` is less than 1.
        """
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        super().__init__(range(1, nodes + 1), security=security, proxied=proxied)
        self.image = image or os.environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE
        self._config = dict(config or {})
        self._disk = disk
        self._startup_timeout = startup_timeout
        self._heap = heap
        self._client_ports: dict[int, int] = {}
        self._containers: dict[int, DockerContainer] = {}
        weakref.finalize(self, _close_for, os.getpid(), self._cleanup)

    # --- State

    @property
    def bootstrap_servers(self) -> str:
        """Value of a client's `bootstrap.servers`: all nodes.

        Raises:
            KafkaContainersError: The cluster has not been started.
        """
        return ",".join(map(self.address, self.nodes))

    def address(self, node: int) -> str:
        """Return the address of a node for clients, ``host:port``.

        Raises:
            KafkaContainersError: There is no such node, or the cluster has not been started.
        """
        if not self._client_ports:
            raise KafkaContainersError("The cluster has not been started, or is closed")
        self._container(node)
        return f"{ports.HOST}:{self._client_ports[node]}"

    def running(self, node: int) -> bool:
        """Return whether a node's process is alive, even if paused."""
        container = self._container(node)
        container.reload()
        return container.status in {"running", "paused"}

    def _require_running(self) -> None:
        if not any(self.running(node) for node in self._containers):
            raise KafkaContainersError("No node of the cluster is running: start one first")

    def log(self, node: int | None = None) -> str:
        """Return all that a node has logged, by default all nodes, one after the other.

        Raises:
            KafkaContainersError: There is no such node, or the cluster has not been started.
        """
        if node is None:
            return "".join(map(self.log, self.nodes))
        return bytes(self._container(node).logs()).decode(errors="replace")

    # --- Start and stop

    def __enter__(self) -> Self:
        """Start the cluster."""
        self.start_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the containers and their network."""
        self.close()

    def start_all(self) -> None:
        """Start all nodes that are not running, and wait until the cluster is ready (`wait_until_ready`).

        Raises:
            ContainersUnavailableError: There is no container engine, or no image.
            KafkaContainersError: The engine rejected a request.
            KafkaNotReadyError: The cluster was not ready in time; the message ends with the nodes' logs.
        """
        if self._containers:
            self._call_each([node for node in self.nodes if not self.running(node)], "start")
            self.wait_until_ready()
            return
        try:
            self._launch()
            self.wait_until_ready()
            if self._secured is not None:
                self._add_users(self._secured)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the containers and their network; may be called again."""
        self._containers = {}
        self._client_ports = {}
        self._admin = None
        self._cleanup.close()
        self._close_listeners()

    def stop(self, node: int) -> None:
        """Shut a node down cleanly; it keeps its data and its port."""
        self._container(node).stop(timeout=_STOP_SECONDS)

    def kill(self, node: int) -> None:
        """Kill a node (SIGKILL)."""
        self._container(node).kill()

    def kill_all(self) -> None:
        """Kill all running nodes at once, as a power failure does."""
        self._call_each([node for node in self.nodes if self.running(node)], "kill")

    def start(self, node: int) -> None:
        """Start a node that was stopped or killed, and wait until the cluster is ready.

        Raises:
            KafkaNotReadyError: The cluster is not ready within `startup_timeout`.
        """
        self._container(node).start()
        self.wait_until_ready()

    def restart(self, node: int) -> None:
        """Stop a node, and start it again."""
        self.stop(node)
        self.start(node)

    def pause(self, node: int) -> None:
        """Suspend a node: connections stay open, but it does not respond."""
        deadline = time.monotonic() + _FREEZE_SECONDS
        while True:
            try:
                self._container(node).pause()
            except docker.errors.APIError as error:
                if "unable to freeze" not in str(error) or time.monotonic() >= deadline:
                    raise
            else:
                break

    def resume(self, node: int) -> None:
        """Resume a paused node."""
        self._container(node).unpause()

    def heal(self) -> None:
        """End all faults: restore links, resume paused nodes, and start nodes that have ended.

        Raises:
            KafkaNotReadyError: The cluster is not ready in time.
        """
        for link in self._links.values():
            link.restore()
        for node in self.nodes:
            container = self._container(node)
            container.reload()
            if container.status == "paused":
                container.unpause()
        self.start_all()

    def fill_disk(self, node: int) -> None:
        """Fill the disk of a node's data directory.

        Raises:
            KafkaContainersError: The cluster was created without `disk`.
        """
        if self._disk is None:
            raise KafkaContainersError(
                'The data directories have no size limit: create the cluster with one, as in disk="256m"'
            )
        self._container(node).exec_run(["dd", "if=/dev/zero", f"of={_DISK}/ballast", "bs=64k"])

    def wait_until_ready(self) -> None:
        """Wait until all running nodes list each other, groups are coordinated, and replicas are in sync.

        Raises:
            KafkaNotReadyError: The wait took longer than `startup_timeout`, or a node exited meanwhile.
        """
        alive = {node for node in self.nodes if self.running(node)}
        # Each node is asked, since the others list a killed node until its session expires.
        clients = [AdminClient(self._client_settings(self.address(node))) for node in alive]

        def nodes_list_each_other() -> bool:
            for node in alive:
                if not self.running(node):
                    tail = broker_log.tail(self.log(node), _TAIL_LINES)
                    raise KafkaNotReadyError(f"Node {node} exited unexpectedly. Its log ends:\n{tail}")
            return all(alive <= set(each.list_topics(timeout=_REQUEST_SECONDS).brokers) for each in clients)

        def groups_are_coordinated() -> bool:
            member = Consumer({**self._client_settings(self.bootstrap_servers), "group.id": _PROBE})
            try:
                member.committed([TopicPartition(_PROBE, 0)], timeout=_REQUEST_SECONDS)
            finally:
                member.close()
            return True

        def replicas_are_in_sync() -> bool:
            found = self.admin().list_topics(timeout=_REQUEST_SECONDS).topics.values()
            return all(_is_in_sync(each, alive) for topic in found for each in topic.partitions.values())

        deadline = time.monotonic() + self._startup_timeout
        for condition in (nodes_list_each_other, groups_are_coordinated, replicas_are_in_sync):
            self._wait_for(condition, deadline)

    # --- Start

    def _launch(self) -> None:
        # No Ryuk, testcontainers' container that removes others: ours are removed by label, even after an
        # interrupted start.
        testcontainers_config.ryuk_disabled = True
        engine.require_image(self.image)
        engine.remove_orphans()
        cluster = uuid.uuid4().hex
        self._cleanup.callback(self._ports.release)
        self._cleanup.callback(engine.remove, cluster)
        directory = Path(
            self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="groupwright-kafka-"))
        )
        try:
            network, hosts = engine.create_network(cluster, self.nodes)
            self._containers = self._describe(cluster, network, hosts, directory)
            with ThreadPoolExecutor(len(self._containers)) as pool:
                list(pool.map(DockerContainer.start, self._containers.values()))
        except docker.errors.DockerException as error:
            raise KafkaContainersError(f"The container engine rejected a request: {error}") from error

    def _describe(
        self, cluster: str, network: Network, hosts: Mapping[int, str], directory: Path
    ) -> dict[int, DockerContainer]:
        cluster_id = new_id()
        containers = {}
        for node, host in hosts.items():
            port = self._client_ports[node] = self._ports.choose()
            containers[node] = container = DockerContainer(
                self.image,
                labels=engine.labels(cluster),
                network=network,
                networking_config=engine.networking_config(network, host),
            )
            listeners = self._prepare_listeners(node, directory)
            published = {settings.CLIENTS: port, **{each.port: each.port for each in listeners}}
            container.ports = {f"{inside}/tcp": (ports.HOST, at) for inside, at in published.items()}  # type: ignore[misc]
            node_settings = settings.cluster_node(node, hosts=hosts, port=port, overrides=self._config)
            node_settings = settings.with_listeners(node_settings, listeners)
            if self._secured is not None:
                node_settings |= self._secured.settings(_CERTIFICATES)
                for path in (self.certificates.broker, self.certificates.authority):
                    container.with_copy_into_container(path, str(_CERTIFICATES / path.name))
            if self._disk is not None:
                node_settings["log.dirs"] = f"{_DISK}/logs"
                container.tmpfs[_DISK] = f"size={self._disk},mode=1777"
            for name, value in {**self._jvm(cluster_id), **settings.environment(node_settings)}.items():
                container.with_env(name, value)
        return containers

    def _add_users(self, secured: "SecuredListeners") -> None:
        secured.add_scram_users(self.admin(), self._startup_timeout)

        def users_are_known() -> bool:
            secured.check_scram_users(_REQUEST_SECONDS)  # raises until they are known
            return True

        self._wait_for(users_are_known, time.monotonic() + self._startup_timeout)

    def _jvm(self, cluster_id: str) -> dict[str, str]:
        return {
            "CLUSTER_ID": cluster_id,
            "KAFKA_HEAP_OPTS": f"-Xmx{self._heap}",
            # A test's JVM is short-lived: without C2 and parallel garbage collection it starts faster.
            "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    # --- Helpers

    def _container(self, node: int) -> "docker.models.containers.Container":
        if node not in self._containers:
            raise KafkaContainersError(
                f"There is no node {node}; there are: {sorted(self._containers) or 'none yet'}"
            )
        return self._containers[node].get_wrapped_container()

    def _call_each(self, nodes: list[int], method: str) -> None:
        """Call a method of each of these nodes' containers, concurrently."""
        with ThreadPoolExecutor(len(nodes) or 1) as pool:
            list(pool.map(lambda node: getattr(self._container(node), method)(), nodes))


def _is_in_sync(partition: "PartitionMetadata", alive: Collection[int]) -> bool:
    """Return whether the partition has a leader and all its replicas on running nodes are in sync."""
    return partition.leader in alive and set(partition.replicas) & set(alive) <= set(partition.isrs)


def _close_for(owner: int, cleanup: contextlib.ExitStack) -> None:
    """Run the cleanup, except in a forked child, which has a copy of the objects and owns no container."""
    if os.getpid() == owner:
        cleanup.close()
