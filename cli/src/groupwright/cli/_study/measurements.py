"""Measurements of a group's partitions, from which sources of weights compute these."""

import math
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from groupwright.assignors import Group, sent_processing_times
from groupwright.cli._cluster.client import LATEST, Cluster
from groupwright.core import TopicPartitionKey

_Numbers = dict[str, npt.NDArray[np.float64]]


class Measurements:
    """`groupwright.assignors.GroupMeasurements` of a cluster, as the leader of the group would measure."""

    def __init__(self, cluster: Cluster, group_id: str, group: Group) -> None:
        """Prepare; brokers are asked by the methods.

        Args:
            cluster: The cluster.
            group_id: The group's name.
            group: The group, with the members' user data.
        """
        self._cluster = cluster
        self._group_id = group_id
        self._group = group
        self._partitions = [
            (name, number) for name, topic in group.topics.items() for number in range(topic.partitions)
        ]

    def log_ends(self) -> _Numbers:
        """Return the high watermarks."""
        return self._by_topic(self._cluster.offsets(self._partitions, LATEST)[0])

    def at(self, seconds_ago: float) -> _Numbers:
        """Return the offsets of the first messages that are not older; the log end where there is none."""
        timestamp = int((time.time() - seconds_ago) * 1000)
        found, _ = self._cluster.offsets(self._partitions, timestamp)
        ends, _ = self._cluster.offsets([key for key in found if found[key] is None], LATEST)
        return self._by_topic({**found, **ends})

    def committed(self) -> _Numbers:
        """Return the committed offsets of the group; unknown where there is none."""
        committed = self._cluster.committed([self._group_id])[self._group_id]
        return self._by_topic({key: each.offset for key, each in committed.items()})

    def processing_times(self) -> _Numbers:
        """Return the seconds per message that members sent when they joined, times their capacities."""
        return sent_processing_times(self._group.members, self._group.topics)

    def _by_topic(self, found: Mapping[TopicPartitionKey, int | None]) -> _Numbers:
        numbers: _Numbers = {}
        for name, topic in self._group.topics.items():
            of_topic = (found.get((name, number)) for number in range(topic.partitions))
            numbers[name] = np.array([math.nan if each is None else float(each) for each in of_topic])
        return numbers
