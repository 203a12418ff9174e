"""Groupwright as the leader."""

from benchmarks.assignors.inputs import Inputs, TopicInput
from benchmarks.assignors.programs.harness import LackingError, Step, compete
from groupwright.assignors import (
    JoinedMember,
    Topic,
    builtin_assignors,
    perform_assignment,
    with_weights,
)


def prepare(inputs: Inputs) -> Step:
    """Return the step, as the consumer does it when its member is elected leader.

    Raises:
        LackingError: This version of Groupwright has no such assignor.
    """
    by_name = {assignor.name: assignor for assignor in builtin_assignors()}
    if inputs.assignor not in by_name:
        raise LackingError(inputs.assignor)
    assignor = by_name[inputs.assignor]
    topics: dict[str, int | Topic] = {topic.name: _topic(topic, inputs.racks) for topic in inputs.topics}
    if inputs.weights is not None:
        sized = {topic.name: Topic(len(topic.replicas)) for topic in inputs.topics}
        topics |= with_weights(sized, dict(zip(sized, inputs.weights, strict=True)))
    joined = [JoinedMember(member.id, None, member.data) for member in inputs.members]
    return lambda: perform_assignment(assignor, joined, topics).items()


def _topic(topic: TopicInput, racks: tuple[str | None, ...]) -> int | Topic:
    partitions = len(topic.replicas)
    if None in racks:
        return partitions
    return Topic(partitions, [{racks[node] or "" for node in nodes} for nodes in topic.replicas.tolist()])


if __name__ == "__main__":
    compete(prepare)
