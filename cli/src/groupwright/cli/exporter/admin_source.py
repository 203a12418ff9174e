"""Snapshots of a cluster, asked of its brokers."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from groupwright.cli._cluster.client import LATEST, Cluster
from groupwright.cli._cluster.drained import DrainedPartitions
from groupwright.cli._cluster.lag import Committed, lag_after
from groupwright.cli._cluster.model import GroupType, ListedGroup
from groupwright.cli._command_line.output import few
from groupwright.cli._command_line.text import harmless
from groupwright.cli.exporter.limits import GroupLimit
from groupwright.cli.exporter.snapshot import HeldPartition, OffsetsTopicState, Snapshot
from groupwright.core.offsets_topic import OFFSETS_TOPIC

_logger = logging.getLogger("groupwright.exporter")


class AdminSource:
    """Takes snapshots with requests; of groups that do not progress, one message of a partition is read."""

    def __init__(self, cluster: Cluster, groups: GroupLimit) -> None:
        """Create it.

        Args:
            cluster: The cluster.
            groups: Chooses the groups to show.
        """
        self._cluster = cluster
        self._groups = groups
        self._hidden: frozenset[str] = frozenset()
        self._drained = DrainedPartitions(cluster.first_messages)

    def snapshot(self) -> Snapshot:
        """Take a snapshot.

        Raises:
            CommandError: The cluster does not respond, or refuses.
        """
        cluster = self._cluster
        listed, silent = cluster.groups()
        chosen, left_out = self._groups.choose([group.id for group in listed], are_all=not silent)
        topic = self._offsets_topic()
        found = cluster.describe(chosen, skip_forbidden=True)
        described = {id_: group for id_, group in found.items() if group.exists}
        shared = {id_ for id_, group in described.items() if group.type is GroupType.SHARE}
        committed = {
            **self.committed([id_ for id_ in described if id_ not in shared], topic),
            **cluster.share_offsets(shared),
        }
        lags = lag_after(cluster, described, committed)
        now = time.time()
        return Snapshot(
            time=now,
            groups=tuple(self._drained.mark(lags).values()),
            states=_states(listed),
            left_out={**left_out, "forbidden": self._forbidden([id_ for id_ in chosen if id_ not in found])},
            generations=self.generations(),
            commits=self.commits(),
            offsets_topic=topic,
            transactions=tuple(cluster.open_transactions()),
            silent_brokers=len(silent),
        )

    # --- What another source knows better -----------------------------------------------------------

    def committed(self, groups: Collection[str], topic: OffsetsTopicState | None) -> Committed:  # noqa: ARG002 - for those that read the topic
        """Return the committed offsets of groups other than share groups."""
        return self._cluster.committed(groups)

    def generations(self) -> Mapping[str, int]:
        """Return the generations of classic groups, as far as they are known."""
        return {}

    def commits(self) -> Mapping[str, int] | None:
        """Return the number of committed offsets since the start, by group; None if it is not known."""
        return None

    # --- Rights -------------------------------------------------------------------------------------

    def _forbidden(self, groups: Sequence[str]) -> int:
        """Return the number of groups that the client may list, but not describe; log them once."""
        if new := [id_ for id_ in groups if id_ not in self._hidden]:
            _logger.warning(
                "without series, since these credentials may not describe them, or not all topics of their "
                "members: %s",
                harmless(few(new)),
            )
        self._hidden = frozenset(groups)
        return len(groups)

    # --- The offsets topic --------------------------------------------------------------------------

    def _offsets_topic(self) -> OffsetsTopicState | None:
        """Return the state of `__consumer_offsets`; None if this client may not see it."""
        topic = self._cluster.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if topic is None:  # no group has committed yet, or it may not be seen
            return None if self._cluster.forbidden_topics([OFFSETS_TOPIC]) else OffsetsTopicState()
        partitions = [(OFFSETS_TOPIC, number) for number in range(topic.partitions)]
        ends, _ = self._cluster.offsets(partitions, LATEST)
        stable, _ = self._cluster.offsets(partitions, LATEST, read_committed=True)
        held = {
            key[1]: HeldPartition(before, end)
            for key, end in ends.items()
            if end is not None and (before := stable.get(key)) is not None and before < end
        }
        known = {key[1]: offset for key, offset in stable.items() if offset is not None}
        return OffsetsTopicState(topic.partitions, known, held)


def _states(listed: Collection[ListedGroup]) -> dict[str, int]:
    return dict(Counter(group.state for group in listed))
