"""Every metric, described once: the registry's families and the reference page are both made from this.

Names follow the rules that ``promtool check metrics`` has: base units, ``_total`` on counters alone. Labels are
bounded: never a member id, a generation or a reason.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A metric's type, in Prometheus' terms."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_SUFFIXES = {Kind.COUNTER: "_total", Kind.INFO: "_info"}


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric."""

    name: str
    """As it is queried, with the suffix of its kind."""
    kind: Kind
    help: str
    labels: tuple[str, ...]
    unit: str = ""
    """The base unit that ends the name; empty for plain numbers."""
    java: str | None = None
    """What the Java consumer calls it or comes closest to it, among its own metrics; None if nothing does."""
    buckets: tuple[float, ...] = ()
    """A histogram's upper bounds, in its unit."""

    @property
    def family(self) -> str:
        """The name without its kind's suffix, as prometheus-client wants it."""
        return self.name.removesuffix(_SUFFIXES.get(self.kind, ""))


FAILED = "failed"
OUTCOMES = ("completed", "lost", FAILED)
PHASES = ("revoke", "join", "sync", "assign")
CALLBACKS = ("assign", "revoke", "lost")

LABELS = {
    "group": "the consumer's `group.id`",
    "client_id": "its `client.id`",
    "protocol": "the assignor that the group voted for; empty if the rebalance failed before the vote",
    "outcome": (
        "`completed`: an assignment was applied; `lost`: one was applied, after the partitions owned before had been "
        "lost; `failed`: the coordinator refused the member, or its assignor failed"
    ),
    "phase": (
        "`revoke`: from the order to give partitions up until that is done, callback included; `join`: from the first "
        "JoinGroup until one was answered with a generation, so mostly waiting for the other members; `sync`: from "
        "there until SyncGroup brought the assignment, in the leader with the assignor's run; `assign`: from there "
        "until it was applied, with the fetch of committed offsets and the callback"
    ),
    "callback": "`assign`: `on_assign`; `revoke`: `on_revoke`; `lost`: `on_lost`, or `on_revoke` where there is none",
    "topic": "the topic",
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

_CONSUMER = ("group", "client_id")

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
    BUILD_INFO,
    ERRORS,
)
