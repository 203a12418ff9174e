"""Dashboard of one group."""

from charts.dashboards.consumption import COMMITS, LAG
from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Board, Kind, Limit, Panel, Query, Row, Scope, Stacking

STATES: dict[float, tuple[str, str]] = {
    0: ("unjoined", "#8e8e8e"),
    1: ("preparing", "orange"),
    2: ("completing", "yellow"),
    3: ("stable", "green"),
}

STATE_OF_MEMBER = Panel(
    "State of each member",
    "Stable is good. A member that prepares waits for the others to join; one that completes waits "
    "for its assignment. "
    "A plain consumer's state is as old as librdkafka's statistics.",
    "short",
    (
        Query(
            'max by (client_id) (groupwright_membership_state{@member, state="preparing_rebalance"})'
            ' + 2 * max by (client_id) (groupwright_membership_state{@member, state="completing_rebalance"})'
            ' + 3 * max by (client_id) (groupwright_membership_state{@member, state="stable"})',
            "{{client_id}}",
        ),
    ),
    Kind.STATES,
    values=STATES,
    runbook="member-fenced",
    width=16,
)

_NOW = Row(
    "Now",
    (
        Panel(
            "Members",
            "Consumers of the group that are scraped.",
            "short",
            (Query("count(groupwright_consumer_info{@group})"),),
            Kind.STAT,
            width=3,
            height=4,
            runbook="member-flapping",
        ),
        Panel(
            "Rebalancing",
            "Members that have asked to join, or wait for their assignment.",
            "short",
            (
                Query(
                    "sum(groupwright_membership_state{@group, "
                    'state=~"preparing_rebalance|completing_rebalance"})',
                ),
            ),
            Kind.STAT,
            SOME,
            "rebalance-stuck",
            3,
            4,
        ),
        Panel(
            "Rebalances in 1 h",
            "As the member counts them that saw most: all see the same ones.",
            "short",
            (
                Query(
                    "max(sum without (protocol, outcome) "
                    '(increase(groupwright_rebalances_total{@group, outcome!="failed"}[1h])))',
                ),
            ),
            Kind.STAT,
            (limit("rebalanceStorm", "rebalances"),),
            "rebalance-storm",
            3,
            4,
            decimals=0,
        ),
        Panel(
            "95 % end within",
            "Duration of rebalances in 1 h, from their beginning to the assignment applied; nothing "
            "without a rebalance.",
            "s",
            (
                Query(
                    "histogram_quantile(0.95, sum by (le) "
                    "(increase(groupwright_rebalance_duration_seconds_bucket{@group}[1h])))",
                ),
            ),
            Kind.STAT,
            (limit("slowRebalance", "seconds"),),
            "slow-rebalance",
            3,
            4,
            no_value="none",
        ),
        Panel(
            "Partitions lost in 1 h",
            "Lost, not revoked: others may have owned them already, so messages may have been processed "
            "twice.",
            "short",
            (Query("sum(increase(groupwright_partitions_lost_total{@group}[1h]))"),),
            Kind.STAT,
            (Limit(1, "red"),),
            "partitions-lost",
            3,
            4,
            decimals=0,
        ),
        Panel(
            "Lag",
            "Messages between what the application has taken and the end of the log, over all "
            "partitions fetched.",
            "short",
            (Query("sum(groupwright_lag{@group})"),),
            Kind.STAT,
            (limit("lagGrowingWhileRebalancing", "messages"),),
            "lag-growing-while-rebalancing",
            3,
            4,
        ),
        Panel(
            "Poll interval used",
            "Time since the last poll as a share of max.poll.interval.ms, of the member with the "
            "highest. At 100 % it "
            "leaves the group.",
            "percentunit",
            (Query("max(groupwright_poll_interval_used_ratio{@group})"),),
            Kind.STAT,
            (limit("maxPollNearlyExceeded", "ratio"), Limit(1, "red")),
            "max-poll-exceeded",
            3,
            4,
        ),
        Panel(
            "Since the last rebalance",
            "How long the group has been left in peace.",
            "s",
            (Query("time() - max(groupwright_last_rebalance_timestamp_seconds{@group})"),),
            Kind.STAT,
            (Limit(300, "green"),),
            "rebalance-storm",
            3,
            4,
            decimals=0,
            base="orange",
        ),
    ),
)

_MEMBERS = Row(
    "Members",
    (
        STATE_OF_MEMBER,
        Panel(
            "Members by kind",
            "Whose their membership is, and of which kind their rebalances are; and how many members "
            "the leader counts. "
            "Where it counts more, some are not scraped, or run without instrumentation.",
            "short",
            (
                Query("count by (client, kind) (groupwright_consumer_info{@group})", "{{client}} {{kind}}"),
                Query("max(groupwright_leader_members{@group})", "as the leader counts"),
            ),
            decimals=0,
            runbook="instrumentation-silent",
        ),
    ),
)

_REBALANCES = Row(
    "Rebalances",
    (
        Panel(
            "Rebalances over time",
            "By outcome: completed; lost: completed after the partitions owned before were lost; "
            "failed: the coordinator "
            "refused the member, or its assignor failed.",
            "short",
            (
                Query(
                    "max by (outcome) (sum without (protocol) "
                    "(increase(groupwright_rebalances_total{@member}[$__rate_interval])))",
                    "{{outcome}}",
                ),
            ),
            runbook="rebalance-storm",
            stacking=Stacking.BARS,
        ),
        Panel(
            "Duration",
            "Quantiles over all members. Many short ones and few long ones: somebody is waited for.",
            "s",
            tuple(
                Query(
                    f"histogram_quantile({quantile}, sum by (le) "
                    "(increase(groupwright_rebalance_duration_seconds_bucket{@member}[$__rate_interval])))",
                    legend,
                )
                for quantile, legend in ((0.5, "median"), (0.95, "95 %"), (0.99, "99 %"))
            ),
            limits=(limit("slowRebalance", "seconds", "red"),),
            runbook="slow-rebalance",
        ),
        Panel(
            "Duration by phase (95 %)",
            "revoke: giving partitions up, callback included; join: waiting for the other members; "
            "sync: waiting for the "
            "assignment; join_and_sync: both, of a plain consumer; assign: until it is applied, "
            "callback included.",
            "s",
            (
                Query(
                    "histogram_quantile(0.95, sum by (phase, le) "
                    "(increase(groupwright_rebalance_phase_duration_seconds_bucket{@member}[$__rate_interval])))",
                    "{{phase}}",
                ),
            ),
            limits=(limit("slowRebalance", "seconds", "red"),),
            runbook="slow-rebalance",
        ),
        Panel(
            "Partitions assigned, revoked, lost",
            "Eager rebalances revoke and assign everything each time; cooperative ones only what "
            "moves. Lost ones may be "
            "processed twice.",
            "short",
            tuple(
                Query(
                    f"sum(increase(groupwright_partitions_{what}_total{{@member}}[$__rate_interval]))", what
                )
                for what in ("assigned", "revoked", "lost")
            ),
            runbook="partitions-lost",
            stacking=Stacking.BARS,
        ),
        Panel(
            "Churn: moves against the fewest needed",
            "Partitions that the leader took from one member for another: as many as an assignment as "
            "even needs, and what it "
            "moved beyond that. The second is churn, which another assignor would save. Even means by "
            "number: with weights, the leader may move more or fewer.",
            "short",
            (
                Query(
                    "sum(increase(groupwright_leader_min_moves_total{@group}[$__rate_interval]))", "needed"
                ),
                Query(
                    "sum(increase(groupwright_leader_moves_total{@group}[$__rate_interval]))"
                    " - sum(increase(groupwright_leader_min_moves_total{@group}[$__rate_interval]))",
                    "beyond",
                ),
            ),
            stacking=Stacking.BARS,
            runbook="imbalance",
            no_value="no leader reports it",
        ),
        Panel(
            "Imbalance",
            "In partitions: what the member with the most has above the average; and the leader's own "
            "measure, which is 0 "
            "for an assignment as even as the subscriptions let it be.",
            "short",
            (
                Query(
                    "max(sum without (topic) (groupwright_partitions_owned{@group}))"
                    " - sum(groupwright_partitions_owned{@group}) / count(groupwright_consumer_info{@group})",
                    "most above average",
                ),
                Query("max(groupwright_leader_imbalance{@group})", "the leader's measure"),
            ),
            limits=SOME,
            runbook="imbalance",
        ),
        Panel(
            "Partitions owned",
            "By member. A step down of all at once is an eager rebalance.",
            "short",
            (Query("sum by (client_id) (groupwright_partitions_owned{@member})", "{{client_id}}"),),
            runbook="imbalance",
            width=12,
            stacking=Stacking.AREAS,
        ),
        Panel(
            "Partitions owned by topic",
            "Fewer than the topic has: some are unassigned, or assigned to members that are not scraped.",
            "short",
            (Query("sum by (topic) (groupwright_partitions_owned{@group})", "{{topic}}"),),
            runbook="rebalance-stuck",
            width=12,
        ),
    ),
)

_NO_WEIGHTS = "no leader here knows weights"

_LOAD = Row(
    "Load, of a group whose assignor has weights",
    (
        Panel(
            "Load of the busiest member",
            "Load over capacity, relative to the average, as the leader measures it at each rebalance and at "
            "each load check. "
            "No assignment is below the bound: one heavy partition can be more than a member's share.",
            "percentunit",
            (
                Query("max(groupwright_leader_load_peak_ratio{@group})", "busiest member"),
                Query("max(groupwright_leader_load_bound_ratio{@group})", "lower bound"),
            ),
            runbook="imbalance",
            no_value=_NO_WEIGHTS,
        ),
        Panel(
            "Load checks",
            "By outcome: rebalanced: partitions move; unchanged: a rebalance would move none; limited: it "
            "would move more than load.check.max.moves allows; "
            "failed: the check raised an exception, which the leader's log has.",
            "short",
            (
                Query(
                    "sum by (outcome) (increase(groupwright_load_checks_total{@group}[$__rate_interval]))",
                    "{{outcome}}",
                ),
            ),
            runbook="imbalance",
            stacking=Stacking.BARS,
            no_value=_NO_WEIGHTS,
        ),
        Panel(
            "Moves for the load",
            "Partitions that load checks have moved. Members that come and go cause further moves: the panel "
            "of churn has them all.",
            "short",
            (
                Query(
                    "sum(increase(groupwright_load_check_moves_total{@group}[$__rate_interval]))",
                    "partitions",
                ),
            ),
            runbook="imbalance",
            stacking=Stacking.BARS,
            no_value=_NO_WEIGHTS,
        ),
    ),
)

_INSTRUMENTATION = Row(
    "Advice and instrumentation",
    (
        Panel(
            "Advice given",
            "By rule, since the process began; the application's log has it in words, and "
            "`groupwright doctor` explains it.",
            "short",
            (Query("sum by (rule) (groupwright_warnings_total{@member})", "{{rule}}"),),
            limits=SOME,
            runbook="rebalance-storm",
            no_value="none was given",
        ),
        Panel(
            "Age of statistics",
            "Lag, and of plain consumers the coordinator's metrics, are as old as this. Statistics "
            "come every "
            "statistics.interval.ms, and only while the application polls.",
            "s",
            (Query("max by (client_id) (groupwright_statistics_age_seconds{@member})", "{{client_id}}"),),
            limits=(Limit(60, "orange"),),
            runbook="instrumentation-failing",
        ),
        Panel(
            "Records of rebalances, and failures of measuring",
            "What became of the records for sinks (sent, dropped, failed), and failures inside the "
            "instrumentation.",
            "short",
            (
                Query(
                    "sum by (sink, outcome) (increase(groupwright_events_total{@member}[$__rate_interval]))",
                    "{{sink}} {{outcome}}",
                ),
                Query(
                    "sum(increase(groupwright_instrumentation_errors_total{@member}[$__rate_interval]))",
                    "failures of measuring",
                ),
            ),
            runbook="instrumentation-failing",
            stacking=Stacking.BARS,
        ),
    ),
)

BOARD = Board(
    "groupwright-group",
    "Groupwright / A group at a glance",
    "One consumer group: who is in it, how often and how long it rebalances, what that costs, and how "
    "far it lags.",
    Scope.GROUP,
    (_NOW, _MEMBERS, _REBALANCES, _LOAD, LAG, COMMITS, _INSTRUMENTATION),
)
