"""The metrics of work in parallel, which `ParallelConsumer.statistics` tells."""

from groupwright.core.metrics import MetricType, defined_in
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

_CLIENT = ("group", "client_id")

PARALLEL_IN_FLIGHT = ClientSpec(
    "groupwright_parallel_in_flight",
    MetricType.GAUGE,
    "Messages that were received and are not done. Lag from the committed offset includes them.",
    _CLIENT,
    merge=Merge.SUM,
)
PARALLEL_RUNNING = ClientSpec(
    "groupwright_parallel_running",
    MetricType.GAUGE,
    "Messages that workers work on.",
    _CLIENT,
    merge=Merge.SUM,
)
PARALLEL_DONE_BEYOND = ClientSpec(
    "groupwright_parallel_done_beyond",
    MetricType.GAUGE,
    "Messages that are done behind one that is not; after a crash they come a second time.",
    _CLIENT,
    merge=Merge.SUM,
)
PARALLEL_OLDEST = ClientSpec(
    "groupwright_parallel_oldest_seconds",
    MetricType.GAUGE,
    "Age, since it was received, of the message that holds a commit back the longest; 0 if none does.",
    _CLIENT,
    unit="seconds",
    merge=Merge.MAX,
)
PARALLEL_MESSAGES = ClientSpec(
    "groupwright_parallel_messages_total",
    MetricType.COUNTER,
    "Messages that workers have processed, including dead letters.",
    _CLIENT,
)
PARALLEL_RETRIES = ClientSpec(
    "groupwright_parallel_retries_total",
    MetricType.COUNTER,
    "Calls for a message that had failed before.",
    _CLIENT,
)
PARALLEL_DEAD_LETTERS = ClientSpec(
    "groupwright_parallel_dead_letters_total",
    MetricType.COUNTER,
    "Messages that were given to the dead-letter function.",
    _CLIENT,
)

PARALLEL = defined_in(globals(), ClientSpec)
