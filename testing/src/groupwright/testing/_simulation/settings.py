"""Settings of the simulated coordinator, and what differs between the modelled versions of Kafka."""

from dataclasses import dataclass
from enum import Enum

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""Longest time for which a member's first JoinGroup is parked; the broker has no setting for it."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker settings that the coordinator of classic groups reads. Defaults are Kafka's.

    Attributes:
        initial_rebalance_delay_ms: `group.initial.rebalance.delay.ms`.
        min_session_timeout_ms: `group.min.session.timeout.ms`.
        max_session_timeout_ms: `group.max.session.timeout.ms`.
        max_size: `group.max.size`.
        offset_metadata_max_bytes: `offset.metadata.max.bytes`; Kafka counts characters.
        offsets_retention_ms: `offsets.retention.minutes`, in milliseconds.
        offsets_retention_check_interval_ms: `offsets.retention.check.interval.ms`.
    """

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 3600 * 1000
    offsets_retention_check_interval_ms: int = 600_000


class KafkaVersion(Enum):
    """Version of the modelled coordinator; each property is one difference between the versions.

    3.9 runs the older coordinator, which is written in Scala (`kafka.coordinator.group.GroupCoordinator`),
    unless `group.coordinator.rebalance.protocols` has `consumer`. 4.3 has only the Java one
    (`org.apache.kafka.coordinator.group.GroupMetadataManager`).
    """

    KAFKA_3_9 = "3.9"
    KAFKA_4_3 = "4.3"

    @property
    def writes_new_groups(self) -> bool:
        """True if the first JoinGroup of a group writes an empty group to the log.

        Without it, a group that has had no generation does not survive a restart.
        """
        return self is KafkaVersion.KAFKA_4_3

    @property
    def delays_every_initial_rebalance(self) -> bool:
        """True if new members extend the initial delay of every group that was Empty.

        3.9 extends it only before a group's first generation.
        """
        return self is KafkaVersion.KAFKA_4_3

    @property
    def expiry_ends_initial_delay(self) -> bool:
        """True if an expired member ends the initial delay if all other members have joined."""
        return self is KafkaVersion.KAFKA_4_3

    @property
    def rebalances_once_a_leave_request(self) -> bool:
        """True if all members of a LeaveGroup are removed before the group rebalances.

        3.9 rebalances after each of them. 4.3 also rebalances if the only one was a pending member.
        """
        return self is KafkaVersion.KAFKA_4_3

    @property
    def any_protocol_matches_none(self) -> bool:
        """True if SyncGroup may name any protocol while the group has not chosen one.

        Otherwise the answer is INCONSISTENT_GROUP_PROTOCOL, not REBALANCE_IN_PROGRESS.
        """
        return self is KafkaVersion.KAFKA_4_3

    @property
    def stable_sync_renews_session(self) -> bool:
        """True if SyncGroup to a Stable group restarts the member's session timeout."""
        return self is KafkaVersion.KAFKA_3_9

    @property
    def rejected_join_may_complete_phase(self) -> bool:
        """True if a member that is removed for `group.max.size` no longer holds up the join phase.

        4.3 notices that all remaining members have joined only at the next event.
        """
        return self is KafkaVersion.KAFKA_3_9

    @property
    def replacement_stays_new(self) -> bool:
        """True if the replacement of a static member in its first JoinGroup is a new member too.

        The session timeout then runs while the JoinGroup is parked.
        """
        return self is KafkaVersion.KAFKA_3_9

    @property
    def commit_reports_missing_group(self) -> bool:
        """True if OffsetCommit v9 to a missing group is answered with GROUP_ID_NOT_FOUND.

        Otherwise, and in older versions of the request, the answer is ILLEGAL_GENERATION.
        """
        return self is KafkaVersion.KAFKA_4_3

    @property
    def offset_delete_can_delete_group(self) -> bool:
        """True if OffsetDelete deletes an Empty group that has no offsets left."""
        return self is KafkaVersion.KAFKA_3_9

    @property
    def describes_assignments_while_rebalancing(self) -> bool:
        """True if DescribeGroups has the members' assignments in every state, not only in Stable."""
        return self is KafkaVersion.KAFKA_4_3
