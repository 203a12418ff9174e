"""The catalogue of a stream's metrics, from which its families and the README's table are made."""

from groupwright.core.metrics import MetricSpec, MetricType, defined_in

TASKS = ("batch", "derive", "sample", "write_samples", "compact")
"""The tasks of a stream: a batch, derived tables, samples of log-end offsets and their rows, compaction."""

BUILD = MetricSpec(
    "groupwright_pipeline_build_info",
    MetricType.INFO,
    "Version of Groupwright, and the format of the tables; always 1.",
    ("version", "format"),
)
START = MetricSpec(
    "groupwright_pipeline_start_timestamp_seconds",
    MetricType.GAUGE,
    "Time at which the job started, since the epoch.",
)
LAST_PROGRESS = MetricSpec(
    "groupwright_pipeline_last_progress_timestamp_seconds",
    MetricType.GAUGE,
    "Time of the last progress, since the epoch: a batch ended, or nothing was left to read; 0 before the "
    "first.",
)
BEHIND_RECORDS = MetricSpec(
    "groupwright_pipeline_behind_records",
    MetricType.GAUGE,
    "Offsets up to the last stable offsets of the topics that the job has not read.",
)
BEHIND_SECONDS = MetricSpec(
    "groupwright_pipeline_behind_seconds",
    MetricType.GAUGE,
    "Time since which records may be unread: at the start, the age of the oldest unread record.",
)
HELD_RECORDS = MetricSpec(
    "groupwright_pipeline_held_records",
    MetricType.GAUGE,
    "Records behind open transactions, which the job reads once these have ended.",
)
LEASE_HELD = MetricSpec(
    "groupwright_pipeline_lease_held",
    MetricType.GAUGE,
    "Whether the job may write the tables: 1 if it holds the lease.",
)
RECORDS = MetricSpec(
    "groupwright_pipeline_records_total", MetricType.COUNTER, "Records read, by kind.", ("kind",)
)
QUARANTINED_RECORDS = MetricSpec(
    "groupwright_pipeline_quarantined_records_total",
    MetricType.COUNTER,
    "Records added to the table `quarantine`.",
)
LOSSES = MetricSpec(
    "groupwright_pipeline_losses_total",
    MetricType.COUNTER,
    "Losses of records after which the job went on (`on_data_loss=restart`), by kind.",
    ("kind",),
)
TASK_RUNS = MetricSpec(
    "groupwright_pipeline_task_runs_total", MetricType.COUNTER, "Successful runs of a task.", ("task",)
)
TASK_SECONDS = MetricSpec(
    "groupwright_pipeline_task_seconds_total",
    MetricType.COUNTER,
    "Duration of all runs of a task.",
    ("task",),
)
TASK_LAST_DURATION = MetricSpec(
    "groupwright_pipeline_task_last_duration_seconds",
    MetricType.GAUGE,
    "Duration of a task's last run; 0 before the first.",
    ("task",),
)
TASK_LAST_END = MetricSpec(
    "groupwright_pipeline_task_last_end_timestamp_seconds",
    MetricType.GAUGE,
    "Time of the end of a task's last run, since the epoch; 0 before the first.",
    ("task",),
)

CATALOGUE = defined_in(globals(), MetricSpec)
