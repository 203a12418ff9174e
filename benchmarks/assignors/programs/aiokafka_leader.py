"""aiokafka as the leader."""

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.protocol.metadata import MetadataResponse_v1

from benchmarks.assignors.inputs import Inputs
from benchmarks.assignors.programs.harness import LackingError, Step, compete

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def prepare(inputs: Inputs) -> Step:
    """Return the step, as GroupCoordinator does it, without logging and bookkeeping.

    Raises:
        LackingError: aiokafka has no such assignor.
    """
    if inputs.assignor not in _ASSIGNORS:
        raise LackingError(inputs.assignor)
    assignor = _ASSIGNORS[inputs.assignor]
    cluster = _cluster(inputs)

    def step() -> list[tuple[str, bytes]]:
        members = {member.id: ConsumerProtocol.METADATA.decode(member.data) for member in inputs.members}
        assignments = assignor.assign(cluster, members)
        return [(member, assignment.encode()) for member, assignment in assignments.items()]

    return step


def _cluster(inputs: Inputs) -> ClusterMetadata:
    brokers = [(node, "localhost", 9092, rack) for node, rack in enumerate(inputs.racks)]
    topics = [
        (
            0,
            topic.name,
            False,
            [
                (0, partition, nodes[0], nodes, nodes)
                for partition, nodes in enumerate(topic.replicas.tolist())
            ],
        )
        for topic in inputs.topics
    ]
    cluster = ClusterMetadata()
    cluster.update_metadata(MetadataResponse_v1(brokers, 0, topics))
    return cluster


if __name__ == "__main__":
    compete(prepare)
