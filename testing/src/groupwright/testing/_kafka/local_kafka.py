"""Kafka broker as a child process of a test or a demo."""

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from groupwright.testing._java.java import (
    JavaRuntime,
    OnDownload,
    class_archive_path,
    find_java,
    resolve_jars,
)
from groupwright.testing._kafka import broker_log, ports, settings
from groupwright.testing._kafka.kafka import Kafka
from groupwright.testing._kafka.process import GuardedProcess
from groupwright.testing._kafka.readiness import ClientSetting, becomes_ready
from groupwright.testing._kafka.storage import NodeStorage, new_id
from groupwright.testing.errors import LocalKafkaError

if TYPE_CHECKING:
    from groupwright.testing._kafka.security import Security

DEFAULT_VERSION = "4.4.0"
VERSION_VARIABLE = "GROUPWRIGHT_KAFKA_VERSION"

# Kafka logs through SLF4J 1.7; its simple backend writes to standard error, as the JVM itself does.
_LOG_BACKEND = "org.slf4j:slf4j-simple:1.7.36"
_LOG_OPTIONS = {
    "showDateTime": "true",
    "dateTimeFormat": "yyyy-MM-dd HH:mm:ss,SSS",
    "showShortLogName": "true",
    # Thousands of lines that repeat each setting at each start.
    "log.kafka.server.KafkaConfig": "warn",
    "log.org.apache.kafka.common.config": "warn",
}
# A test's JVM is short-lived: without C2 and parallel garbage collection it starts faster.
_JVM_OPTIONS = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")

_START_ATTEMPTS = 3

_VERSION = re.compile(r"(\d+)\.(\d+)\..+")
_OLDEST_VERSION = (3, 9)
_HIGHEST_PORT = 65_535


class LocalKafka(Kafka):
    """One Kafka broker on 127.0.0.1: a KRaft node that is a child process, not a container.

    ```python
    with LocalKafka(config={"num.partitions": 3}) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    ```

    The broker ends with the `with` block, also after an exception or Ctrl-C, and at the latest when the
    interpreter exits; its temporary directory is removed. On POSIX systems this holds even if this process is
    killed. An instance belongs to one thread.
    """

    _stop_seconds = 15.0

    def __init__(
        self,
        *,
        version: str | None = None,
        security: "Security | None" = None,
        proxied: bool = False,
        config: Mapping[str, settings.Setting] | None = None,
        client_config: Mapping[str, ClientSetting] | None = None,
        port: int | None = None,
        data_dir: str | Path | None = None,
        startup_timeout: float = 180.0,
        heap: str = "256m",
        java: JavaRuntime | None = None,
        on_download: OnDownload | None = None,
    ) -> None:
        """Describe the broker; `with` or `start` starts it.

        Args:
            version: The version of Kafka, 3.9 or later; by default that of the environment variable
                `GROUPWRIGHT_KAFKA_VERSION`, else 4.4.0.
            security: Opens listeners with TLS and SASL beside the plain one; `secure_config` returns their
                clients' configuration.
            proxied: Opens a listener whose clients connect through a proxy: `proxied_servers` is its address,
                and `link` controls the connections.
            config: Broker settings, which override the defaults (`settings.single_node` lists them).
            client_config: Additional librdkafka settings of this package's own clients, if `config` requires
                them (SASL, TLS).
            port: Port for clients; None or 0 chooses a free port.
            data_dir: Directory for the data and the log, which is kept; an earlier broker's data is reused.
                By default a temporary directory, which is removed.
            startup_timeout: Time in seconds for the broker to become ready, without downloads.
            heap: Maximum heap of the JVM, as in `-Xmx`.
            java: The Java runtime; by default the result of `find_java`.
            on_download: Called with the name of each file before it is downloaded.

        Raises:
            LocalKafkaError: The version, the port or the heap is impossible.
        """
        super().__init__([settings.NODE_ID], security=security, proxied=proxied)
        self.version = version or os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION
        _check_arguments(self.version, port, heap)
        self._config = dict(config or {})
        self._client_config = dict(client_config or {})
        self._port = port or None
        self._controller_port: int | None = None
        self._data_dir = Path(data_dir).absolute() if data_dir else None
        self._startup_timeout = startup_timeout
        self._heap = heap
        self._java = java
        self._on_download = on_download
        self._directory: Path | None = None
        self._process: GuardedProcess | None = None
        self._cluster_id: str | None = None
        self._owner = os.getpid()
        weakref.finalize(self, _close_for, self._owner, self._cleanup)

    # --- State

    @property
    def bootstrap_servers(self) -> str:
        """The address for a client's `bootstrap.servers`.

        Raises:
            LocalKafkaError: The broker has not been started, and has no port yet.
        """
        if self._port is None:
            raise LocalKafkaError("The broker has no address yet: start it first")
        return f"{ports.HOST}:{self._port}"

    @property
    def running(self) -> bool:
        """True if the broker's process is alive."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int | None:
        """The id of the broker's process; None before the start."""
        return self._process.pid if self._process else None

    @property
    def log_path(self) -> Path:
        """The file that the broker logs to.

        Raises:
            LocalKafkaError: The broker has not been started, or is closed.
        """
        if self._directory is None:
            raise LocalKafkaError("The broker has no log: it has not been started, or is closed")
        return self._directory / "kafka.log"

    def log(self, node: int | None = None) -> str:  # noqa: ARG002 - there is one
        """Return the broker's log.

        Raises:
            LocalKafkaError: The broker has not been started, or is closed.
        """
        return broker_log.read(self.log_path)

    # --- Start and stop

    def __enter__(self) -> Self:
        """Start the broker."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the broker and remove its temporary directory."""
        self.close()

    def start(self) -> None:
        """Start the broker and wait until it serves clients and groups.

        After `stop` or `kill` it has the same data and port.

        Raises:
            LocalKafkaError: The broker is already running, its port is taken, or it was not ready in time.
                The message ends with the end of its log. Its processes and files are removed.
            JavaNotFoundError: No Java runtime is recent enough.
            JarResolutionError: Kafka's jars are not cached, and cannot be downloaded.
        """
        if self.running:
            raise LocalKafkaError(
                f"The broker is already running, at {self.bootstrap_servers}: stop it first"
            )
        try:
            self._start(self._command, deadline=time.monotonic() + self._startup_timeout)
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Shut the broker down cleanly and keep its data for the next `start`.

        A librdkafka client may need to be recreated afterwards: a broker that shuts down may answer with an
        empty list of brokers, and librdkafka then looks for none. `Consumer` recovers. `kill` has no such
        effect.
        """
        self._admin = None
        if self._process:
            self._process.stop(self._stop_seconds)

    def kill(self) -> None:
        """Kill the broker (SIGKILL) and keep its data for the next `start`.

        That start takes up to 3 s longer: the node registers again only after its old session has ended.
        """
        if self._process:
            self._process.kill()

    def restart(self) -> None:
        """Stop the broker and start it with its data and its port."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Suspend the broker (SIGSTOP, not on Windows): connections stay open, but it does not respond.

        Raises:
            LocalKafkaError: The broker is not running.
        """
        self._running_process().suspend()

    def resume(self) -> None:
        """Resume a paused broker; `wait_until_ready` waits until clients can use it.

        Raises:
            LocalKafkaError: The broker is not running.
        """
        self._admin = None  # it may never find the broker again, see `wait_until_ready`
        self._running_process().resume()

    def wait_until_ready(self, timeout: float = 30.0) -> None:
        """Wait until the broker is in its own metadata responses and coordinates groups.

        The controller fences a broker that was paused for long until it has registered again. Meanwhile the
        broker lists no brokers, and a librdkafka client that asks it may never find it again.

        Raises:
            LocalKafkaError: The broker is not running, or not ready within `timeout` seconds.
        """
        process = self._running_process()
        client = self._client_settings(self.bootstrap_servers)
        deadline = time.monotonic() + timeout
        if not becomes_ready(process, client, deadline, cluster_id=self._cluster_id):
            raise LocalKafkaError(f"The broker at {self.bootstrap_servers} is not ready after {timeout:g} s")

    def close(self) -> None:
        """End the broker, and remove its data unless it was given a directory; may be called again."""
        try:
            if self._data_dir is not None and self._owner == os.getpid():
                self.stop()
        finally:
            _close_for(self._owner, self._cleanup)
            self._directory = None
            self._admin = None
            if self._owner == os.getpid():
                self._close_listeners()

    def _client_settings(self, bootstrap_servers: str) -> dict[str, ClientSetting]:
        return {**super()._client_settings(bootstrap_servers), **self._client_config}

    # --- Start

    @functools.cached_property
    def _jars(self) -> tuple[Path, ...]:
        kafka = f"org.apache.kafka:kafka_2.13:{self.version}"
        return resolve_jars(kafka, _LOG_BACKEND, on_download=self._on_download)

    @functools.cached_property
    def _runtime(self) -> JavaRuntime:
        return self._java or find_java()

    @property
    def class_archive(self) -> Path:
        """The file with the classes of this Java and this Kafka; starts are faster if it exists."""
        return class_archive_path(self._runtime, self._jars)

    @functools.cached_property
    def _class_archive_options(self) -> list[str]:
        path = self.class_archive
        return [f"-XX:SharedArchiveFile={path}"] if path.exists() else []

    @functools.cached_property
    def _command(self) -> list[str]:
        """The command line up to the name of the main class."""
        return [
            str(self._runtime.executable),
            *_JVM_OPTIONS,
            *self._class_archive_options,
            f"-Xmx{self._heap}",
            *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in _LOG_OPTIONS.items()),
        ]

    def _class_path(self, directory: Path) -> str:
        """Write the class path to a file, and return Java's option for it: process lists stay readable."""
        file = directory / "class-path"
        jars = os.pathsep.join(map(str, self._jars)).replace("\\", "\\\\").replace('"', '\\"')
        file.write_text(f'-cp "{jars}"\n', encoding="utf-8")
        return f"@{file}"

    def _start(self, command: list[str], deadline: float) -> None:
        self._cleanup.callback(self._ports.release)
        for attempts_left in reversed(range(_START_ATTEMPTS)):
            if self._port:
                self._ports.require(self._port)
            port = self._port or self._ports.choose()
            try:
                self._launch(command, port, deadline)
            except ports.PortTakenError:
                self.kill()
                self._controller_port = None
                if not attempts_left:
                    raise
            else:
                self._port = port
                return

    def _launch(self, command: list[str], port: int, deadline: float) -> None:
        directory = self._open_directory()
        self._controller_port = self._controller_port or self._ports.choose()
        node_settings = settings.single_node(
            port=port,
            controller_port=self._controller_port,
            log_dir=directory / "data",
            overrides=self._config,
        )
        listeners = self._prepare_listeners(settings.NODE_ID, directory / "certificates")
        if listeners:
            node_settings = settings.with_listeners(node_settings, listeners, bound_to=ports.HOST)
            node_settings.setdefault("inter.broker.listener.name", "PLAINTEXT")
        if self._secured is not None:
            node_settings = {**self._secured.settings(), **node_settings}
        properties = directory / "server.properties"
        properties.write_text(settings.properties(node_settings), encoding="utf-8")
        logged = broker_log.size(self.log_path)
        storage = NodeStorage(node_settings, self.version, has_secrets=self._secured is not None)
        if not (storage.is_formatted or storage.restore()):
            options: list[str | Path] = ["--cluster-id", new_id(), "--config", properties]
            options += self._secured.format_options if self._secured else []
            formatter = self._spawn(command, "kafka.tools.StorageTool", "format", *options)
            if formatter.wait(_seconds_until(deadline)) != 0:
                raise self._failure("format its storage", formatter, logged)
            formatter.kill()
            storage.keep()
        self._process = self._spawn(command, "kafka.Kafka", properties)
        client = self._client_settings(f"{ports.HOST}:{port}")
        self._cluster_id = storage.cluster_id
        if not becomes_ready(self._process, client, deadline, cluster_id=self._cluster_id):
            raise self._failure("become ready", self._process, logged)

    def _open_directory(self) -> Path:
        """Return the directory of the data and the log; create it if it does not exist."""
        if self._directory is None:
            directory = self._data_dir
            if directory is None:
                directory = Path(tempfile.gettempdir(), f"groupwright-kafka-{uuid.uuid4().hex}")
            if "," in str(directory):
                raise LocalKafkaError(
                    f"Kafka cannot keep its data in {str(directory)!r}, since it splits log.dirs at commas: "
                    "set data_dir or TMPDIR to a path without one"
                )
            if self._data_dir is None:
                self._cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory = directory
        return self._directory

    def _spawn(self, command: list[str], main_class: str, *arguments: str | Path) -> GuardedProcess:
        directory = self._open_directory()
        process = GuardedProcess(
            # Compression libraries unpack themselves into the temporary directory; a kill leaves them behind.
            [
                *command,
                self._class_path(directory),
                f"-Djava.io.tmpdir={directory}",
                main_class,
                *arguments,
            ],
            log_path=self.log_path,
            remove_if_orphaned=None if self._data_dir else directory,
        )
        self._cleanup.callback(process.kill)  # before the start, which may be interrupted
        process.start()
        return process

    def _failure(self, task: str, process: GuardedProcess, logged: int) -> LocalKafkaError:
        log = broker_log.read(self.log_path, since=logged)
        code = process.exit_code
        reason = (
            f"it took more than {self._startup_timeout:g} s" if code is None else f"its exit code is {code}"
        )
        error = ports.PortTakenError if broker_log.says_port_taken(log) else LocalKafkaError
        return error(
            f"Kafka {self.version} could not {task}: {reason}. Its log says:",
            log_tail=broker_log.failure(log),
        )

    def _require_running(self) -> None:
        self._running_process()

    def _running_process(self) -> GuardedProcess:
        if self._process is None or not self._process.running:
            raise LocalKafkaError("The broker is not running: start it first")
        return self._process


def _check_arguments(version: object, port: object, heap: object) -> None:
    found = _VERSION.fullmatch(str(version))
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_VERSION:
        raise LocalKafkaError(
            f"The version of Kafka cannot be {version!r}: give 3.9 or later, such as {DEFAULT_VERSION!r}"
        )
    if port is not None and not (isinstance(port, int) and 0 <= port <= _HIGHEST_PORT):
        raise LocalKafkaError(
            f"The port cannot be {port!r}: give a number up to {_HIGHEST_PORT}, or None for a free port"
        )
    if not re.fullmatch(r"[1-9]\d*[kKmMgG]", str(heap)):
        raise LocalKafkaError(f"The heap cannot be {heap!r}: give a number with its unit, such as '256m'")


def _seconds_until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _close_for(owner: int, cleanup: contextlib.ExitStack) -> None:
    """Run the cleanup, except in a forked child, which has a copy of the objects and owns no broker."""
    if os.getpid() == owner:
        cleanup.close()
