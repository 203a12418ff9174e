"""Dashboard of rebalances in detail: phases, callbacks, coordinator."""

from charts.dashboards.group import STATE_OF_MEMBER
from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Board, Kind, Limit, Panel, Query, Row, Scope, Stacking

PHASES = ("revoke", "join", "sync", "join_and_sync", "assign")


def _mean(metric: str, matchers: str) -> str:
    """Return a histogram's mean over the dashboard's time range, by member."""
    of_time = (
        f"sum by (client_id) (increase({metric}_{part}{{{matchers}}}[$__range])) "
        for part in ("sum", "count")
    )
    return "/ ".join(of_time).strip() + " >= 0"


_WHEN = Row(
    "When, and who was late",
    (
        STATE_OF_MEMBER,
        Panel(
            "Generation",
            "Whose assignment was applied last. Who stays behind has not joined, or was left out.",
            "none",
            (Query("max by (client_id) (groupwright_generation{@member})", "{{client_id}}"),),
            decimals=0,
            runbook="rebalance-stuck",
        ),
        Panel(
            "The last rebalance of each member",
            "When it ended, how long it took, and what it left.",
            "short",
            (
                Query(
                    "1000 * max by (client_id) (groupwright_last_rebalance_timestamp_seconds{@member})",
                    "Ended",
                ),
                Query("max by (client_id) (groupwright_last_rebalance_duration_seconds{@member})", "Took"),
                Query("max by (client_id) (groupwright_generation{@member})", "Generation"),
                Query("sum by (client_id) (groupwright_partitions_owned{@member})", "Partitions"),
            ),
            Kind.TABLE,
            runbook="slow-rebalance",
            width=12,
            units={"Ended": "dateTimeAsIso", "Took": "s", "Generation": "none"},
        ),
        Panel(
            "How long the last rebalance took",
            "By member. The member that led it all and those that wait see the same length; who "
            "joined late sees a short one.",
            "s",
            (
                Query(
                    "max by (client_id) (groupwright_last_rebalance_duration_seconds{@member})",
                    "{{client_id}}",
                ),
            ),
            limits=(limit("slowRebalance", "seconds", "red"),),
            runbook="slow-rebalance",
            width=12,
        ),
    ),
)

_PHASES = Row(
    "Phases",
    (
        Panel(
            "Time in each phase, of the member that spent most",
            "Long join, or join_and_sync: members are waited for, up to max.poll.interval.ms. Long "
            "sync: the leader's assignor. "
            "Long revoke or assign: callbacks.",
            "s",
            (
                Query(
                    "max by (phase) (sum without (protocol) "
                    "(increase(groupwright_rebalance_phase_duration_seconds_sum{@member}[$__rate_interval])))",
                    "{{phase}}",
                ),
            ),
            limits=(limit("slowRebalance", "seconds", "red"),),
            runbook="slow-rebalance",
            width=12,
            stacking=Stacking.BARS,
        ),
        Panel(
            "Mean of each phase, by member",
            "Over the time shown. The member with a long revoke and the others with a long join: they "
            "wait for it.",
            "s",
            tuple(
                Query(
                    _mean("groupwright_rebalance_phase_duration_seconds", f'@member, phase="{phase}"'), phase
                )
                for phase in PHASES
            ),
            Kind.TABLE,
            (Limit(3, "orange"), limit("slowRebalance", "seconds", "red")),
            "slow-rebalance",
            12,
        ),
    ),
)

_CALLBACKS = Row(
    "Callbacks",
    (
        Panel(
            "Rebalance callbacks (95 %)",
            "The application's own on_assign, on_revoke, on_lost. While one runs nothing is polled, "
            "and the group waits for "
            "on_revoke.",
            "s",
            (
                Query(
                    "histogram_quantile(0.95, sum by (callback, le) "
                    "(increase(groupwright_rebalance_callback_duration_seconds_bucket{@member}[$__rate_interval])))",
                    "{{callback}}",
                ),
            ),
            limits=(Limit(3, "orange"), limit("slowRebalance", "seconds", "red")),
            runbook="slow-rebalance",
        ),
        Panel(
            "Whose callbacks take long",
            "Mean over the time shown, by member.",
            "s",
            tuple(
                Query(
                    _mean(
                        "groupwright_rebalance_callback_duration_seconds", f'@member, callback="{callback}"'
                    ),
                    f"on_{callback}",
                )
                for callback in ("assign", "revoke", "lost")
            ),
            Kind.TABLE,
            (Limit(3, "orange"), limit("slowRebalance", "seconds", "red")),
            "slow-rebalance",
        ),
        Panel(
            "Partitions that came and went, by member",
            "Above: assigned. Below: revoked and lost.",
            "short",
            (
                Query(
                    "sum by (client_id) "
                    "(increase(groupwright_partitions_assigned_total{@member}[$__rate_interval]))",
                    "{{client_id}} assigned",
                ),
                Query(
                    "-sum by (client_id) "
                    "(increase(groupwright_partitions_revoked_total{@member}[$__rate_interval]))",
                    "{{client_id}} revoked",
                ),
                Query(
                    "-sum by (client_id) "
                    "(increase(groupwright_partitions_lost_total{@member}[$__rate_interval]))",
                    "{{client_id}} lost",
                ),
            ),
            runbook="partitions-lost",
            stacking=Stacking.BARS,
        ),
    ),
)

_COORDINATOR = Row(
    "Coordinator",
    (
        Panel(
            "Coordinator",
            "The id of the broker that coordinates the group, the highest and the lowest that a "
            "member sees: where they differ, "
            "some member asks the wrong one. And how often it changed, over all members.",
            "none",
            (
                Query("max(groupwright_coordinator_node{@member})", "highest id"),
                Query("min(groupwright_coordinator_node{@member})", "lowest id"),
                Query(
                    "sum(increase(groupwright_coordinator_changes_total{@member}[$__rate_interval]))",
                    "changes",
                ),
            ),
            decimals=0,
            runbook="coordinator-errors",
        ),
        Panel(
            "Round trip to the coordinator",
            "On average over librdkafka's last window. Many members rebalance slowly over a long one.",
            "s",
            (
                Query(
                    "max by (client_id) (groupwright_coordinator_round_trip_seconds{@member})",
                    "{{client_id}}",
                ),
            ),
            limits=(Limit(0.5, "orange"),),
            runbook="coordinator-errors",
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
        Panel(
            "Requests to the coordinator",
            "By kind. Many join_group: a storm. No heartbeat: the group is empty.",
            "reqps",
            (
                Query(
                    "sum by (request) (rate(groupwright_group_requests_total{@member}[$__rate_interval]))",
                    "{{request}}",
                ),
            ),
            runbook="rebalance-storm",
        ),
        Panel(
            "Requests that failed",
            "Answered with an error, by request and error; and without any answer.",
            "short",
            (
                Query(
                    "sum by (request, error) "
                    "(increase(groupwright_group_request_failures_total{@member}[$__rate_interval]))",
                    "{{request}} {{error}}",
                ),
                Query(
                    "sum(increase(groupwright_coordinator_errors_total{@member}[$__rate_interval]))",
                    "no answer",
                ),
            ),
            limits=(limit("coordinatorErrors", "errors"),),
            runbook="coordinator-errors",
            stacking=Stacking.BARS,
        ),
        Panel(
            "Evicted and fenced",
            "Polled too late, and so left the group; or replaced by another member with the same "
            "group.instance.id.",
            "short",
            (
                Query(
                    "sum by (client_id) "
                    "(increase(groupwright_max_poll_exceeded_total{@member}[$__rate_interval]))",
                    "{{client_id}} polled too late",
                ),
                Query(
                    "sum by (client_id) (increase(groupwright_fenced_total{@member}[$__rate_interval]))",
                    "{{client_id}} fenced",
                ),
            ),
            limits=SOME,
            runbook="member-fenced",
            stacking=Stacking.BARS,
        ),
        Panel(
            "Since the last poll",
            "By member. A member that does not poll takes part in no rebalance: all others wait for it.",
            "s",
            (Query("groupwright_last_poll_age_seconds{@member}", "{{client_id}}"),),
            limits=(Limit(60, "orange"), Limit(300, "red")),
            runbook="max-poll-nearly-exceeded",
            width=12,
        ),
        Panel(
            "Errors of clients",
            "Errors reported to error_cb since the process began, such as unreachable brokers or failed "
            "authentication.",
            "short",
            (
                Query(
                    "sum by (client_id, error) (groupwright_client_errors_total{@member})",
                    "{{client_id}} {{error}}",
                ),
            ),
            limits=SOME,
            runbook="coordinator-errors",
            width=12,
            no_value="none",
        ),
    ),
)

BOARD = Board(
    "groupwright-rebalance",
    "Groupwright / One rebalance in detail",
    "Narrow the time to one rebalance: which phase took how long, whose callbacks, and how the "
    "coordinator answered.",
    Scope.GROUP,
    (_WHEN, _PHASES, _CALLBACKS, _COORDINATOR),
    since="now-30m",
)
