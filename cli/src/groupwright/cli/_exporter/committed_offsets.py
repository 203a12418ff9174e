"""Committed offsets and generations of all groups, from decoded records of `__consumer_offsets`. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from groupwright.cli._cluster.model import CommittedOffset, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_COMMIT, _GROUP = "offset_commit", "group_metadata"
_FAILED = frozenset({"malformed", "unknown"})


class CommittedOffsets:
    """What the log says of each group, up to its last record.

    Attributes:
        offsets: Committed offsets by group.
        generations: Generations of classic groups.
        commits: Committed offsets of each group, those of the log's past left out.
        records: Number of records by outcome: `decoded` or `failed`.
    """

    def __init__(self) -> None:
        """Start before the first record."""
        self.offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.generations: dict[str, int] = {}
        self.commits: defaultdict[str, int] = defaultdict(int)
        self.records = {"decoded": 0, "failed": 0}

    def apply(self, decoded: "pa.RecordBatch", *, is_past: bool) -> None:
        """Take decoded records, which follow those before in each partition of the log.

        Args:
            decoded: Rows of `groupwright.pipeline.decode_batch`.
            is_past: Whether the records were in the log before the exporter began to follow it.
        """
        kinds = decoded.column("record_kind").to_pylist()
        groups = decoded.column("group_id").to_pylist()
        tombstones = decoded.column("tombstone").to_pylist()
        values = {kind: decoded.column(kind) for kind in (_COMMIT, _GROUP)}
        failed = 0
        for row, (kind, group, tombstone) in enumerate(zip(kinds, groups, tombstones, strict=True)):
            match kind:
                case "offset_commit":
                    self._apply_commit(group, values[kind][row].as_py(), tombstone=tombstone, is_past=is_past)
                case "group_metadata" if tombstone:
                    self.generations.pop(group, None)
                case "group_metadata":
                    self.generations[group] = values[kind][row]["generation"].as_py()
                case _:
                    failed += kind in _FAILED
        self.records["failed"] += failed
        self.records["decoded"] += len(kinds) - failed

    def _apply_commit(self, group: str, value: Mapping[str, Any], *, tombstone: bool, is_past: bool) -> None:
        key = (value["topic"], value["partition"])
        if tombstone:
            of_group = self.offsets.get(group, {})
            of_group.pop(key, None)
            if not of_group:
                self.offsets.pop(group, None)
            return
        offset = CommittedOffset(value["committed_offset"], value["leader_epoch"], value["metadata"] or "")
        self.offsets.setdefault(group, {})[key] = offset
        if not is_past:
            self.commits[group] += 1
