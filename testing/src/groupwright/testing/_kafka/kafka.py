"""Interface and common parts of `LocalKafka` and `KafkaContainers`."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.testing._kafka import broker_log, ports, settings
from groupwright.testing._kafka.proxy import Link, Proxy
from groupwright.testing._kafka.readiness import CLIENT_DEFAULTS, ClientSetting
from groupwright.testing.errors import KafkaNotReadyError, SecurityError

if TYPE_CHECKING:
    from groupwright.testing._kafka.certificates import Certificates
    from groupwright.testing._kafka.security import Listener, SecuredListeners, Security

_METADATA_SECONDS = 1.0
"""Timeout of one metadata request."""
_TOPIC_SECONDS = 60.0
"""Timeout of a topic's creation, and of the wait for its leaders and replicas."""
_FUTURE_SECONDS = _TOPIC_SECONDS + 5.0
"""Timeout of a request's future: later, since the future's own timeout error has no text."""


class Kafka(ABC):
    """A Kafka for tests: `LocalKafka` or `KafkaContainers`. A test that stops no node runs on either."""

    nodes: Sequence[int]
    """The nodes' ids."""

    def __init__(self, nodes: Sequence[int], *, security: "Security | None", proxied: bool) -> None:
        """Describe the listeners besides the plain one.

        Args:
            nodes: The nodes' ids.
            security: Adds listeners with TLS and SASL.
            proxied: Adds a listener whose clients connect through a proxy.
        """
        self.nodes = nodes
        self._proxied = proxied
        self._proxy: Proxy | None = None
        self._links: dict[int, Link] = {}
        self._secured = _secured_listeners(security)
        self._admin: AdminClient | None = None
        self._ports = ports.ReservedPorts()
        self._cleanup = contextlib.ExitStack()
        """Releases ports, processes and files on close, on garbage collection, or at interpreter exit."""

    # --- Where clients connect

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, for a client's `bootstrap.servers`.

        Raises:
            GroupwrightError: Kafka has not been started.
        """

    @property
    def proxied_servers(self) -> str:
        """Value of `bootstrap.servers` for clients of the proxied listener, one address for each link.

        Raises:
            KafkaNotReadyError: There is no proxy, or Kafka has not been started.
        """
        return ",".join(self.link(node).address for node in self.nodes)

    def link(self, node: int | None = None) -> Link:
        """Return the proxy's link to a node, by default the first; it can be cut, delayed and throttled.

        Raises:
            KafkaNotReadyError: There is no proxy, or Kafka has not been started.
        """
        if not self._proxied:
            raise KafkaNotReadyError("There is no proxy: create this Kafka with proxied=True")
        node = self.nodes[0] if node is None else node
        if node not in self._links:
            raise KafkaNotReadyError(
                f"No link to node {node}; nodes with links: {sorted(self._links) or 'none yet'}"
            )
        return self._links[node]

    def secure_config(
        self, listener: "Listener", *, mechanism: str | None = None, user: str | None = None
    ) -> dict[str, str]:
        """Return the librdkafka configuration of a secured listener's clients, with `bootstrap.servers`.

        Args:
            listener: The listener.
            mechanism: PLAIN (the default), SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, for a listener with
                SASL. OAUTHBEARER accepts any unsecured token, which the client's `oauth_cb` returns.
            user: The user whose password or certificate the client sends; by default the first. To
                `Listener.SSL` the client sends no certificate unless a user is named.

        Raises:
            SecurityError: There are no secured listeners, no such user, or Kafka has not been started.
        """
        return self._require_secured().client_config(listener, mechanism, user)

    @property
    def certificates(self) -> "Certificates":
        """Paths of the certificates of the authority, the brokers and the users.

        Raises:
            SecurityError: There are no secured listeners, or Kafka has not been started.
        """
        return self._require_secured().certificates

    # --- Clients, topics and logs

    def admin(self) -> AdminClient:
        """Return an admin client, the same one until Kafka is closed or stopped; it logs nothing.

        Raises:
            GroupwrightError: Kafka has not been started.
        """
        # Kept, since the requests of an admin client fail when it is garbage-collected.
        if self._admin is None:
            self._admin = AdminClient(self._client_settings(self.bootstrap_servers))
        return self._admin

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, settings.Setting] | None = None
    ) -> None:
        """Create a topic with up to three replicas, and wait for its leaders and in-sync replicas.

        Raises:
            GroupwrightError: Kafka is not running.
            KafkaException: The request was rejected, for example because the topic exists.
            KafkaNotReadyError: A partition has no leader, or a replica is not in sync, after 60 s.
        """
        self._require_running()
        topic = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=min(3, len(self.nodes)),
            config=settings.texts(config or {}),
        )
        self.admin().create_topics([topic], request_timeout=_TOPIC_SECONDS)[name].result(_FUTURE_SECONDS)

        def replicas_are_in_sync() -> bool:
            found = self.admin().list_topics(name, timeout=_METADATA_SECONDS).topics[name].partitions
            return len(found) == partitions and all(
                each.leader in self.nodes and len(each.isrs) == len(each.replicas) for each in found.values()
            )

        self._wait_for(replicas_are_in_sync, time.monotonic() + _TOPIC_SECONDS)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete a partition's records before an offset, as retention does.

        Args:
            topic: The topic.
            before: The new start of the log; `confluent_kafka.OFFSET_END` deletes all records.
            partition: The partition.

        Raises:
            GroupwrightError: Kafka is not running.
            KafkaException: The request was rejected, for example because the offset is beyond the log's end.
        """
        self._require_running()
        delete_records(self.admin(), TopicPartition(topic, partition, before))

    def coordinator_of(self, group: str) -> int:
        """Return the node that coordinates a group: the leader of its partition of ``__consumer_offsets``.

        Raises:
            KafkaNotReadyError: The partition has no leader, or no node responds.
        """
        # Computed from metadata: librdkafka's admin client would keep asking the coordinator that it knows,
        # even a dead one, and destroying the client meanwhile may crash the process.
        try:
            topics = self.admin().list_topics(OFFSETS_TOPIC, timeout=_METADATA_SECONDS).topics
        except KafkaException as error:
            raise KafkaNotReadyError(
                f"No node responds, so the coordinator of the group {group!r} is unknown: {error!r}"
            ) from error
        partitions = topics[OFFSETS_TOPIC].partitions
        if not partitions:
            raise KafkaNotReadyError(
                f"The topic {OFFSETS_TOPIC} has no partitions yet: {topics[OFFSETS_TOPIC].error}"
            )
        partition = partition_for(group, len(partitions))
        leader = partitions[partition].leader
        if leader not in self.nodes:
            raise KafkaNotReadyError(
                f"The group {group!r} has no coordinator now: {OFFSETS_TOPIC} [{partition}] has no leader"
            )
        return int(leader)

    @abstractmethod
    def log(self, node: int | None = None) -> str:
        """Return the log of a node, by default of all nodes, one after the other.

        Raises:
            GroupwrightError: Kafka has not been started, or is closed.
        """

    def log_tail(self, lines: int = 50) -> str:
        """Return the last lines that each node has logged.

        Raises:
            GroupwrightError: Kafka has not been started, or is closed.
        """
        tails = {node: broker_log.tail(self.log(node), lines) for node in self.nodes}
        if len(tails) == 1:
            return next(iter(tails.values()))
        return "\n".join(f"--- node {node}\n{tail}" for node, tail in tails.items())

    # --- For subclasses

    @abstractmethod
    def _require_running(self) -> None:
        """Raise if no node is running.

        Raises:
            GroupwrightError: Kafka is stopped, or is closed, or has not been started.
        """

    def _client_settings(self, bootstrap_servers: str) -> dict[str, ClientSetting]:
        """Return the configuration of this package's own clients."""
        return {**CLIENT_DEFAULTS, "bootstrap.servers": bootstrap_servers}

    def _prepare_listeners(self, node: int, directory: Path) -> list[settings.AdditionalListener]:
        """Return a node's listeners besides the plain one; after a restart they have the same ports, if free.

        Args:
            node: The node.
            directory: Folder for the certificates, which are created if they do not exist.
        """
        listeners: list[settings.AdditionalListener] = []
        if self._secured is not None:
            self._secured.prepare(directory)
            self._secured.choose_ports(node, self._ports)
            listeners += self._secured.listeners(node)
        if self._proxied:
            self._proxy = self._proxy or Proxy()
            if node not in self._links:
                self._links[node] = self._proxy.open(self._ports.choose())
            link = self._links[node]
            listeners.append(
                settings.AdditionalListener("PROXIED", link.target_port, advertised_port=link.port)
            )
        return listeners

    def _close_listeners(self) -> None:
        self._links = {}
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None

    def _require_secured(self) -> "SecuredListeners":
        if self._secured is None:
            raise SecurityError("There are no secured listeners: create this Kafka with security=Security()")
        return self._secured

    def _wait_for(self, condition: Callable[[], bool], deadline: float) -> None:
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):  # no response yet
                if condition():
                    return
        what = condition.__name__.replace("_", " ")  # such as "replicas are in sync"
        raise KafkaNotReadyError(
            f"Kafka was not ready in time: unmet condition: {what}. Its log ends:\n{self.log_tail()}"
        )


def delete_records(admin: AdminClient, start: TopicPartition) -> None:
    """Delete the records before an offset with an admin client.

    librdkafka takes the leader from its cached metadata. An entry from the topic's creation may have none
    yet, and fails the request; a response that lists the partition replaces it.
    """
    deadline = time.monotonic() + _TOPIC_SECONDS
    while True:
        (deleted,) = admin.delete_records([start], request_timeout=_TOPIC_SECONDS).values()
        try:
            deleted.result(_FUTURE_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NOENT or time.monotonic() > deadline:  # noqa: SLF001 - its name
                raise
            found = admin.list_topics(start.topic, timeout=_TOPIC_SECONDS).topics[start.topic]
            if start.partition not in found.partitions:
                raise
        else:
            return


def _secured_listeners(security: "Security | None") -> "SecuredListeners | None":
    if security is None:
        return None
    from groupwright.testing._kafka.security import SecuredListeners  # a slow import that few need

    return SecuredListeners(security)
