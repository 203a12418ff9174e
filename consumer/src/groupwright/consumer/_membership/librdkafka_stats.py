"""librdkafka's statistics, with commits, prefetched messages and the group's state added. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from groupwright.consumer._protocol.transitions import State
from groupwright.core import TopicPartitionKey

_JOIN_STATES = {
    State.UNJOINED: "init",
    State.PREPARING_REBALANCE: "wait-join",
    State.COMPLETING_REBALANCE: "wait-sync",
    State.STABLE: "steady",
}


def with_group_state(
    text: str,
    state: State,
    owned: int,
    committed: Mapping[TopicPartitionKey, int],
    prefetched: Mapping[TopicPartitionKey, int],
    *,
    read_uncommitted: bool,
) -> str:
    """Return the statistics as librdkafka would write them if it were the member.

    Args:
        text: The JSON that librdkafka passes to ``stats_cb``.
        state: The member's state.
        owned: Number of partitions that the group has assigned to the member.
        committed: Committed offsets of assigned partitions.
        prefetched: First prefetched offset of each partition, which the application has not taken yet.
        read_uncommitted: Whether lag is counted to the high watermark, not to the last stable offset.
    """
    statistics: dict[str, Any] = json.loads(text)
    end_key = "hi_offset" if read_uncommitted else "ls_offset"
    for name, topic in statistics["topics"].items():
        for partition in topic["partitions"].values():
            key = (name, partition["partition"])
            end = partition[end_key]
            if key in prefetched:
                _set_back(partition, prefetched[key], end)
            if key in committed:
                offset = committed[key]
                # librdkafka keeps the misspelt name for its former users.
                partition["committed_offset"] = partition["commited_offset"] = offset
                partition["consumer_lag"] = _lag(offset, end)
    group = statistics.get("cgrp")
    if group is not None:
        group["join_state"] = _JOIN_STATES[state]
        group["assignment_size"] = owned
    return json.dumps(statistics)


def _set_back(partition: dict[str, Any], first: int, end: int) -> None:
    """Set the offsets of a partition back to `first`, the first prefetched one."""
    partition["app_offset"] = min(partition["app_offset"], first)
    if partition["stored_offset"] >= 0:
        partition["stored_offset"] = min(partition["stored_offset"], first)
        partition["consumer_lag_stored"] = _lag(partition["stored_offset"], end)


def _lag(offset: int, end: int) -> int:
    return end - offset if 0 <= offset <= end else -1
