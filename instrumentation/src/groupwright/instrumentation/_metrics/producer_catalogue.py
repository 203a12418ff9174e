"""Every metric of producers: the part of the catalogue that rests on a producer's statistics alone."""

from groupwright.instrumentation._metrics.spec import Kind, Merge, Spec

_PRODUCER = ("client_id",)

PRODUCER_QUEUE_MESSAGES = Spec(
    "groupwright_producer_queue_messages",
    Kind.GAUGE,
    "Messages that wait in the producer's queue.",
    _PRODUCER,
    merge=Merge.SUM,
)
PRODUCER_QUEUE_USED = Spec(
    "groupwright_producer_queue_used_ratio",
    Kind.GAUGE,
    "How full the queue is, of messages or of bytes, whichever is closer to its limit; at 1 produce() fails.",
    _PRODUCER,
    unit="ratio",
    java="1 - buffer-available-bytes / buffer-total-bytes",
    merge=Merge.MAX,
)
PRODUCER_QUEUE_BYTES = Spec(
    "groupwright_producer_queue_size_bytes",
    Kind.GAUGE,
    "Bytes that wait in the producer's queue.",
    _PRODUCER,
    unit="bytes",
    merge=Merge.SUM,
)
PRODUCER_BATCH_BYTES = Spec(
    "groupwright_producer_batch_size_bytes",
    Kind.GAUGE,
    "Size of batches, on average over the last window of measuring; absent while none was sent.",
    _PRODUCER,
    unit="bytes",
    java="batch-size-avg",
)
PRODUCER_BATCH_MESSAGES = Spec(
    "groupwright_producer_batch_messages",
    Kind.GAUGE,
    "Messages a batch, likewise.",
    _PRODUCER,
    java="records-per-request-avg",
)
PRODUCER_QUEUE_LATENCY = Spec(
    "groupwright_producer_queue_latency_seconds",
    Kind.GAUGE,
    "Time from produce() until the batch was made, on average over the last window and over brokers.",
    _PRODUCER,
    unit="seconds",
    java="record-queue-time-avg",
)
PRODUCER_ROUND_TRIP = Spec(
    "groupwright_producer_round_trip_seconds",
    Kind.GAUGE,
    "Round trip to the brokers, likewise.",
    _PRODUCER,
    unit="seconds",
    java="request-latency-avg",
)
PRODUCER_MESSAGES = Spec(
    "groupwright_producer_messages_total",
    Kind.COUNTER,
    "Messages sent to brokers.",
    _PRODUCER,
    java="record-send-total",
)
PRODUCER_BYTES = Spec(
    "groupwright_producer_sent_bytes_total",
    Kind.COUNTER,
    "Bytes of messages sent to brokers.",
    _PRODUCER,
    unit="bytes",
    java="outgoing-byte-total",
)
PRODUCER_REQUEST_ERRORS = Spec(
    "groupwright_producer_request_errors_total",
    Kind.COUNTER,
    "Requests to brokers that had no answer: send and receive errors, and time-outs.",
    _PRODUCER,
    java="record-error-total",
)
PRODUCER_RETRIES = Spec(
    "groupwright_producer_retries_total",
    Kind.COUNTER,
    "Requests sent again.",
    _PRODUCER,
    java="record-retry-total",
)
PRODUCER_CLIENT_ERRORS = Spec(
    "groupwright_producer_client_errors_total",
    Kind.COUNTER,
    "Errors that librdkafka told the producer's `error_cb`.",
    (*_PRODUCER, "error"),
)
PRODUCER_STATISTICS_AGE = Spec(
    "groupwright_producer_statistics_age_seconds",
    Kind.GAUGE,
    "How old the statistics are on which the producer's metrics rest; they come only while it polls or flushes.",
    _PRODUCER,
    unit="seconds",
    merge=Merge.MAX,
)

PRODUCER_OBSERVATION_ERRORS = Spec(
    "groupwright_producer_instrumentation_errors_total",
    Kind.COUNTER,
    "Failures inside the instrumentation; the producer went on, and the log has the first.",
    _PRODUCER,
)

PRODUCERS = (
    PRODUCER_QUEUE_MESSAGES,
    PRODUCER_QUEUE_USED,
    PRODUCER_QUEUE_BYTES,
    PRODUCER_BATCH_BYTES,
    PRODUCER_BATCH_MESSAGES,
    PRODUCER_QUEUE_LATENCY,
    PRODUCER_ROUND_TRIP,
    PRODUCER_MESSAGES,
    PRODUCER_BYTES,
    PRODUCER_REQUEST_ERRORS,
    PRODUCER_RETRIES,
    PRODUCER_CLIENT_ERRORS,
    PRODUCER_STATISTICS_AGE,
    PRODUCER_OBSERVATION_ERRORS,
)
