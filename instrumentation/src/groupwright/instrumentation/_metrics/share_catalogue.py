"""The metrics of share consumers (KIP-932), which are made from their calls and acknowledgements."""

from groupwright.core.metrics import MetricType, defined_in
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

_CLIENT = ("group", "client_id")

SHARE_ACQUIRED = ClientSpec(
    "groupwright_share_acquired_total",
    MetricType.COUNTER,
    "Messages that `poll` of a share consumer returned, each of which the broker locks for this member.",
    _CLIENT,
    java="records-consumed-total",
)
SHARE_REDELIVERED = ClientSpec(
    "groupwright_share_redelivered_total",
    MetricType.COUNTER,
    "Messages among them that had been delivered before: released, or not acknowledged in time.",
    _CLIENT,
)
SHARE_ACKNOWLEDGED = ClientSpec(
    "groupwright_share_acknowledged_total",
    MetricType.COUNTER,
    "Acknowledgements that the broker has taken, by type.",
    (*_CLIENT, "type"),
    java="acknowledgements-send-total",
)
SHARE_REFUSED = ClientSpec(
    "groupwright_share_refused_total",
    MetricType.COUNTER,
    "Acknowledgements that failed, by error; the broker delivers those messages again.",
    (*_CLIENT, "error"),
    java="acknowledgements-error-total",
)
SHARE_IN_FLIGHT = ClientSpec(
    "groupwright_share_in_flight",
    MetricType.GAUGE,
    "Messages that were acquired, and whose acknowledgement the broker has not answered.",
    _CLIENT,
    merge=Merge.SUM,
)
SHARE_POLL_AGE = ClientSpec(
    "groupwright_share_last_poll_age_seconds",
    MetricType.GAUGE,
    "Time since the application was last inside `poll` of a share consumer, at the scrape; after "
    "`max.poll.interval.ms` it leaves the group.",
    _CLIENT,
    unit="seconds",
    java="last-poll-seconds-ago",
    merge=Merge.MAX,
)
SHARE_CLIENT_ERRORS = ClientSpec(
    "groupwright_share_client_errors_total",
    MetricType.COUNTER,
    "Errors that librdkafka reported to a share consumer's `error_cb`.",
    (*_CLIENT, "error"),
)

SHARE = defined_in(globals(), ClientSpec)
