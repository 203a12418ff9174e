"""Contestant: kafka-python as the leader."""

from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataResponse

from benchmarks.assignors.inputs import Inputs, TopicInput
from benchmarks.assignors.programs.harness import Step, compete

_METADATA_VERSION = 8
_USER_DATA_VERSION = b"\0\1"
_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def prepare(inputs: Inputs) -> Step:
    """Return the step, as ConsumerCoordinator does it, without logging and bookkeeping."""
    cluster = _cluster(inputs)
    joined = [(member.id, _as_its_members_write(inputs.assignor, member.data)) for member in inputs.members]
    new_assignor = _ASSIGNORS[inputs.assignor]

    def step() -> list[tuple[str, bytes]]:
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data)
            )
            for member, data in joined
        ]
        assignments = new_assignor().assign(cluster, members)
        return [(member, bytes(assignment.encode())) for member, assignment in assignments.items()]

    return step


def _as_its_members_write(assignor: str, data: bytes) -> bytes:
    """Add the version that only kafka-python writes before the user data of `sticky`."""
    subscription = ConsumerProtocolSubscription.decode(data)
    if assignor != "sticky" or not subscription.user_data:
        return data
    subscription.user_data = _USER_DATA_VERSION + subscription.user_data
    return bytes(subscription.encode())


def _cluster(inputs: Inputs) -> ClusterMetadata:
    brokers = [
        MetadataResponse.MetadataResponseBroker(node, "localhost", 9092, rack)
        for node, rack in enumerate(inputs.racks)
    ]
    response = MetadataResponse(
        version=_METADATA_VERSION,
        brokers=brokers,
        cluster_id="cluster",
        controller_id=0,
        topics=[_topic(topic) for topic in inputs.topics],
    )
    cluster = ClusterMetadata()
    cluster.update_metadata(MetadataResponse.decode(response.encode(), version=_METADATA_VERSION))
    return cluster


def _topic(topic: TopicInput) -> MetadataResponse.MetadataResponseTopic:
    kind = MetadataResponse.MetadataResponseTopic
    partitions = [
        kind.MetadataResponsePartition(
            error_code=0,
            partition_index=partition,
            leader_id=nodes[0],
            leader_epoch=0,
            replica_nodes=nodes,
            isr_nodes=nodes,
            offline_replicas=[],
        )
        for partition, nodes in enumerate(topic.replicas.tolist())
    ]
    return kind(error_code=0, name=topic.name, is_internal=False, partitions=partitions)


if __name__ == "__main__":
    compete(prepare)
