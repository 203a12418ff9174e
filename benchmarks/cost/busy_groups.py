"""A cluster with many groups, whose committed offsets and logs move while the exporter is measured."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.model import CommittedOffset
from groupwright.testing import LocalKafka

TOPICS = 10
_MESSAGES_PER_SECOND = 500
_COMMITTING_GROUPS_PER_SECOND = 20
_TICK_SECONDS = 0.1


class BusyGroups:
    """Groups without members, each with a committed offset in each partition of one of ten topics.

    While the block lasts, messages are produced to all partitions in turn, and groups commit in turn.
    """

    def __init__(self, kafka: LocalKafka, groups: int, partitions: int) -> None:
        """Create the topics and commit for all groups.

        Args:
            kafka: The broker.
            groups: Number of groups.
            partitions: Partitions of each topic, and so of each group.
        """
        settings = {"bootstrap.servers": kafka.bootstrap_servers}
        self._topics = [f"topic-{number}" for number in range(TOPICS)]
        self._groups = [f"group-{number:04d}" for number in range(groups)]
        self._partitions = partitions
        self._offset = 0
        for topic in self._topics:
            kafka.create_topic(topic, partitions)
        self._cluster = Cluster(settings, timeout=60)
        self._producer = Producer({**settings, "linger.ms": 20})
        self._over = threading.Event()
        self._executor = ThreadPoolExecutor(1, "groups")
        try:
            for number in range(groups):
                self._commit(number)
        except BaseException:
            self._cluster.close()
            raise

    def __enter__(self) -> Self:
        """Begin to produce and commit."""
        self._working = self._executor.submit(self._work)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and raise what ended it before: the exporter was measured on a cluster at rest then."""
        self._over.set()
        try:
            self._working.result()
        finally:
            self._executor.shutdown()
            self._cluster.close()

    def _commit(self, number: int) -> None:
        topic = self._topics[number % TOPICS]
        committed = {
            (topic, partition): CommittedOffset(self._offset) for partition in range(self._partitions)
        }
        errors = self._cluster.commit(self._groups[number % len(self._groups)], committed)
        if any(errors.values()):
            raise RuntimeError(f"a commit has failed: {errors}")

    def _work(self) -> None:
        produced = commits = 0
        began = time.monotonic()
        while not self._over.wait(_TICK_SECONDS):
            seconds = time.monotonic() - began
            while produced < seconds * _MESSAGES_PER_SECOND:
                topic = self._topics[produced % TOPICS]
                self._producer.produce(topic, b"x", partition=produced // TOPICS % self._partitions)
                produced += 1
            self._producer.poll(0)
            self._offset = produced // (TOPICS * self._partitions)
            while commits < seconds * _COMMITTING_GROUPS_PER_SECOND:
                self._commit(commits)
                commits += 1
        self._producer.flush(60)
