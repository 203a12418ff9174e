"""Execution of a plan: write, then read back what the broker holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.offsets.plan import PlannedPartition
from groupwright.core import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class Execution:
    """Result of an execution.

    Attributes:
        held: The committed offsets after it, as the broker reports them.
        failures: Why partitions have another offset than planned.
    """

    held: Mapping[TopicPartitionKey, CommittedOffset]
    failures: Mapping[TopicPartitionKey, str] = field(default_factory=dict)


def execute(cluster: Cluster, group: str, plan: Sequence[PlannedPartition]) -> Execution:
    """Write the changes of a plan, and read the committed offsets back.

    The write is that of a client outside of the group, which the coordinator refuses while the group has
    members. So a member that joins after the plan was made keeps its offsets.

    Raises:
        CommandError: Nothing was written, since the brokers refused it all; or it is not known what was
            written, since no broker responded.
    """
    changes = [each for each in plan if each.is_change]
    resets = {
        each.key: each.restored or CommittedOffset(each.after) for each in changes if each.after is not None
    }
    deletions = [each.key for each in changes if each.after is None]
    answers: dict[TopicPartitionKey, str | None] = {}
    try:
        if resets:
            answers |= cluster.commit(group, resets)
        if deletions:
            answers |= cluster.delete_offsets(group, deletions)
    except CommandError as error:
        if error.status is not ExitStatus.UNREACHABLE:
            raise CommandError(f"nothing was written: {error}", error.status) from None
        # The request may have arrived, and only its response been lost.
        answers = {each.key: str(error) for each in changes}
    try:
        held = cluster.committed([group])[group]
    except CommandError as error:
        raise CommandError(
            f"it is not known which offsets of {group!r} were written, for they cannot be read back: {error}",
            ExitStatus.INCOMPLETE,
        ) from None
    return Execution(held, failures(plan, answers, held))


def failures(
    plan: Sequence[PlannedPartition],
    answers: Mapping[TopicPartitionKey, str | None],
    held: Mapping[TopicPartitionKey, CommittedOffset],
) -> dict[TopicPartitionKey, str]:
    """Return why partitions do not have their planned offset and metadata, by what the broker holds.

    Args:
        plan: The plan.
        answers: The broker's answer to each write; None if it accepted it.
        held: The committed offsets after the writes.
    """
    found: dict[TopicPartitionKey, str] = {}
    for each in plan:
        if not each.is_change:
            continue
        present = held.get(each.key)
        if each.is_held(present):
            continue  # as planned, even if the response to the write was lost
        reason = answers.get(each.key) or "accepted, and then changed by another client"
        offset = "none" if present is None else present.offset
        metadata = ", with other metadata" if offset == each.after else ""
        found[each.key] = f"{reason}; its offset is {offset}{metadata}"
    return found
