"""Groups of one member, of Groupwright's consumer and of confluent-kafka's, that consume at the same time."""

import contextlib
import threading
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer import Consumer
from integration_tests.harness.patience import PATIENCE

CLIENTS: dict[str, Any] = {"Groupwright": Consumer, "confluent-kafka": confluent_kafka.Consumer}


class Member:
    """A group of one member, which polls and commits on a thread of its own."""

    def __init__(self, client: str, topic: str, config: dict[str, Any]) -> None:
        self.client = client
        self.committed = -1
        """Highest offset that was committed."""
        self.losses = 0
        self.errors: list[int] = []
        """Codes of errors that poll returned."""
        self.callback_errors: list[int] = []
        """Codes of errors that `error_cb` received."""
        self._topic = topic
        self._ended = threading.Event()
        if config.get("group.protocol") != "consumer":
            config = {"partition.assignment.strategy": "cooperative-sticky", **config}
        self._consumer = CLIENTS[client](
            {
                "group.id": config.pop("group"),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                "on_commit": self._on_commit,
                "error_cb": lambda error: self.callback_errors.append(error.code()),
                **config,
            }
        )
        self._thread = threading.Thread(target=self._run, name=client)
        self._thread.start()

    def _run(self) -> None:
        self._consumer.subscribe([self._topic], on_lost=self._lost)
        while not self._ended.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error():
                self.errors.append(message.error().code())
                continue
            with contextlib.suppress(KafkaException):  # it is committed with a later message
                self._consumer.commit(message=message)
        self._consumer.close()

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        if error is None and not any(each.error for each in offsets):
            self.committed = max(self.committed, *(each.offset for each in offsets))

    def _lost(self, _consumer: object, _partitions: list[TopicPartition]) -> None:
        self.losses += 1

    def close(self) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"{self.client} does not close"
