"""A Kafka cluster in containers: several nodes, each of which a test may stop, kill, pause and start again."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.testing import ports, settings
from groupwright.testing.errors import KafkaContainersError
from groupwright.testing.readiness import QUIET

try:
    import docker.errors
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network
except ImportError as error:
    raise ImportError(
        "groupwright.testing.KafkaContainers needs its extra; install it with: pip install 'groupwright[containers]'"
    ) from error

IMAGE_VARIABLE = "GROUPWRIGHT_KAFKA_IMAGE"
"""The environment variable that names the image."""

DEFAULT_IMAGE = "apache/kafka:4.3.1"

_CLIENTS, _BROKERS, _CONTROLLERS = 9092, 19092, 29093
_ANSWER_SECONDS = 1.0
_STOP_SECONDS = 30
_TOPIC_SECONDS = 60.0


class KafkaContainers:
    """A KRaft cluster, each node of which is broker and controller in a container of its own.

    ```python
    with KafkaContainers() as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        kafka.kill(kafka.coordinator_of("billing"))
    ```

    Clients reach every node on a port of 127.0.0.1, which it keeps over stops and starts, and so its data. Containers
    and network are removed when the block ends, whatever happens in it. An instance belongs to one thread.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        image: str | None = None,
        config: Mapping[str, settings.Setting] | None = None,
        startup_timeout: float = 120.0,
        heap: str = "256m",
    ) -> None:
        """Describe the cluster; `with` or `start` starts it.

        Args:
            nodes: How many there are. Their ids are 1 to `nodes`.
            image: An image that is configured as `apache/kafka` is; by default what the environment variable
                GROUPWRIGHT_KAFKA_IMAGE names, else `apache/kafka:4.3.1`.
            config: Settings of all brokers, which win over the defaults.
            startup_timeout: Seconds until the cluster must serve clients and groups, the image's download apart.
            heap: Each JVM's largest heap, in the form of its `-Xmx`.

        Raises:
            ValueError: `nodes` is less than 1.
        """
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        self.nodes: Sequence[int] = range(1, nodes + 1)
        self.image = image or os.environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE
        self._config = dict(config or {})
        self._startup_timeout = startup_timeout
        self._heap = heap
        self._cluster_id = settings.new_cluster_id()
        self._ports: dict[int, int] = {}
        self._containers: dict[int, DockerContainer] = {}
        self._cleanup = contextlib.ExitStack()

    # --- What it tells

    @property
    def bootstrap_servers(self) -> str:
        """What a client's `bootstrap.servers` takes: all nodes.

        Raises:
            KafkaContainersError: The cluster has not been started.
        """
        self._require_started()
        return ",".join(f"{ports.HOST}:{port}" for port in self._ports.values())

    def running(self, node: int) -> bool:
        """Whether a node's process is alive; a paused one is."""
        container = self._container(node)
        container.reload()
        return container.status in {"running", "paused"}

    def log(self, node: int) -> str:
        """Return all that a node has logged."""
        return bytes(self._container(node).logs()).decode(errors="replace")

    def coordinator_of(self, group: str) -> int:
        """Return the node that coordinates a group: the leader of its partition of ``__consumer_offsets``.

        Raises:
            KafkaContainersError: No node leads that partition at the moment.
        """
        described = self.admin().describe_consumer_groups([group], request_timeout=_TOPIC_SECONDS)
        coordinator = described[group].result(_TOPIC_SECONDS).coordinator
        if coordinator is None or coordinator.id not in self._containers:
            raise KafkaContainersError(f"No node coordinates the group {group!r} now")
        return int(coordinator.id)

    # --- Its life

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
        """Start all nodes, and wait until each is there and groups are coordinated.

        Raises:
            KafkaContainersError: There is no container engine or no image, or the cluster was not ready in time;
                the message ends with what the nodes' logs say.
        """
        if self._containers:
            raise KafkaContainersError(
                "The cluster was started already; start a single node with start(node)"
            )
        try:
            self._launch()
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the containers and their network; may be called again."""
        self._containers = {}
        self._ports = {}
        self._cleanup.close()

    def stop(self, node: int) -> None:
        """Shut a node down in good order; its data and its port stay."""
        self._container(node).stop(timeout=_STOP_SECONDS)

    def kill(self, node: int) -> None:
        """End a node as a crash does (SIGKILL)."""
        self._container(node).kill()

    def start(self, node: int) -> None:
        """Start a node that was stopped or killed, and wait until the cluster has it again.

        Raises:
            KafkaContainersError: It is not there in time.
        """
        self._container(node).start()
        self.wait_until_ready()

    def restart(self, node: int) -> None:
        """Stop a node, and start it again."""
        self.stop(node)
        self.start(node)

    def pause(self, node: int) -> None:
        """Freeze a node: connections stay open, and nothing answers."""
        self._container(node).pause()

    def resume(self, node: int) -> None:
        """Let a paused node go on."""
        self._container(node).unpause()

    def wait_until_ready(self) -> None:
        """Wait until every node that runs counts itself among the brokers, and groups are coordinated.

        Raises:
            KafkaContainersError: That took more than `startup_timeout`.
        """
        alive = {node for node in self.nodes if self.running(node)}
        client = Consumer(
            {**QUIET, "bootstrap.servers": self.bootstrap_servers, "group.id": "groupwright.testing"}
        )

        def are_counted() -> bool:
            return alive <= set(client.list_topics(timeout=_ANSWER_SECONDS).brokers)

        def coordinates_groups() -> bool:
            client.committed([TopicPartition("groupwright.testing", 0)], timeout=_ANSWER_SECONDS)
            return True

        deadline = time.monotonic() + self._startup_timeout
        try:
            for condition in (are_counted, coordinates_groups):
                self._wait_for(condition, deadline)
        finally:
            client.close()

    # --- What tests ask of it

    def admin(self) -> AdminClient:
        """Return an admin client, the same one until the cluster is closed; it logs nothing."""
        self._require_started()
        return self._admin

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, settings.Setting] | None = None
    ) -> None:
        """Create a topic with a replica on each of up to three nodes, and wait until all partitions have leaders.

        Raises:
            KafkaException: The cluster refuses it; it exists already, say.
            KafkaContainersError: Its partitions have no leaders in time.
        """
        topic = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=min(3, len(self.nodes)),
            config=settings.texts(config or {}),
        )
        self.admin().create_topics([topic], request_timeout=_TOPIC_SECONDS)[name].result(_TOPIC_SECONDS)

        def is_led() -> bool:
            found = self.admin().list_topics(name, timeout=_ANSWER_SECONDS).topics[name].partitions
            return len(found) == partitions and all(
                each.leader in self._containers for each in found.values()
            )

        self._wait_for(is_led, time.monotonic() + _TOPIC_SECONDS)

    # --- How it starts

    @functools.cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({**QUIET, "bootstrap.servers": self.bootstrap_servers})

    def _launch(self) -> None:
        try:
            network = self._cleanup.enter_context(Network())
            for node in self.nodes:
                self._ports[node] = ports.free_port(besides=set(self._ports.values()))
            self._containers = {node: self._describe(node, network) for node in self.nodes}
            for container in self._containers.values():
                self._cleanup.callback(_remove, container)
            with ThreadPoolExecutor(len(self._containers)) as pool:
                list(pool.map(DockerContainer.start, self._containers.values()))
        except docker.errors.ImageNotFound as error:
            raise KafkaContainersError(
                f"There is no image {self.image!r}, and no registry to get it from: build one, and name it in "
                f"{IMAGE_VARIABLE}"
            ) from error
        except docker.errors.DockerException as error:
            raise KafkaContainersError(f"The container engine does not do as asked: {error}") from error

    def _describe(self, node: int, network: Network) -> DockerContainer:
        container = DockerContainer(
            self.image,
            hostname=_host(node),
            network=network,
            network_aliases=[_host(node)],
            # A node that is not there yet is asked for by name; no other server of names should be, which may hang.
            dns=[ports.HOST],
        )
        container.ports = {f"{_CLIENTS}/tcp": (ports.HOST, self._ports[node])}  # type: ignore[dict-item]
        for name, value in self._environment(node).items():
            container.with_env(name, value)
        return container

    def _environment(self, node: int) -> dict[str, str]:
        voters = ",".join(f"{voter}@{_host(voter)}:{_CONTROLLERS}" for voter in self.nodes)
        replicas = min(3, len(self.nodes))
        defaults: dict[str, settings.Setting] = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "BROKER",
            "listeners": f"CLIENT://:{_CLIENTS},BROKER://:{_BROKERS},CONTROLLER://:{_CONTROLLERS}",
            "advertised.listeners": f"CLIENT://{ports.HOST}:{self._ports[node]},BROKER://{_host(node)}:{_BROKERS}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "auto.create.topics.enable": False,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(2, replicas),
            "offsets.topic.num.partitions": 6,
            "transaction.state.log.num.partitions": 2,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        }
        stated = settings.texts({**defaults, **self._config})
        return {
            "CLUSTER_ID": self._cluster_id,
            "KAFKA_HEAP_OPTS": f"-Xmx{self._heap}",
            # A short life: a fast start counts for more than the last compiler tier and parallel collection.
            "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            **{_variable(name): value for name, value in stated.items()},
        }

    # --- Parts

    def _container(self, node: int) -> "docker.models.containers.Container":
        if node not in self._containers:
            raise KafkaContainersError(
                f"There is no node {node}; there are: {sorted(self._containers) or 'none yet'}"
            )
        return self._containers[node].get_wrapped_container()

    def _require_started(self) -> None:
        if not self._ports:
            raise KafkaContainersError("The cluster has not been started, or is closed")

    def _wait_for(self, condition: Callable[[], bool], deadline: float) -> None:
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):  # no answer yet
                if condition():
                    return
        what = condition.__name__.replace("_", " ")
        tails = "\n".join(f"--- node {node}\n{self.log(node)[-2000:]}" for node in self.nodes)
        raise KafkaContainersError(f"The cluster is not ready in time ({what}). Its logs say:\n{tails}")


def _host(node: int) -> str:
    return f"kafka-{node}"


def _variable(setting: str) -> str:
    """Return the environment variable that carries a broker setting."""
    return "KAFKA_" + setting.replace("-", "___").replace("_", "__").replace(".", "_").upper()


def _remove(container: DockerContainer) -> None:
    with contextlib.suppress(docker.errors.NotFound):
        container.stop()
