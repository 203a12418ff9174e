"""The Kafka cluster of the demo: its topic and group."""

import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.demo.errors import DemoError
from groupwright.core.configuration import without_secrets

_REQUEST_SECONDS = 10.0
_DOWN_SECONDS = 2.0
"""Time for which every connection must fail before no Kafka is expected at the address."""
_TOPIC_SECONDS = 30.0
_POLL_SECONDS = 0.5

_ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's public code

T = TypeVar("T")


class Cluster:
    """A cluster, with the settings of connections to it."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        """Create an admin client; `wait_until_ready` waits for the connection.

        Raises:
            CommandError: A setting is wrong.
        """
        self.connection = connection
        self.bootstrap_servers = str(connection["bootstrap.servers"])
        self._connection_error = ""
        self._down_since: float | None = None
        configuration: dict[str, Any] = {
            **connection,
            "client.id": "groupwright-demo",
            "log_level": 0,  # the terminal is the demo's
            "error_cb": self._on_error,
        }
        try:
            self._admin = AdminClient(configuration)
        except KafkaException as error:
            reason = without_secrets(error.args[0].str(), connection)
        else:
            return
        raise CommandError(f"the settings of the connection are wrong: {reason}", ExitStatus.USAGE)

    def wait_until_ready(self) -> None:
        """Wait until the cluster responds.

        Raises:
            CommandError: No connection can be made for 2 s, or the cluster does not respond within 10 s.
        """
        deadline = time.monotonic() + _REQUEST_SECONDS
        while (now := time.monotonic()) < deadline:
            if self._down_since is not None and now > self._down_since + _DOWN_SECONDS:
                raise self._unreachable(f": {self._connection_error}")
            with suppress(KafkaException):
                self._admin.list_topics(timeout=_POLL_SECONDS)
                return
            self._admin.poll(0)
        reason = f": {self._connection_error}" if self._connection_error else ""
        raise self._unreachable(f" within {_REQUEST_SECONDS:g} s{reason}")

    def _unreachable(self, reason: str) -> CommandError:
        return CommandError(f"no Kafka answers at {self.bootstrap_servers}{reason}", ExitStatus.UNREACHABLE)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with the default replication factor, and wait until all partitions have leaders.

        Raises:
            DemoError: The cluster rejects the request, or partitions have no leaders after 30 s.
        """
        topic = NewTopic(name, num_partitions=partitions)
        created = self._admin.create_topics([topic], request_timeout=_TOPIC_SECONDS)[name]
        _result(created, f"the topic {name} cannot be created")
        deadline = time.monotonic() + _TOPIC_SECONDS
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                found = self._admin.list_topics(name, timeout=_POLL_SECONDS).topics[name].partitions
                if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
                    return
        raise DemoError(f"the topic {name} has partitions without a leader after {_TOPIC_SECONDS:g} s")

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        Raises:
            DemoError: The cluster rejects the request.
        """
        deleted = self._admin.delete_topics([name], request_timeout=_REQUEST_SECONDS)[name]
        _result(deleted, f"the topic {name} could not be deleted; delete it yourself")

    def delete_group(self, name: str) -> None:
        """Delete a group and its offsets. A group with members is not deleted; its offsets expire."""
        with suppress(DemoError):
            _result(self._admin.delete_consumer_groups([name], request_timeout=_REQUEST_SECONDS)[name], "")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != _ALL_BROKERS_DOWN:  # it hides the error before it, which names the cause
            self._connection_error = error.str()
        elif self._connection_error and self._down_since is None:
            self._down_since = time.monotonic()


def _result(future: Future[T], failure: str) -> T:
    """Return the result of an admin request; librdkafka ends it within its `request_timeout`."""
    try:
        return future.result(_TOPIC_SECONDS + _REQUEST_SECONDS)
    except KafkaException as error:
        raise DemoError(f"{failure}: {error.args[0].str()}") from error
