"""Members of streams groups (KIP-1071), which only Java's Kafka Streams has: their heartbeats, by hand."""

import uuid
import warnings
from typing import Any

from groupwright.consumer.cluster import ClusterConnection
from harness import messages
from harness.patience import PATIENCE
from harness.waiting import wait_until

_SOURCES = (
    *("source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics"),
    "copartition_groups",
)
"""Parts of a subtopology that a test has no use for."""


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)
    from kafka.protocol.api_message import ApiMessage

    class StreamsGroupHeartbeatRequest(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Join a streams group, or stay in it."""

    class StreamsGroupHeartbeatResponse(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Response to `StreamsGroupHeartbeatRequest`."""


def join_streams_group(bootstrap_servers: str, group: str, topic: str) -> None:
    """Add a member that is assigned all tasks; it stays until its session ends, after 45 s."""
    request = StreamsGroupHeartbeatRequest
    nothing: dict[str, Any] = {key: [] for key in ("standby_tasks", "warmup_tasks", "client_tags")}
    source: dict[str, Any] = {key: [] for key in _SOURCES}
    subtopology = request.Topology.Subtopology(subtopology_id="0", source_topics=[topic], **source)
    member = {"group_id": group, "member_id": str(uuid.uuid4()), "shutdown_application": False}
    join = request(
        **member,
        **nothing,
        member_epoch=0,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=60_000,
        process_id="process",
        topology=request.Topology(epoch=0, subtopologies=[subtopology]),
        active_tasks=[],
    )
    with ClusterConnection({"bootstrap.servers": bootstrap_servers}, timeout=PATIENCE) as cluster:
        (broker,) = cluster.brokers()
        answers: list[Any] = []

        def is_assigned() -> bool:
            epoch = answers[-1].member_epoch if answers else 0
            beat = request(**member, member_epoch=epoch, endpoint_information_epoch=0)
            answers.append(cluster.send(beat if answers else join, broker))
            assert not answers[-1].error_code, answers[-1].error_message
            return bool(answers[-1].active_tasks)

        wait_until(is_assigned, "tasks are assigned")
