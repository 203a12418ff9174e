"""The metrics of producers, which are made from a producer's statistics and errors."""

from groupwright.core.metrics import MetricType, defined_in
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

_PRODUCER = ("client_id",)

PRODUCER_QUEUE_MESSAGES = ClientSpec(
    "groupwright_producer_queue_messages",
    MetricType.GAUGE,
    "Messages in the producer's queue.",
    _PRODUCER,
    merge=Merge.SUM,
)
PRODUCER_QUEUE_USED = ClientSpec(
    "groupwright_producer_queue_used_ratio",
    MetricType.GAUGE,
    "Share of the queue's limit in use, in messages or bytes, whichever is higher; at 1 produce() fails.",
    _PRODUCER,
    unit="ratio",
    java="1 - buffer-available-bytes / buffer-total-bytes",
    merge=Merge.MAX,
)
PRODUCER_QUEUE_BYTES = ClientSpec(
    "groupwright_producer_queue_size_bytes",
    MetricType.GAUGE,
    "Bytes in the producer's queue.",
    _PRODUCER,
    unit="bytes",
    merge=Merge.SUM,
)
PRODUCER_BATCH_BYTES = ClientSpec(
    "groupwright_producer_batch_size_bytes",
    MetricType.GAUGE,
    "Average size of batches in the last statistics window; absent if none was sent.",
    _PRODUCER,
    unit="bytes",
    java="batch-size-avg",
)
PRODUCER_BATCH_MESSAGES = ClientSpec(
    "groupwright_producer_batch_messages",
    MetricType.GAUGE,
    "Average number of messages per batch in the last statistics window; absent if none was sent.",
    _PRODUCER,
    java="records-per-request-avg",
)
PRODUCER_QUEUE_LATENCY = ClientSpec(
    "groupwright_producer_queue_latency_seconds",
    MetricType.GAUGE,
    "Average time from produce() until the batch was made, over brokers, in the last statistics window.",
    _PRODUCER,
    unit="seconds",
    java="record-queue-time-avg",
)
PRODUCER_ROUND_TRIP = ClientSpec(
    "groupwright_producer_round_trip_seconds",
    MetricType.GAUGE,
    "Average round-trip time to the brokers in the last statistics window.",
    _PRODUCER,
    unit="seconds",
    java="request-latency-avg",
)
PRODUCER_MESSAGES = ClientSpec(
    "groupwright_producer_messages_total",
    MetricType.COUNTER,
    "Messages sent to brokers.",
    _PRODUCER,
    java="record-send-total",
)
PRODUCER_BYTES = ClientSpec(
    "groupwright_producer_sent_bytes_total",
    MetricType.COUNTER,
    "Bytes of messages sent to brokers.",
    _PRODUCER,
    unit="bytes",
    java="outgoing-byte-total",
)
PRODUCER_REQUEST_ERRORS = ClientSpec(
    "groupwright_producer_request_errors_total",
    MetricType.COUNTER,
    "Requests to brokers without a response: send and receive errors, and timeouts.",
    _PRODUCER,
    java="record-error-total",
)
PRODUCER_RETRIES = ClientSpec(
    "groupwright_producer_retries_total",
    MetricType.COUNTER,
    "Retried requests.",
    _PRODUCER,
    java="record-retry-total",
)
PRODUCER_CLIENT_ERRORS = ClientSpec(
    "groupwright_producer_client_errors_total",
    MetricType.COUNTER,
    "Errors that librdkafka reported to the producer's `error_cb`.",
    (*_PRODUCER, "error"),
)
PRODUCER_STATISTICS_AGE = ClientSpec(
    "groupwright_producer_statistics_age_seconds",
    MetricType.GAUGE,
    "Age of the statistics from which the producer's metrics are made; librdkafka delivers them only during "
    "poll and flush.",
    _PRODUCER,
    unit="seconds",
    merge=Merge.MAX,
)

PRODUCER_ERRORS = ClientSpec(
    "groupwright_producer_instrumentation_errors_total",
    MetricType.COUNTER,
    "Failures inside the instrumentation, which do not affect the producer; the log has the first.",
    _PRODUCER,
)

PRODUCERS = defined_in(globals(), ClientSpec)
