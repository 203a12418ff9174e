"""Three brokers as processes on loopback, without containers: each can be killed, and move to other ports."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from groupwright.testing import Listener, Security
from groupwright.testing._java.java import class_archive_path, find_java, resolve_jars
from groupwright.testing._kafka import broker_log, ports, settings
from groupwright.testing._kafka.kafka import Kafka
from groupwright.testing._kafka.local_kafka import DEFAULT_VERSION, VERSION_VARIABLE
from groupwright.testing._kafka.process import GuardedProcess
from groupwright.testing._kafka.proxy import Link
from groupwright.testing._kafka.storage import new_id

_STARTUP_SECONDS = 180.0
_STOP_SECONDS = 30.0
_REQUEST_SECONDS = 2.0


class LocalCluster(Kafka):
    """Three nodes, broker and controller each. `with` starts them; an instance belongs to one thread."""

    def __init__(
        self, *, security: Security | None = None, config: Mapping[str, settings.Setting] | None = None
    ) -> None:
        """Describe the cluster.

        Args:
            security: Opens listeners with TLS and SASL beside the plain one; that with both has links too.
            config: Settings of all brokers, which override the defaults.
        """
        super().__init__((1, 2, 3), security=security, proxied=True)
        self._config = dict(config or {})
        self._version = os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION
        self._client_ports: dict[int, int] = {}
        self._controllers: dict[int, int] = {}
        self._broker_ports: dict[int, int] = {}
        self._secure_links: dict[int, Link] = {}
        """Links to the listeners with TLS and SASL."""
        self._processes: dict[int, GuardedProcess] = {}
        self._directory = Path()

    def __enter__(self) -> Self:
        """Start all nodes."""
        self._cleanup.callback(self._ports.release)
        self._directory = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="cluster-")))
        try:
            self._start_first()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all nodes, and remove their files."""
        self.close()

    def close(self) -> None:
        """End all nodes, and remove their files."""
        self._admin = None
        for process in self._processes.values():
            process.kill()
        self._close_listeners()
        self._cleanup.close()

    # --- State

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes."""
        return ",".join(map(self.address, self.nodes))

    def address(self, node: int, listener: Listener | None = None) -> str:
        """Return the address of a node's listener, by default of the plain one."""
        if listener is None:
            return f"{ports.HOST}:{self._client_ports[node]}"
        if listener is Listener.SASL_SSL:
            return self._secure_links[node].address
        return f"{ports.HOST}:{self._require_secured()._ports[node][listener]}"

    def links(self, node: int) -> list[Link]:
        """Return the links to a node: of the proxied listener, and of that with TLS and SASL."""
        return [links[node] for links in (self._links, self._secure_links) if node in links]

    def running(self, node: int) -> bool:
        """Return whether a node's process is alive."""
        return self._processes[node].running

    def log(self, node: int | None = None) -> str:
        """Return the log of a node, by default of all."""
        nodes = self.nodes if node is None else [node]
        return "".join(broker_log.read(self._directory / f"{each}.log") for each in nodes)

    def _require_running(self) -> None:
        assert any(process.running for process in self._processes.values())

    # --- Faults

    def kill(self, node: int) -> None:
        """Kill a node (SIGKILL)."""
        self._processes[node].kill()

    def start(self, node: int) -> None:
        """Start a node that has ended; it has its data and its ports."""
        self._processes[node].start()

    def stop(self, node: int) -> None:
        """Shut a node down."""
        self._processes[node].stop(_STOP_SECONDS)

    def move(self, node: int) -> None:
        """Shut a node down, and start it at other ports for clients."""
        self.stop(node)
        self._client_ports[node] = self._ports.choose()
        for links in (self._links, self._secure_links):
            if (link := links.pop(node, None)) is not None:
                link.close()
        if self._secured is not None:
            self._secured._ports.pop(node)
        self._write(node)
        self.start(node)

    def heal(self) -> None:
        """Start the nodes that have ended, and wait until the cluster is whole."""
        for node in self.nodes:
            for link in self.links(node):
                link.restore()
            if not self.running(node):
                self.start(node)
        self._admin = None
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the brokers list each other, and all replicas are in sync."""

        def replicas_are_in_sync() -> bool:
            found = self.admin().list_topics(timeout=_REQUEST_SECONDS)
            parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
            return len(found.brokers) == len(self.nodes) and all(
                part.leader in self.nodes and len(part.isrs) == len(part.replicas) for part in parts
            )

        self._wait_for(replicas_are_in_sync, time.monotonic() + _STARTUP_SECONDS)

    # --- Start

    def _start_first(self) -> None:
        java = find_java()
        kafka = f"org.apache.kafka:kafka_2.13:{self._version}"
        jars = resolve_jars(kafka, "org.slf4j:slf4j-simple:1.7.36")
        class_path = self._directory / "class-path"
        class_path.write_text(f'-cp "{os.pathsep.join(map(str, jars))}"\n', encoding="utf-8")
        archive = class_archive_path(java, jars)
        command = [
            str(java.executable),
            *("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
            *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []),
            f"@{class_path}",
        ]
        for node in self.nodes:
            for chosen in (self._client_ports, self._controllers, self._broker_ports):
                chosen[node] = self._ports.choose()
        cluster_id = new_id()
        formatters = []
        for node in self.nodes:
            properties = str(self._write(node))
            options = ["--cluster-id", cluster_id, "--config", properties]
            options += self._secured.format_options if self._secured else []
            formatters.append(self._process(node, [*command, "kafka.tools.StorageTool", "format", *options]))
            formatters[-1].start()
            self._processes[node] = self._process(node, [*command, "kafka.Kafka", properties])
        for formatter in formatters:
            assert formatter.wait(_STARTUP_SECONDS) == 0, self.log_tail()
            formatter.kill()
        for process in self._processes.values():
            process.start()
        self.wait_until_ready()

    def _process(self, node: int, command: list[str]) -> GuardedProcess:
        process = GuardedProcess(
            command, log_path=self._directory / f"{node}.log", remove_if_orphaned=self._directory
        )
        self._cleanup.callback(process.kill)
        return process

    def _write(self, node: int) -> Path:
        hosts = dict.fromkeys(self.nodes, ports.HOST)
        voters = ",".join(f"{each}@{ports.HOST}:{port}" for each, port in self._controllers.items())
        bound = f"//{ports.HOST}:"
        client, broker = self._client_ports[node], self._broker_ports[node]
        overrides: dict[str, settings.Setting] = {
            "controller.quorum.voters": voters,
            "listeners": f"CLIENT:{bound}{client},BROKER:{bound}{broker},"
            f"CONTROLLER:{bound}{self._controllers[node]}",
            "advertised.listeners": f"CLIENT:{bound}{client},BROKER:{bound}{broker}",
            "log.dirs": str(self._directory / f"data-{node}"),
            "num.network.threads": 1,
            "num.io.threads": 2,
            "leader.imbalance.check.interval.seconds": 5,
            **self._config,
        }
        found = settings.cluster_node(node, hosts=hosts, port=client, overrides=overrides)
        listeners = [
            self._linked(node, each)
            for each in self._prepare_listeners(node, self._directory / "certificates")
        ]
        found = settings.with_listeners(found, listeners, bound_to=ports.HOST)
        if self._secured is not None:
            found |= self._secured.settings()
        path = self._directory / f"{node}.properties"
        path.write_text(settings.properties(found), encoding="utf-8")
        return path

    def _linked(self, node: int, listener: settings.AdditionalListener) -> settings.AdditionalListener:
        """Return the listener, that with TLS and SASL at the address of a link."""
        if listener.name != Listener.SASL_SSL.value:
            return listener
        assert self._proxy is not None
        if node not in self._secure_links:
            self._secure_links[node] = self._proxy.open(listener.port)
        return dataclasses.replace(listener, advertised_port=self._secure_links[node].port)
