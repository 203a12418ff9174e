"""Every metric, described once: the registry's families and the reference page are both made from this.

Names follow the rules that ``promtool check metrics`` has: base units, ``_total`` on counters alone. Labels are
bounded: never a member id, a generation or a reason.
"""

from groupwright.instrumentation._metrics.labels import DURATION_BUCKETS
from groupwright.instrumentation._metrics.producer_catalogue import PRODUCERS
from groupwright.instrumentation._metrics.spec import Kind, Merge, Spec

_CONSUMER = ("group", "client_id")

# --- Rebalances ---------------------------------------------------------------------------------------

REBALANCES = Spec(
    "groupwright_rebalances_total",
    Kind.COUNTER,
    "Rebalances that have ended, by outcome.",
    (*_CONSUMER, "protocol", "outcome"),
    java="rebalance-total, failed-rebalance-total",
)
REBALANCE_DURATION = Spec(
    "groupwright_rebalance_duration_seconds",
    Kind.HISTOGRAM,
    "Time from a rebalance's trigger to the assignment applied, or to its failure.",
    (*_CONSUMER, "protocol"),
    unit="seconds",
    java="rebalance-latency-avg/-max/-total, without the revoke and assign phases",
    buckets=DURATION_BUCKETS,
)
PHASE_DURATION = Spec(
    "groupwright_rebalance_phase_duration_seconds",
    Kind.HISTOGRAM,
    "Time that a rebalance spent in each phase it went through.",
    (*_CONSUMER, "protocol", "phase"),
    unit="seconds",
    java="join-time-avg/-max, sync-time-avg/-max",
    buckets=DURATION_BUCKETS,
)
CALLBACK_DURATION = Spec(
    "groupwright_rebalance_callback_duration_seconds",
    Kind.HISTOGRAM,
    "Time that the application's rebalance callbacks took; 0 where it has none.",
    (*_CONSUMER, "callback"),
    unit="seconds",
    java="partition-assigned/-revoked/-lost-latency-avg/-max",
    buckets=DURATION_BUCKETS,
)
PARTITIONS_ASSIGNED = Spec(
    "groupwright_partitions_assigned_total",
    Kind.COUNTER,
    "Partitions gained.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_REVOKED = Spec(
    "groupwright_partitions_revoked_total",
    Kind.COUNTER,
    "Partitions given up in good order.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_LOST = Spec(
    "groupwright_partitions_lost_total",
    Kind.COUNTER,
    "Partitions lost: others may have owned them already.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_OWNED = Spec(
    "groupwright_partitions_owned",
    Kind.GAUGE,
    "Partitions owned now; 0 for a topic whose last partition has gone.",
    (*_CONSUMER, "topic"),
    java="assigned-partitions",
    merge=Merge.SUM,
)
LAST_REBALANCE_TIMESTAMP = Spec(
    "groupwright_last_rebalance_timestamp_seconds",
    Kind.GAUGE,
    "When the last rebalance ended, in seconds since the epoch; absent before the first.",
    _CONSUMER,
    unit="seconds",
    java="last-rebalance-seconds-ago",
)
LAST_REBALANCE_DURATION = Spec(
    "groupwright_last_rebalance_duration_seconds",
    Kind.GAUGE,
    "How long the last rebalance took, whatever its outcome; absent before the first.",
    _CONSUMER,
    unit="seconds",
)
GENERATION = Spec(
    "groupwright_generation",
    Kind.GAUGE,
    "The group's generation whose assignment was applied last; absent before the first.",
    _CONSUMER,
)
LAST_POLL_AGE = Spec(
    "groupwright_last_poll_age_seconds",
    Kind.GAUGE,
    "Time since the application was last inside poll or consume, taken when scraped.",
    _CONSUMER,
    unit="seconds",
    java="last-poll-seconds-ago",
    merge=Merge.MAX,
)
# --- What the group's leader knows --------------------------------------------------------------------

LEADER_MOVES = Spec(
    "groupwright_leader_moves_total",
    Kind.COUNTER,
    "Partitions that the assignments made here, as the group's leader, took from one member for another.",
    _CONSUMER,
    own_membership=True,
)
LEADER_MOVES_NEEDED = Spec(
    "groupwright_leader_moves_needed_total",
    Kind.COUNTER,
    "The fewest moves that assignments as even as can be would have taken; what exceeds it is churn.",
    _CONSUMER,
    own_membership=True,
)
LEADER_IMBALANCE = Spec(
    "groupwright_leader_imbalance",
    Kind.GAUGE,
    "How many partitions wider than it must be the gap is between the member with the most and that with the fewest, in the "
    "last assignment made here; 0: as even as can be.",
    _CONSUMER,
    own_membership=True,
)
LEADER_MEMBERS = Spec(
    "groupwright_leader_members",
    Kind.GAUGE,
    "Members of the group; absent where another member leads, and of a group too large to be looked at.",
    _CONSUMER,
    own_membership=True,
)

# --- Membership ---------------------------------------------------------------------------------------

CONSUMER_INFO = Spec(
    "groupwright_consumer_info",
    Kind.INFO,
    "Whose the membership is, and of which kind its rebalances are; always 1.",
    (*_CONSUMER, "client", "kind"),
)
MEMBERSHIP_STATE = Spec(
    "groupwright_membership_state",
    Kind.GAUGE,
    "1 for the state that the member is in, 0 for the others.",
    (*_CONSUMER, "state"),
    merge=Merge.MAX,
)
COORDINATOR_NODE = Spec(
    "groupwright_coordinator_node",
    Kind.GAUGE,
    "The id of the broker that coordinates the group; absent while none is known.",
    _CONSUMER,
)
COORDINATOR_CHANGES = Spec(
    "groupwright_coordinator_changes_total",
    Kind.COUNTER,
    "Times that another broker became the coordinator, as seen from here.",
    _CONSUMER,
)
COORDINATOR_ERRORS = Spec(
    "groupwright_coordinator_errors_total",
    Kind.COUNTER,
    "Requests to the coordinator that had no answer: send and receive errors, and time-outs.",
    _CONSUMER,
)
COORDINATOR_ROUND_TRIP = Spec(
    "groupwright_coordinator_round_trip_seconds",
    Kind.GAUGE,
    "Round trip to the coordinator, as last measured; of librdkafka's membership, on average since its statistics before.",
    _CONSUMER,
    unit="seconds",
    java="heartbeat-response-time-max",
    merge=Merge.MAX,
)
GROUP_REQUESTS = Spec(
    "groupwright_group_requests_total",
    Kind.COUNTER,
    "Requests sent to the coordinator.",
    (*_CONSUMER, "request"),
    java="heartbeat-total, join-total, sync-total, commit-total",
)
GROUP_REQUEST_FAILURES = Spec(
    "groupwright_group_request_failures_total",
    Kind.COUNTER,
    "Requests that the coordinator answered with an error. How a new member gets its id, and how one hears of a rebalance, "
    "are none.",
    (*_CONSUMER, "request", "error"),
    own_membership=True,
)
LAST_HEARTBEAT_AGE = Spec(
    "groupwright_last_heartbeat_age_seconds",
    Kind.GAUGE,
    "Time since the coordinator last answered a heartbeat, taken when scraped; absent before the first.",
    _CONSUMER,
    unit="seconds",
    java="last-heartbeat-seconds-ago",
    merge=Merge.MAX,
    own_membership=True,
)
FENCED = Spec(
    "groupwright_fenced_total",
    Kind.COUNTER,
    "Times that another member with the same `group.instance.id` took this one's place.",
    _CONSUMER,
)

# --- Commits ------------------------------------------------------------------------------------------

COMMITS = Spec(
    "groupwright_commits_total",
    Kind.COUNTER,
    "Commits of offsets that have ended, well or not.",
    _CONSUMER,
    java="commit-total",
)
COMMIT_FAILURES = Spec(
    "groupwright_commit_failures_total",
    Kind.COUNTER,
    "Those of them that failed.",
    (*_CONSUMER, "error"),
)
COMMIT_DURATION = Spec(
    "groupwright_commit_duration_seconds",
    Kind.HISTOGRAM,
    "Time that commits took; of a plain consumer, that of its synchronous ones.",
    _CONSUMER,
    unit="seconds",
    java="commit-latency-avg/-max",
    buckets=DURATION_BUCKETS,
)

# --- Polling and lag ----------------------------------------------------------------------------------

POLL_INTERVAL_USED = Spec(
    "groupwright_poll_interval_used_ratio",
    Kind.GAUGE,
    "Time since the last poll as a share of `max.poll.interval.ms`, taken when scraped; at 1 the member is evicted.",
    _CONSUMER,
    unit="ratio",
    merge=Merge.MAX,
)
POLL_SECONDS = Spec(
    "groupwright_poll_seconds_total",
    Kind.COUNTER,
    "Time spent inside poll and consume; its rate is the share of time in which the application waits for messages.",
    _CONSUMER,
    unit="seconds",
    java="poll-idle-ratio-avg",
)
MAX_POLL_EXCEEDED = Spec(
    "groupwright_max_poll_exceeded_total",
    Kind.COUNTER,
    "Times that the application polled too late, and so lost its partitions.",
    _CONSUMER,
)
LAG = Spec(
    "groupwright_lag",
    Kind.GAUGE,
    "Messages between what the application has taken and the log's end, over the topic's partitions fetched here.",
    (*_CONSUMER, "topic"),
    java="records-lag",
    merge=Merge.SUM,
)
LAG_MAX = Spec(
    "groupwright_lag_max",
    Kind.GAUGE,
    "The same of the partition that lags most.",
    (*_CONSUMER, "topic"),
    java="records-lag-max",
    merge=Merge.MAX,
)
PARTITION_LAG = Spec(
    "groupwright_partition_lag",
    Kind.GAUGE,
    "The same of each partition; only on request.",
    (*_CONSUMER, "topic", "partition"),
    java="records-lag",
    merge=Merge.MAX,
)
STATISTICS_AGE = Spec(
    "groupwright_statistics_age_seconds",
    Kind.GAUGE,
    "How old the newest of librdkafka's statistics are, on which lag and, of plain consumers, the coordinator's metrics "
    "rest; they come only while the application polls.",
    _CONSUMER,
    unit="seconds",
    merge=Merge.MAX,
)
CLIENT_ERRORS = Spec(
    "groupwright_client_errors_total",
    Kind.COUNTER,
    "Errors that librdkafka told its `error_cb`.",
    (*_CONSUMER, "error"),
)

# --- The instrumentation itself -----------------------------------------------------------------------

WARNINGS = Spec(
    "groupwright_warnings_total",
    Kind.COUNTER,
    "Advice given, by rule: the log has each in words.",
    (*_CONSUMER, "rule"),
)
EVENTS = Spec(
    "groupwright_events_total",
    Kind.COUNTER,
    "Records of rebalances for sinks, by what became of them.",
    (*_CONSUMER, "sink", "outcome"),
)
BUILD_INFO = Spec(
    "groupwright_build_info",
    Kind.INFO,
    "What runs here; always 1.",
    ("version", "confluent_kafka"),
    java="app-info's version",
)
ERRORS = Spec(
    "groupwright_instrumentation_errors_total",
    Kind.COUNTER,
    "Failures inside the instrumentation; the application went on, and the log has the first of each kind.",
    _CONSUMER,
)

CATALOGUE = (
    REBALANCES,
    REBALANCE_DURATION,
    PHASE_DURATION,
    CALLBACK_DURATION,
    PARTITIONS_ASSIGNED,
    PARTITIONS_REVOKED,
    PARTITIONS_LOST,
    PARTITIONS_OWNED,
    LAST_REBALANCE_TIMESTAMP,
    LAST_REBALANCE_DURATION,
    GENERATION,
    LAST_POLL_AGE,
    LEADER_MOVES,
    LEADER_MOVES_NEEDED,
    LEADER_IMBALANCE,
    LEADER_MEMBERS,
    CONSUMER_INFO,
    MEMBERSHIP_STATE,
    COORDINATOR_NODE,
    COORDINATOR_CHANGES,
    COORDINATOR_ERRORS,
    COORDINATOR_ROUND_TRIP,
    GROUP_REQUESTS,
    GROUP_REQUEST_FAILURES,
    LAST_HEARTBEAT_AGE,
    FENCED,
    COMMITS,
    COMMIT_FAILURES,
    COMMIT_DURATION,
    POLL_INTERVAL_USED,
    POLL_SECONDS,
    MAX_POLL_EXCEEDED,
    LAG,
    LAG_MAX,
    PARTITION_LAG,
    STATISTICS_AGE,
    CLIENT_ERRORS,
    WARNINGS,
    EVENTS,
    BUILD_INFO,
    ERRORS,
    *PRODUCERS,
)
