"""Dashboard of all groups: which of them need attention."""

from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Board, Kind, Limit, Panel, Query, Row, Scope, Stacking

_STORM = limit("rebalanceStorm", "rebalances")


def _stat(title: str, description: str, expr: str, unit: str = "short", **more: object) -> Panel:
    return Panel(title, description, unit, (Query(expr),), Kind.STAT, width=4, height=4, **more)  # type: ignore[arg-type] # passed on


_NOW = Row(
    "Now",
    (
        _stat(
            "Groups",
            "Groups with a consumer that is scraped.",
            "count(group:groupwright_members:count{@group})",
            runbook="instrumentation-silent",
        ),
        _stat(
            "Members",
            "Consumers that are scraped.",
            "sum(group:groupwright_members:count{@group})",
            runbook="instrumentation-silent",
        ),
        _stat(
            "Groups rebalancing",
            "Groups of which some member has asked to join, or waits for its assignment.",
            "count(count by (@target, group) (member:groupwright_rebalancing:max{@group} == 1)) "
            "or 0 * count(member:groupwright_rebalancing:max{@group})",
            limits=SOME,
            runbook="rebalance-stuck",
        ),
        _stat(
            "Groups that rebalance much",
            "In the last hour as often as the storm's alert allows in its window.",
            f"count(group:groupwright_rebalances:increase1h{{@group}} >= {_STORM.value:g}) "
            "or 0 * count(group:groupwright_rebalances:increase1h{@group})",
            limits=SOME,
            runbook="rebalance-storm",
        ),
        _stat(
            "Partitions lost in 1 h",
            "Lost, not revoked: messages may have been processed twice.",
            "sum(group:groupwright_partitions_lost:increase1h{@group})",
            limits=(Limit(1, "red"),),
            decimals=0,
            runbook="partitions-lost",
        ),
        _stat(
            "Lag",
            "Messages, over all groups.",
            "sum(group:groupwright_lag:sum{@group})",
            limits=(limit("lagGrowingWhileRebalancing", "messages"),),
            runbook="lag-growing-while-rebalancing",
        ),
    ),
)

_OFFENDERS = Row(
    "Top offenders",
    (
        Panel(
            "Groups",
            "In the last hour, most rebalances first. A group leads to its own dashboard.",
            "short",
            (
                Query(
                    "sum by (@target, group) (group:groupwright_rebalances:increase1h{@group})",
                    "Rebalances",
                ),
                Query(
                    "sum by (@target, group) (group:groupwright_rebalance_duration_seconds:p95_1h{@group})",
                    "95 % within",
                ),
                Query(
                    "sum by (@target, group) "
                    "(group:groupwright_rebalance_duration_seconds_sum:rate5m{@group})",
                    "Time rebalancing",
                ),
                Query(
                    "sum by (@target, group) (group:groupwright_partitions_lost:increase1h{@group})", "Lost"
                ),
                Query("sum by (@target, group) (group:groupwright_lag:sum{@group})", "Lag"),
                Query("sum by (@target, group) (group:groupwright_members:count{@group})", "Members"),
            ),
            Kind.TABLE,
            runbook="rebalance-storm",
            width=16,
            decimals=0,
            units={"95 % within": "s", "Time rebalancing": "percentunit"},
            group_links=True,
        ),
        Panel(
            "Alerts",
            "Groupwright's alerts that fire or wait for their time.",
            "short",
            (
                Query(
                    'count by (alertname, alertstate, group) (ALERTS{@group, alertname=~"Groupwright.*"})',
                    "Series",
                ),
            ),
            Kind.TABLE,
            SOME,
            no_value="none",
        ),
    ),
)

_STORMS = Row(
    "Storms and flapping",
    (
        Panel(
            "Rebalances in 1 h, top ten",
            "By group.",
            "short",
            (Query("topk(10, group:groupwright_rebalances:increase1h{@group})", "{{namespace}} {{group}}"),),
            limits=(_STORM,),
            runbook="rebalance-storm",
        ),
        Panel(
            "Share of time spent rebalancing, top ten",
            "Of the member that spent most. With an eager assignor nothing is consumed meanwhile.",
            "percentunit",
            (
                Query(
                    "topk(10, group:groupwright_rebalance_duration_seconds_sum:rate5m{@group})",
                    "{{namespace}} {{group}}",
                ),
            ),
            limits=(Limit(0.1, "orange"),),
            runbook="rebalance-storm",
        ),
        Panel(
            "Duration of rebalances in 1 h (95 %), top ten",
            "By group; nothing where none has ended.",
            "s",
            (
                Query(
                    "topk(10, group:groupwright_rebalance_duration_seconds:p95_1h{@group})",
                    "{{namespace}} {{group}}",
                ),
            ),
            limits=(limit("slowRebalance", "seconds", "red"),),
            runbook="slow-rebalance",
        ),
        Panel(
            "Members that flap, top ten",
            "Times that a member was lost, refused or restarted in 30 minutes.",
            "short",
            (
                Query(
                    "topk(10, sum without (protocol, outcome) "
                    '(increase(groupwright_rebalances_total{@member, outcome=~"lost|failed"}[30m]))'
                    " + resets(groupwright_poll_seconds_total{@member}[30m]))",
                    "{{group}} {{client_id}}",
                ),
            ),
            limits=(limit("memberFlapping", "times"),),
            runbook="member-flapping",
        ),
        Panel(
            "Partitions lost in 1 h",
            "By group.",
            "short",
            (Query("group:groupwright_partitions_lost:increase1h{@group}", "{{namespace}} {{group}}"),),
            limits=(Limit(1, "red"),),
            runbook="partitions-lost",
        ),
        Panel(
            "Evicted and fenced, by group",
            "Polled too late; or replaced by another member with the same group.instance.id.",
            "short",
            (
                Query(
                    "sum by (@target, group) "
                    "(increase(groupwright_max_poll_exceeded_total{@member}[$__rate_interval]))",
                    "{{group}} polled too late",
                ),
                Query(
                    "sum by (@target, group) (increase(groupwright_fenced_total{@member}[$__rate_interval]))",
                    "{{group}} fenced",
                ),
            ),
            limits=SOME,
            runbook="max-poll-exceeded",
            stacking=Stacking.BARS,
        ),
        Panel(
            "Lag, top ten",
            "By group.",
            "short",
            (Query("topk(10, group:groupwright_lag:sum{@group})", "{{namespace}} {{group}}"),),
            limits=(limit("lagGrowingWhileRebalancing", "messages"),),
            runbook="lag-growing-while-rebalancing",
            width=12,
        ),
        Panel(
            "What runs",
            "Processes by Groupwright's and confluent-kafka's versions.",
            "short",
            (Query("count by (version, confluent_kafka) (groupwright_build_info{@namespace})", "Processes"),),
            Kind.TABLE,
            runbook="instrumentation-silent",
            width=12,
        ),
    ),
)

_PRODUCERS = Row(
    "Producers",
    (
        Panel(
            "Queue used",
            "How full the producer's queue is, of messages or of bytes. At 100 % produce() raises "
            "BufferError.",
            "percentunit",
            (
                Query(
                    "max by (client_id) (groupwright_producer_queue_used_ratio{@namespace})", "{{client_id}}"
                ),
            ),
            limits=(Limit(0.8, "orange"), Limit(1, "red")),
            runbook="instrumentation-failing",
        ),
        Panel(
            "Latency",
            "How long messages wait in the producer's queue, and the round trip to the brokers.",
            "s",
            (
                Query(
                    "max by (client_id) (groupwright_producer_queue_latency_seconds{@namespace})",
                    "{{client_id}} in the queue",
                ),
                Query(
                    "max by (client_id) (groupwright_producer_round_trip_seconds{@namespace})",
                    "{{client_id}} round trip",
                ),
            ),
            limits=(Limit(1, "orange"),),
            runbook="coordinator-errors",
        ),
        Panel(
            "Messages sent",
            "By producer.",
            "ops",
            (
                Query(
                    "sum by (client_id) "
                    "(rate(groupwright_producer_messages_total{@namespace}[$__rate_interval]))",
                    "{{client_id}}",
                ),
            ),
            runbook="instrumentation-failing",
        ),
        Panel(
            "What failed",
            "Retried requests, requests without a response, errors reported to error_cb, and failures "
            "inside the "
            "instrumentation.",
            "short",
            (
                Query(
                    "sum by (client_id) "
                    "(increase(groupwright_producer_retries_total{@namespace}[$__rate_interval]))",
                    "{{client_id}} sent again",
                ),
                Query(
                    "sum by (client_id) "
                    "(increase(groupwright_producer_request_errors_total{@namespace}[$__rate_interval]))",
                    "{{client_id}} no answer",
                ),
                Query(
                    "sum by (client_id, error) "
                    "(increase(groupwright_producer_client_errors_total{@namespace}[$__rate_interval]))",
                    "{{client_id}} {{error}}",
                ),
                Query(
                    "sum by (client_id) "
                    "(increase(groupwright_producer_instrumentation_errors_total{@namespace}[$__rate_interval]))",
                    "{{client_id}} failures of measuring",
                ),
            ),
            limits=SOME,
            runbook="coordinator-errors",
            stacking=Stacking.BARS,
            width=12,
        ),
        Panel(
            "Age of producers' statistics",
            "The producers' metrics are as old as this; statistics come only while the application "
            "polls or flushes.",
            "s",
            (
                Query(
                    "max by (client_id) (groupwright_producer_statistics_age_seconds{@namespace})",
                    "{{client_id}}",
                ),
            ),
            limits=(Limit(60, "orange"),),
            runbook="instrumentation-failing",
            width=12,
        ),
    ),
)

BOARD = Board(
    "groupwright-fleet",
    "Groupwright / A fleet of groups",
    "All groups side by side: which of them rebalances much, slowly, or loses partitions. Rests on "
    "the recording rules of "
    "the chart's PrometheusRule.",
    Scope.FLEET,
    (_NOW, _OFFENDERS, _STORMS, _PRODUCERS),
)
