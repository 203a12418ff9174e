"""The labels of all metrics, their values, and the histograms' buckets: each explained once."""

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
EVENT_OUTCOMES = ("sent", "dropped", "failed")

LABELS = {
    "group": "the consumer's `group.id`",
    "client_id": "its `client.id`",
    "protocol": (
        "the assignor that the group voted for; empty if the rebalance failed before the vote. A plain consumer does "
        "not learn the vote: it has its `partition.assignment.strategy` here, and under `group.protocol=consumer` its "
        "`group.remote.assignor`, or `consumer` without one"
    ),
    "outcome": (
        "of a rebalance: `completed`: an assignment was applied; `lost`: one was applied, after the partitions owned "
        "before had been lost; `failed`: the coordinator refused the member, or its assignor failed. Of an event: "
        "`sent`, or `dropped` because its sink's queue was full, or `failed` in the sink"
    ),
    "phase": (
        "`revoke`: from the order to give partitions up until that is done, callback included; `join`: from the first "
        "JoinGroup until one was answered with a generation, so mostly waiting for the other members; `sync`: from "
        "there until SyncGroup brought the assignment, in the leader with the assignor's run; `join_and_sync`: both "
        "as one, with the other members' part, of librdkafka's membership, which cannot tell them apart; `assign`: from "
        "there until it was applied, with the fetch of committed offsets (of librdkafka's membership: without) and the "
        "callback"
    ),
    "callback": "`assign`: `on_assign`; `revoke`: `on_revoke`; `lost`: `on_lost`, or `on_revoke` where there is none",
    "topic": "the topic",
    "partition": "the partition's number; only with `lag_by_partition=True`",
    "kind": (
        "`eager`: all partitions are given up first; `cooperative`: only those that move; `consumer`: the broker "
        "assigns (KIP-848); empty before the first rebalance that says so"
    ),
    "client": "`groupwright` or `librdkafka`: whose the membership is",
    "state": (
        "`unjoined`: in no generation; `preparing_rebalance`: it has asked to join; `completing_rebalance`: it waits "
        "for its assignment; `stable`: it has one"
    ),
    "request": "the request of Kafka's protocol: " + ", ".join(f"`{request}`" for request in REQUESTS),
    "error": "the name of Kafka's or librdkafka's error code",
    "sink": "the name of the events' sink",
    "rule": "the rule of advice, as `groupwright doctor` names it",
    "version": "Groupwright's version",
    "confluent_kafka": "confluent-kafka's version, and so librdkafka's",
}

DURATION_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3, 10, 45, 120, 300)
"""Seconds; `BUCKETS_REASON` says why these."""

BUCKETS_REASON = """\
They reach from a callback that does nothing to the longest that a coordinator waits, and are fine where rebalances in
good health lie. Above 1 s they hold the times at which something happens by default, so that the share of rebalances
longer than that is exact: 3 s is `heartbeat.interval.ms`, before which a member need not have heard that a rebalance
began; 45 s is `session.timeout.ms`, how long a dead member goes unnoticed; 300 s is `max.poll.interval.ms`, after
which a member that has not joined is evicted.
"""
