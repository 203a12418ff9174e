"""Dashboard of every group of a cluster, from the metrics of `groupwright exporter`."""

from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Board, Kind, Limit, Panel, Query, Row, Scope

_LAG = limit("clusterLag", "seconds")
_HELD = limit("offsetsTopicHeld", "seconds")
_AGE = limit("exporterFailing", "seconds")


def _stat(title: str, description: str, expr: str, unit: str = "short", **more: object) -> Panel:
    return Panel(title, description, unit, (Query(expr),), Kind.STAT, width=4, height=4, **more)  # type: ignore[arg-type] # passed on


_NOW = Row(
    "Now",
    (
        _stat(
            "Groups",
            "Groups of the cluster, those included that the exporter leaves out.",
            "sum(groupwright_cluster_groups{@namespace})",
            runbook="exporter-failing",
        ),
        _stat(
            "Groups without members",
            "They consume nothing.",
            'sum(groupwright_cluster_groups{@namespace, state="Empty"}) '
            "or 0 * sum(groupwright_cluster_groups{@namespace})",
            runbook="cluster-lag",
        ),
        _stat(
            "Stuck groups",
            "In a rebalance that does not end, or without progress.",
            "sum(max by (@target, group) (groupwright_cluster_group_stuck{@group}))",
            limits=(Limit(1, "red"),),
            runbook="cluster-group-stuck",
        ),
        _stat(
            "Lag",
            "Messages, over all groups.",
            "sum(groupwright_cluster_lag{@group})",
            runbook="cluster-lag",
        ),
        _stat(
            "Oldest message",
            "Age of the oldest message that a group has not committed.",
            "max(groupwright_cluster_lag_seconds{@group})",
            "s",
            limits=(_LAG,),
            runbook="cluster-lag",
        ),
        _stat(
            "Since the last refresh",
            "All values are as old as this.",
            "time() - min(groupwright_exporter_last_refresh_timestamp_seconds{@namespace} > 0)",
            "s",
            limits=(_AGE,),
            runbook="exporter-failing",
        ),
    ),
)

_GROUPS = Row(
    "Groups",
    (
        Panel(
            "Groups",
            "The oldest uncommitted message first.",
            "short",
            (
                Query("max by (@target, group) (groupwright_cluster_lag_seconds{@group})", "Oldest message"),
                Query("sum by (@target, group) (groupwright_cluster_lag{@group})", "Lag"),
                Query("max by (@target, group) (groupwright_cluster_group_members{@group})", "Members"),
                Query(
                    "max by (@target, group) (groupwright_cluster_group_idle_members{@group})",
                    "Without partitions",
                ),
                Query(
                    "max by (@target, group) "
                    "(increase(groupwright_cluster_group_rebalances_total{@group}[1h]))",
                    "Rebalances in 1 h",
                ),
                Query("max by (@target, group) (groupwright_cluster_group_generation{@group})", "Generation"),
                Query("max by (@target, group) (groupwright_cluster_group_stuck{@group})", "Stuck"),
            ),
            Kind.TABLE,
            runbook="cluster-lag",
            width=16,
            decimals=0,
            units={"Oldest message": "s"},
        ),
        Panel(
            "States",
            "Groups by state.",
            "short",
            (Query("sum by (state) (groupwright_cluster_groups{@namespace})", "{{state}}"),),
            runbook="cluster-group-stuck",
        ),
        Panel(
            "Oldest message, top ten",
            "Age of the oldest message that is not committed, by group and topic.",
            "s",
            (
                Query(
                    "topk(10, max by (@target, group, topic) (groupwright_cluster_lag_seconds{@group}))",
                    "{{group}} {{topic}}",
                ),
            ),
            limits=(_LAG,),
            runbook="cluster-lag",
        ),
        Panel(
            "Lag, top ten",
            "Messages that are not committed, by group and topic; and those of partitions without a "
            "committed offset, which the lag leaves out.",
            "short",
            (
                Query(
                    "topk(10, sum by (@target, group, topic) (groupwright_cluster_lag{@group}))",
                    "{{group}} {{topic}}",
                ),
                Query(
                    "topk(10, sum by (@target, group, topic) "
                    "(groupwright_cluster_uncommitted_messages{@group}))",
                    "{{group}} {{topic}} without an offset",
                ),
            ),
            runbook="cluster-lag",
        ),
        Panel(
            "Velocity of the lag, top ten",
            "Messages per second by which the lag grows, over the last 5 minutes; negative if it shrinks.",
            "ops",
            (
                Query(
                    "topk(10, max by (@target, group, topic) (groupwright_cluster_lag_velocity{@group}))",
                    "{{group}} {{topic}}",
                ),
            ),
            runbook="cluster-lag",
        ),
        Panel(
            "Time to catch up, top ten",
            "At this velocity; nothing is shown of a lag that does not shrink.",
            "s",
            (
                Query(
                    "topk(10, max by (@target, group, topic) (groupwright_cluster_catch_up_seconds{@group}))",
                    "{{group}} {{topic}}",
                ),
            ),
            runbook="cluster-lag",
        ),
        Panel(
            "Deleted before they were read, and left until then",
            "Messages after committed offsets that are deleted; and messages before the committed offset, "
            "which are deleted first, of the partition with the fewest.",
            "short",
            (
                Query(
                    "topk(10, max by (@target, group, topic) "
                    "(groupwright_cluster_deleted_unread_messages{@group}))",
                    "{{group}} {{topic}} deleted",
                ),
                Query(
                    "bottomk(10, min by (@target, group, topic) "
                    "(groupwright_cluster_retention_margin_messages{@group}))",
                    "{{group}} {{topic}} left",
                ),
            ),
            runbook="cluster-unread-deleted",
        ),
        Panel(
            "Partition that lags most, top ten",
            "Messages of that partition, by group and topic.",
            "short",
            (
                Query(
                    "topk(10, max by (@target, group, topic) (groupwright_cluster_lag_max{@group}))",
                    "{{group}} {{topic}}",
                ),
            ),
            runbook="cluster-lag",
        ),
        Panel(
            "Behind open transactions, and without messages, top ten",
            "Messages after the last stable offset, and offsets of markers and aborted messages: neither is "
            "lag.",
            "short",
            (
                Query(
                    "topk(10, max by (@target, group, topic) (groupwright_cluster_held_messages{@group}))",
                    "{{group}} {{topic}} held",
                ),
                Query(
                    "topk(10, max by (@target, group, topic) "
                    "(groupwright_cluster_unreadable_offsets{@group}))",
                    "{{group}} {{topic}} unreadable",
                ),
            ),
            width=12,
            runbook="cluster-lag",
        ),
        Panel(
            "Oldest open transaction, top ten",
            "Age of the oldest transaction that holds messages of a topic back.",
            "s",
            (
                Query(
                    "topk(10, max by (@target, topic, transactional_id) "
                    "(groupwright_cluster_topic_transaction_age_seconds{@namespace}))",
                    "{{topic}} {{transactional_id}}",
                ),
            ),
            width=12,
            runbook="cluster-lag",
        ),
    ),
)

_REBALANCES = Row(
    "Rebalances and progress",
    (
        Panel(
            "Rebalances in 1 h, top ten",
            "Rebalances that the exporter has seen.",
            "short",
            (
                Query(
                    "topk(10, max by (@target, group) "
                    "(increase(groupwright_cluster_group_rebalances_total{@group}[1h])))",
                    "{{group}} rebalances",
                ),
                Query(
                    "topk(10, max by (@target, group) "
                    "(increase(groupwright_cluster_group_generation_changes_total{@group}[1h])))",
                    "{{group}} generations",
                ),
            ),
            limits=(limit("rebalanceStorm", "rebalances"),),
            runbook="rebalance-storm",
        ),
        Panel(
            "In a rebalance, top ten",
            "Time since the present rebalance was first seen.",
            "s",
            (
                Query(
                    "topk(10, max by (@target, group) "
                    "(groupwright_cluster_group_rebalancing_seconds{@group}))",
                    "{{group}}",
                ),
            ),
            limits=(Limit(300, "red"),),
            runbook="cluster-group-stuck",
        ),
        Panel(
            "Partitions that are not consumed as they should be",
            "Without progress; assigned without a committed offset; committed beyond the end of the log; of "
            "topics that no member subscribes to; or behind for an unknown time.",
            "short",
            (
                Query(
                    "sum by (@target, group) (groupwright_cluster_stuck_partitions{@group})",
                    "{{group}} stuck",
                ),
                Query(
                    "sum by (@target, group) (groupwright_cluster_uncommitted_partitions{@group})",
                    "{{group}} uncommitted",
                ),
                Query(
                    "sum by (@target, group) (groupwright_cluster_beyond_end_partitions{@group})",
                    "{{group}} beyond the end",
                ),
                Query(
                    "sum by (@target, group) (groupwright_cluster_unsubscribed_partitions{@group})",
                    "{{group}} unsubscribed",
                ),
                Query(
                    "sum by (@target, group) (groupwright_cluster_lag_seconds_unknown_partitions{@group})",
                    "{{group}} time unknown",
                ),
            ),
            limits=SOME,
            runbook="cluster-group-stuck",
        ),
        Panel(
            "Produced and consumed",
            "Messages per second, of the topics that the groups consume.",
            "ops",
            (
                Query(
                    "sum by (@target, topic) "
                    "(deriv(groupwright_cluster_topic_end_offsets{@namespace}[$__rate_interval]))",
                    "{{topic}} produced",
                ),
                Query(
                    "sum by (@target, group) "
                    "(deriv(groupwright_cluster_committed_offsets{@group}[$__rate_interval]))",
                    "{{group}} consumed",
                ),
            ),
            runbook="cluster-lag",
        ),
        Panel(
            "Assigned partitions",
            "By group and topic; not known while a classic group rebalances.",
            "short",
            (
                Query(
                    "sum by (@target, group, topic) (groupwright_cluster_assigned_partitions{@group})",
                    "{{group}} {{topic}}",
                ),
            ),
            runbook="cluster-group-stuck",
        ),
        Panel(
            "Commits",
            "Committed offsets per second, with --source offsets-topic.",
            "ops",
            (
                Query(
                    "sum by (@target, group) "
                    "(rate(groupwright_cluster_group_commits_total{@group}[$__rate_interval]))",
                    "{{group}}",
                ),
            ),
            runbook="cluster-group-stuck",
        ),
    ),
)

_CLUSTER = Row(
    "The offsets topic and the exporter",
    (
        Panel(
            "Held back by transactions",
            "For how long the last stable offset of partitions of __consumer_offsets has not moved, and the "
            "age of the transactions with offsets.",
            "s",
            (
                Query(
                    "max by (@target) (groupwright_cluster_offsets_topic_held_seconds{@namespace}) "
                    "or 0 * max by (@target) (groupwright_cluster_offsets_topic_held_partitions{@namespace})",
                    "held back",
                ),
                Query(
                    "max by (transactional_id) "
                    "(groupwright_cluster_offsets_transaction_age_seconds{@namespace}) "
                    "or 0 * max(groupwright_cluster_offsets_topic_held_partitions{@namespace})",
                    "{{transactional_id}} open",
                ),
            ),
            limits=(_HELD,),
            runbook="offsets-topic-held",
        ),
        Panel(
            "Partitions and records held back",
            "Partitions of __consumer_offsets, and their records after the last stable offset.",
            "short",
            (
                Query(
                    "sum by (@target) (groupwright_cluster_offsets_topic_held_partitions{@namespace})",
                    "partitions",
                ),
                Query(
                    "sum by (@target) (groupwright_cluster_offsets_topic_held_messages{@namespace}) "
                    "or 0 * sum by (@target) (groupwright_cluster_offsets_topic_held_partitions{@namespace})",
                    "records",
                ),
            ),
            limits=SOME,
            runbook="offsets-topic-held",
        ),
        Panel(
            "Refreshes",
            "Their duration, and how many have failed.",
            "short",
            (
                Query(
                    "max by (@target) (groupwright_exporter_last_refresh_duration_seconds{@namespace})",
                    "duration in seconds",
                ),
                Query(
                    "sum by (@target) (increase("
                    'groupwright_exporter_refreshes_total{@namespace, outcome="failed"}[$__rate_interval]))',
                    "failed",
                ),
                Query(
                    "sum by (@target) (groupwright_exporter_silent_brokers{@namespace})",
                    "brokers without answer",
                ),
            ),
            runbook="exporter-failing",
        ),
        Panel(
            "Left out",
            "Groups and series beyond the exporter's limits, groups left out by name, and partitions whose "
            "end is not known.",
            "short",
            (
                Query(
                    "sum by (reason) (groupwright_exporter_groups_left_out{@namespace})", "groups, {{reason}}"
                ),
                Query(
                    "sum by (level) (groupwright_exporter_series_left_out{@namespace})", "series, {{level}}"
                ),
                Query(
                    "sum by (@target) (groupwright_exporter_unknown_partitions{@namespace})",
                    "partitions without end",
                ),
            ),
            limits=SOME,
            runbook="exporter-failing",
        ),
        Panel(
            "Series and records",
            "Series on the page; and records of __consumer_offsets read per second, with --source "
            "offsets-topic.",
            "short",
            (
                Query("sum by (@target) (groupwright_exporter_series{@namespace})", "series"),
                Query(
                    "sum by (outcome) "
                    "(rate(groupwright_exporter_records_total{@namespace}[$__rate_interval]))",
                    "records/s, {{outcome}}",
                ),
            ),
            runbook="exporter-failing",
        ),
        Panel(
            "What runs",
            "Exporters by version and source, and whether their last refresh succeeded.",
            "short",
            (
                Query(
                    "count by (version, source) (groupwright_exporter_build_info{@namespace})", "Exporters"
                ),
                Query("min by (@target) (groupwright_exporter_up{@namespace})", "Up"),
            ),
            Kind.TABLE,
            runbook="exporter-failing",
        ),
        Panel(
            "Coordinators",
            "Groups by type and coordinator.",
            "short",
            (Query("count by (type, coordinator) (groupwright_cluster_group_info{@group})", "Groups"),),
            Kind.TABLE,
            runbook="cluster-group-stuck",
            width=12,
        ),
        Panel(
            "Groups in other states than Stable and Empty",
            "Now.",
            "short",
            (
                Query(
                    "sum by (@target, group, state) "
                    '(groupwright_cluster_group_state{@group, state!~"Stable|Empty"})',
                    "Groups",
                ),
            ),
            Kind.TABLE,
            runbook="cluster-group-stuck",
            no_value="none",
            width=12,
        ),
    ),
)

BOARD = Board(
    "groupwright-cluster",
    "Groupwright / Every group of a cluster",
    "All consumer groups of a Kafka cluster, without instrumented clients, from groupwright exporter.",
    Scope.CLUSTER,
    (_NOW, _GROUPS, _REBALANCES, _CLUSTER),
)
