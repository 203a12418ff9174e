"""The Kafka cluster of the demo: its topic and group."""

import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.cli.demo.errors import DemoError

_ANSWER_SECONDS = 10.0
_TOPIC_SECONDS = 30.0
_SLICE = 0.5

_ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's public code

T = TypeVar("T")


class Cluster:
    """The cluster at an address."""

    def __init__(self, bootstrap_servers: str) -> None:
        """Connect to nothing yet."""
        self.bootstrap_servers = bootstrap_servers
        self._connection_error = ""
        configuration: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "groupwright-demo",
            "log_level": 0,  # the terminal is the demo's
            "error_cb": self._note_error,
        }
        self._admin = AdminClient(configuration)

    def require(self) -> None:
        """Return as soon as the cluster answers.

        Raises:
            DemoError: It does not.
        """
        deadline = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                self._admin.list_topics(timeout=_SLICE)
                return
            self._admin.poll(0)
        reason = f": {self._connection_error}" if self._connection_error else ""
        raise DemoError(f"no Kafka answers at {self.bootstrap_servers} within {_ANSWER_SECONDS:g} s{reason}")

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, with the cluster's own replication, and wait until all its partitions have leaders.

        Raises:
            DemoError: The cluster refuses it, or does not provide it in time.
        """
        topic = NewTopic(name, num_partitions=partitions)
        created = self._admin.create_topics([topic], request_timeout=_TOPIC_SECONDS)[name]
        _result(created, f"the topic {name} cannot be created")
        deadline = time.monotonic() + _TOPIC_SECONDS
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                found = self._admin.list_topics(name, timeout=_SLICE).topics[name].partitions
                if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
                    return
        raise DemoError(f"the topic {name} has partitions without a leader after {_TOPIC_SECONDS:g} s")

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        Raises:
            DemoError: The cluster refuses it.
        """
        deleted = self._admin.delete_topics([name], request_timeout=_ANSWER_SECONDS)[name]
        _result(deleted, f"the topic {name} could not be deleted; delete it yourself")

    def delete_group(self, name: str) -> None:
        """Delete a group's committed offsets. A group that has members stays until its offsets expire."""
        with suppress(DemoError):
            _result(self._admin.delete_consumer_groups([name], request_timeout=_ANSWER_SECONDS)[name], "")

    def _note_error(self, error: KafkaError) -> None:
        if error.code() != _ALL_BROKERS_DOWN:  # which says less than the errors before it
            self._connection_error = error.str()


def _result(future: Future[T], failure: str) -> T:
    """Return an admin request's result, which librdkafka gives, or refuses, within the request's time-out."""
    try:
        return future.result(_TOPIC_SECONDS + _ANSWER_SECONDS)
    except KafkaException as error:
        raise DemoError(f"{failure}: {error.args[0].str()}") from error
