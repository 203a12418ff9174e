"""The catalogue of all metrics, from which the registry's families and the reference page are made.

Names pass ``promtool check metrics``: base units, ``_total`` on counters alone. Labels have bounded values:
never a member id, a generation or a reason. A name with ``partitions``, ``lag`` or ``fetched`` has the label
``topic``.
"""

from groupwright.core.metrics import MetricType, defined_in
from groupwright.instrumentation._metrics.labels import DURATION_BUCKETS
from groupwright.instrumentation._metrics.parallel_catalogue import PARALLEL
from groupwright.instrumentation._metrics.producer_catalogue import PRODUCERS
from groupwright.instrumentation._metrics.share_catalogue import SHARE
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

_CONSUMER = ("group", "client_id")

# --- Rebalances ---------------------------------------------------------------------------------------

REBALANCES = ClientSpec(
    "groupwright_rebalances_total",
    MetricType.COUNTER,
    "Finished rebalances, by outcome.",
    (*_CONSUMER, "protocol", "outcome"),
    java="rebalance-total, failed-rebalance-total",
)
REBALANCE_DURATION = ClientSpec(
    "groupwright_rebalance_duration_seconds",
    MetricType.HISTOGRAM,
    "Duration of rebalances, from their beginning until the assignment was applied or the rebalance failed.",
    (*_CONSUMER, "protocol"),
    unit="seconds",
    java="rebalance-latency-avg/-max/-total, without the revoke and assign phases",
    buckets=DURATION_BUCKETS,
)
PHASE_DURATION = ClientSpec(
    "groupwright_rebalance_phase_duration_seconds",
    MetricType.HISTOGRAM,
    "Duration of each phase of a rebalance.",
    (*_CONSUMER, "protocol", "phase"),
    unit="seconds",
    java="join-time-avg/-max, sync-time-avg/-max",
    buckets=DURATION_BUCKETS,
)
CALLBACK_DURATION = ClientSpec(
    "groupwright_rebalance_callback_duration_seconds",
    MetricType.HISTOGRAM,
    "Duration of the application's rebalance callbacks; 0 without a callback.",
    (*_CONSUMER, "callback"),
    unit="seconds",
    java="partition-assigned/-revoked/-lost-latency-avg/-max",
    buckets=DURATION_BUCKETS,
)
PARTITIONS_ASSIGNED = ClientSpec(
    "groupwright_partitions_assigned_total",
    MetricType.COUNTER,
    "Partitions assigned.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_REVOKED = ClientSpec(
    "groupwright_partitions_revoked_total",
    MetricType.COUNTER,
    "Partitions revoked.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_LOST = ClientSpec(
    "groupwright_partitions_lost_total",
    MetricType.COUNTER,
    "Partitions lost, which other members may have owned already.",
    (*_CONSUMER, "topic"),
)
PARTITIONS_OWNED = ClientSpec(
    "groupwright_partitions_owned",
    MetricType.GAUGE,
    "Partitions owned; 0 for a topic whose last partition was revoked or lost.",
    (*_CONSUMER, "topic"),
    java="assigned-partitions",
    merge=Merge.SUM,
)
LAST_REBALANCE_TIMESTAMP = ClientSpec(
    "groupwright_last_rebalance_timestamp_seconds",
    MetricType.GAUGE,
    "Time at which the last rebalance ended, in seconds since the epoch; absent before the first.",
    _CONSUMER,
    unit="seconds",
    java="last-rebalance-seconds-ago",
)
LAST_REBALANCE_DURATION = ClientSpec(
    "groupwright_last_rebalance_duration_seconds",
    MetricType.GAUGE,
    "Duration of the last rebalance, whatever its outcome; absent before the first.",
    _CONSUMER,
    unit="seconds",
)
GENERATION = ClientSpec(
    "groupwright_generation",
    MetricType.GAUGE,
    "Generation of the last applied assignment; absent before the first.",
    _CONSUMER,
)
LAST_POLL_AGE = ClientSpec(
    "groupwright_last_poll_age_seconds",
    MetricType.GAUGE,
    "Time since the application was last inside poll or consume, at the scrape.",
    _CONSUMER,
    unit="seconds",
    java="last-poll-seconds-ago",
    merge=Merge.MAX,
)
# --- The group's leader -------------------------------------------------------------------------------

LEADER_MOVES = ClientSpec(
    "groupwright_leader_moves_total",
    MetricType.COUNTER,
    "Partitions that this member, as the group's leader, took from members that could have kept them.",
    _CONSUMER,
    own_membership=True,
)
LEADER_MIN_MOVES = ClientSpec(
    "groupwright_leader_min_moves_total",
    MetricType.COUNTER,
    "The fewest moves with which the leader's assignments could have been as balanced as possible.",
    _CONSUMER,
    own_membership=True,
)
LEADER_IMBALANCE = ClientSpec(
    "groupwright_leader_imbalance",
    MetricType.GAUGE,
    "Excess imbalance of the leader's last assignment: (max - min partitions per member) minus the "
    "smallest difference achievable.",
    _CONSUMER,
    own_membership=True,
)
LEADER_MEMBERS = ClientSpec(
    "groupwright_leader_members",
    MetricType.GAUGE,
    "Members of the group, without those whose subscriptions cannot be decoded; absent if another member "
    "leads, or the group is too large to measure.",
    _CONSUMER,
    own_membership=True,
)

LEADER_UNDECODABLE_MEMBERS = ClientSpec(
    "groupwright_leader_undecodable_members_total",
    MetricType.COUNTER,
    "Members whose subscription or user data this member, as the group's leader, could not decode; each "
    "counts once in a rebalance.",
    _CONSUMER,
    own_membership=True,
)

# --- Load, where the leader's assignor balances weights -----------------------------------------------

LEADER_LOAD_PEAK = ClientSpec(
    "groupwright_leader_load_peak_ratio",
    MetricType.GAUGE,
    "Load over capacity of the group's busiest member, relative to the average, as this leader last assigned "
    "partitions or checked the load; absent if another member leads, or without weights.",
    _CONSUMER,
    unit="ratio",
    own_membership=True,
)
LEADER_LOAD_BOUND = ClientSpec(
    "groupwright_leader_load_bound_ratio",
    MetricType.GAUGE,
    "Certified lower bound of the peak: no assignment is below it.",
    _CONSUMER,
    unit="ratio",
    own_membership=True,
)
LOAD_CHECKS = ClientSpec(
    "groupwright_load_checks_total",
    MetricType.COUNTER,
    "Load checks of this member as the group's leader, by outcome (`load.check.interval.ms`).",
    (*_CONSUMER, "outcome"),
    own_membership=True,
)
LOAD_CHECK_MOVES = ClientSpec(
    "groupwright_load_check_moves_total",
    MetricType.COUNTER,
    "Partitions to move, summed over the load checks that led to a rebalance.",
    _CONSUMER,
    own_membership=True,
)

# --- Membership ---------------------------------------------------------------------------------------

CONSUMER_INFO = ClientSpec(
    "groupwright_consumer_info",
    MetricType.INFO,
    "The client that holds the membership, and the kind of its rebalances; always 1, and absent for a closed "
    "or fenced consumer.",
    (*_CONSUMER, "client", "kind"),
)
MEMBERSHIP_STATE = ClientSpec(
    "groupwright_membership_state",
    MetricType.GAUGE,
    "1 for the member's state, 0 for the other states.",
    (*_CONSUMER, "state"),
    merge=Merge.MAX,
)
COORDINATOR_NODE = ClientSpec(
    "groupwright_coordinator_node",
    MetricType.GAUGE,
    "Broker id of the group's coordinator; absent while none is known.",
    _CONSUMER,
)
COORDINATOR_CHANGES = ClientSpec(
    "groupwright_coordinator_changes_total",
    MetricType.COUNTER,
    "Times that this client found another broker to be the coordinator.",
    _CONSUMER,
)
COORDINATOR_ERRORS = ClientSpec(
    "groupwright_coordinator_errors_total",
    MetricType.COUNTER,
    "Requests to the coordinator without a response: send and receive errors, and timeouts.",
    _CONSUMER,
)
COORDINATOR_MISSING = ClientSpec(
    "groupwright_coordinator_missing_seconds_total",
    MetricType.COUNTER,
    "Time in which the member needed the group's coordinator and knew none, the first search included.",
    _CONSUMER,
    unit="seconds",
    own_membership=True,
)
COORDINATOR_ROUND_TRIP = ClientSpec(
    "groupwright_coordinator_round_trip_seconds",
    MetricType.GAUGE,
    "Round-trip time to the coordinator, as last measured; for librdkafka's membership the average of a "
    "statistics interval.",
    _CONSUMER,
    unit="seconds",
    java="heartbeat-response-time-max",
    merge=Merge.MAX,
)
GROUP_REQUESTS = ClientSpec(
    "groupwright_group_requests_total",
    MetricType.COUNTER,
    "Requests sent to the coordinator.",
    (*_CONSUMER, "request"),
    java="heartbeat-total, join-total, sync-total, commit-total",
)
GROUP_REQUEST_FAILURES = ClientSpec(
    "groupwright_group_request_failures_total",
    MetricType.COUNTER,
    "Requests that the coordinator answered with an error. MEMBER_ID_REQUIRED for a new member and "
    "REBALANCE_IN_PROGRESS for a heartbeat do not count.",
    (*_CONSUMER, "request", "error"),
    own_membership=True,
)
LAST_HEARTBEAT_AGE = ClientSpec(
    "groupwright_last_heartbeat_age_seconds",
    MetricType.GAUGE,
    "Time since the last heartbeat response, at the scrape; absent before the first.",
    _CONSUMER,
    unit="seconds",
    java="last-heartbeat-seconds-ago",
    merge=Merge.MAX,
    own_membership=True,
)
FENCED = ClientSpec(
    "groupwright_fenced_total",
    MetricType.COUNTER,
    "Times that another member with the same `group.instance.id` replaced this one.",
    _CONSUMER,
)

# --- Commits ------------------------------------------------------------------------------------------

COMMITS = ClientSpec(
    "groupwright_commits_total",
    MetricType.COUNTER,
    "Finished offset commits, successful or failed.",
    _CONSUMER,
    java="commit-total",
)
COMMIT_FAILURES = ClientSpec(
    "groupwright_commit_failures_total",
    MetricType.COUNTER,
    "Failed offset commits, by error.",
    (*_CONSUMER, "error"),
)
COMMIT_DURATION = ClientSpec(
    "groupwright_commit_duration_seconds",
    MetricType.HISTOGRAM,
    "Duration of commits; of a plain consumer, only of its synchronous commits.",
    _CONSUMER,
    unit="seconds",
    java="commit-latency-avg/-max",
    buckets=DURATION_BUCKETS,
)

LAST_COMMIT_AGE = ClientSpec(
    "groupwright_last_commit_age_seconds",
    MetricType.GAUGE,
    "Time since the last successful commit, at the scrape; absent before the first. An idle consumer commits "
    "nothing: see it beside `groupwright_committed_lag`.",
    _CONSUMER,
    unit="seconds",
    merge=Merge.MAX,
)

# --- Polling and lag ----------------------------------------------------------------------------------

POLL_INTERVAL_USED = ClientSpec(
    "groupwright_poll_interval_used_ratio",
    MetricType.GAUGE,
    "Time since the last poll as a share of `max.poll.interval.ms`, at the scrape; at 1 the member leaves "
    "the group.",
    _CONSUMER,
    unit="ratio",
    merge=Merge.MAX,
)
POLL_SECONDS = ClientSpec(
    "groupwright_poll_seconds_total",
    MetricType.COUNTER,
    "Time spent inside poll and consume; its rate is the share of time that the application waits for "
    "messages.",
    _CONSUMER,
    unit="seconds",
    java="poll-idle-ratio-avg",
)
MAX_POLL_EXCEEDED = ClientSpec(
    "groupwright_max_poll_exceeded_total",
    MetricType.COUNTER,
    "Times that the application exceeded `max.poll.interval.ms`, and so lost its partitions.",
    _CONSUMER,
)
LAG = ClientSpec(
    "groupwright_lag",
    MetricType.GAUGE,
    "Received lag: offsets from the application's position, after the last message that poll or consume has "
    "returned, to the log's end, summed over the topic's partitions whose lag is known. Messages that the "
    "application has received and not committed do not count, also those that workers process now.",
    (*_CONSUMER, "topic"),
    java="records-lag",
    merge=Merge.SUM,
)
LAG_MAX = ClientSpec(
    "groupwright_lag_max",
    MetricType.GAUGE,
    "Received lag of the topic's partition that lags most.",
    (*_CONSUMER, "topic"),
    java="records-lag-max",
    merge=Merge.MAX,
)
COMMITTED_LAG = ClientSpec(
    "groupwright_committed_lag",
    MetricType.GAUGE,
    "Committed lag: offsets from the committed offset to the log's end, summed over the topic's partitions "
    "of which both are known: `groupwright_lag` and what is received but not committed. It is the lag that "
    "the exporter and `groupwright lag` show, except that offsets of markers and aborted messages count. "
    "Absent once the application has called `consumer_group_metadata`: a producer commits its offsets then.",
    (*_CONSUMER, "topic"),
    merge=Merge.SUM,
)
FETCHED_MESSAGES = ClientSpec(
    "groupwright_fetched_messages_total",
    MetricType.COUNTER,
    "Messages that were fetched from the topic, prefetched ones included.",
    (*_CONSUMER, "topic"),
    java="records-consumed-total",
)
FETCHED_BYTES = ClientSpec(
    "groupwright_fetched_bytes_total",
    MetricType.COUNTER,
    "Bytes of these messages, keys and values, uncompressed.",
    (*_CONSUMER, "topic"),
    unit="bytes",
    java="bytes-consumed-total",
)
THROTTLE = ClientSpec(
    "groupwright_throttle_seconds",
    MetricType.GAUGE,
    "Longest throttle time in brokers' responses of the statistics interval, by a quota; 0 without one.",
    _CONSUMER,
    unit="seconds",
    java="fetch-throttle-time-max",
    merge=Merge.MAX,
)
PARTITION_LAG = ClientSpec(
    "groupwright_partition_lag",
    MetricType.GAUGE,
    "Received lag of each partition; only with `lag_by_partition=True`.",
    (*_CONSUMER, "topic", "partition"),
    java="records-lag",
    merge=Merge.MAX,
)
STATISTICS_AGE = ClientSpec(
    "groupwright_statistics_age_seconds",
    MetricType.GAUGE,
    "Age of the newest statistics of librdkafka, from which lag and, for plain consumers, the "
    "coordinator's metrics are made; librdkafka delivers them only while the application polls.",
    _CONSUMER,
    unit="seconds",
    merge=Merge.MAX,
)
CLIENT_ERRORS = ClientSpec(
    "groupwright_client_errors_total",
    MetricType.COUNTER,
    "Errors that librdkafka reported to `error_cb`.",
    (*_CONSUMER, "error"),
)

# --- The instrumentation itself -----------------------------------------------------------------------

WARNINGS = ClientSpec(
    "groupwright_warnings_total",
    MetricType.COUNTER,
    "Warnings of advice, by rule; the log has their text.",
    (*_CONSUMER, "rule"),
)
EVENTS = ClientSpec(
    "groupwright_events_total",
    MetricType.COUNTER,
    "Events for sinks, by outcome.",
    (*_CONSUMER, "sink", "outcome"),
)
BUILD_INFO = ClientSpec(
    "groupwright_build_info",
    MetricType.INFO,
    "Versions of Groupwright and confluent-kafka; always 1.",
    ("version", "confluent_kafka"),
    java="app-info's version",
)
ERRORS = ClientSpec(
    "groupwright_instrumentation_errors_total",
    MetricType.COUNTER,
    "Failures inside the instrumentation, which do not affect the application; the log has the first of each "
    "kind.",
    _CONSUMER,
)

CATALOGUE = (*defined_in(globals(), ClientSpec), *PARALLEL, *SHARE, *PRODUCERS)
