"""The catalogue of the exporter's metrics, from which its families and its reference page are made."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from groupwright.core.metrics import MetricSpec, MetricType, defined_in


class Level(StrEnum):
    """Subject of a series. A limit of series leaves out the finest level first."""

    EXPORTER = "exporter"
    CLUSTER = "cluster"
    GROUP = "group"
    TOPIC = "topic"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True, eq=False)
class ExporterSpec(MetricSpec):
    """The description of one metric of the exporter.

    Attributes:
        level: Subject of its series.
        offsets_topic_only: Whether only `--source offsets-topic` has it.
    """

    level: Level = field(kw_only=True)
    offsets_topic_only: bool = field(default=False, kw_only=True)


_GROUP, _TOPIC, _PARTITION = ("group",), ("group", "topic"), ("group", "topic", "partition")

# --- Groups -----------------------------------------------------------------------------------------

GROUP_INFO = ExporterSpec(
    "groupwright_cluster_group_info",
    MetricType.INFO,
    "Type, assignor and coordinator of the group; always 1.",
    (*_GROUP, "type", "assignor", "coordinator"),
    level=Level.GROUP,
)
GROUP_STATE = ExporterSpec(
    "groupwright_cluster_group_state",
    MetricType.GAUGE,
    "The group's state as its coordinator names it; always 1, and only the present state has a series.",
    (*_GROUP, "state"),
    level=Level.GROUP,
)
GROUP_MEMBERS = ExporterSpec(
    "groupwright_cluster_group_members",
    MetricType.GAUGE,
    "Members of the group.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_IDLE_MEMBERS = ExporterSpec(
    "groupwright_cluster_group_idle_members",
    MetricType.GAUGE,
    "Members without partitions; absent while the group rebalances, and if its members are not consumers.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_GENERATION = ExporterSpec(
    "groupwright_cluster_group_generation",
    MetricType.GAUGE,
    "Generation of a classic group, known from the offsets topic alone; epoch of any other group.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_GENERATION_CHANGES = ExporterSpec(
    "groupwright_cluster_group_generation_changes_total",
    MetricType.COUNTER,
    "Generations (epochs) that the group began since the exporter saw it first; where brokers return no "
    "generation, changes of members or assignments between two refreshes.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_REBALANCES = ExporterSpec(
    "groupwright_cluster_group_rebalances_total",
    MetricType.COUNTER,
    "Rebalances seen since the exporter saw the group first; without the generations of classic groups, "
    "several between two refreshes count as one.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_REBALANCING_SECONDS = ExporterSpec(
    "groupwright_cluster_group_rebalancing_seconds",
    MetricType.GAUGE,
    "Time since the present rebalance was first seen; 0 while the group does not rebalance.",
    _GROUP,
    level=Level.GROUP,
)
GROUP_STUCK = ExporterSpec(
    "groupwright_cluster_group_stuck",
    MetricType.GAUGE,
    "Whether the group is stuck, by reason: 1 if it is.",
    (*_GROUP, "reason"),
    level=Level.GROUP,
)
GROUP_COMMITS = ExporterSpec(
    "groupwright_cluster_group_commits_total",
    MetricType.COUNTER,
    "Committed offsets, one for each partition of each commit, since the exporter began to follow the log.",
    _GROUP,
    offsets_topic_only=True,
    level=Level.GROUP,
)

# --- Topics of groups -------------------------------------------------------------------------------

LAG = ExporterSpec(
    "groupwright_cluster_lag",
    MetricType.GAUGE,
    "Messages from the committed to the last stable offsets, summed over the topic's partitions. Those "
    "without a committed offset, with one beyond the log's end, or without a message to read count for "
    "nothing; while a leader does not respond, the last known offsets of the log count. Of share groups, "
    "the lag that the broker counts.",
    _TOPIC,
    level=Level.TOPIC,
)
LAG_MAX = ExporterSpec(
    "groupwright_cluster_lag_max",
    MetricType.GAUGE,
    "Lag of the topic's partition that lags most, in messages.",
    _TOPIC,
    level=Level.TOPIC,
)
HELD = ExporterSpec(
    "groupwright_cluster_held_messages",
    MetricType.GAUGE,
    "Uncommitted messages after the last stable offsets, behind open transactions; a group that reads "
    "uncommitted messages lags by these, too.",
    _TOPIC,
    level=Level.TOPIC,
)
UNREADABLE = ExporterSpec(
    "groupwright_cluster_unreadable_offsets",
    MetricType.GAUGE,
    "Offsets from the committed to the last stable one, in partitions without a message between them: "
    "markers of transactions, aborted and compacted messages. They are no lag.",
    _TOPIC,
    level=Level.TOPIC,
)
LAG_SECONDS = ExporterSpec(
    "groupwright_cluster_lag_seconds",
    MetricType.GAUGE,
    "Age of the oldest message that is not committed, over the topic's partitions; 0 if there is none; "
    "absent if that is not known. Times of arrival are interpolated between refreshes, so a burst's are "
    "wrong by up to `--interval`.",
    _TOPIC,
    level=Level.TOPIC,
)
LAG_SECONDS_UNKNOWN = ExporterSpec(
    "groupwright_cluster_lag_seconds_unknown_partitions",
    MetricType.GAUGE,
    "Partitions that lag by messages which arrived before the exporter's first refresh: while there are any, "
    "`lag_seconds` is a lower bound, in which these messages are as old as that refresh.",
    _TOPIC,
    level=Level.TOPIC,
)
COMMITTED = ExporterSpec(
    "groupwright_cluster_committed_offsets",
    MetricType.GAUGE,
    "Sum of the committed offsets of the topic's partitions; its rate is that of consumption. Of share "
    "groups the start offsets, which one slow message holds though others are processed.",
    _TOPIC,
    level=Level.TOPIC,
)
ASSIGNED = ExporterSpec(
    "groupwright_cluster_assigned_partitions",
    MetricType.GAUGE,
    "Partitions of the topic that a member is assigned; absent while that is not known: while a classic "
    "group rebalances, and if its members are not consumers.",
    _TOPIC,
    level=Level.TOPIC,
)
UNCOMMITTED = ExporterSpec(
    "groupwright_cluster_uncommitted_partitions",
    MetricType.GAUGE,
    "Partitions of the topic that a member is assigned, and that have no committed offset; absent like "
    "`groupwright_cluster_assigned_partitions`, and if the exporter may not see the topic.",
    _TOPIC,
    level=Level.TOPIC,
)
UNCOMMITTED_MESSAGES = ExporterSpec(
    "groupwright_cluster_uncommitted_messages",
    MetricType.GAUGE,
    "Messages in the logs of these partitions, which `lag` leaves out: the lag of a group whose "
    "`auto.offset.reset` is `earliest`, and too much for any other; absent like "
    "`groupwright_cluster_uncommitted_partitions`, and while the offsets of one of the logs are not known.",
    _TOPIC,
    level=Level.TOPIC,
)
UNSUBSCRIBED = ExporterSpec(
    "groupwright_cluster_unsubscribed_partitions",
    MetricType.GAUGE,
    "Partitions of the topic with a committed offset, though the group has members and none subscribes to "
    "the topic: their lag only grows; absent while subscriptions are not known.",
    _TOPIC,
    level=Level.TOPIC,
)
BEYOND_END = ExporterSpec(
    "groupwright_cluster_beyond_end_partitions",
    MetricType.GAUGE,
    "Partitions of the topic whose committed offset is beyond the end of the log: the topic was created "
    "again, or truncated.",
    _TOPIC,
    level=Level.TOPIC,
)
VELOCITY = ExporterSpec(
    "groupwright_cluster_lag_velocity",
    MetricType.GAUGE,
    "Messages per second by which `lag` has changed over the last 5 minutes, negative if it shrinks; absent "
    "for the first 15 s after the partitions whose lag is known have changed.",
    _TOPIC,
    level=Level.TOPIC,
)
CATCH_UP = ExporterSpec(
    "groupwright_cluster_catch_up_seconds",
    MetricType.GAUGE,
    "Time until the group has caught up with the topic at this velocity; 0 if it has; absent if the lag "
    "does not shrink by commits, or is not known.",
    _TOPIC,
    level=Level.TOPIC,
)
RETENTION_MARGIN = ExporterSpec(
    "groupwright_cluster_retention_margin_messages",
    MetricType.GAUGE,
    "Messages from the beginning of the log to the committed offset, of the partition with the fewest among "
    "those with lag: so many can be deleted before unread ones are; absent without lag.",
    _TOPIC,
    level=Level.TOPIC,
)
DELETED_UNREAD = ExporterSpec(
    "groupwright_cluster_deleted_unread_messages",
    MetricType.GAUGE,
    "Messages after the committed offsets that are deleted, by retention or by a request, so `lag` leaves "
    "them out; 0 once the group has committed a later offset; absent of share groups.",
    _TOPIC,
    level=Level.TOPIC,
)
STUCK_PARTITIONS = ExporterSpec(
    "groupwright_cluster_stuck_partitions",
    MetricType.GAUGE,
    "Partitions of the topic that a member is assigned and lags behind in, and whose committed offset has "
    "not moved for `--stuck-seconds`; without one, those in which messages arrive. In share groups, those in "
    "which no message is processed for as long.",
    _TOPIC,
    level=Level.TOPIC,
)

# --- Partitions of groups, by choice ----------------------------------------------------------------

PARTITION_LAG = ExporterSpec(
    "groupwright_cluster_partition_lag",
    MetricType.GAUGE,
    "Messages from the committed to the last stable offset; only with `--by-partition`.",
    _PARTITION,
    level=Level.PARTITION,
)
PARTITION_LAG_SECONDS = ExporterSpec(
    "groupwright_cluster_partition_lag_seconds",
    MetricType.GAUGE,
    "Age of the oldest message that is not committed; 0 without lag, absent if it is not known; only with "
    "`--by-partition`.",
    _PARTITION,
    level=Level.PARTITION,
)
PARTITION_COMMITTED = ExporterSpec(
    "groupwright_cluster_partition_committed_offset",
    MetricType.GAUGE,
    "The committed offset; only with `--by-partition`.",
    _PARTITION,
    level=Level.PARTITION,
)

# --- The cluster ------------------------------------------------------------------------------------

GROUPS = ExporterSpec(
    "groupwright_cluster_groups",
    MetricType.GAUGE,
    "Groups by state, those included that the exporter leaves out.",
    ("state",),
    level=Level.CLUSTER,
)
TOPIC_END = ExporterSpec(
    "groupwright_cluster_topic_end_offsets",
    MetricType.GAUGE,
    "Sum of the ends of the logs of the topic's partitions that groups consume; its rate is that of "
    "production.",
    ("topic",),
    level=Level.CLUSTER,
)
TOPIC_TRANSACTION_AGE = ExporterSpec(
    "groupwright_cluster_topic_transaction_age_seconds",
    MetricType.GAUGE,
    "Age of the oldest open transaction that has partitions of the topic with held messages; absent if there "
    "is none, or the exporter may not see it.",
    ("topic", "transactional_id"),
    level=Level.CLUSTER,
)
HELD_PARTITIONS = ExporterSpec(
    "groupwright_cluster_offsets_topic_held_partitions",
    MetricType.GAUGE,
    "Partitions of `__consumer_offsets` whose last stable offset an open transaction holds back; absent if "
    "the exporter may not see the topic.",
    level=Level.CLUSTER,
)
HELD_MESSAGES = ExporterSpec(
    "groupwright_cluster_offsets_topic_held_messages",
    MetricType.GAUGE,
    "Records after the last stable offset of the partition of `__consumer_offsets`: compaction does not "
    "reach them; absent if there are none.",
    ("partition",),
    level=Level.CLUSTER,
)
HELD_SECONDS = ExporterSpec(
    "groupwright_cluster_offsets_topic_held_seconds",
    MetricType.GAUGE,
    "Time since the last stable offset of the partition of `__consumer_offsets` was first seen where it is; "
    "absent if nothing holds it back.",
    ("partition",),
    level=Level.CLUSTER,
)
TRANSACTION_AGE = ExporterSpec(
    "groupwright_cluster_offsets_transaction_age_seconds",
    MetricType.GAUGE,
    "Age of the open transaction that has partitions of `__consumer_offsets`; the oldest transactions alone, "
    "if there are many.",
    ("transactional_id",),
    level=Level.CLUSTER,
)

# --- The exporter -----------------------------------------------------------------------------------

BUILD_INFO = ExporterSpec(
    "groupwright_exporter_build_info",
    MetricType.INFO,
    "Version of Groupwright, and the source of committed offsets; always 1.",
    ("version", "source"),
    level=Level.EXPORTER,
)
UP = ExporterSpec(
    "groupwright_exporter_up",
    MetricType.GAUGE,
    "Whether the last refresh succeeded: 1 if it did. The page keeps the values of the last that did.",
    level=Level.EXPORTER,
)
REFRESH_TIMESTAMP = ExporterSpec(
    "groupwright_exporter_last_refresh_timestamp_seconds",
    MetricType.GAUGE,
    "Time of the last successful refresh, since the epoch; 0 before the first.",
    level=Level.EXPORTER,
)
REFRESH_DURATION = ExporterSpec(
    "groupwright_exporter_last_refresh_duration_seconds",
    MetricType.GAUGE,
    "Duration of the last successful refresh.",
    level=Level.EXPORTER,
)
REFRESHES = ExporterSpec(
    "groupwright_exporter_refreshes_total",
    MetricType.COUNTER,
    "Refreshes, by outcome.",
    ("outcome",),
    level=Level.EXPORTER,
)
SILENT_BROKERS = ExporterSpec(
    "groupwright_exporter_silent_brokers",
    MetricType.GAUGE,
    "Brokers that did not list their groups in the last refresh: groups may be missing.",
    level=Level.EXPORTER,
)
UNKNOWN_PARTITIONS = ExporterSpec(
    "groupwright_exporter_unknown_partitions",
    MetricType.GAUGE,
    "Pairs of groups and partitions without lag in the last refresh, since the log's end is not known: the "
    "topic does not exist any more, may not be seen, or its leader did not respond.",
    level=Level.EXPORTER,
)
GROUPS_LEFT_OUT = ExporterSpec(
    "groupwright_exporter_groups_left_out",
    MetricType.GAUGE,
    "Groups without series, by reason.",
    ("reason",),
    level=Level.EXPORTER,
)
SERIES = ExporterSpec(
    "groupwright_exporter_series",
    MetricType.GAUGE,
    "Series of groups, topics and partitions on the page.",
    level=Level.EXPORTER,
)
SERIES_LEFT_OUT = ExporterSpec(
    "groupwright_exporter_series_left_out",
    MetricType.GAUGE,
    "Series left out since `--max-series` is reached, by level.",
    ("level",),
    level=Level.EXPORTER,
)
RECORDS = ExporterSpec(
    "groupwright_exporter_records_total",
    MetricType.COUNTER,
    "Records of `__consumer_offsets` read, by outcome.",
    ("outcome",),
    offsets_topic_only=True,
    level=Level.EXPORTER,
)
CATALOGUE = defined_in(globals(), ExporterSpec)

STATES = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
REASONS_STUCK = ("rebalancing", "no_progress", "transaction")
REASONS_LEFT_OUT = ("excluded", "max_groups", "forbidden")
OUTCOMES = ("succeeded", "failed")
RECORD_OUTCOMES = ("decoded", "failed")

LABELS = {
    "group": "Name of the group.",
    "topic": "Name of the topic.",
    "partition": "Number of the partition.",
    "type": "Type of the group: `classic`, `consumer` (KIP-848), `share` or `streams`.",
    "assignor": "The assignor that the group uses; empty while there is none.",
    "coordinator": "Id of the broker that coordinates the group.",
    "state": "State of the group, as its coordinator names it: `Stable`, `Empty`, `PreparingRebalance` and "
    "`CompletingRebalance` of classic groups, `Assigning` and `Reconciling` of others.",
    "reason": "Of a stuck group: `rebalancing`: one rebalance has lasted for `--stuck-seconds`; "
    "`no_progress`: a member lags behind in a partition, which has a message to read, and its committed "
    "offset has not moved for as long (of a share group: no message is processed); `transaction`: "
    "messages of an assigned partition have been behind the same open transaction for as long, and the group "
    "has read all others. Of a group left out: `excluded`: by its name; `max_groups`: by `--max-groups`; "
    "`forbidden`: the credentials may list it, but not describe it or, if it is not classic, all topics "
    "of its members.",
    "transactional_id": "`transactional.id` of the producer.",
    "version": "Version of Groupwright.",
    "source": "`admin` or `offsets-topic`.",
    "outcome": "Of a refresh: `succeeded` or `failed`. Of a record: `decoded`: also those that say nothing "
    "about shown groups; `failed`: malformed or of an unknown kind.",
    "level": "What the series stand for: `cluster`, `group`, `topic` or `partition`.",
}
"""Meaning of each label."""


def specs(*, offsets_topic: bool) -> Iterator[ExporterSpec]:
    """Yield the metrics that a source has."""
    yield from (spec for spec in CATALOGUE if offsets_topic or not spec.offsets_topic_only)
