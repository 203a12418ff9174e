"""Panels of a group's consumption: lag, polling, commits."""

from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Limit, Panel, Query, Row, Stacking

LAG = Row(
    "Lag and polling",
    (
        Panel(
            "Lag by topic",
            "Of the partitions that are fetched; an unassigned one is not counted.",
            "short",
            (Query("sum by (topic) (groupwright_lag{@member})", "{{topic}}"),),
            limits=(limit("lagGrowingWhileRebalancing", "messages"),),
            runbook="lag-growing-while-rebalancing",
        ),
        Panel(
            "Committed lag by topic",
            "From the committed offsets: also messages that are received and not committed.",
            "short",
            (Query("sum by (topic) (groupwright_committed_lag{@member})", "{{topic}}"),),
            runbook="lag-growing-while-rebalancing",
        ),
        Panel(
            "Fetched messages by topic",
            "Messages per second, prefetched ones included.",
            "ops",
            (
                Query(
                    "sum by (topic) (rate(groupwright_fetched_messages_total{@member}[$__rate_interval]))",
                    "{{topic}}",
                ),
            ),
            runbook="lag-growing-while-rebalancing",
        ),
        Panel(
            "Fetched bytes by topic",
            "Bytes of messages per second, uncompressed.",
            "Bps",
            (
                Query(
                    "sum by (topic) (rate(groupwright_fetched_bytes_total{@member}[$__rate_interval]))",
                    "{{topic}}",
                ),
            ),
            runbook="lag-growing-while-rebalancing",
        ),
        Panel(
            "Lag of the worst partition",
            "By topic. Far above the mean: one partition is hot, or its member is slow.",
            "short",
            (Query("max by (topic) (groupwright_lag_max{@member})", "{{topic}}"),),
            limits=(limit("lagGrowingWhileRebalancing", "messages"),),
            runbook="lag-growing-while-rebalancing",
        ),
        Panel(
            "Lag of partitions, worst ten",
            "Only for consumers instrumented with lag_by_partition=True.",
            "short",
            (
                Query(
                    "topk(10, sum by (topic, partition) (groupwright_partition_lag{@member}))",
                    "{{topic}} {{partition}}",
                ),
            ),
            limits=(limit("lagGrowingWhileRebalancing", "messages"),),
            runbook="lag-growing-while-rebalancing",
            no_value="only with lag_by_partition=True",
        ),
        Panel(
            "Poll idle",
            "Share of time in which the application waits inside poll. Near 0 it is busy all the "
            "time, and lags soon.",
            "percentunit",
            (
                Query(
                    "rate(groupwright_poll_seconds_total{@member}[$__rate_interval])",
                    "{{client_id}}",
                ),
            ),
            limits=(Limit(0.05, "green"),),
            base="orange",
            runbook="max-poll-nearly-exceeded",
        ),
        Panel(
            "Poll interval used",
            "Time since the last poll as a share of max.poll.interval.ms. At 100 % the member leaves the "
            "group.",
            "percentunit",
            (Query("groupwright_poll_interval_used_ratio{@member}", "{{client_id}}"),),
            limits=(limit("maxPollNearlyExceeded", "ratio"), Limit(1, "red")),
            runbook="max-poll-nearly-exceeded",
        ),
        Panel(
            "Since the last heartbeat",
            "Since the coordinator last answered one. At session.timeout.ms (45 s by default) it "
            "holds the member for dead.",
            "s",
            (Query("groupwright_last_heartbeat_age_seconds{@member}", "{{client_id}}"),),
            limits=(Limit(15, "orange"), Limit(45, "red")),
            runbook="coordinator-errors",
            no_value="plain consumers do not tell",
        ),
    ),
)

COMMITS = Row(
    "Commits",
    (
        Panel(
            "Commits",
            "Commits that ended, well or not.",
            "ops",
            (
                Query(
                    "sum by (client_id) (rate(groupwright_commits_total{@member}[$__rate_interval]))",
                    "{{client_id}}",
                ),
            ),
            runbook="coordinator-errors",
        ),
        Panel(
            "Commits that failed",
            "By error. During a rebalance a few are refused; what they would have committed is "
            "processed again.",
            "short",
            (
                Query(
                    "sum by (error) (increase(groupwright_commit_failures_total{@member}[$__rate_interval]))",
                    "{{error}}",
                ),
            ),
            limits=SOME,
            runbook="coordinator-errors",
            stacking=Stacking.BARS,
            no_value="none has failed",
        ),
        Panel(
            "Duration of commits (95 %)",
            "Of a plain consumer: of its synchronous ones.",
            "s",
            (
                Query(
                    "histogram_quantile(0.95, sum by (client_id, le) "
                    "(increase(groupwright_commit_duration_seconds_bucket{@member}[$__rate_interval])))",
                    "{{client_id}}",
                ),
            ),
            limits=(Limit(1, "orange"),),
            runbook="coordinator-errors",
        ),
        Panel(
            "Since the last successful commit",
            "An idle member commits nothing: see it beside the committed lag.",
            "s",
            (Query("groupwright_last_commit_age_seconds{@member}", "{{client_id}}"),),
            width=12,
            runbook="coordinator-errors",
        ),
        Panel(
            "Throttled by a quota",
            "Longest throttle time in brokers' responses of the statistics interval.",
            "s",
            (Query("groupwright_throttle_seconds{@member}", "{{client_id}}"),),
            limits=SOME,
            width=12,
            runbook="lag-growing-while-rebalancing",
        ),
    ),
)
