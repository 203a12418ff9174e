"""Committed offsets and generations of all groups, from decoded records of `__consumer_offsets`. Pure."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from groupwright.cli._cluster.model import CommittedOffset
from groupwright.core import TopicPartitionKey

_COMMIT, _GROUP = "offset_commit", "group_metadata"
_FAILED = pa.array(["malformed", "unknown"])


class CommittedOffsets:
    """Offsets and generations of each group as of the last record that was applied.

    Attributes:
        offsets: Committed offsets by group.
        generations: Generations of classic groups.
        commits: Number of offsets that each group has committed since the exporter began to follow the log,
            or since all of the group's were deleted.
        records: Number of records by outcome: `decoded` or `failed`.
    """

    def __init__(self) -> None:
        """Start before the first record."""
        self.offsets: dict[str, dict[TopicPartitionKey, CommittedOffset]] = {}
        self.generations: dict[str, int] = {}
        self.commits: defaultdict[str, int] = defaultdict(int)
        self.records = {"decoded": 0, "failed": 0}

    def apply(self, decoded: pa.RecordBatch, *, is_past: bool) -> None:
        """Take decoded records, which follow those before in each partition of the log.

        Args:
            decoded: Rows of `groupwright.pipeline.decode_batch`.
            is_past: Whether the records were in the log before the exporter began to follow it.
        """
        kinds = decoded.column("record_kind")
        self._apply_commits(decoded.filter(pc.equal(kinds, _COMMIT)), is_past=is_past)
        self._apply_generations(decoded.filter(pc.equal(kinds, _GROUP)))
        failed = len(decoded.filter(pc.is_in(kinds, _FAILED)))
        self.records["failed"] += failed
        self.records["decoded"] += len(decoded) - failed

    def _apply_commits(self, decoded: pa.RecordBatch, *, is_past: bool) -> None:
        fields = decoded.column(_COMMIT)
        columns = (
            decoded.column("group_id"),
            decoded.column("tombstone"),
            *(pc.struct_field(fields, name) for name in ("topic", "partition", "committed_offset")),
        )
        for group, is_tombstone, topic, partition, offset in zip(
            *map(pa.Array.to_pylist, columns), strict=True
        ):
            if is_tombstone:
                self._delete(group, (topic, partition))
                continue
            self.offsets.setdefault(group, {})[topic, partition] = CommittedOffset(offset)
            if not is_past:
                self.commits[group] += 1

    def _delete(self, group: str, partition: TopicPartitionKey) -> None:
        of_group = self.offsets.get(group, {})
        of_group.pop(partition, None)
        if not of_group:
            self.offsets.pop(group, None)
            self.commits.pop(group, None)

    def _apply_generations(self, decoded: pa.RecordBatch) -> None:
        generations = pc.struct_field(decoded.column(_GROUP), "generation").to_pylist()
        tombstones = decoded.column("tombstone").to_pylist()
        for group, is_tombstone, generation in zip(
            decoded.column("group_id").to_pylist(), tombstones, generations, strict=True
        ):
            if is_tombstone:
                self.generations.pop(group, None)
            else:
                self.generations[group] = generation
