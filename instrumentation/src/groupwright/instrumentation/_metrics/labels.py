"""Labels of all metrics, their values, and the buckets of histograms."""

CALLBACKS = ("assign", "revoke", "lost")
STATES = ("unjoined", "preparing_rebalance", "completing_rebalance", "stable")
REQUESTS = (
    "find_coordinator",
    "join_group",
    "sync_group",
    "heartbeat",
    "offset_commit",
    "offset_fetch",
    "leave_group",
)
ACKNOWLEDGEMENTS = ("accept", "release", "reject")
NO_PROTOCOL = "none"
"""Label of a rebalance that failed before the group had voted for an assignor."""
EVENT_OUTCOMES = ("sent", "dropped", "failed")

LABELS = {
    "group": "the consumer's `group.id`",
    "client_id": "the client's `client.id`",
    "protocol": (
        f"the assignor that the group voted for; `{NO_PROTOCOL}` if the rebalance failed before the vote. A "
        "plain consumer does not learn the vote: its label is its `partition.assignment.strategy`, or, under "
        "`group.protocol=consumer`, its `group.remote.assignor`, `consumer` by default"
    ),
    "outcome": (
        "of a rebalance: `completed`: the member applied an assignment; `lost`: it applied one, after it "
        "had lost the partitions that it owned before; `failed`: the coordinator rejected the member, or "
        "its assignor failed. Of an event: `sent`, or `dropped` because the sink's queue was full, or "
        "`failed` in the sink. Of a load check: `rebalanced`: partitions would move, so the group "
        "rebalances; `unchanged`: none would move; `limited`: more would move than `load.check.max.moves` "
        "allows; `failed`: the check raised an exception"
    ),
    "phase": (
        "`revoke`: from the request to revoke partitions until that is done, callback included; `join`: "
        "from the first JoinGroup until a response brought a generation, so mostly waiting for the other "
        "members; `sync`: from there until SyncGroup brought the assignment, for the leader with the "
        "assignor's run; `join_and_sync`: both together, for librdkafka's membership, whose callbacks do not "
        "separate them; `assign`: from there until the assignment was applied, with the callback and the "
        "fetch of committed offsets (without the fetch for librdkafka's membership)"
    ),
    "callback": (
        "`assign`: `on_assign`; `revoke`: `on_revoke`; `lost`: `on_lost`, or `on_revoke` without an `on_lost`"
    ),
    "topic": "the topic",
    "partition": "the partition's number; only with `lag_by_partition=True`",
    "kind": (
        "`eager`: the member revokes all its partitions first; `cooperative`: only those that move; "
        "`consumer`: the broker assigns (KIP-848); empty before the first rebalance, if the configuration "
        "does not decide it"
    ),
    "client": "the client that holds the membership: `groupwright` or `librdkafka`",
    "state": (
        "`unjoined`: in no generation; `preparing_rebalance`: the member has asked to join; "
        "`completing_rebalance`: it waits for its assignment; `stable`: it has one"
    ),
    "request": "the request of the Kafka protocol: " + ", ".join(f"`{request}`" for request in REQUESTS),
    "error": "the name of Kafka's or librdkafka's error code",
    "type": "of an acknowledgement: `accept`, `release` or `reject`, as the application said",
    "sink": "the name of the event sink",
    "rule": "the rule of advice, as in `groupwright doctor`",
    "version": "Groupwright's version",
    "confluent_kafka": "the version of confluent-kafka, and so of librdkafka",
}

DURATION_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3, 10, 45, 120, 300)
"""Upper bounds in seconds; `BUCKETS_REASON` has the reasons."""

BUCKETS_REASON = """\
They range from an empty callback to the longest time that a coordinator waits, and are finest where healthy
rebalances lie. Above 1 s they include Kafka's default timeouts, so that the share of rebalances longer than
these is exact: 3 s is `heartbeat.interval.ms`, within which a member learns that a rebalance began; 45 s is
`session.timeout.ms`, after which a dead member is noticed; 300 s is `max.poll.interval.ms`, after which a
member that has not rejoined is removed.
"""
